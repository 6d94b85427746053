"""What the Dask engine hands out: partitions that the cluster holds, or files that its workers write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from shoal.engines.cluster_shuffle import TARGET
from shoal.engines.dask_parts import levels_of
from shoal.engines.records import Arrays, Layout
from shoal.tables.addresses import Place
from shoal.tables.columns import Name
from shoal.tables.data_sets import cast_part, one_schema, part_place, write_part
from shoal.tables.metadata import without_metadata
from shoal.tables.outputs import moved_together
from shoal.tables.sources import Part, Source

__all__ = ["label_parts", "release_parts", "written_parts"]


def release_parts(
    dask: Any, released: Sequence[Any], levels: Mapping[Name, Sequence[Any]]
) -> tuple[Any, Sequence[Any]]:
    """Return a Dask DataFrame whose partitions the cluster holds, and these: what is recounted is what is there."""
    delayed = dask.delayed
    parts: Sequence[Any] = dask.persist(*released)
    if levels:
        # Ordered categories have the same values in all partitions, those that some record has, to be joined again.
        used = dask.compute(*[delayed(levels_of)(part, list(levels)) for part in parts])
        kept = {
            name: [level for level in values if any(level in found.get(name, ()) for found in used)]
            for name, values in levels.items()
        }
        parts = dask.persist(*[delayed(_set_levels)(part, kept) for part in parts])
    meta, *rows = dask.compute(delayed(_head)(parts[0]), *[delayed(len)(part) for part in parts])
    *firsts, end = np.cumsum([0, *rows]).tolist()
    parts = dask.persist(*[delayed(_numbered)(part, first) for part, first in zip(parts, firsts, strict=True)])
    # Dask knows no divisions of a partition without records.
    divisions = (*firsts, end - 1) if all(rows) else None
    frame = import_module("dask.dataframe").from_delayed(list(parts), meta=meta, divisions=divisions, verify_meta=False)
    return frame, parts


def written_parts(dask: Any, released: Sequence[Any], target: Place, layout: Layout) -> Source:
    """Let the workers write a data set, a file for each part; return it as it is to be read again."""
    # Means of scattered groups hardly repeat within a part: a dictionary of them would only take time.
    plain = [str(name) for name in layout.numbers]
    with moved_together() as outputs:
        folder = outputs.data_set(target)
        return _write(dask, released, folder, plain)


def label_parts(dask: Any, numbered: Sequence[tuple[int, Any, Any]], groups: Any, target: Place) -> None:
    """Let the workers write which group every record is in; of each part: its first record, answers, and records."""
    with moved_together() as outputs:
        folder = outputs.data_set(target)
        labelled = [dask.delayed(_label)(first, answers, kept, groups) for first, answers, kept in numbered]
        _write(dask, labelled, folder, [])


def _write(dask: Any, tables: Sequence[Any], folder: Place, plain: Sequence[str]) -> Source:
    written = dask.compute(
        *[dask.delayed(_write_table)(folder, part, table, plain) for part, table in enumerate(tables)]
    )
    schema = one_schema((found for _, found in written), f"Output {folder}")
    other = [part for part, (_, found) in enumerate(written) if not found.equals(schema)]
    dask.compute(*[dask.delayed(cast_part)(folder, part, schema, plain) for part in other])
    parts = tuple(Part(part_place(folder, part), (0,), rows) for part, (rows, _) in enumerate(written))
    return Source(parts, tuple(schema.names), (), None)


# What workers do


def _set_levels(part: Any, levels: Mapping[Name, Sequence[Any]]) -> Any:
    ordered = [name for name in levels if name in part and getattr(part[name].dtype, "ordered", False)]
    return part.assign(**{name: part[name].cat.set_categories(levels[name], ordered=True) for name in ordered})


def _head(part: Any) -> Any:
    return part.iloc[:0]


def _numbered(part: Any, first: int) -> Any:
    """Return a partition whose records are numbered on from those before it."""
    import pandas as pd

    return part.set_axis(pd.RangeIndex(first, first + len(part)), axis=0)


def _write_table(folder: Place, part: int, table: Any, plain: Sequence[str]) -> tuple[int, Any]:
    if hasattr(table, "iloc"):
        import pyarrow as pa

        table = without_metadata(pa.Table.from_pandas(table, preserve_index=False))
    write_part(folder, part, table, plain)
    return len(table), table.schema


def _label(first: int, answers: Arrays, kept: Any, groups: Any) -> Any:
    import pyarrow as pa

    (before,) = groups.arguments
    target, group, size = (answers[name].reshape(-1) for name in (TARGET, "group", "size"))
    rows = np.arange(len(group)) if kept is None else kept
    return pa.table({"record": first + rows + 1, "group": group + before[target], "size": size})
