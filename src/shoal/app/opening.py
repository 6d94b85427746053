"""Opening a table: whole if it fits, else its first part for the view."""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import shoal
from shoal.app.work import Source, stamp_of

__all__ = ["HEAD", "MOST_BYTES", "identified", "open_source"]

MOST = 50_000  # records by which roles and kinds are proposed
MOST_BYTES = 1_000_000_000  # of a CSV or Parquet file that is read as a whole for the view
HEAD = 200_000  # records of a larger one


def identified(source: Source) -> Source:
    """Return a table with the marks by which a later change is seen and its settings are found again."""
    stamp = stamp_of(source.path)  # before it is read: a later change must be seen
    if source.dragged and stamp is not None:  # the copy has a new place each time
        with source.path.open("rb") as file:
            key = hashlib.file_digest(file, "sha256").hexdigest()
    else:
        key = hashlib.sha256(f"{source.name} {stamp}".encode()).hexdigest()
    return replace(source, stamp=stamp, key=key)


def open_source(source: Source, scratch: Path) -> tuple[Source, shoal.Inspection]:
    """Look at a table; `scratch` is the place for the first part of a large CSV file, which is removed again."""
    path, large = source.path, source.path.is_file() and source.path.stat().st_size > MOST_BYTES
    if large and path.suffix.lower() in (".parquet", ".pq"):
        return replace(source, part=True), shoal.inspect(_head_of_parquet(path), most=MOST)
    if large and path.suffix.lower() in (".csv", ".tsv", ".txt"):
        try:
            with path.open("rb") as file, scratch.open("wb") as part:
                part.writelines(itertools.islice(file, HEAD + 1))
            return replace(source, part=True), shoal.inspect(scratch, most=MOST, **source.csv)
        finally:
            scratch.unlink(missing_ok=True)
    return source, shoal.inspect(path, most=MOST, **source.csv)


def _head_of_parquet(path: Path) -> Any:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            first = next(file.iter_batches(batch_size=HEAD), None)
            head = pa.Table.from_batches([] if first is None else [first], schema=file.schema_arrow)
            head.validate(full=True)
    except (OSError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0].rstrip(" .:")
        raise shoal.FileError(f"File {path} cannot be read: {reason}. If it is damaged, restore a copy.") from None
    return head
