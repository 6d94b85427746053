"""Tables of any library or file format, their columns, and the strata of their records."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import polars as pl

from shoal.core.errors import InputError, VerificationError, closest
from shoal.core.measures import group_sizes
from shoal.core.messages import agreeing, listed, parameter
from shoal.core.types import Bools, Ints, Spelling
from shoal.kernels.words import Words, number_bits
from shoal.kinds.column import MISSING, Column, composed_cells, word_of
from shoal.kinds.date import Date, check_no_dates, read_dates
from shoal.kinds.kind import Kind
from shoal.kinds.nominal import Nominal
from shoal.kinds.time_scale import Span, span_of
from shoal.tables.columns import (
    Code,
    Codes,
    Name,
    NewColumn,
    cell_words,
    check_codes,
    coded_text,
    column_of,
    is_coded,
    whole_numbers,
    with_cells,
    without_codes,
    without_words,
)
from shoal.tables.formats.frame_columns import (
    arrow_numbers,
    as_polars,
    is_null,
    is_opaque,
    levels_of,
    native_type,
    to_polars,
)
from shoal.tables.number_text import (
    TextNumbers,
    as_type,
    find_thousands,
    is_numeric,
    mostly_numbers,
    no_numbers,
    not_numbers,
    not_numeric,
    number_type,
    parse_columns,
    spelled_numbers,
    text_numbers,
)

if TYPE_CHECKING:
    import narwhals as nw

    from shoal.tables.formats.csv_files import TextStore
    from shoal.tables.number_text import Dialect

__all__ = [
    "NO_INDEX",
    "Store",
    "Strata",
    "Table",
    "TableColumn",
    "TextColumn",
    "check_name",
    "check_names",
    "choose_columns",
    "describe_stratum",
    "label_frame",
    "number_rows",
    "stored_indexes",
    "stratum_codes",
]

Strata = Mapping[Name, Mapping[Spelling, Spelling]]  # new spelling of each old one, per stratum column
NO_INDEX = (
    "the index of the pandas table is not in the release: records are numbered from 0; reset_index() turns the index "
    "into a column"
)


class TableColumn:
    """A column of a table, with its cells as written, their meaning, and their values for masking.

    Cells are fetched from the store on each use. `first` is the number of records before this part of the table;
    error messages add this number to record numbers.
    """

    def __init__(self, store: Store, name: Name, codes: Sequence[Code]) -> None:
        self.store, self.name, self.codes = store, name, codes

    @cached_property
    def _series(self) -> nw.Series[Any]:
        return self.store.series(self.name)

    @property
    def meaning(self) -> pl.Series:
        """The cells as values, or as text if polars has no type for them."""
        return to_polars(self._series)

    @property
    def written(self) -> pl.Series:
        """The cells as stored in a file; text for CSV files."""
        return self.meaning

    @property
    def spelled(self) -> pl.Series:
        """The cells, including codes that the file format itself defines as missing."""
        return self.meaning

    @property
    def key(self) -> pl.Series:
        """The cells as values for comparison, with text in one Unicode form."""
        cells = self.meaning
        return composed_cells(cells) if isinstance(cells.dtype, (pl.String, pl.Categorical, pl.Enum)) else cells

    @property
    def counted(self) -> pl.Series:
        """The cells for counting, with null for missing cells that are written as words."""
        return self.meaning

    @property
    def present(self) -> pl.Series:
        """The cells with null for missing values."""
        return without_codes(self.meaning, self.codes)

    @property
    def numeric(self) -> bool:
        """True if the cells are numbers and the column is not a pandas index stored in a file."""
        return self._series.dtype.is_numeric() and not stored_indexes([self.name])

    @property
    def timed(self) -> bool:
        """True if the type is a date, a time of day or a duration, which pandas may store as objects."""
        dtype = self._series.dtype
        if str(dtype) == "Object":
            return word_of(self.meaning.dtype) is not None
        return word_of(dtype) is not None or str(native_type(self._series)).startswith("date64")

    @property
    def levels(self) -> tuple[Any, ...] | None:
        """The ordered values of the column's type; None for types without an order."""
        return levels_of(self._series)

    @property
    def scale(self) -> str | None:
        """The scale of categories, "nominal" or "ordinal"; None for other columns."""
        if self.levels is not None:
            return "ordinal"
        return "nominal" if str(self._series.dtype) == "Categorical" else None

    def numbers(self, first: int = 0) -> Column:
        """Return the column as numbers; refuse a column that is not numeric."""
        plain = None if self.codes else arrow_numbers(self._series)
        if plain is not None:
            return Column(self.name, plain.astype(np.float64, copy=False), str(plain.dtype))
        dtype = self._series.dtype
        if not dtype.is_numeric():
            raise no_numbers(self.name, self._series.to_list(), str(dtype), first)
        return column_of(self.name, self.present)

    def moments(self, kind: Date, first: int = 0) -> tuple[pl.Series, Span]:
        """Return dates, times or durations and their span; text is parsed as the kind specifies."""
        name, dtype, stored = self.name, self._series.dtype, native_type(self._series)
        if not self.store.holds_text:
            raise InputError(
                f"Column {name!r} must contain dates for kind shoal.Date, but arrays contain numbers. Use a frame."
            )
        series = self.present
        if series.dtype == pl.String and word_of(dtype):
            raise InputError(
                f"Column {name!r} must have a named time zone, but its type is {stored}. Convert it to UTC or to a "
                "zone such as 'Asia/Kolkata' first."
            )
        if kind.format is not None and series.dtype.is_integer():  # 20240131
            series = series.cast(pl.String)
        if series.dtype == pl.String and not is_opaque(dtype):
            series, formats = read_dates(name, series, kind, first)
            return series, span_of(series, stored, formats)
        if word_of(series.dtype) is None and series.null_count() < len(series):
            raise InputError(
                f"Column {name!r} must contain dates, times, durations or text for kind shoal.Date, but its type is "
                f"{stored}. Remove it from {parameter('kinds')}, or convert it to dates first."
            )
        return series, span_of(series, stored)

    def categories(self, first: int = 0, *, named: bool = True) -> pl.Series:
        """Return text or Booleans; if the user declared categories (`named`), also allow whole numbers and times."""
        cells = self._categories(first, named=named)
        if cells.dtype == pl.String and not named:
            check_no_dates(self.name, cells, first)
            if mostly_numbers(cells):
                raise self._no_numbers(first)
        return cells

    def _no_numbers(self, first: int) -> InputError:
        return no_numbers(self.name, self.meaning.to_list(), "text", first)

    def _categories(self, first: int, *, named: bool) -> pl.Series:
        series, stored = self.meaning, native_type(self._series)
        if str(stored).startswith(("period", "month_day_nano_interval")):
            remedy = "Convert it to dates or durations first, in pandas with .dt.to_timestamp()."
            raise not_numeric(self.name, f"its type is {stored}", remedy)
        if isinstance(series.dtype, (pl.Categorical, pl.Enum)):
            series = series.cast(pl.String)
        if named and not self.store.holds_text:
            check_codes(self.name, series, first)
        if named and series.dtype.is_float():
            series = whole_numbers(self.name, series, first)
        kind = series.dtype
        if kind not in (pl.String, pl.Boolean) and not (named and (kind.is_integer() or word_of(kind))):
            raise no_numbers(self.name, [], str(kind), first)
        return without_codes(series, self.codes)

    def compared(self, kind: Kind, first: int = 0) -> tuple[pl.Series, bool]:
        """Return the cells of a sensitive column for comparison, and True if they are ordered."""
        if kind.scaled:
            return kind.compared(self.name, self.moments(cast("Date", kind), first)[0])
        cells = self.key if kind.numeric else None
        if kind.additive and cells is not None and isinstance(cells.dtype, (pl.String, pl.Categorical, pl.Enum)):
            kind, cells = Nominal(), None  # text declared as numbers has no order
        return kind.compared(self.name, self.categories(first) if cells is None else cells)

    def missing(self, kind: Kind) -> Bools:
        """Return a mask of the missing cells."""
        return np.isnan(self.numbers().values) if kind.numeric else self.categories().is_null().to_numpy()

    def text_numbers(self, first: int = 0) -> TextNumbers | None:
        """Return counts of the numbers in a column of text or objects; None for other types, such as categories."""
        dtype, series = str(self._series.dtype), None
        if dtype in ("String", "Object"):
            series = self.meaning
            if series.dtype.is_numeric():
                return TextNumbers(1, 1, "its type is object", "Convert it to numbers.")
            if dtype == "Object":
                objects = self._series.to_list()
                series = pl.Series([None if cell is None else str(cell) for cell in objects], dtype=pl.String)
        return text_numbers(series, None, first) if series is not None and series.dtype == pl.String else None

    def spellings(self, missing: Bools) -> frozenset[Spelling]:
        """Return the spellings of missing cells: None for null, "NaN", and codes."""
        cells, codes = self.spelled, self.codes
        occurring = [str(code) for code in codes if is_coded(cells, [code]).any()]
        if occurring:
            missing = missing & ~is_coded(cells, codes).to_numpy()
        null = is_null(self._series)
        plain = {None: missing & null, "NaN": missing & ~null}
        return frozenset([*occurring, *(spelling for spelling, where in plain.items() if where.any())])

    def words(self, *, category: bool = False) -> Words:
        """Return one word per cell; words are equal if and only if the cells are written in the same way."""
        plain = None if self.codes or category else arrow_numbers(self._series)
        if plain is not None:
            return number_bits(plain)
        return cell_words(without_codes(self.spelled, self.codes), category=category)


class TextColumn(TableColumn):
    """A text column whose cells may represent numbers."""

    store: TextStore

    @cached_property
    def written(self) -> pl.Series:
        """The text of the cells, unchanged."""
        return self.store.text.column(self.name)

    @property
    def meaning(self) -> pl.Series:
        """The cells as numbers if all of them are numbers, else as text."""
        ((cells, codes),) = parse_all([self])
        return cells if cells.dtype.is_numeric() and (not codes or self.name in self.store.numbers) else self.written

    @property
    def counted(self) -> pl.Series:
        """The cells as numbers, or as text with null for missing values."""
        cells = self.meaning
        return self.present if cells.dtype == pl.String else cells

    @property
    def present(self) -> pl.Series:
        """The text with null for missing values."""
        cells = self.written
        return self._uncoded(cells.set(cells.str.strip_chars().is_in(MISSING), None))

    @property
    def stored(self) -> pl.Series:
        """The cells as numbers if all are numbers, or all are missing in a column declared as numbers; else as text."""
        cells = self.as_type(None) if self.name in self.store.numbers else self.meaning
        return self.written if self.name in self.store.texts or not cells.dtype.is_numeric() else cells

    @property
    def numeric(self) -> bool:
        """True if all cells are numbers."""
        return self.meaning.dtype.is_numeric()

    @property
    def text_type(self) -> str | None:
        """The stored type of the column: Int64, Float64 or String; None if all its cells are missing."""
        return number_type(self.named, self.store.dialect, codes=self.name in self.store.numbers)

    def as_type(self, dtype: pl.DataType | None) -> pl.Series:
        """Return the cells in the common type of all parts of the table; if it is None, as parsed in this part."""
        if dtype is not None:
            return as_type(self.named, self.store.dialect, dtype)
        ((numbers, _),) = parse_all([self])
        missing = numbers.dtype == pl.String and numbers.str.strip_chars().fill_null("").is_in(MISSING).all()
        return pl.Series([None] * len(numbers), dtype=pl.Float64) if missing else numbers

    def numbers(self, first: int = 0) -> Column:
        """Return the column as numbers, including codes such as 007."""
        numbers = self.as_type(None)
        if not numbers.dtype.is_numeric():
            raise not_numbers(self.name, self.named, self.store.dialect, first)
        return column_of(self.name, self._uncoded(numbers))

    def moments(self, kind: Date, first: int = 0) -> tuple[pl.Series, Span]:
        """Return the dates or times in the cells, and their span."""
        cells, formats = read_dates(self.name, self.present, kind, first)
        return cells, span_of(cells, pl.String, formats)

    def _categories(self, first: int, *, named: bool) -> pl.Series:
        return self.present

    def _no_numbers(self, first: int) -> InputError:
        return not_numbers(self.name, self.written, self.store.dialect, first)

    def text_numbers(self, first: int = 0) -> TextNumbers:
        """Return counts of the numbers in the text."""
        return text_numbers(self.named, self.store.dialect, first)

    def spellings(self, missing: Bools) -> frozenset[Spelling]:
        """Return the distinct texts of missing cells."""
        return frozenset(self.written.filter(pl.Series(missing)).unique())

    def words(self, *, category: bool = False) -> Words:
        """Return one word per text or number; refuse a number with several spellings."""
        cells = self.written
        if category:
            return cell_words(self._uncoded(cells), category=True)
        numbers, dialect = self._uncoded(self.as_type(None)), self.store.dialect
        if not numbers.dtype.is_numeric() or not (spelled_numbers(numbers, dialect) == cells).drop_nulls().all():
            raise VerificationError(f"Column {self.name!r} has numbers spelled in several ways. Nothing was released.")
        return cell_words(numbers)

    def _uncoded(self, cells: pl.Series) -> pl.Series:
        """Return cells with null in place of codes for missing values."""
        return cells.set(coded_text(self.written, self.codes, self.store.dialect), None) if self.codes else cells

    @property
    def named(self) -> pl.Series:
        """The cells with null in place of codes that are words, which a column of numbers may also contain."""
        return without_words(self.written, self.codes) if self.codes else self.written


def parse_all(columns: Sequence[TextColumn]) -> list[tuple[pl.Series, bool]]:
    """Return each column as numbers or text, and True if some cells look like 007; reuse results in the store."""
    store = columns[0].store
    parsed = {} if store.parsed is None else store.parsed
    keys = [(column.name, tuple(column.codes)) for column in columns]
    new = {key: column.named for key, column in zip(keys, columns, strict=True) if key not in parsed}
    if new:
        parsed.update(zip(new, parse_columns(list(new.values()), store.dialect), strict=True))
    return [parsed[key] for key in keys]


class Store:
    """The cells of a table in one format, with methods to select records and columns and insert released values."""

    column: ClassVar[type[TableColumn]] = TableColumn
    names: list[Name]  # of all columns
    rows: int  # the number of records
    native: Any  # the user's object; for a CSV file, a frame of text
    dialect: Dialect | None = None  # of a CSV file
    index_notes: tuple[str, ...] = ()  # a note that the index of a pandas frame is not released
    file_notes: tuple[str, ...] = ()  # notes on contents of the file that were not read
    sheets: tuple[str, ...] = ()  # all sheets of an Excel file
    holds_text: bool = True  # False if masked columns cannot become text
    parsed: dict[Any, Any] | None = None  # parsed text by column; None to keep nothing
    # Return a narwhals column without its name, which polars may take as a pattern.
    series: Callable[[Name], nw.Series[Any]]
    take: Callable[[Ints], Store]  # select records
    only: Callable[[Sequence[Name]], Store]  # select columns
    released: Callable[[Mapping[Name, NewColumn], Strata], Store]  # insert new values and spellings, drop metadata
    relabelled: Callable[[Mapping[Name, Sequence[str | None]]], Store]  # replace columns by text

    def in_own_dialect(self, delimiter: str, numeric: Sequence[Name]) -> Store:
        """Return the cells in shoal's own CSV dialect, without metadata of the original file."""
        return self


class Table:
    """A table or a part of a table. Derived tables have fewer records or columns, or new values."""

    def __init__(self, store: Store, codes: Codes | None = None) -> None:
        self.store, self.codes = store, codes or {}  # codes for missing values, by column
        self.names, self.rows = store.names, store.rows
        self.dialect, self.index_notes = store.dialect, store.index_notes

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the source of the table."""
        return (*self.store.index_notes, *self.store.file_notes)

    def __getitem__(self, name: Name) -> TableColumn:
        return self.store.column(self.store, name, self.codes.get(name, ()))

    def _columns(self, names: Sequence[Name]) -> dict[Name, Any]:
        """Return columns by name; text columns are parsed together."""
        columns = {name: self[name] for name in names}
        if columns and self.store.parsed is not None:
            parse_all(cast("list[TextColumn]", list(columns.values())))
        return columns

    @property
    def native(self) -> Any:
        """The table as an object of its original library."""
        if self.dialect is None:
            return self.store.native
        return with_cells(
            self.store.native, {name: column.stored for name, column in self._columns(self.names).items()}
        )

    def numeric_names(self) -> list[Name]:
        """Return the names of the numeric columns."""
        return [name for name, column in self._columns(self.names).items() if column.numeric]

    def timed_names(self) -> list[Name]:
        """Return the names of the columns whose type is a date, a time of day or a duration."""
        return [name for name in self.names if self.dialect is None and self[name].timed]

    def scale(self, name: Name) -> str | None:
        """Return the scale of a column's categories, "nominal" or "ordinal"; None for other columns."""
        return self[name].scale if self.dialect is None else None

    def ordered_levels(self) -> dict[Name, tuple[Any, ...]]:
        """Return the levels of all columns with an ordered type."""
        if self.dialect is not None:
            return {}
        levels = {name: self[name].levels for name in self.names}
        return {name: values for name, values in levels.items() if values is not None}

    def find_thousands(self, decimal: str | None = None) -> str | None:
        """Return the thousands separator of a text table; None if it has none, or for other tables."""
        if self.dialect is None:
            return None
        numeric = self.numeric_names()
        texts = [self[name].written for name in self.names if name not in numeric]
        return find_thousands(
            texts, self.dialect, decimal, suits=lambda other: all(is_numeric(self[n].written, other) for n in numeric)
        )

    def text_types(self, names: Sequence[Name]) -> dict[Name, str | None]:
        """Return the types of the values in columns of a text table; empty for other tables."""
        if self.dialect is None:
            return {}
        return {name: column.text_type for name, column in self._columns(names).items()}

    def cells_of(self, name: Name, kind: Kind, first: int = 0, *, named: bool = True) -> dict[Name, Any]:
        """Return the cells that a kind reads, by column; `named` is True if the user declared the kind."""
        if kind.scaled:
            return {name: self[name].moments(cast("Date", kind), first)}
        if kind.numeric:
            return {column: self[column].numbers(first) for column in kind.columns or (name,)}
        return {name: self[name].categories(first, named=named)}

    def keys(self, names: Sequence[Name]) -> pl.DataFrame:
        """Return the values for grouping records, with text in one Unicode form; columns are named by position."""
        return _named_by_place(column.key for column in self._columns(names).values())

    def cells(self, names: Sequence[Name]) -> pl.DataFrame:
        """Return columns as written, which is text for CSV files; columns are named by position."""
        return _named_by_place(self[name].written for name in names)

    def words(self, names: Sequence[Name], categories: Collection[Name]) -> list[Words]:
        """Return one word per cell of each column; words are equal if and only if cells are written in the same way."""
        return [column.words(category=name in categories) for name, column in self._columns(names).items()]

    def csv_frame(self) -> pl.DataFrame:
        """Return the table as a polars frame with the cells of a CSV file."""
        return as_polars(self.native) if self.dialect is None else self.store.native

    def arrow_part(self, numbers: Sequence[Name], types: Mapping[Name, pl.DataType]) -> Any:
        """Return a part of a table for Arrow; text becomes numbers in columns that are numeric in all parts."""
        if self.dialect is None:
            return self.native
        columns = self._columns([*numbers, *types])
        cells = {name: column.as_type(types.get(name)) for name, column in columns.items()}
        return with_cells(self.store.native, cells).to_arrow()

    # Derived tables

    def take(self, rows: Ints) -> Table:
        """Return the table with only the records at positions `rows`."""
        same = len(rows) == self.rows and np.array_equal(rows, np.arange(self.rows))
        return self if same else Table(self.store.take(rows), self.codes)

    def without(self, names: Sequence[Name]) -> Table:
        """Return the table without the columns `names`."""
        return self.only([name for name in self.names if name not in names]) if names else self

    def only(self, names: Sequence[Name]) -> Table:
        """Return the table with only the columns `names`."""
        return Table(self.store.only(names), self.codes)

    def in_own_dialect(self, delimiter: str = ",") -> Table:
        """Return the table in shoal's own CSV dialect."""
        return Table(self.store.in_own_dialect(delimiter, self.numeric_names()), self.codes)

    def coded(self, codes: Codes) -> Table:
        """Return the table with codes for missing values; coded cells are missing in numbers, categories and words."""
        return self if codes == self.codes else Table(self.store, codes)

    def released(self, new: Mapping[Name, NewColumn], strata: Strata | None = None) -> Table:
        """Return the table with new values and respelled strata, without metadata of the original."""
        return Table(self.store.released(new, strata or {}), self.codes)

    def relabelled(self, texts: Mapping[Name, Sequence[str | None]]) -> Table:
        """Return the table with some columns replaced by text."""
        return Table(self.store.relabelled(texts), self.codes)


def _named_by_place(columns: Iterable[pl.Series]) -> pl.DataFrame:
    """Return columns as a frame, named by position, because polars would take some names as patterns."""
    return pl.DataFrame([column.alias(str(place)) for place, column in enumerate(columns)])


def check_names(names: Sequence[Name]) -> None:
    """Refuse a table with column names that repeat or cannot be written."""
    twice = sorted({repr(str(name)) for name in names if names.count(name) > 1})
    if twice:
        appear = agreeing(len(twice), "appears", "appear")
        raise InputError(
            f"Column names must be unique, but {listed(twice)} {appear} more than once. "
            "Rename the columns before masking, or add a header line if the file has none."
        )
    for name in names:
        if any(sign == "\0" or "\ud800" <= sign <= "\udfff" for sign in str(name)):
            raise InputError(f"Column name {name!r} contains a character that no file can store. Rename the column.")


def check_name(name: Name, names: Sequence[Name], what: str) -> None:
    """Refuse the name of a column that does not exist, and suggest similar names."""
    # In Python, True and 1.0 equal 1; in tables they are different names.
    if not any(name == column and _type_of_name(name) == _type_of_name(column) for column in names):
        raise InputError(
            f"{parameter(what)} names column {name!r}, which the table does not have.{closest(name, names)} Its "
            f"columns are {listed(names, 12)}."
        )


def _type_of_name(name: Name) -> str:
    """Return the type of a column name; Python and NumPy integers count as the same type."""
    if isinstance(name, bool):
        return "bool"
    return "int" if isinstance(name, Integral) else type(name).__name__


def stored_indexes(names: Sequence[Name]) -> list[Name]:
    """Return the columns that hold an unnamed index of pandas or Dask in a file.

    Examples
    --------
    >>> stored_indexes(["__index_level_0__", "__null_dask_index__", "index"])
    ['__index_level_0__', '__null_dask_index__']
    """
    return [name for name in names if str(name).startswith("__index_level_") or name == "__null_dask_index__"]


def choose_columns(
    names: Sequence[Name],
    numeric: Sequence[Name],
    requested: Sequence[Name] | None,
    *,
    apart: Collection[Name] = (),
    to: str = "mask",
) -> list[Name]:
    """Return the requested columns, by default all numeric columns except those in `apart`.

    Examples
    --------
    >>> choose_columns(["a", "b", "c"], ["a", "b"], None, apart=["b"])
    ['a']
    """
    if requested is None:
        chosen = [name for name in numeric if name not in apart]
        if not chosen:
            raise InputError(
                f"The table has no numeric column to {to}: one cell that is not a number makes a column text. Name the "
                f"columns in {parameter('columns')}."
            )
        return chosen
    chosen = list(requested)
    if not chosen:
        raise InputError(f"{parameter('columns')} must name at least one column, got none.")
    for name in chosen:
        check_name(name, names, "columns")
        if chosen.count(name) > 1:
            raise InputError(f"{parameter('columns')} lists column {name!r} twice. List it once.")
    return chosen


# Strata and labels


def number_rows(keys: pl.DataFrame) -> tuple[Ints, list[tuple[Any, ...]]]:
    """Number distinct rows in order of appearance; return the number of each row, and the distinct rows by number."""
    unique = keys.unique(maintain_order=True).with_row_index("code")
    codes = keys.join(unique, on=keys.columns, how="left", nulls_equal=True, maintain_order="left")["code"]
    return codes.to_numpy().astype(np.int64), unique.drop("code").rows()


def stratum_codes(table: Table, by: Sequence[Name]) -> Ints:
    """Return the stratum number of each record, in order of appearance; missing counts as a value.

    Examples
    --------
    >>> from shoal.tables.formats.frames import open_table
    >>> stratum_codes(open_table(np.array([[1.0], [2.0], [1.0]])), [0]).tolist()
    [0, 1, 0]
    """
    return number_rows(table.keys(by))[0] if by else np.zeros(table.rows, dtype=np.int64)


def describe_stratum(by: Sequence[Name], values: Sequence[object]) -> str:
    """Return the description of a stratum for messages.

    Examples
    --------
    >>> describe_stratum(["region"], ["north"])
    "the stratum region='north'"
    """
    pairs = listed([f"{name}={value!r}" for name, value in zip(by, values, strict=True)])
    return f"the stratum {pairs}" if pairs else "the table"


def label_frame(records: Ints, labels: Ints, columns: Sequence[Name]) -> pl.DataFrame:
    """Return a table with the group labels of released records, or of their cells in the masked columns.

    `records` are row numbers of the original, counted from 0; column `record` counts them from 1.

    Examples
    --------
    >>> label_frame(np.array([0, 2]), np.array([0, 0]), ["sales"]).rows()
    [(1, 0, 2), (3, 0, 2)]
    """
    frame = {"record": records + 1}
    if labels.ndim == 1:
        return pl.DataFrame({**frame, "group": labels, "size": group_sizes(labels)[labels]})
    for name, column in zip(columns, labels.T, strict=True):
        groups = np.ascontiguousarray(column)
        frame |= {f"group_{name}": groups, f"size_{name}": group_sizes(groups)[groups]}
    return pl.DataFrame(frame)
