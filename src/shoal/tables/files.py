"""Files in and out: the format by the name's ending, written beside the target and moved into place."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shoal.core.errors import FileError, InputError
from shoal.core.messages import parameter, setting
from shoal.tables.addresses import as_place, is_address, naming_address, suffix_of, system_of
from shoal.tables.csv_cells import Dialect
from shoal.tables.csv_files import CsvTable, read_csv, write_csv
from shoal.tables.data_sets import OWN
from shoal.tables.excel_files import EXCEL, read_excel, write_excel
from shoal.tables.frames import open_table
from shoal.tables.headers import check_header
from shoal.tables.metadata import without_metadata
from shoal.tables.native import as_polars
from shoal.tables.outputs import folder_beside, naming, written_beside
from shoal.tables.readers import read_arrow, read_parquet
from shoal.tables.stat_files import READERS, WRITERS, read_stat, write_stat
from shoal.tables.table import Table

__all__ = [
    "check_data_set",
    "check_target",
    "check_targets",
    "folder_beside",
    "may_be_csv",
    "read_back",
    "read_table",
    "sha256",
    "write_file",
    "write_table",
    "written_beside",
]

CSV = (".csv", ".tsv", ".txt")
PARQUET = (".parquet", ".pq")
ARROW = (".feather", ".arrow", ".ipc")
READABLE = (*CSV, *PARQUET, *ARROW, *EXCEL, *READERS)
WRITABLE = (*CSV, *PARQUET, *ARROW, *EXCEL, *WRITERS)
ENDINGS = {
    "manifest": (".json",),
    "private_manifest": (".json",),
    "ledger": (".json",),
    "report": (".html",),
    "private_report": (".html",),
}


def read_table(
    path: str | os.PathLike[str],
    *,
    numbers: Sequence[str] = (),
    named: bool = False,
    **csv: str | None,
) -> Table:
    """Read a table; CSV options are taken from the file itself where not given.

    A file without a header line is refused if its columns must be `named`, as those of a release are.
    """
    source = Path(path)
    suffix = source.suffix.lower()
    if is_address(path):
        raise InputError(
            f"Input {as_place(path)} is an address, which only clusters read. Use {setting('engine', 'dask')}."
        )
    if suffix not in READABLE:
        raise InputError(f"File {source} must end in one of {', '.join(READABLE)}; got {suffix or 'no ending'!r}.")
    if not source.is_file():
        raise FileError(f"File {source} {'is a folder' if source.is_dir() else 'does not exist'}. Check the path.")
    try:
        if suffix in CSV:
            table: Table = read_csv(source, numbers=numbers, **csv)
        else:
            table = read_stat(source) if suffix in READERS else open_table(_read_frame(source))
    except (FileNotFoundError, PermissionError) as error:
        raise FileError(f"File {source} cannot be read: {error.strerror}.") from None
    if named and suffix in (*CSV, *EXCEL):
        check_header(source, table)
    return table


def write_file(frame: Any, path: str | os.PathLike[str]) -> None:
    """Write a frame as a whole or not at all; the ending of the path decides the format."""
    write_table(open_table(frame), Path(path))


def write_table(table: Table, target: Path) -> None:
    """Write a table as a whole or not at all; one that was read from a file is written like it."""
    check_target(target)
    with written_beside(target) as temporary:
        _write(table, temporary)


def _write(table: Table, path: Path) -> None:
    suffix = path.suffix.lower()
    if suffix in CSV:
        if isinstance(table, CsvTable):
            write_csv(table.text, path, table.dialect)
        else:
            write_csv(as_polars(table.native), path, Dialect(delimiter="\t" if suffix == ".tsv" else ","))
    elif suffix in WRITERS:
        write_stat(table, path)
    elif suffix in EXCEL:
        write_excel(as_polars(table.native), path)
    else:
        _write_arrow(table.native, path)


def read_back(path: Path, table: Table) -> Table:
    """Return a table as it was written to a file: the cells of a CSV file as text, missing values with their codes."""
    suffix = path.suffix.lower()
    if suffix in CSV:
        dialect = table.dialect or Dialect(delimiter="\t" if suffix == ".tsv" else ",")
        return read_csv(path, delimiter=dialect.delimiter, encoding=dialect.encoding, decimal=dialect.decimal)
    return open_table(read_stat(path, trusted=True).file.raw if suffix in READERS else _read_frame(path))


def may_be_csv(data: object) -> bool:
    """Say whether a table is a CSV file, or a folder or glob, whose files are looked at when they are read."""
    if not isinstance(data, (str, os.PathLike)):
        return False
    return Path(data).suffix.lower() in CSV or not Path(data).is_file()


def check_target(path: str | os.PathLike[str], endings: Sequence[str] = WRITABLE) -> None:
    """Refuse a target that cannot be written, before any work is done."""
    target = Path(path)
    folder = target.parent
    if is_address(path):
        raise InputError(
            f"Output {as_place(path)} is an address, which only clusters write to. Use {setting('engine', 'dask')}."
        )
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
        raise FileError(f"Output {target} cannot be written: folder {folder} is read-only for you. Use another folder.")


def check_data_set(path: str | os.PathLike[str]) -> None:
    """Refuse a target that cannot be written as a data set, or that holds something else, before any work is done."""
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
            raise FileError(f"Output {target} cannot be written: folder {target.parent} is read-only for you.")
        elif any(not OWN.fullmatch(file.name) for file in target.iterdir()):
            raise FileError(f"Output {target} cannot be written: it is a folder of other files. Use another name.")
        return
    system, there = system_of(target)
    with naming_address(target):
        taken = system.exists(there) and (not system.isdir(there) or system.find(there))
    if taken:
        raise FileError(f"Output {target} already exists. Remove it, or use another name.")


def check_targets(source: Path, clustered: bool = False, /, **targets: Path | None) -> None:
    """Refuse files that cannot be written, or that would overwrite each other, before any work is done.

    On a cluster the masked table and the labels are data sets, which may be at addresses.
    """
    named = {name: path for name, path in {"input": source, **targets}.items() if path is not None}
    for path in named.values():
        if sum(path.resolve() == other.resolve() for other in named.values()) > 1:
            *before, last = (name.replace("_", " ") for name in named)
            raise InputError(f"File {path} is named twice among {', '.join(before)} and {last}. Use another file.")
    far = [as_place(path) for name, path in named.items() if name in ("input", "output") and is_address(path)]
    for name in ("manifest", "report"):
        if far and name in named:
            raise InputError(
                f"{parameter(name)} needs the bytes of all files on this machine, but {far[0]} is an address. Leave it "
                "out."
            )
    for name, path in named.items():
        if clustered and name in ("output", "labels"):
            check_data_set(path)
        elif name != "input":
            check_target(path, ENDINGS.get(name, WRITABLE))


def sha256(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file, in hex; of a folder, that of the list of its Parquet files."""
    source = Path(path)
    if source.is_dir():
        files = sorted(file for file in source.iterdir() if file.suffix.lower() in PARQUET)
        listed = "".join(f"{sha256(file)}  {file.name}\n" for file in files)
        return hashlib.sha256(listed.encode()).hexdigest()
    with source.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_frame(path: Path) -> Any:
    if path.suffix.lower() in EXCEL:
        return read_excel(path)
    return read_parquet(path) if path.suffix.lower() in PARQUET else read_arrow(path)


def _write_arrow(frame: Any, path: Path) -> None:
    import pyarrow as pa
    from pyarrow import feather, parquet

    table = frame if isinstance(frame, pa.Table) else without_metadata(as_polars(frame).to_arrow())
    if path.suffix.lower() in PARQUET:
        parquet.write_table(table, path)
    else:
        feather.write_feather(table, str(path))
