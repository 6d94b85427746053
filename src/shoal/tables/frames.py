"""One way to look at every kind of table: pandas, polars and pyarrow frames through narwhals, and NumPy arrays.

A table gives columns as float64 vectors (NaN where a cell is missing), its cells as they are written, and a copy of
itself with some columns replaced. Everything else about its cells stays as it was given, and nothing else travels.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.errors import InputError, closest
from shoal.core.types import Bools, Floats, Ints
from shoal.kernels.words import ABSENT, Words, number_bits, words_of
from shoal.tables.codes import Codes, is_coded, without_codes
from shoal.tables.columns import Column, Kind, Name, NewColumn, Spelling, round_to
from shoal.tables.kinds import Date
from shoal.tables.metadata import without_metadata
from shoal.tables.times import Span, check_no_dates, read_dates, span_of, word_of

if TYPE_CHECKING:
    import narwhals as nw

__all__ = [
    "ArrayTable",
    "FrameTable",
    "Stratum",
    "Table",
    "as_floats",
    "as_polars",
    "cell_words",
    "check_name",
    "check_unique",
    "codes_of",
    "describe_stratum",
    "index_notes",
    "kind_of",
    "mostly_numbers",
    "not_numeric",
    "open_table",
    "strata_of",
]

EXACT = 2**53  # every integer up to here is a float
PLAIN = {"float", "double", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}  # numbers of Arrow
# Also with a currency, a sign between thousands or a percent sign.
NUMBER_LIKE = r"^[\s\p{Sc}+-]*(?:[A-Z]{3}\s?)?\d[\d.,'’\s]*(?:[eE][+-]?\d+)?\s?(?:[A-Z]{3})?[\s\p{Sc}%]*$"


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
        return describe_stratum(by, self.key)


def describe_stratum(by: Sequence[Name], values: Sequence[object]) -> str:
    """Name a stratum for a message."""
    pairs = ", ".join(f"{name}={value!r}" for name, value in zip(by, values, strict=True))
    return f"the stratum {pairs}" if pairs else "the table"


class Table(Protocol):
    """What masking asks of a table, or of a part of one."""

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

    def column(self, name: Name, first: int = 0) -> Column:
        """Return a column as numbers, or refuse one that holds none; `first` records come before this part."""

    def timed_names(self) -> list[Name]:
        """Return the names of the columns whose type is a date, a time of day or a duration."""

    def moments(self, name: Name, kind: Date, first: int = 0) -> tuple[pl.Series, Span]:
        """Return a column of dates, times or durations, and its span; refuse one that holds none."""

    def scale(self, name: Name) -> str | None:
        """Return "nominal" or "ordinal" if the table says that a column holds categories."""

    def categories(self, name: Name, *, given: bool, first: int = 0) -> pl.Series:
        """Return a column as categories, or refuse one that holds none; `given` says that the user calls it so."""

    def levels(self, name: Name) -> tuple[Any, ...] | None:
        """Return the values of a column in their order, if its type knows one."""

    def keys(self, names: Sequence[Name]) -> pl.DataFrame:
        """Return what columns of any type mean, to group records by; they are named by their place."""

    def cells(self, names: Sequence[Name]) -> pl.DataFrame:
        """Return columns as they are written, text where it is text; they are named by their place."""

    def spellings(self, name: Name, missing: Bools) -> frozenset[Spelling]:
        """Return the ways in which missing cells of a column are spelled."""

    def words(self, name: Name, *, category: bool = False) -> Words:
        """Return a word for each cell: the same for cells that are written alike, and only then."""

    def take(self, rows: Ints) -> Table:
        """Return the table of some of the records."""

    def without(self, names: Sequence[Name]) -> Table:
        """Return the table without some of the columns."""

    def only(self, names: Sequence[Name]) -> Table:
        """Return the table of some of the columns and of nothing else, not even an index of its rows."""

    def coded(self, codes: Codes) -> Table:
        """Return the table with codes for missing: as numbers, categories and words their cells are missing."""

    def released(
        self, new: Mapping[Name, NewColumn], strata: Mapping[Name, Mapping[Spelling, Spelling]] | None = None
    ) -> Table:
        """Return the table with new values, without metadata of the original.

        `strata` says which cells of columns that are not replaced are spelled otherwise, and how.
        """

    def relabelled(self, texts: Mapping[Name, Sequence[str | None]]) -> Table:
        """Return the table with text in the place of some columns."""


def open_table(data: Any) -> Table:
    """Wrap a frame or an array; one that is yet to be computed (polars, DuckDB) is collected as a polars frame.

    Examples
    --------
    >>> open_table(np.zeros((3, 2))).names
    [0, 1]
    """
    if isinstance(data, np.ndarray):
        return ArrayTable(data)
    library = type(data).__module__.partition(".")[0]
    if library == "polars" and hasattr(data, "collect"):
        data = data.collect()
    elif library in ("duckdb", "_duckdb") and hasattr(data, "pl"):
        data = data.pl()
    import narwhals as nw

    try:
        frame = nw.from_native(data, eager_only=True)
        names = list(frame.columns)
    except TypeError:
        raise InputError(
            "Parameter 'data' must be a pandas, polars or pyarrow table, a DuckDB relation, a NumPy array or the path "
            f"of a file, got {type(data).__module__}.{type(data).__qualname__}."
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


def kind_of(kind: Any) -> str:
    """Return what numbers a type of narwhals or polars holds."""
    if kind.is_integer():
        return "int64" if str(kind).endswith("128") else str(kind).lower()
    return "float32" if str(kind) == "Float32" else "float64"


def as_floats(series: pl.Series) -> Floats:
    """Return numbers as a new array; NaN where they are missing."""
    # Every call of polars takes a while, which counts for small tables.
    series = series if series.dtype == pl.Float64 else series.cast(pl.Float64)
    series = series.fill_null(np.nan) if series.null_count() else series
    return series.to_numpy().copy()


def as_polars(frame: Any) -> pl.DataFrame:
    """Return a frame of any library as one of polars."""
    if isinstance(frame, pl.DataFrame):
        return frame
    import narwhals as nw

    converted: pl.DataFrame = nw.from_native(frame, eager_only=True).to_polars()
    return converted


def cell_words(series: pl.Series, *, category: bool = False) -> Words:
    """Return the bits of a numeric column, hashes of the cells of another, with a word of its own for null."""
    timed = word_of(series.dtype) is not None
    series = series.to_physical() if timed else series
    if category and not timed:
        words: Words = series.cast(pl.String).hash(seed=0).to_numpy().copy()
    elif series.dtype.is_integer():
        words = series.fill_null(0).cast(pl.Int64, wrap_numerical=True).to_numpy().view(np.uint64).copy()
    else:
        words = words_of(as_floats(series))
    if series.null_count():
        words[series.is_null().to_numpy()] = ABSENT
    return words


class FrameTable:
    """A pandas, polars or pyarrow frame."""

    def __init__(self, frame: nw.DataFrame[Any], codes: Codes | None = None) -> None:
        self._frame, self._codes = frame, codes or {}

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

    def column(self, name: Name, first: int = 0) -> Column:
        """Return a column as numbers."""
        series = self._frame.get_column(name)
        if not series.dtype.is_numeric():
            raise _no_numbers(name, series.to_list(), str(series.dtype), first)
        kind, codes = kind_of(series.dtype), self._codes.get(name, ())
        plain = None if codes else _arrow_numbers(series)
        if plain is not None:
            return Column(name, plain.astype(np.float64, copy=False), kind)
        # Through polars: pyarrow casts no integer beyond 2^53 to a float.
        return Column(name, as_floats(without_codes(series.to_polars(), codes)), kind)

    def timed_names(self) -> list[Name]:
        """Return the columns of dates, times and durations; those of pandas may hold them as objects."""
        schema = self._frame.schema
        return [n for n, kind in schema.items() if word_of(kind) or (_is_opaque(kind) and self._timed(n))]

    def _timed(self, name: Name) -> bool:
        column = self._frame.get_column(name)
        if str(_native_type(column)).startswith("date64"):
            return True
        return str(column.dtype) == "Object" and word_of(_series(column).dtype) is not None

    def moments(self, name: Name, kind: Date, first: int = 0) -> tuple[pl.Series, Span]:
        """Return a column of dates, times or durations, or of text that is read as the kind says."""
        column = self._frame.get_column(name)
        series, given = without_codes(_series(column), self._codes.get(name, ())), _native_type(column)
        if series.dtype == pl.String and word_of(column.dtype):
            raise InputError(
                f"Column {name!r} must have a time zone with a name, but its type is {given}. Convert it to UTC or to "
                "a zone such as 'Asia/Kolkata' first."
            )
        if kind.format is not None and series.dtype.is_integer():  # 20240131
            series = series.cast(pl.String)
        if series.dtype == pl.String and not _is_opaque(column.dtype):
            series, formats = read_dates(name, series, kind, first)
            return series, span_of(series, given, formats)
        if word_of(series.dtype) is None and series.null_count() < len(series):
            raise InputError(
                f"Column {name!r} must hold dates, times, durations or text to be of kind shoal.Date, but its type is "
                f"{given}. Leave it out of 'kinds', or turn it into dates first."
            )
        return series, span_of(series, given)

    def scale(self, name: Name) -> str | None:
        """Return "ordinal" for a polars Enum and for ordered categories, "nominal" for others."""
        if self.levels(name) is not None:
            return "ordinal"
        return "nominal" if str(self._frame.schema[name]) == "Categorical" else None

    def categories(self, name: Name, *, given: bool, first: int = 0) -> pl.Series:
        """Return a column of text, of Booleans, of categories or, if they are codes, of whole numbers."""
        return without_codes(self._categories(name, given=given, first=first), self._codes.get(name, ()))

    def _categories(self, name: Name, *, given: bool, first: int = 0) -> pl.Series:
        column = self._frame.get_column(name)
        series: pl.Series = _series(column)
        if str(_native_type(column)).startswith(("period", "month_day_nano_interval")):
            way_out = "Turn them into dates or durations first; pandas has .dt.to_timestamp() for that."
            raise not_numeric(name, f"its type is {_native_type(column)}", way_out)
        if isinstance(series.dtype, (pl.Categorical, pl.Enum)):
            series = series.cast(pl.String)
        if given and series.dtype.is_float():
            series = _whole_numbers(name, series, first)
        kind = series.dtype
        if kind not in (pl.String, pl.Boolean) and not (given and (kind.is_integer() or word_of(kind))):
            raise _no_numbers(name, [], str(kind), first)
        if kind == pl.String and not given:
            check_no_dates(name, series, first)
            if mostly_numbers(series):
                raise _no_numbers(name, series.to_list(), "text", first)
        return series

    def levels(self, name: Name) -> tuple[Any, ...] | None:
        """Return the values of an Enum of polars or an ordered category of pandas or pyarrow."""
        kind: Any = self._frame.schema[name]
        if str(kind).startswith("Enum"):
            return tuple(kind.categories)
        column = self._frame.get_column(name).to_native()
        if getattr(getattr(column, "dtype", None), "ordered", False):
            return tuple(column.dtype.categories)
        if getattr(getattr(column, "type", None), "ordered", False):
            return tuple(column.unify_dictionaries().chunk(0).dictionary.to_pylist()) if len(column) else ()
        return None

    def keys(self, names: Sequence[Name]) -> pl.DataFrame:
        """Return columns to group records by."""
        return pl.DataFrame([_series(self._frame.get_column(name)).alias(str(i)) for i, name in enumerate(names)])

    def cells(self, names: Sequence[Name]) -> pl.DataFrame:
        """Return columns as they are."""
        return self.keys(names)

    def spellings(self, name: Name, missing: Bools) -> frozenset[Spelling]:
        """Return "NaN", None for null, and the codes for missing that occur."""
        absent = _is_null(self._frame.get_column(name))
        codes = self._codes.get(name, ())
        found = [str(code) for code in codes if is_coded(self._stored(name), [code]).any()]
        missing = missing & ~is_coded(self._stored(name), codes).to_numpy() if found else missing
        return frozenset(
            [*found, *(word for word, cells in ((None, missing & absent), ("NaN", missing & ~absent)) if cells.any())]
        )

    def _stored(self, name: Name) -> pl.Series:
        """Return a column in which codes for missing are looked for."""
        return _series(self._frame.get_column(name))

    def words(self, name: Name, *, category: bool = False) -> Words:
        """Return the bits of a column; null is another cell than NaN."""
        codes = self._codes.get(name, ())
        plain = None if codes or category else _arrow_numbers(self._frame.get_column(name))
        if plain is not None:
            return number_bits(plain)
        return cell_words(without_codes(self._stored(name), codes), category=category)

    def take(self, rows: Ints) -> FrameTable:
        """Return some of the records."""
        return FrameTable(self._frame[rows.tolist()])

    def without(self, names: Sequence[Name]) -> FrameTable:
        """Return the frame without some of the columns."""
        return FrameTable(self._frame.drop([str(name) for name in names]))

    def only(self, names: Sequence[Name]) -> FrameTable:
        """Return some of the columns; an index of pandas would be one more, so it is numbered anew."""
        import narwhals as nw

        return FrameTable(nw.maybe_reset_index(self._frame.select([nw.col(name) for name in names])))

    def coded(self, codes: Codes) -> FrameTable:
        """Return the frame with codes for missing."""
        return FrameTable(self._frame, codes)

    def released(
        self, new: Mapping[Name, NewColumn], strata: Mapping[Name, Mapping[Spelling, Spelling]] | None = None
    ) -> FrameTable:
        """Return the frame with new values in some columns."""
        import narwhals as nw

        frame = self._frame.with_columns(*(self._new(name, column) for name, column in new.items()))
        return FrameTable(nw.from_native(without_metadata(frame.to_native()), eager_only=True))

    def relabelled(self, texts: Mapping[Name, Sequence[str | None]]) -> FrameTable:
        """Return the frame with text in the place of some columns."""
        import narwhals as nw

        backend = self._frame.implementation
        made = [nw.new_series(name, list(cells), nw.String(), backend=backend) for name, cells in texts.items()]
        return FrameTable(self._frame.with_columns(*made))

    def _new(self, name: Name, new: NewColumn) -> nw.Series[Any]:
        if new.categories is not None:
            return self._new_category(name, new)
        if new.scale is not None:
            cells = new.scale.cells(new.values).alias(name)
            return self._new_moments(name, cells if new.code is None else cells.fill_null(new.code), new.scale.native)
        new = new.filled()
        missing = np.isnan(new.values)
        stored = new.kind.type if new.integers or new.kind.type == "float32" else "float64"
        values: Any = np.where(missing, 0.0, new.values) if "int" in stored else new.values
        values = round_to(values, stored) if "int" in stored else values.astype(stored, copy=False)
        released = self._new_series(name, values)
        if not missing.any():
            return self._nullable(name, released)
        absent = self._new_series(name, missing)
        if name not in self._frame.columns:
            return released if new.missing == "NaN" else _without(released, absent)
        series = self._frame.get_column(name)
        # Missing cells are the given ones, whatever this library calls missing; but null beside NaN tells them apart,
        # and a cell that was not missing must not come back.
        mixed = new.missing is None and (missing & ~_is_null(series)).any()
        given = series.fill_nan(None) if mixed else series
        # Integers are missing in one way, and those beyond 2^53 cannot be cast.
        if series.dtype.is_integer() or not np.isnan(as_floats(given.to_polars())[missing]).all():
            return released if new.missing == "NaN" else _without(released, absent)
        return given.cast(released.dtype).zip_with(absent, released)

    def _new_series(self, name: Name, values: NDArray[Any]) -> nw.Series[Any]:
        """Return numbers or truth values as a column."""
        import narwhals as nw

        if not self._frame.implementation.is_pyarrow():
            return nw.new_series(name, values, backend=self._frame.implementation)
        import pyarrow as pa

        # As they lie in memory: pyarrow imports pandas to look at an array, which takes longer than to mask a part.
        if values.dtype == np.bool_:
            return _arrow_series(name, pl.Series(values).to_arrow())
        buffers = [None, pa.py_buffer(np.ascontiguousarray(values))]
        return _arrow_series(name, pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), buffers))

    def _new_moments(self, name: Name, cells: pl.Series, kind: Any) -> nw.Series[Any]:
        """Return dates, times, durations or text in the type of the column that they replace."""
        import narwhals as nw

        if self._frame.implementation.is_polars():
            return nw.from_native(cells.cast(kind), series_only=True)
        import pyarrow as pa

        stored = pa.chunked_array([cells.to_arrow()])
        if self._frame.implementation.is_pyarrow():
            return nw.from_native(stored.cast(kind), series_only=True).alias(name)  # type: ignore[no-any-return]
        import pandas as pd

        if isinstance(kind, pd.ArrowDtype):
            values: Any = pd.arrays.ArrowExtensionArray(stored.cast(kind.pyarrow_dtype))
        else:
            timed = word_of(cells.dtype) and str(kind) != "object"
            values = cells.to_pandas().astype(kind).array if timed else pd.array(cells.to_list(), dtype=kind)
        return nw.from_native(pd.Series(values, self.native.index, name=name), series_only=True)

    def _nullable(self, name: Name, released: nw.Series[Any]) -> nw.Series[Any]:
        """Return numbers in a nullable type of pandas, if the column has one of the same name."""
        import narwhals as nw

        if not self._frame.implementation.is_pandas() or name not in self._frame.columns:
            return released
        given, made = self._frame.get_column(name).to_native().dtype, released.to_native()
        alike = str(given) != str(made.dtype) and str(given).lower() == str(made.dtype)
        return nw.from_native(made.astype(given), series_only=True) if alike else released

    def _new_category(self, name: Name, new: NewColumn) -> nw.Series[Any]:
        """Return a column of categories in its own type; of text, if that holds numbers and an ancestor is none."""
        import narwhals as nw

        cells, backend = new.cells(), self._frame.implementation
        text = any(isinstance(label, str) for label in new.categories or ())
        if name not in self._frame.columns:
            types = {bool: nw.Boolean(), int: nw.Int64()}
            kind = types.get(type(next(iter(new.categories or ()), None)), nw.String())
            return nw.new_series(name, cells, kind, backend=backend)
        series = self._frame.get_column(name)
        if text and (series.dtype.is_numeric() or series.dtype == nw.Boolean()):
            return nw.new_series(name, cells, nw.String(), backend=backend)
        known = {cell: record for record, cell in enumerate(self._categories(name, given=True))}
        if set(cells) <= known.keys():
            return series[[known[cell] for cell in cells]].alias(name)
        # A part of a table need not hold the value that stands for a group.
        if not text:
            return nw.new_series(name, cells, series.dtype, backend=backend)
        levels = self.levels(name)
        return _like(series, cells, None if levels is None or not set(cells) <= {*levels, None} else levels)


def _like(series: nw.Series[Any], cells: Sequence[str | None], levels: Sequence[Any] | None) -> nw.Series[Any]:
    """Return texts in the type of a column: text, or categories, in their order if they have one."""
    import narwhals as nw

    native: Any = series.to_native()
    made: Any = nw.new_series(series.name, cells, nw.String(), backend=series.implementation)
    if isinstance(series.dtype, nw.Categorical) and levels is None:
        made = made.cast(series.dtype)
    made = made.to_native()
    if series.implementation.is_pyarrow():
        import pyarrow as pa

        if levels is not None:
            place = {level: code for code, level in enumerate(levels)}
            codes = pa.array([None if cell is None else place[cell] for cell in cells], native.type.index_type)
            values = pa.array(levels, native.type.value_type)
            made = pa.chunked_array([pa.DictionaryArray.from_arrays(codes, values, ordered=True)])
        made = made.cast(native.type)
    elif levels is not None:
        made = made.astype(native.dtype) if series.implementation.is_pandas() else made.cast(native.dtype)
    like: nw.Series[Any] = nw.from_native(made, series_only=True).alias(series.name)
    return like


def _whole_numbers(name: Name, series: pl.Series, first: int) -> pl.Series:
    """Return floats that are codes as integers: SPSS has no integers, nor has pandas beside missing cells."""
    numbers = series.fill_nan(None)
    whole = numbers.cast(pl.Int64, strict=False)
    wrong = (numbers.is_not_null() & (whole.is_null() | (whole != numbers))).arg_max() if len(series) else None
    if wrong is not None and numbers[wrong] is not None and whole[wrong] != numbers[wrong]:
        raise not_whole(name, first + wrong + 1, numbers[wrong])
    return whole


def not_whole(name: Name, record: int, value: object) -> InputError:
    """Say which number of a column is no code."""
    return InputError(
        f"Column {name!r} must hold whole numbers to be codes, but record {record} holds {value}. Leave it out of "
        "'kinds'."
    )


def _arrow_numbers(series: nw.Series[Any]) -> NDArray[Any] | None:
    """Return the numbers of a column of pyarrow that misses none: no other library need be imported for them."""
    column = series.to_native()
    if not series.implementation.is_pyarrow() or str(column.type) not in PLAIN or column.null_count:
        return None
    return np.concatenate([np.from_dlpack(chunk) for chunk in column.chunks] or [np.empty(0)])


def _arrow_series(name: Name, array: Any) -> nw.Series[Any]:
    """Return an array of pyarrow as a column."""
    import narwhals as nw
    import pyarrow as pa

    column: nw.Series[Any] = nw.from_native(pa.chunked_array([array]), series_only=True)
    return column.alias(name)


def _is_null(series: nw.Series[Any]) -> Bools:
    """Say which cells are null. Not by pyarrow, which would import pandas to answer."""
    return series.is_null().to_polars().to_numpy()


def _without(series: nw.Series[Any], absent: nw.Series[Any]) -> nw.Series[Any]:
    """Return a column with null in some cells."""
    import narwhals as nw

    if series.implementation.is_pyarrow():
        return _arrow_series(series.name, series.to_polars().set(absent.to_polars(), None).to_arrow())
    frame = series.to_frame().with_columns(absent.alias("absent"))
    return frame.select(nw.when(~nw.col("absent")).then(nw.col(series.name)))[series.name]


def _native_type(series: nw.Series[Any]) -> Any:
    """Return the type that a column has in its own library."""
    column = series.to_native()
    return column.type if hasattr(column, "type") else column.dtype


def _is_opaque(kind: Any) -> bool:
    """Say whether narwhals does not know what a type holds."""
    return str(kind) in ("Object", "Unknown")


def index_notes(table: Table) -> tuple[str, ...]:
    """Say that an index of pandas stays behind when a table is written: a file has columns only."""
    if not isinstance(table, FrameTable):
        return ()
    import narwhals as nw

    index = nw.maybe_get_index(nw.from_native(table.native, eager_only=True))
    if index is None or type(index).__name__ == "RangeIndex":
        return ()
    return ("the index of the pandas table is not in the file; reset_index() makes it a column",)


def _series(series: nw.Series[Any]) -> pl.Series:
    try:
        return series.to_polars()
    except (TypeError, ValueError, pl.exceptions.PolarsError):  # objects of several types, or types of other libraries
        return pl.Series([None if value is None else repr(value) for value in series.to_list()], dtype=pl.String)


def not_numeric(name: Name, found: str, way_out: str = "") -> InputError:
    """Say what a column holds that is no number."""
    way_out = way_out or (
        f"Leave the column out, turn it into numbers, or call it a category: kinds={{{name!r}: shoal.Nominal()}} "
        f"(--nominal {name})."
    )
    return InputError(f"Column {name!r} must be numeric, but {found}. {way_out}")


def _no_numbers(name: Name, cells: Sequence[object], kind: str, first: int) -> InputError:
    """Name the first cell of a column that is text and no number, or the type of all."""
    texts = ((record, cell) for record, cell in enumerate(cells, first + 1) if isinstance(cell, str))
    wrong = (f"record {record} holds {cell!r}" for record, cell in texts if not _is_number(cell))
    return not_numeric(name, next(wrong, f"its type is {kind}"))


def mostly_numbers(text: pl.Series) -> bool:
    """Say whether most values of a text are written like numbers: such a column has a slip, and is no category."""
    values = text.drop_nulls().unique()
    return 2 * int(values.str.contains(NUMBER_LIKE).sum()) > len(values)


def _is_number(text: str) -> bool:
    try:
        float(text.strip() or "0")
    except ValueError:
        return False
    return True


def _float(kind: np.dtype[Any]) -> str:
    return "float32" if kind == np.float32 else "float64"


def _codes_as_numbers(column: NewColumn) -> NewColumn:
    """Return a column of categories that are numbers as one of numbers."""
    if column.categories is None:
        return column
    values = np.array([np.nan if cell is None else cell for cell in column.cells()], dtype=np.float64)
    return replace(column, values=values, kind=Kind("int64", whole=True), rounded=True, categories=None)


class ArrayTable:
    """A NumPy array, one record a row; columns are named by their number."""

    def __init__(self, array: np.ndarray[Any, Any], codes: Codes | None = None) -> None:
        if array.ndim not in (1, 2) or array.dtype.kind not in "iuf":
            raise InputError(
                f"Parameter 'data' must be an array of numbers with records in rows, got shape {array.shape} of "
                f"type {array.dtype}."
            )
        self._array, self._codes = array, codes or {}

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

    def column(self, name: Name, first: int = 0) -> Column:
        """Return a column as float64."""
        kind = self._array.dtype
        values = self._columns[:, name].astype(np.float64)
        values[self._coded(name)] = np.nan
        return Column(name, values, str(kind) if kind.kind in "iu" else _float(kind))

    def _coded(self, name: Name, codes: Sequence[Any] | None = None) -> Bools:
        """Say which cells are codes for missing."""
        cells = pl.Series(np.ascontiguousarray(self._columns[:, name]))
        return is_coded(cells, self._codes.get(name, ()) if codes is None else codes).to_numpy()

    def timed_names(self) -> list[Name]:
        """Return none: an array holds numbers."""
        return []

    def moments(self, name: Name, kind: Date, first: int = 0) -> tuple[pl.Series, Span]:
        """Refuse: an array holds numbers."""
        raise InputError(f"Column {name!r} must hold dates to be of kind shoal.Date, but arrays hold numbers.")

    def scale(self, name: Name) -> str | None:
        """Return None: numbers say nothing of categories."""

    def categories(self, name: Name, *, given: bool, first: int = 0) -> pl.Series:
        """Return a column of codes."""
        column = self._columns[:, name]
        if column.dtype.kind == "f":
            whole = np.isnan(column) | (np.rint(column) == column)
            if not whole.all():
                raise not_whole(name, first + int(np.argmin(whole)) + 1, column[np.argmin(whole)])
        cells = column.astype(np.float64)
        cells[self._coded(name)] = np.nan
        return pl.Series(cells).fill_nan(None).cast(pl.Int64)

    def levels(self, name: Name) -> None:
        """Return nothing: numbers are no levels."""

    def keys(self, names: Sequence[Name]) -> pl.DataFrame:
        """Return columns to group records by."""
        return pl.DataFrame({str(i): np.ascontiguousarray(self._columns[:, name]) for i, name in enumerate(names)})

    def cells(self, names: Sequence[Name]) -> pl.DataFrame:
        """Return columns as they are."""
        return self.keys(names)

    def spellings(self, name: Name, missing: Bools) -> frozenset[Spelling]:
        """Return "NaN" if that is missing, and the codes for missing that occur."""
        found = [str(code) for code in self._codes.get(name, ()) if self._coded(name, [code]).any()]
        return frozenset([*found, *(["NaN"] if (missing & ~self._coded(name)).any() else [])])

    def words(self, name: Name, *, category: bool = False) -> Words:
        """Return the bits of a column."""
        cells = pl.Series(np.ascontiguousarray(self._columns[:, name]))
        return cell_words(without_codes(cells, self._codes.get(name, ())))

    def take(self, rows: Ints) -> ArrayTable:
        """Return some of the records."""
        return ArrayTable(self._array[rows])

    def without(self, names: Sequence[Name]) -> ArrayTable:
        """Return the array without some of the columns; the others are numbered anew."""
        return ArrayTable(np.delete(self._columns, list(names), axis=1)) if names else self

    def only(self, names: Sequence[Name]) -> ArrayTable:
        """Return some of the columns, numbered anew."""
        return ArrayTable(self._array if self._array.ndim == 1 else self._array[:, list(names)])

    def coded(self, codes: Codes) -> ArrayTable:
        """Return the array with codes for missing."""
        return ArrayTable(self._array, codes)

    def released(
        self, new: Mapping[Name, NewColumn], strata: Mapping[Name, Mapping[Spelling, Spelling]] | None = None
    ) -> ArrayTable:
        """Return the array with new values in some columns; integers become floats unless they were rounded."""
        kind = self._array.dtype
        new = {name: _codes_as_numbers(column).filled() for name, column in new.items()}
        whole = all(column.integers and not np.isnan(column.values).any() for column in new.values())
        floats = kind.kind in "iu" and not whole
        if floats:
            self._check_others(new)
        array = self._columns.astype(np.float64 if floats else kind, copy=True)
        for name, column in new.items():
            array[:, name] = round_to(column.values, str(kind)) if array.dtype.kind in "iu" else column.values  # noqa: PD011  (no frame)
        return ArrayTable(array.reshape(self._array.shape))

    def relabelled(self, texts: Mapping[Name, Sequence[str | None]]) -> ArrayTable:
        """Refuse: an array of numbers holds no text."""
        raise InputError(
            f"Parameter 'small' is 'merge', but joined strata of column {next(iter(texts))} would read as text, which "
            "an array of numbers cannot hold. Give a frame."
        )

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
