"""The table file that is open on the page: its path, how it is read, and whether it has changed."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import shoal

__all__ = ["HEAD", "MOST_BYTES", "OpenedFile", "identified", "inspect_table"]

MOST = 50_000  # records by which roles and kinds are proposed
MOST_BYTES = 1_000_000_000  # of a CSV or Parquet file that is read in full for the view
HEAD = 200_000  # records of a larger one


@dataclass(frozen=True)
class OpenedFile:
    """A table file: `name` differs from its path if it was dragged in, `key` finds its stored settings."""

    path: Path
    name: str
    partial: bool = False  # too large: only its first records are shown and counted
    csv: Mapping[str, Any] = field(default_factory=dict)  # options of its file, as far as the user has set them
    stamp: tuple[int, int] | None = None  # size and modification time when it was opened
    key: str = ""

    @property
    def dragged(self) -> bool:
        """True if it was dragged in: its place is not known."""
        return str(self.path) != self.name

    @property
    def title(self) -> str:
        """The name of the file."""
        return Path(self.name).name

    @property
    def suffix(self) -> str:
        """Its ending, uncompressed."""
        return Path(self.title.removesuffix(".gz").removesuffix(".zst")).suffix.lower()

    @property
    def ending(self) -> str:
        """The ending of files made from it: its own if such files can be written, uncompressed."""
        return ".csv" if self.suffix in ("", ".sas7bdat") else self.suffix

    @property
    def folder(self) -> Path:
        """The folder that is proposed for files made from it."""
        return Path.home() if self.dragged else self.path.parent

    @property
    def changed(self) -> bool:
        """True if the file on disk differs from the one that was opened."""
        return self.stamp is not None and self.stamp != stamp_of(self.path)


def stamp_of(path: Path) -> tuple[int, int] | None:
    """Return the size and the modification time of a file; None if it does not exist."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def identified(table: OpenedFile) -> OpenedFile:
    """Return a table file with its stamp and key."""
    stamp = stamp_of(table.path)  # before it is read: a later change must be seen
    if table.dragged and stamp is not None:  # the copy has a new path each time
        with table.path.open("rb") as file:
            key = hashlib.file_digest(file, "sha256").hexdigest()
    else:
        key = hashlib.sha256(f"{table.name} {stamp}".encode()).hexdigest()
    return replace(table, stamp=stamp, key=key)


def inspect_table(table: OpenedFile, scratch: Path) -> tuple[OpenedFile, shoal.Inspection]:
    """Inspect a table, or the first records of a large one; `scratch` holds those of a CSV file for a moment."""
    path, large = table.path, table.path.is_file() and table.path.stat().st_size > MOST_BYTES
    if large and path.suffix.lower() in (".parquet", ".pq"):
        return replace(table, partial=True), shoal.inspect(_head_of_parquet(path), most=MOST)
    if large and path.suffix.lower() in (".csv", ".tsv", ".txt"):
        try:
            with path.open("rb") as file, scratch.open("wb") as head:
                head.writelines(itertools.islice(file, HEAD + 1))
            return replace(table, partial=True), shoal.inspect(scratch, most=MOST, **table.csv)
        finally:
            scratch.unlink(missing_ok=True)
    return table, shoal.inspect(path, most=MOST, **table.csv)


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
