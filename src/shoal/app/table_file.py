"""The table file that is open on the page: its path, reading options and changes on disk."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import shoal

__all__ = ["HEAD", "MOST_BYTES", "OpenedFile", "identified", "inspect_table"]

MOST = 50_000  # records from which roles and kinds are proposed
MOST_BYTES = 1_000_000_000  # maximum size of a CSV or Parquet file; the page reads only the head of a larger file
HEAD = 200_000  # records in the head of a larger file


@dataclass(frozen=True)
class OpenedFile:
    """A table file. `name` differs from the path of a dragged-in file; `key` identifies its stored settings."""

    path: Path
    name: str
    partial: bool = False  # too large: only its first records are shown and counted
    csv: Mapping[str, Any] = field(default_factory=dict)  # reading options that the user has set
    stamp: tuple[int, int] | None = None  # size and modification time at opening
    key: str = ""

    @property
    def dragged(self) -> bool:
        """True if the file was dragged in, so that its folder is unknown."""
        return str(self.path) != self.name

    @property
    def title(self) -> str:
        """The name of the file."""
        return Path(self.name).name

    @property
    def suffix(self) -> str:
        """The file extension, without the extension of a compression format."""
        return Path(self.title.removesuffix(".gz").removesuffix(".zst")).suffix.lower()

    @property
    def ending(self) -> str:
        """The extension of output files: that of the uncompressed table, or .csv if shoal cannot write its format."""
        return ".csv" if self.suffix in ("", ".sas7bdat") else self.suffix

    @property
    def folder(self) -> Path:
        """The proposed folder for output files."""
        return Path.home() if self.dragged else self.path.parent

    @property
    def changed(self) -> bool:
        """True if the file has changed on disk since it was opened."""
        return self.stamp is not None and self.stamp != stamp_of(self.path)


def stamp_of(path: Path) -> tuple[int, int] | None:
    """Return the size and the modification time of a file; None if the file does not exist."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def identified(table: OpenedFile) -> OpenedFile:
    """Return a table file with its stamp and key."""
    stamp = stamp_of(table.path)  # taken before the file is read, so that a later change is detected
    if table.dragged and stamp is not None:  # each copy has a new path
        with table.path.open("rb") as file:
            key = hashlib.file_digest(file, "sha256").hexdigest()
    else:
        key = hashlib.sha256(f"{table.name} {stamp}".encode()).hexdigest()
    return replace(table, stamp=stamp, key=key)


def inspect_table(table: OpenedFile, scratch: Path) -> tuple[OpenedFile, shoal.Inspection]:
    """Inspect a table, or the first records of a large table; `scratch` temporarily holds the head of a CSV file."""
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
