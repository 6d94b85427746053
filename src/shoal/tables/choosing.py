"""What every command begins with: see where the data lie, open them, choose columns, refuse a bad output."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shoal.core.errors import InputError
from shoal.core.memory_limits import available_memory
from shoal.core.messages import parameter, setting
from shoal.tables.columns import Name
from shoal.tables.files import CSV, PARQUET, check_data_set, check_target, read_table
from shoal.tables.frames import open_table
from shoal.tables.sources import stored_bytes
from shoal.tables.table import Table, check_name

__all__ = [
    "TableFile",
    "check_output",
    "check_text_names",
    "choose_columns",
    "is_beyond_memory",
    "is_dask",
    "is_spark",
    "open_data",
]


class TableFile(os.PathLike[str]):
    """A file whose table is read once and kept for those who open it again.

    Parameters
    ----------
    path
        The file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        self._table: Table | None = None

    def __fspath__(self) -> str:
        return self._path

    def __str__(self) -> str:
        return self._path

    def read(self, **options: Any) -> Table:
        """Return the table; the options of the first call decide how the file is read."""
        if self._table is None:
            self._table = read_table(self._path, **options)
        return self._table


def is_dask(data: object) -> bool:
    """Say whether a table is a Dask DataFrame, without importing Dask."""
    return type(data).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(data, "to_delayed")


def is_spark(data: object) -> bool:
    """Say whether a table is a Spark DataFrame, without importing Spark."""
    return type(data).__module__.startswith("pyspark.sql.") and hasattr(data, "mapInArrow")


def is_beyond_memory(data: object, engine: str | None, memory: object) -> bool:
    """Say whether a table is to be masked from file to file.

    The rule: whenever it is asked for (engine="local", a memory limit), for a folder or a glob, and for a CSV or
    Parquet file that would take more than half of the memory at hand.
    """
    asked = engine == "local" or (memory is not None and engine is None)
    if not isinstance(data, (str, os.PathLike)):
        if asked:
            raise InputError(
                f"{parameter('data')} must be a path for {setting('engine', 'local')} or a memory limit; got a table."
            )
        return False
    if asked or engine == "memory":
        return asked
    file = Path(data)
    if file.is_file():
        return file.suffix.lower() in (*CSV, *PARQUET) and stored_bytes([file]) > available_memory() / 2
    return file.is_dir() or any(sign in str(file) for sign in "*?[")


def open_data(data: Any, *, numbers: Sequence[Name] = (), named: bool = False, **csv: str | None) -> Table:
    """Return the table that was given, or that a path names; `csv` says how a CSV file is written.

    A file without a header line is refused if its columns must be `named`, as those of a release are.
    """
    if isinstance(data, TableFile):
        return data.read(numbers=numbers, named=named, **csv)
    if not isinstance(data, (str, os.PathLike)):
        return open_table(data)
    return read_table(data, numbers=numbers, named=named, **csv)


def choose_columns(
    names: Sequence[Name],
    numeric: Sequence[Name],
    wanted: Sequence[Name] | None,
    *,
    apart: Collection[Name] = (),
    to: str = "mask",
) -> list[Name]:
    """Return the columns that were asked for, or all numeric ones that are not set apart.

    Examples
    --------
    >>> choose_columns(["a", "b", "c"], ["a", "b"], None, apart=["b"])
    ['a']
    """
    if wanted is None:
        chosen = [name for name in numeric if name not in apart]
        if not chosen:
            raise InputError(
                f"{parameter('columns')} is not given and the table has no numeric column to {to}. Name the columns: "
                "one cell that is not a number makes a column text."
            )
        return chosen
    chosen = list(wanted)
    if not chosen:
        raise InputError(f"{parameter('columns')} must name at least one column, got none.")
    for name in chosen:
        check_name(name, names, "columns")
        if chosen.count(name) > 1:
            raise InputError(f"{parameter('columns')} must name each column once, but {name!r} appears twice.")
    return chosen


def check_output(data: Any, output: str | os.PathLike[str] | None, *, clustered: bool = False) -> None:
    """Refuse an output that cannot be written, or must not be, before any work is done.

    A cluster writes a data set, which may be at an address.
    """
    if output is None:
        return
    (check_data_set if clustered else check_target)(output)
    if isinstance(data, np.ndarray):
        raise InputError(
            f"{parameter('output')} writes tables whose columns have names, got an array. Use a frame, or write the "
            "array of the result yourself."
        )
    if isinstance(data, (str, os.PathLike)) and Path(output).resolve() == Path(data).resolve():
        raise InputError(f"Output {output} must not be the input: the original would be lost. Use another file.")


def check_text_names(data: Any) -> None:
    """Refuse to write a frame whose column names are not text: the file would hold other names than the table."""
    if type(data).__module__.partition(".")[0] not in ("pandas", "dask", "dask_expr"):
        return
    others = [name for name in data.columns if not isinstance(name, str)]
    if others:
        raise InputError(
            f"{parameter('output')} writes columns whose names are text, but one is called {others[0]!r}. Rename them "
            "first: data.rename(columns=str)."
        )
