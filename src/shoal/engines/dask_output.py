"""Tables that Dask releases: partitions that the cluster holds, or files that its workers write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from shoal.engines.dask_parts import levels_of
from shoal.tables.addresses import Place
from shoal.tables.columns import Name
from shoal.tables.formats.data_sets import cast_part, one_schema, part_place, write_part
from shoal.tables.formats.metadata import without_metadata
from shoal.tables.outputs import moved_together
from shoal.tables.sources import FilePart, Source

__all__ = ["release_parts", "write_parts"]


def release_parts(
    dask: Any, released: Sequence[Any], levels: Mapping[Name, Sequence[Any]]
) -> tuple[Any, Sequence[Any]]:
    """Return a Dask DataFrame whose partitions the cluster holds, and these: what is recounted is what is there."""
    delayed = dask.delayed
    parts: Sequence[Any] = dask.persist(*released)
    if levels:
        # Ordered categories have the same values in all partitions, those that some record has, to be joined again.
        used = dask.compute(*[delayed(levels_of)(part, list(levels)) for part in parts])
        used_levels = {
            name: [level for level in values if any(level in part.get(name, ()) for part in used)]
            for name, values in levels.items()
        }
        parts = dask.persist(*[delayed(_set_levels)(part, used_levels) for part in parts])
    meta, *rows = dask.compute(delayed(_head)(parts[0]), *[delayed(len)(part) for part in parts])
    *firsts, end = np.cumsum([0, *rows]).tolist()
    parts = dask.persist(*[delayed(_numbered)(part, first) for part, first in zip(parts, firsts, strict=True)])
    # Dask knows no divisions of a partition without records.
    divisions = (*firsts, end - 1) if all(rows) else None
    frame = import_module("dask.dataframe").from_delayed(list(parts), meta=meta, divisions=divisions, verify_meta=False)
    return frame, parts


def write_parts(dask: Any, tables: Sequence[Any], target: Place, plain: Sequence[str]) -> Source:
    """Let the workers write a data set, a file for each part; return it as it is to be read again.

    Columns of `plain` hardly repeat their values within a part: a dictionary of them would only take time.
    """
    with moved_together() as outputs:
        folder = outputs.data_set(target)
        files = dask.compute(
            *[dask.delayed(_write_table)(folder, part, table, plain) for part, table in enumerate(tables)]
        )
        schema = one_schema((each for _, each in files), f"Output {folder}")
        different = [part for part, (_, each) in enumerate(files) if not each.equals(schema)]
        dask.compute(*[dask.delayed(cast_part)(folder, part, schema, plain) for part in different])
        parts = tuple(FilePart(part_place(folder, part), (0,), rows) for part, (rows, _) in enumerate(files))
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
