"""Dask tables: partitions of a Dask DataFrame, or parts of files that workers read and write.

Input tables are not kept in memory: a part is computed or read again whenever it is needed. Released tables are held by
the cluster or written by its workers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from shoal.core.errors import InputError, ShoalError
from shoal.core.messages import parameter
from shoal.core.types import Name
from shoal.engines.records import Schema
from shoal.tables.addresses import Place, cast_part, one_schema, part_place, write_part
from shoal.tables.formats.arrow_files import describe_parquet
from shoal.tables.formats.frame_columns import as_polars
from shoal.tables.formats.frames import open_table
from shoal.tables.formats.metadata import without_metadata
from shoal.tables.number_text import Dialect
from shoal.tables.outputs import moved_together
from shoal.tables.sources import FilePart, Source, check_same_columns, parquet_source, parts_of
from shoal.tables.table import NO_INDEX, check_names

__all__ = ["FileParts", "FrameParts", "dask_refusals", "read_files", "release_parts", "write_parts"]

BYTES = 64_000_000  # bytes per part of a file, unless a row group is larger
CHANGED = f"{parameter('data')} changed when it was computed again (partition {{part}}). Nothing was released. "


class FrameParts:
    """The partitions of a Dask DataFrame; `persisted` has the partitions if the workers already hold them."""

    dialect: Dialect | None = None
    changed = CHANGED + "Persist it on the cluster first: data = data.persist()."

    def __init__(self, frame: Any, persisted: Sequence[Any] | None = None) -> None:
        self._dask, self._frame, self._persisted = import_module("dask"), frame, persisted
        check_names(self.names)
        with dask_refusals():
            self.parts = list(frame.to_delayed() if persisted is None else persisted)

    @property
    def names(self) -> list[str]:
        """The names of all columns."""
        return [str(name) for name in self._frame.columns]

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the reader of the release."""
        if self._frame.divisions[0] not in (None, 0):
            return (NO_INDEX,)
        return open_table(self._frame._meta).index_notes  # noqa: SLF001  (Dask's own description of the columns)

    def some(self, columns: Sequence[str]) -> list[Any]:
        """Return the partitions, with only the selected columns if possible."""
        if self._persisted is not None:
            return self.parts
        # Dask may merge partitions that have few columns. In that case, all columns are read.
        narrow = list(self._frame[list(columns)].to_delayed())
        return narrow if len(narrow) == len(self.parts) else self.parts

    def lengths(self, columns: Sequence[str]) -> list[int]:
        """Return the number of records in each partition."""
        with dask_refusals():
            return list(self._dask.compute(*[self._dask.delayed(len)(part) for part in self.some(columns[:1])]))

    def schema(self) -> Schema:
        """Return the schema of the table. Object columns and ordered categories are inspected in the records."""
        delayed, empty = self._dask.delayed, self._frame._meta  # noqa: SLF001  (Dask's own description of the columns)
        numeric = [name for name, kind in as_polars(empty).schema.items() if kind.is_numeric()]
        objects = [name for name, kind in empty.dtypes.items() if str(kind) == "object"]
        ordered = [name for name, kind in empty.dtypes.items() if getattr(kind, "ordered", False)]
        opened = [delayed(_timed)(part, objects) for part in self.some(objects)] if objects else []
        with dask_refusals():
            timed = [_timed(empty, list(empty.columns)), *self._dask.compute(*opened)]
            levels = self._dask.compute(delayed(_levels_of)(self.parts[0], ordered))[0] if ordered else {}
        names = tuple(dict.fromkeys(name for part in timed for name in part))
        return Schema(self.names, tuple(numeric), names, levels)


class FileParts:
    """Parts of Parquet files that all workers can read."""

    changed = CHANGED + "Run it again."
    notes: tuple[str, ...] = ()

    def __init__(self, source: Source) -> None:
        self._source, self.dialect = source, source.dialect
        self.parts: list[Any] = list(source.parts)

    @property
    def names(self) -> Sequence[str]:
        """The names of all columns."""
        return self._source.names

    def some(self, columns: Sequence[str]) -> list[Any]:
        """Return all parts; the functions that read the parts select the columns."""
        return self.parts

    def lengths(self, columns: Sequence[str]) -> list[int]:
        """Return the number of records in each part."""
        return [part.rows for part in self.parts]

    def schema(self) -> Schema:
        """Return the schema of the table."""
        source = self._source
        return Schema(source.names, source.numeric, source.timed, source.levels)


def read_files(places: Sequence[Place], rows: int) -> Source:
    """Open Parquet files as a table in parts of at most `rows` records, unless a row group has more."""
    dask = import_module("dask")

    def run(function: Any, tasks: Any) -> Any:
        return dask.compute(*[dask.delayed(function)(*task) for task in tasks])

    described = run(describe_parquet, [(place,) for place in places])
    schema = described[0][0]
    check_same_columns(places, (each for each, _ in described[1:]), schema)
    parts = tuple(
        part
        for place, (_, groups) in zip(places, described, strict=True)
        for part in parts_of(place, groups, rows, BYTES)
    )
    if not parts:
        raise InputError(f"File {places[0]} has no records. Mask a table with at least k records.")
    return parquet_source(parts, schema, run)


@contextmanager
def dask_refusals() -> Iterator[None]:
    """Convert errors in the user's graph to refusals."""
    try:
        yield
    except ShoalError:
        raise
    except Exception as error:  # the user's graph may raise anything
        lines = str(error).strip().splitlines() or [""]
        raise InputError(
            f"{parameter('data')} cannot be computed by Dask ({type(error).__name__}: {lines[0]}). Try data.compute()."
        ) from error


def release_parts(
    dask: Any, released: Sequence[Any], levels: Mapping[Name, Sequence[Any]]
) -> tuple[Any, Sequence[Any]]:
    """Return a Dask DataFrame and its partitions, persisted so that the recount sees the released data."""
    delayed = dask.delayed
    parts: Sequence[Any] = dask.persist(*released)
    if levels:
        # All partitions need the same ordered categories: the values that occur in the records.
        used = dask.compute(*[delayed(_levels_of)(part, list(levels)) for part in parts])
        used_levels = {
            name: [level for level in values if any(level in part.get(name, ()) for part in used)]
            for name, values in levels.items()
        }
        parts = dask.persist(*[delayed(_set_levels)(part, used_levels) for part in parts])
    meta, *rows = dask.compute(delayed(_head)(parts[0]), *[delayed(len)(part) for part in parts])
    *firsts, end = np.cumsum([0, *rows]).tolist()
    parts = dask.persist(*[delayed(_numbered)(part, first) for part, first in zip(parts, firsts, strict=True)])
    # Dask supports divisions only if every partition has records.
    divisions = (*firsts, end - 1) if all(rows) else None
    frame = import_module("dask.dataframe").from_delayed(list(parts), meta=meta, divisions=divisions, verify_meta=False)
    return frame, parts


def write_parts(dask: Any, tables: Sequence[Any], target: Place, plain: Sequence[str]) -> Source:
    """Write a data set on the workers, one file per part; return it for reading.

    Values of `plain` columns rarely repeat within a part, so a dictionary would only cost time.
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


# Functions for workers


def _timed(part: Any, columns: Sequence[str]) -> list[Any]:
    return open_table(part[list(columns)]).timed_names()


def _levels_of(part: Any, names: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """Return the categories of ordered columns, in order."""
    return {
        name: tuple(part[name].dtype.categories)
        for name in names
        if name in part and getattr(part[name].dtype, "ordered", False)
    }


def _set_levels(part: Any, levels: Mapping[Name, Sequence[Any]]) -> Any:
    ordered = [name for name in levels if name in part and getattr(part[name].dtype, "ordered", False)]
    return part.assign(**{name: part[name].cat.set_categories(levels[name], ordered=True) for name in ordered})


def _head(part: Any) -> Any:
    return part.iloc[:0]


def _numbered(part: Any, first: int) -> Any:
    """Number the records of a partition, starting at `first`."""
    import pandas as pd

    return part.set_axis(pd.RangeIndex(first, first + len(part)), axis=0)


def _write_table(folder: Place, part: int, table: Any, plain: Sequence[str]) -> tuple[int, Any]:
    if hasattr(table, "iloc"):
        import pyarrow as pa

        table = without_metadata(pa.Table.from_pandas(table, preserve_index=False))
    write_part(folder, part, table, plain)
    return len(table), table.schema
