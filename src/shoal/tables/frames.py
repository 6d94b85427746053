"""One way to look at every kind of table: pandas, polars and pyarrow frames through narwhals, and NumPy arrays.

A table gives columns as float64 vectors (NaN where a cell is missing), strata as lists of row numbers, and a copy
of itself with some columns replaced. Everything else about it stays as it was given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import narwhals as nw
import numpy as np
import polars as pl

from shoal.errors import InputError, closest
from shoal.types import Floats, Ints

__all__ = [
    "ArrayTable",
    "Column",
    "FrameTable",
    "Name",
    "Stratum",
    "Table",
    "check_name",
    "check_unique",
    "codes_of",
    "open_table",
    "strata_of",
]

Name = Any  # a string in most frames, a number in arrays, anything hashable in pandas


@dataclass(frozen=True)
class Column:
    """A column as numbers; NaN where the cell is missing."""

    name: Name
    values: Floats
    integer: bool


@dataclass(frozen=True)
class Stratum:
    """The records that share the values of the ``by`` columns."""

    key: tuple[object, ...]
    rows: Ints

    def describe(self, by: Sequence[Name]) -> str:
        """Name the stratum for a message.

        Examples
        --------
        >>> Stratum(("north",), np.arange(2)).describe(["region"])
        "the stratum region='north'"
        """
        pairs = ", ".join(f"{name}={value!r}" for name, value in zip(by, self.key, strict=True))
        return f"the stratum {pairs}" if pairs else "the table"


class Table(Protocol):
    """What the masking pipeline asks of a table."""

    @property
    def native(self) -> Any:
        """The table as the user knows it."""

    @property
    def names(self) -> list[Name]:
        """The names of all columns."""

    @property
    def rows(self) -> int:
        """The number of records."""

    def numeric_names(self) -> list[Name]:
        """Return the names of the numeric columns."""

    def column(self, name: Name) -> Column:
        """Return a column as numbers, or refuse a column that holds none."""

    def keys(self, names: Sequence[Name]) -> pl.DataFrame:
        """Return columns of any type, to group records by."""

    def take(self, rows: Ints) -> Table:
        """Return the table of some of the records."""

    def replaced(self, values: Mapping[Name, Floats], *, whole: bool) -> Table:
        """Return the table with new values; missing cells stay as they are, integers stay integers if whole."""

    def only(self, names: Sequence[Name]) -> Table:
        """Return the table of some of the columns and of nothing else, not even an index of its rows."""


def open_table(data: Any) -> Table:
    """Wrap a frame or an array.

    Examples
    --------
    >>> open_table(np.zeros((3, 2))).names
    [0, 1]
    """
    if isinstance(data, np.ndarray):
        return ArrayTable(data)
    try:
        frame = nw.from_native(data, eager_only=True)
        names = list(frame.columns)
    except TypeError:
        raise InputError(
            "Parameter 'data' must be a pandas, polars or pyarrow table, a NumPy array or the path of a file, got "
            f"{type(data).__module__}.{type(data).__qualname__}. Collect a lazy frame first."
        ) from None
    except nw.exceptions.DuplicateError:
        names = [str(name) for name in getattr(data, "column_names", getattr(data, "columns", []))]
        check_unique(names)
        raise
    check_unique(names)
    return FrameTable(frame)


def check_unique(names: Sequence[Name]) -> None:
    """Refuse a table in which a column name stands twice."""
    twice = sorted({str(name) for name in names if names.count(name) > 1})
    if twice:
        raise InputError(
            f"Column names must be unique, but {', '.join(map(repr, twice))} stands more than once. "
            "Rename the columns before masking."
        )


def check_name(name: Name, names: Sequence[Name], what: str) -> None:
    """Refuse the name of a column that is not there, with the nearest ones."""
    if name not in names:
        listed = ", ".join(map(str, names[:12])) + (", …" if len(names) > 12 else "")
        raise InputError(
            f"Parameter {what!r} names column {name!r}, which the table does not have.{closest(name, names)} "
            f"Its columns are: {listed}."
        )


def strata_of(table: Table, by: Sequence[Name]) -> list[Stratum]:
    """Split the records by the values of some columns; a missing value is a value of its own.

    Examples
    --------
    >>> [s.rows.tolist() for s in strata_of(open_table(np.array([[1.0], [2.0], [1.0]])), [0])]
    [[0, 2], [1]]
    """
    if not by:
        return [Stratum((), np.arange(table.rows))]
    keys = table.keys(by).with_row_index("row of the table")
    groups = keys.group_by(keys.columns[1:], maintain_order=True).agg(pl.col(keys.columns[0]))
    return [Stratum(tuple(key), np.asarray(rows, dtype=np.int64)) for *key, rows in groups.iter_rows()]


def codes_of(strata: Sequence[Stratum], rows: int) -> Ints:
    """Return the number of each record's stratum."""
    codes = np.empty(rows, dtype=np.int64)
    for code, stratum in enumerate(strata):
        codes[stratum.rows] = code
    return codes


class FrameTable:
    """A pandas, polars or pyarrow frame."""

    def __init__(self, frame: nw.DataFrame[Any]) -> None:
        self._frame = frame

    @property
    def native(self) -> Any:
        """The frame as given."""
        return self._frame.to_native()

    @property
    def names(self) -> list[Name]:
        """The names of all columns."""
        return list(self._frame.columns)

    @property
    def rows(self) -> int:
        """The number of records."""
        return len(self._frame)

    def numeric_names(self) -> list[Name]:
        """Return the numeric columns; a pandas index that a file carried along is not one of them."""
        schema = self._frame.schema
        return [n for n, kind in schema.items() if kind.is_numeric() and not str(n).startswith("__index_level_")]

    def column(self, name: Name) -> Column:
        """Return a column as numbers."""
        series = self._frame.get_column(name)
        if not series.dtype.is_numeric():
            raise _not_numeric(name, series)
        values = series.cast(nw.Float64).to_numpy().astype(np.float64, copy=True)
        values[series.is_null().to_numpy()] = np.nan
        return Column(name, values, series.dtype.is_integer())

    def keys(self, names: Sequence[Name]) -> pl.DataFrame:
        """Return columns to group records by."""
        return pl.DataFrame([self._frame.get_column(name).to_polars().alias(str(i)) for i, name in enumerate(names)])

    def take(self, rows: Ints) -> FrameTable:
        """Return some of the records."""
        return FrameTable(self._frame[rows.tolist()])

    def replaced(self, values: Mapping[Name, Floats], *, whole: bool) -> FrameTable:
        """Return the frame with new values in some columns."""
        new = [self._released(self._frame.get_column(name), column, whole=whole) for name, column in values.items()]
        return FrameTable(self._frame.with_columns(*new))

    def only(self, names: Sequence[Name]) -> FrameTable:
        """Return some of the columns; an index of pandas would be one more, so it is numbered anew."""
        return FrameTable(nw.maybe_reset_index(self._frame.select([self._frame.get_column(name) for name in names])))

    def _released(self, series: nw.Series[Any], values: Floats, *, whole: bool) -> nw.Series[Any]:
        integer = series.dtype.is_integer()
        kind = series.dtype if series.dtype == nw.Float32 or (integer and whole) else nw.Float64()
        missing = np.isnan(values)
        filled = np.where(missing, 0.0, values)
        array = np.rint(filled).astype(np.int64) if integer and whole else filled
        backend = self._frame.implementation
        new = nw.new_series(series.name, array, backend=backend).cast(kind)
        # Missing cells are the given ones, whatever this library calls missing.
        return series.cast(kind).zip_with(nw.new_series(series.name, missing, backend=backend), new)


def _not_numeric(name: Name, series: nw.Series[Any]) -> InputError:
    way_out = "Leave the column out, name it in 'by', or turn it into numbers."
    for record, value in enumerate(series.to_list()):
        if isinstance(value, str):
            try:
                float(value)
            except ValueError:
                return InputError(
                    f"Column {name!r} must be numeric, but record {record + 1} holds {value!r}. {way_out}"
                )
    return InputError(f"Column {name!r} must be numeric, but its type is {series.dtype}. {way_out}")


class ArrayTable:
    """A NumPy array, one record a row; columns are named by their number."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        if array.ndim not in (1, 2) or array.dtype.kind not in "iuf":
            raise InputError(
                f"Parameter 'data' must be an array of numbers with records in rows, got shape {array.shape} of "
                f"type {array.dtype}."
            )
        self._array = array

    @property
    def native(self) -> np.ndarray[Any, Any]:
        """The array as given."""
        return self._array

    @property
    def _columns(self) -> np.ndarray[Any, Any]:
        return self._array[:, None] if self._array.ndim == 1 else self._array

    @property
    def names(self) -> list[Name]:
        """The numbers of the columns."""
        return list(range(self._columns.shape[1]))

    @property
    def rows(self) -> int:
        """The number of records."""
        return len(self._array)

    def numeric_names(self) -> list[Name]:
        """Return all columns."""
        return self.names

    def column(self, name: Name) -> Column:
        """Return a column as float64."""
        return Column(name, self._columns[:, name].astype(np.float64), self._array.dtype.kind in "iu")

    def keys(self, names: Sequence[Name]) -> pl.DataFrame:
        """Return columns to group records by."""
        return pl.DataFrame({str(i): np.ascontiguousarray(self._columns[:, name]) for i, name in enumerate(names)})

    def take(self, rows: Ints) -> ArrayTable:
        """Return some of the records."""
        return ArrayTable(self._array[rows])

    def replaced(self, values: Mapping[Name, Floats], *, whole: bool) -> ArrayTable:
        """Return the array with new values in some columns."""
        integer = self._array.dtype.kind in "iu"
        new = self._columns.astype(np.float64 if integer and not whole else self._array.dtype, copy=True)
        for name, column in values.items():
            new[:, name] = np.rint(column) if integer and whole else column
        return ArrayTable(new.reshape(self._array.shape))

    def only(self, names: Sequence[Name]) -> ArrayTable:
        """Return some of the columns, numbered anew."""
        return ArrayTable(self._array if self._array.ndim == 1 else self._array[:, list(names)])
