"""Reading and writing of tables in files, whose endings determine the format."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.core.errors import FileError, InputError
from shoal.core.memory_limits import available_memory
from shoal.core.messages import parameter, setting
from shoal.tables.addresses import COMPRESSED, OWN, as_place, is_address, naming_address, suffix_of, system_of
from shoal.tables.columns import Name
from shoal.tables.databases import is_database, read_database, without_password
from shoal.tables.formats.arrow_files import (
    ARROW,
    PARQUET,
    describe_parquet,
    first_record_bytes,
    read_arrow,
    read_parquet,
    write_arrow,
)
from shoal.tables.formats.csv_files import check_header, parse_csv, read_csv, write_csv
from shoal.tables.formats.excel_files import EXCEL, read_excel, write_excel
from shoal.tables.formats.frame_columns import as_polars
from shoal.tables.formats.frames import open_table
from shoal.tables.formats.json_files import JSON_LINES, read_json_lines, write_json_lines
from shoal.tables.formats.stat_files import READERS, read_stat, read_stored, write_stat
from shoal.tables.number_text import Dialect
from shoal.tables.outputs import folder_beside, naming, written_beside
from shoal.tables.reading import AS_DETECTED, ReadingOptions
from shoal.tables.table import Table

__all__ = [
    "COMPRESSED_CSV",
    "CSV",
    "FORMATS",
    "PARQUET",
    "DatabaseTable",
    "Format",
    "StandardInput",
    "TableFile",
    "check_data_set",
    "check_output",
    "check_reading",
    "check_target",
    "check_targets",
    "check_text_names",
    "folder_beside",
    "is_beyond_memory",
    "is_csv",
    "is_dask",
    "is_database",
    "is_excel",
    "is_spark",
    "may_be_csv",
    "named_source",
    "open_data",
    "read_back",
    "read_table",
    "sha256",
    "stored_bytes",
    "writable_endings",
    "write_file",
    "write_table",
    "written_beside",
]

CSV = (".csv", ".tsv", ".txt")
COMPRESSED_CSV = tuple(f"{ending}{packing}" for packing in COMPRESSED for ending in CSV)
ENDINGS = {
    "manifest": (".json",),
    "private_manifest": (".json",),
    "ledger": (".json",),
    "report": (".html",),
    "private_report": (".html",),
}


# Peak memory of masking, as a multiple of the table (8, measured on 500,000 × 20 numbers in Parquet) or of the CSV file
# (18, measured on 300,000 × 10 numbers). It includes the table, its numbers, the standardised and the released numbers,
# the written table and the recount.
HELD = 9
HELD_OF_CSV = 18


class TableFile(os.PathLike[str]):
    """A file whose table is read once and kept."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        self._table: Table | None = None

    def __fspath__(self) -> str:
        return self._path

    def __str__(self) -> str:
        return self._path

    def read(
        self, *, numbers: Sequence[Name] = (), named: bool = False, reading: ReadingOptions = AS_DETECTED
    ) -> Table:
        """Return the table, read with the options of the first call."""
        if self._table is None:
            self._table = read_table(self._path, numbers=numbers, named=named, reading=reading)
        return self._table


class StandardInput(TableFile):
    """A CSV file from standard input."""

    def __init__(self, raw: bytes) -> None:
        super().__init__("-")
        self._raw = raw

    def read(
        self, *, numbers: Sequence[Name] = (), named: bool = False, reading: ReadingOptions = AS_DETECTED
    ) -> Table:
        """Return the table, read with the options of the first call."""
        if self._table is None:
            name = Path("<stdin>")  # in messages
            self._table = parse_csv(name, self._raw, [str(column) for column in numbers], reading, whole=True)
            if named and not reading.no_header:
                check_header(name, self._table, reading.skip_rows)
        return self._table


class DatabaseTable(TableFile):
    """The result of a database query, read once. Its text form is the address of the database without the password."""

    def __str__(self) -> str:
        return without_password(self._path)

    def digest(self, query: str | None) -> str:
        """Return the SHA-256 of the types and values of the result, in hex."""
        frame = as_polars(self.read(reading=ReadingOptions(query=query)).native)
        text = frame.with_columns(pl.selectors.binary().bin.encode("hex")).write_ndjson()
        return hashlib.sha256(f"{frame.schema}\n{text}".encode()).hexdigest()


def named_source(data: Any) -> Any:
    """Return a `DatabaseTable` for the address of a database; return other data unchanged."""
    return DatabaseTable(data) if is_database(data) and not isinstance(data, TableFile) else data


def is_dask(data: object) -> bool:
    """Return whether a table is a Dask DataFrame, without importing Dask."""
    return type(data).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(data, "to_delayed")


def is_spark(data: object) -> bool:
    """Return whether a table is a Spark DataFrame, without importing Spark."""
    return type(data).__module__.startswith("pyspark.sql.") and hasattr(data, "mapInArrow")


def is_beyond_memory(data: object, engine: str | None, memory: object) -> bool:
    """Return whether a table is masked from file to file, because it may be larger than memory.

    This applies on request (engine="local" or a memory limit), to folders and globs, and to a CSV or Parquet file that
    would need more than half of the available memory.
    """
    requested = engine == "local" or (memory is not None and engine is None)
    if not isinstance(data, (str, os.PathLike)):
        if requested:
            raise InputError(
                f"{parameter('data')} must be a path for {setting('engine', 'local')} or a memory limit; got a table."
            )
        return False
    if requested or engine == "memory" or is_database(data):
        return requested
    file = Path(data)
    if file.is_file():
        return file.suffix.lower() in (*CSV, *PARQUET) and stored_bytes([file]) > available_memory() / 2
    return file.is_dir() or any(sign in str(file) for sign in "*?[")


def stored_bytes(paths: Sequence[Path]) -> int:
    """Estimate the peak memory for masking the table, in bytes, including all copies of the table."""
    if paths[0].suffix.lower() in CSV:
        return HELD_OF_CSV * sum(path.stat().st_size for path in paths)
    records = {path: sum(rows for rows, _ in describe_parquet(path)[1]) for path in paths}
    return int(sum(HELD * first_record_bytes(path, 1)[0] * rows for path, rows in records.items()))


def open_data(
    data: Any, *, numbers: Sequence[Name] = (), named: bool = False, reading: ReadingOptions = AS_DETECTED
) -> Table:
    """Return data as a table; read the file if the data is a path.

    A file without a header line is refused if its columns must be `named`, as in a release.
    """
    if isinstance(data, TableFile):
        return data.read(numbers=numbers, named=named, reading=reading)
    if not isinstance(data, (str, os.PathLike)):
        return open_table(data)
    return read_table(data, numbers=numbers, named=named, reading=reading)


def read_table(
    path: str | os.PathLike[str],
    *,
    numbers: Sequence[str] = (),
    named: bool = False,
    reading: ReadingOptions = AS_DETECTED,
) -> Table:
    """Read a table; options that are not set are detected from the file.

    A file without a header line is refused if its columns must be `named`, as in a release.
    """
    if is_database(path):
        return open_table(read_database(os.fspath(path), reading.query))
    source = Path(path)
    if reading.query is not None:
        raise InputError(
            f"{parameter('query')} requires the address of a database, such as sqlite:///people.db; got {source}. "
            f"Leave {parameter('query')} out."
        )
    suffix = suffix_of(source)
    if is_address(path):
        raise InputError(
            f"Input {as_place(path)} is an address, which only clusters read. Use {setting('engine', 'dask')}."
        )
    if suffix not in FORMATS:
        raise InputError(f"File {source} must end in one of {', '.join(FORMATS)}; got {suffix or 'no ending'!r}.")
    if not source.is_file():
        raise FileError(f"File {source} {'is a folder' if source.is_dir() else 'does not exist'}. Check the path.")
    try:
        table = FORMATS[suffix].read(source, numbers=numbers, reading=reading)
    except (FileNotFoundError, PermissionError) as error:
        raise FileError(f"File {source} cannot be read: {error.strerror}.") from None
    if named and FORMATS[suffix].header and not reading.no_header:
        check_header(source, table, reading.skip_rows)
    return table


def write_file(frame: Any, path: str | os.PathLike[str]) -> None:
    """Write a frame completely or not at all, in the format of the path's ending."""
    check_target(path)
    write_table(open_table(frame), Path(path))


def write_table(table: Table, target: Path) -> None:
    """Write a table, completely or not at all, to a checked target in the dialect of its source file."""
    with written_beside(target) as temporary:
        FORMATS[suffix_of(target)].write(table, temporary)


def read_back(path: Path, table: Table) -> Table:
    """Read back a written table, with the cells of a CSV file as text and with codes for missing values."""
    file_format = FORMATS[suffix_of(path)]
    return file_format.read(path) if file_format.read_back is None else file_format.read_back(path, table)


def may_be_csv(data: object) -> bool:
    """Return whether a table is a CSV file, or a folder or glob that may contain CSV files."""
    if not isinstance(data, (str, os.PathLike)) or is_database(data):
        return False
    return is_csv(data) or not Path(data).is_file()


def is_excel(data: object) -> bool:
    """Return whether a table is an Excel file."""
    return isinstance(data, (str, os.PathLike)) and suffix_of(Path(data)) in EXCEL


def check_reading(data: object, reading: ReadingOptions) -> None:
    """Refuse reading options that do not apply to this type of table."""
    csv, excel = may_be_csv(data), is_excel(data)
    required = {
        "query": ("the address of a database, such as sqlite:///people.db", is_database(data)),
        "sheet": ("an Excel file", excel),
        "skip_rows": ("a CSV or Excel file", csv or excel),
        "no_header": ("a CSV or Excel file", csv or excel),
    }
    for name, value in reading.plain().items():
        table, fits = required.get(name, ("a CSV file", csv))
        if value not in (None, False) and not fits:
            raise InputError(f"{parameter(name)} requires {table}, got {value!r} for another table. Leave it out.")


def is_csv(path: str | os.PathLike[str]) -> bool:
    """Return whether a path has the ending of a CSV file, compressed or not."""
    return suffix_of(Path(path)) in (*CSV, *COMPRESSED_CSV)


def check_target(path: str | os.PathLike[str], endings: Sequence[str] = ()) -> None:
    """Refuse a target that cannot be written, before any work is done; by default, require the ending of a table."""
    target = Path(path)
    if is_database(path):
        raise InputError(
            f"Output {without_password(os.fspath(path))} is a database, but shoal writes only files. Use a file."
        )
    folder, endings = target.parent, endings or writable_endings()
    if is_address(path):
        raise InputError(
            f"Output {as_place(path)} is an address, which only clusters write to. Use {setting('engine', 'dask')}."
        )
    if suffix_of(target) not in endings:
        got = suffix_of(target) or "no ending"
        raise InputError(f"Output {target} must end in {' or '.join(endings)}; got {got!r}.")
    with naming(target):  # the name may be too long for the file system
        exists, is_folder = folder.is_dir(), target.is_dir()
    if not exists:
        raise FileError(f"Output {target} cannot be written: folder {folder} does not exist. Create it first.")
    if is_folder:
        raise FileError(f"Output {target} cannot be written: it is a folder. Use a file.")
    if not os.access(folder, os.W_OK):
        raise FileError(
            f"Output {target} cannot be written: no write permission for folder {folder}. Use another folder."
        )


def check_output(data: Any, output: str | os.PathLike[str] | None, *, clustered: bool = False) -> None:
    """Refuse an output that cannot or must not be written, before any work is done.

    The output of a cluster is a data set, which may be at an address.
    """
    if output is None:
        return
    (check_data_set if clustered else check_target)(output)
    if isinstance(data, np.ndarray):
        raise InputError(
            f"{parameter('output')} requires named columns, got an array. Use a frame, or write the array of the "
            "release yourself."
        )
    if isinstance(data, (str, os.PathLike)) and Path(output).resolve() == Path(data).resolve():
        raise InputError(f"Output {output} must not be the input: the original would be lost. Use another file.")


def check_text_names(data: Any) -> None:
    """Refuse to write a frame whose column names are not text, because writing would change the names."""
    if type(data).__module__.partition(".")[0] not in ("pandas", "dask", "dask_expr"):
        return
    others = [name for name in data.columns if not isinstance(name, str)]
    if others:
        raise InputError(
            f"{parameter('output')} requires column names that are text, got {others[0]!r}. Rename the columns first: "
            "data.rename(columns=str)."
        )


def check_data_set(path: str | os.PathLike[str]) -> None:
    """Refuse a target that cannot be written as a data set or holds other files, before any work is done."""
    target = as_place(path)
    if suffix_of(target) not in PARQUET:
        raise InputError(
            f"Output {target} must end in {' or '.join(PARQUET)} on a cluster: its workers write a folder of Parquet "
            f"files. Convert it afterwards, or use {setting('engine', 'local')}."
        )
    if isinstance(target, Path):
        if not target.is_dir():
            check_target(target)
        elif not os.access(target.parent, os.W_OK):
            raise FileError(f"Output {target} cannot be written: no write permission for folder {target.parent}.")
        elif any(not OWN.fullmatch(file.name) for file in target.iterdir()):
            raise FileError(f"Output {target} cannot be written: it is a folder of other files. Use another name.")
        return
    system, there = system_of(target)
    with naming_address(target):
        exists = system.exists(there) and (not system.isdir(there) or system.find(there))
    if exists:
        raise FileError(f"Output {target} already exists. Remove it, or use another name.")


def check_targets(source: str | os.PathLike[str], clustered: bool = False, /, **targets: Path | None) -> None:
    """Refuse files that cannot be written or would overwrite each other, before any work is done.

    On a cluster, the masked table and the labels are data sets, which may be at addresses.
    """
    files = {"input": None if is_database(source) else Path(source), **targets}
    paths = {name: path for name, path in files.items() if path is not None}
    for path in paths.values():
        if sum(path.resolve() == other.resolve() for other in paths.values()) > 1:
            *before, last = (name.replace("_", " ") for name in paths)
            raise InputError(
                f"File {path} appears more than once among {', '.join(before)} and {last}. Use another file."
            )
    addresses = [as_place(path) for name, path in paths.items() if name in ("input", "output") and _is_far(path)]
    for name in ("manifest", "report"):
        if addresses and name in paths:
            raise InputError(
                f"{parameter(name)} requires all files on this machine, but {addresses[0]} is an address. Leave it out."
            )
    for name, path in paths.items():
        if clustered and name in ("output", "labels"):
            check_data_set(path)
        elif name != "input":
            check_target(path, ENDINGS.get(name, ()))


def _is_far(path: str | os.PathLike[str]) -> bool:
    return is_address(path) and not is_database(path)


def sha256(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256, in hex, of a file, or of a list of the Parquet files in a folder with their hashes."""
    source = Path(path)
    if source.is_dir():
        files = sorted(file for file in source.iterdir() if file.suffix.lower() in PARQUET)
        listed = "".join(f"{sha256(file)}  {file.name}\n" for file in files)
        return hashlib.sha256(listed.encode()).hexdigest()
    with source.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# Formats


@dataclass(frozen=True)
class Format:
    """A file format, with its endings, a reader and a writer."""

    endings: tuple[str, ...]
    read: Callable[..., Table]  # takes `numbers` and `reading`, which some formats ignore
    write: Callable[[Table, Path], None]
    read_back: Callable[[Path, Table], Table] | None = None  # reads uninterpreted cells, if `read` interprets cells
    header: bool = False  # True if the column names are a row of cells
    not_written: tuple[str, ...] = ()  # read-only endings


def _dialect(table: Table, path: Path) -> Dialect:
    """Return the dialect for a CSV file: the dialect of the table's source, or the default for the file's ending."""
    return table.dialect or Dialect(delimiter="\t" if suffix_of(path).startswith(".tsv") else ",")


def _write_csv(table: Table, path: Path) -> None:
    write_csv(table.csv_frame(), path, _dialect(table, path))


def _read_csv_back(path: Path, table: Table) -> Table:
    dialect = _dialect(table, path)
    return read_csv(path, reading=ReadingOptions(dialect.delimiter, dialect.encoding, dialect.decimal))


def _read_excel(path: Path, *, reading: ReadingOptions = AS_DETECTED, **_: Any) -> Table:
    skipped, no_header = reading.skip_rows or 0, bool(reading.no_header)
    frame, sheets, notes = read_excel(path, skipped, no_header=no_header, sheet=reading.sheet)
    store = open_table(frame).store
    store.sheets, store.file_notes = sheets, notes
    return Table(store)


def _write_arrow(table: Table, path: Path) -> None:
    write_arrow(table.native, path)


FORMATS: dict[str, Format] = {
    ending: file_format
    for file_format in (
        Format((*CSV, *COMPRESSED_CSV), read_csv, _write_csv, _read_csv_back, header=True),
        Format(PARQUET, lambda path, **_: open_table(read_parquet(path)), _write_arrow),
        Format(ARROW, lambda path, **_: open_table(read_arrow(path)), _write_arrow),
        Format(
            EXCEL,
            _read_excel,
            lambda table, path: write_excel(as_polars(table.native), path),
            header=True,
        ),
        Format(
            JSON_LINES,
            lambda path, **_: open_table(read_json_lines(path)),
            lambda table, path: write_json_lines(as_polars(table.native), path),
        ),
        Format(
            tuple(READERS),
            lambda path, **_: read_stat(path),
            write_stat,
            lambda path, _: read_stored(path),
            not_written=(".sas7bdat",),
        ),
    )
    for ending in file_format.endings
}


def writable_endings() -> list[str]:
    """Return the endings of files that can be written."""
    return [ending for ending, file_format in FORMATS.items() if ending not in file_format.not_written]
