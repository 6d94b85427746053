"""Files in and out: the format by the name's ending, written beside the target and moved into place."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from shoal.core.errors import FileError, InputError
from shoal.core.types import Ints
from shoal.tables.csv_files import CsvFile, Dialect, read_csv, write_csv
from shoal.tables.metadata import without_metadata
from shoal.tables.outputs import folder_beside, naming, written_beside
from shoal.tables.stat_files import READERS, WRITERS, StatFile, read_stat, write_stat

__all__ = ["Source", "check_target", "folder_beside", "read_file", "sha256", "write_file", "written_beside"]

CSV = (".csv", ".tsv", ".txt")
PARQUET = (".parquet", ".pq")
ARROW = (".feather", ".arrow", ".ipc")
READABLE = (*CSV, *PARQUET, *ARROW, *READERS)
WRITABLE = (*CSV, *PARQUET, *ARROW, *WRITERS)


@dataclass(frozen=True)
class Source:
    """A table read from a file, with what is needed to write one like it."""

    path: Path
    frame: Any
    file: CsvFile | StatFile | None = None

    def restored(self, frame: Any, changed: Sequence[str], rows: Ints | None) -> Any:
        """Return a released frame with all but the changed columns as the file stores them."""
        return self.file.restored(frame, changed, rows) if isinstance(self.file, StatFile) else frame


def read_file(
    path: str | os.PathLike[str],
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    numbers: Sequence[str] = (),
) -> Source:
    """Read a table; CSV options are taken from the file itself where not given."""
    source = Path(path)
    suffix = source.suffix.lower()
    if suffix not in READABLE:
        raise InputError(f"File {source} must end in one of {', '.join(READABLE)}; got {suffix or 'no ending'!r}.")
    if not source.is_file():
        raise FileError(f"File {source} is not there{' (it is a folder)' if source.is_dir() else ''}. Check the path.")
    try:
        if suffix in CSV:
            text = read_csv(source, delimiter=delimiter, encoding=encoding, decimal=decimal, numbers=numbers)
            return Source(source, text.frame, text)
        if suffix in READERS:
            stat = read_stat(source)
            return Source(source, stat.frame, stat)
        return Source(source, _read_arrow(source))
    except (FileNotFoundError, PermissionError) as error:
        raise FileError(f"File {source} cannot be read: {error.strerror}.") from None


def write_file(
    frame: Any,
    path: str | os.PathLike[str],
    *,
    like: Source | None = None,
    changed: Sequence[str] = (),
    strata: Sequence[str] = (),
    rows: Ints | None = None,
    check: Callable[[pl.DataFrame], None] | None = None,
) -> None:
    """Write a frame as a whole or not at all.

    Parameters
    ----------
    frame
        A polars or pyarrow table, or any frame that converts to Arrow.
    path
        The target; its ending decides the format.
    like
        The file the frame came from. A CSV file is then written in the same dialect, with the old text in all
        but the changed columns.
    changed
        The columns whose values are new.
    strata
        The columns in which records of a stratum must look alike.
    rows
        The records of `like` that are left, if not all.
    check
        What looks at the table as it was written, before it is moved into place.
    """
    target = Path(path)
    suffix = target.suffix.lower()
    check_target(target)
    origin = like.file if like is not None else None
    dialect = Dialect()
    with written_beside(target) as temporary:
        if suffix in CSV and isinstance(origin, CsvFile):
            dialect = origin.dialect
            write_csv(origin.like(_polars(frame), changed, rows, strata), temporary, dialect)
        elif suffix in CSV:
            dialect = Dialect(delimiter="\t" if suffix == ".tsv" else ",")
            write_csv(_polars(frame), temporary, dialect)
        elif suffix in WRITERS:
            stat = origin if isinstance(origin, StatFile) else None
            write_stat(_polars(frame), temporary, stat, changed, strata, rows)
        else:
            _write_arrow(frame, temporary)
        if check is not None:
            check(read_back(temporary, dialect))


def read_back(path: Path, dialect: Dialect) -> pl.DataFrame:
    """Return a table as it was written: the cells of a CSV file as text, missing values with their codes."""
    suffix = path.suffix.lower()
    if suffix in CSV:
        return read_csv(path, delimiter=dialect.delimiter, encoding=dialect.encoding).text
    return read_stat(path).raw if suffix in READERS else pl.DataFrame(_read_arrow(path))


def check_target(path: str | os.PathLike[str], endings: Sequence[str] = WRITABLE) -> None:
    """Refuse a target that cannot be written, before any work is done."""
    target = Path(path)
    folder = target.parent
    if target.suffix.lower() not in endings:
        got = target.suffix or "no ending"
        raise InputError(f"Output {target} must end in {' or '.join(endings)}; got {got!r}.")
    with naming(target):  # a name may be too long to look at
        there, taken = folder.is_dir(), target.is_dir()
    if not there:
        raise FileError(f"Output {target} cannot be written: folder {folder} does not exist. Make it first.")
    if taken:
        raise FileError(f"Output {target} cannot be written: it is a folder. Name a file.")
    if not os.access(folder, os.W_OK):
        raise FileError(f"Output {target} cannot be written: folder {folder} is read-only for you. Take another.")


def sha256(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file, in hex."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_arrow(path: Path) -> Any:
    import pyarrow as pa
    from pyarrow import feather, parquet

    try:
        return parquet.read_table(path) if path.suffix.lower() in PARQUET else feather.read_table(path)
    except pa.ArrowInvalid as error:
        raise FileError(f"File {path} cannot be read as {path.suffix}: {str(error).splitlines()[0]}") from None


def _write_arrow(frame: Any, path: Path) -> None:
    import pyarrow as pa
    from pyarrow import feather, parquet

    table = frame if isinstance(frame, pa.Table) else without_metadata(_polars(frame).to_arrow())
    if path.suffix.lower() in PARQUET:
        parquet.write_table(table, path)
    else:
        feather.write_feather(table, str(path))


def _polars(frame: Any) -> pl.DataFrame:
    if isinstance(frame, pl.DataFrame):
        return frame
    import narwhals as nw

    converted: pl.DataFrame = nw.from_native(frame, eager_only=True).to_polars()
    return converted
