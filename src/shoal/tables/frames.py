"""One way to look at every kind of table: pandas, polars and pyarrow frames through narwhals, and NumPy arrays.

A table gives columns as float64 vectors (NaN where a cell is missing), strata as lists of row numbers, and a copy
of itself with some columns replaced. Everything else about it stays as it was given.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import narwhals as nw
import numpy as np
import polars as pl

from shoal.core.errors import InputError, closest
from shoal.core.types import Floats, Ints
from shoal.tables.metadata import without_metadata

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
    "is_whole",
    "open_table",
    "round_to",
    "strata_of",
]

EXACT = 2**53  # every integer up to here is a float
Name = Any  # a string in most frames, a number in arrays, anything hashable in pandas


@dataclass(frozen=True)
class Column:
    """A column as numbers; NaN where the cell is missing. Whole numbers stored as floats are integers too."""

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

    def bare(self) -> Table:
        """Return the table without metadata of the original."""


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


def is_whole(values: Floats) -> bool:
    """Say whether all numbers that are not missing are whole; a column without any is not.

    Examples
    --------
    >>> is_whole(np.array([2.0, np.nan])), is_whole(np.array([2.5])), is_whole(np.array([np.nan]))
    (True, False, False)
    """
    some = values[:1000]
    if (np.rint(some) != some)[~np.isnan(some)].any():
        return False
    seen = values[~np.isnan(values)]
    return bool(len(seen) and (np.rint(seen) == seen).all())


def round_to(values: Floats, kind: str) -> np.ndarray[Any, Any]:
    """Round to the nearest numbers that an integer type can hold.

    Examples
    --------
    >>> round_to(np.array([1.5, 2.0**63]), "int64").tolist()
    [2, 9223372036854774784]
    """
    ends = np.iinfo(kind)
    most = float(ends.max)
    # The greatest 64-bit integer lies between two floats.
    return np.clip(np.rint(values), float(ends.min), np.nextafter(most, 0) if int(most) > ends.max else most).astype(
        kind
    )


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
        # Through polars: pyarrow casts no integer beyond 2^53 to a float.
        values = series.to_polars().cast(pl.Float64).fill_null(np.nan).to_numpy(writable=True)
        return Column(name, values, series.dtype.is_integer() or is_whole(values))

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

    def bare(self) -> FrameTable:
        """Return the cells, their types and the index of pandas, and nothing else."""
        return FrameTable(nw.from_native(without_metadata(self.native), eager_only=True))

    def _released(self, series: nw.Series[Any], values: Floats, *, whole: bool) -> nw.Series[Any]:
        kind = series.dtype
        missing = np.isnan(values)
        new = np.where(missing, 0.0, values)
        if whole and kind.is_integer():
            new = round_to(new, str(kind).lower())
        else:
            new = np.rint(new) if whole and self.column(series.name).integer else new
            kind = kind if kind == nw.Float32 else nw.Float64()
        backend = self._frame.implementation
        released = nw.new_series(series.name, new, backend=backend).cast(kind)
        # Missing cells are the given ones, whatever this library calls missing; but null beside NaN would tell apart.
        absent = series.is_null().to_numpy()
        mixed = absent.any() and (missing & ~absent).any()
        given = (series.fill_nan(None) if mixed else series) if missing.any() else released
        return given.cast(kind).zip_with(nw.new_series(series.name, missing, backend=backend), released)


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
        values = self._columns[:, name].astype(np.float64)
        return Column(name, values, self._array.dtype.kind in "iu" or is_whole(values))

    def keys(self, names: Sequence[Name]) -> pl.DataFrame:
        """Return columns to group records by."""
        return pl.DataFrame({str(i): np.ascontiguousarray(self._columns[:, name]) for i, name in enumerate(names)})

    def take(self, rows: Ints) -> ArrayTable:
        """Return some of the records."""
        return ArrayTable(self._array[rows])

    def replaced(self, values: Mapping[Name, Floats], *, whole: bool) -> ArrayTable:
        """Return the array with new values in some columns; integers become floats unless whole."""
        kind = self._array.dtype
        integer = kind.kind in "iu"
        new = self._columns.astype(np.float64 if integer and not whole else kind, copy=True)
        if integer and not whole:
            self._check_others(values)
        for name, column in values.items():
            if whole and integer:
                new[:, name] = round_to(column, str(kind))
            else:
                new[:, name] = np.rint(column) if whole and self.column(name).integer else column
        return ArrayTable(new.reshape(self._array.shape))

    def _check_others(self, masked: Collection[Name]) -> None:
        """Refuse to turn integers into floats that are not the same numbers, in columns that are not masked."""
        for name in self.names:
            column = self._columns[:, name]
            wide = (column > EXACT) | (column < -EXACT)
            if name not in masked and wide.any():
                record = int(np.argmax(wide))
                raise InputError(
                    f"Column {name} must hold integers up to 2^53 where means are released in an array of integers, "
                    f"but record {record + 1} holds {column[record]}. Take integers='round', or give a frame, whose "
                    "columns have types of their own."
                )

    def only(self, names: Sequence[Name]) -> ArrayTable:
        """Return some of the columns, numbered anew."""
        return ArrayTable(self._array if self._array.ndim == 1 else self._array[:, list(names)])

    def bare(self) -> ArrayTable:
        """Return the array: it has no metadata."""
        return self
