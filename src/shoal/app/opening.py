"""Opening a table: whole if it fits, else its first part for the view."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import shoal
from shoal.app.work import Source

__all__ = ["HEAD", "MOST_BYTES", "open_source"]

MOST = 50_000  # records by which roles and kinds are proposed
MOST_BYTES = 1_000_000_000  # of a CSV or Parquet file that is read as a whole for the view
HEAD = 200_000  # records of a larger one


def open_source(source: Source, scratch: Path) -> tuple[Source, shoal.Inspection]:
    """Look at a table; `scratch` is the place for the first part of a large CSV file, which is removed again."""
    path, large = source.path, source.path.is_file() and source.path.stat().st_size > MOST_BYTES
    if large and path.suffix.lower() in (".parquet", ".pq"):
        return _with_part(source), shoal.inspect(_head_of_parquet(path), most=MOST)
    if large and path.suffix.lower() in (".csv", ".tsv", ".txt"):
        try:
            with path.open("rb") as file, scratch.open("wb") as part:
                part.writelines(itertools.islice(file, HEAD + 1))
            return _with_part(source), shoal.inspect(scratch, most=MOST, **source.csv)
        finally:
            scratch.unlink(missing_ok=True)
    return source, shoal.inspect(path, most=MOST, **source.csv)


def _with_part(source: Source) -> Source:
    return Source(source.path, source.name, part=True, csv=source.csv)


def _head_of_parquet(path: Path) -> Any:
    import pyarrow as pa
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        first = next(file.iter_batches(batch_size=HEAD), None)
        return pa.Table.from_batches([] if first is None else [first], schema=file.schema_arrow)
