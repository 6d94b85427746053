"""A table, whatever library or file it comes from; the strata of its records."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from numbers import Integral
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import polars as pl

from shoal.core.errors import InputError, closest
from shoal.core.measures import group_sizes
from shoal.core.messages import agreeing, listed, parameter
from shoal.core.types import Bools, Ints, Spelling
from shoal.kernels.words import Words
from shoal.kinds.column import Column, composed_cells
from shoal.kinds.date import Date
from shoal.kinds.kind import Kind
from shoal.kinds.nominal import Nominal
from shoal.kinds.time_scale import Span
from shoal.tables.columns import (
    Codes,
    Name,
    NewColumn,
    TextNumbers,
    cell_words,
    column_of,
    is_coded,
    without_codes,
)
from shoal.tables.formats.frame_columns import as_polars

if TYPE_CHECKING:
    from shoal.tables.csv_table import Dialect
    from shoal.tables.formats.stat_files import StatFile

__all__ = [
    "NO_INDEX",
    "Table",
    "check_name",
    "check_names",
    "choose_columns",
    "describe_stratum",
    "label_frame",
    "named_by_place",
    "number_rows",
    "stored_indexes",
    "stratum_codes",
]

NO_INDEX = (
    "the index of the pandas table is not in the release: records are numbered from 0; reset_index() makes the index a "
    "column"
)


class Table:
    """A table, or a part of one: its cells in polars, and what they mean.

    A format is a subclass. It brings `stored`, the columns in polars, and the way back: tables of some of the records
    or columns, and of new values. It replaces what its types know better.
    """

    names: list[Name]  # of all columns
    rows: int  # the number of records
    codes: Codes  # cells that mean missing, by column
    dialect: Dialect | None = None  # how it is written, of a CSV file
    stat_file: StatFile | None = None  # labels and stored cells, of a statistical package's file
    index_notes: tuple[str, ...] = ()  # a note on an index of pandas that names records: it is not released

    @property
    def native(self) -> Any:
        """The table as the user knows it."""
        raise NotImplementedError

    def numeric_names(self) -> list[Name]:
        """Return the names of the numeric columns."""
        raise NotImplementedError

    def timed_names(self) -> list[Name]:
        """Return the names of the columns whose type is a date, a time of day or a duration."""
        return []

    def scale(self, name: Name) -> str | None:
        """Return "nominal" or "ordinal" if the table says that a column holds categories."""
        return None

    def levels(self, name: Name) -> tuple[Any, ...] | None:
        """Return the values of a column in their order, if its type knows one."""
        return None

    def ordered_levels(self) -> dict[Name, tuple[Any, ...]]:
        """Return the levels of all columns whose type knows an order."""
        return {name: levels for name in self.names if (levels := self.levels(name)) is not None}

    def find_thousands(self, decimal: str | None = None) -> str | None:
        """Return the sign between thousands in a table of text; other tables have numbers."""
        return None

    def csv_frame(self) -> pl.DataFrame:
        """Return the table with its cells as a CSV file holds them."""
        return as_polars(self.native)

    def arrow_part(self, numbers: Sequence[Name], types: Mapping[Name, pl.DataType]) -> Any:
        """Return a part of a table in Arrow; text becomes numbers in columns that are numbers in all parts."""
        return self.native

    # Columns as they are worked with; `first` records come before this part.

    def stored(self, name: Name) -> pl.Series:
        """Return the cells of a column in polars, without a name."""
        raise NotImplementedError

    def spelled(self, name: Name) -> pl.Series:
        """Return the cells of a column with codes that its format already reads as missing."""
        return self.stored(name)

    def counted(self, name: Name) -> pl.Series:
        """Return the cells of a column as they are counted: missing cells that are spelled in words are null."""
        return self.keys([name])["0"]

    def nulls(self, name: Name) -> Bools:
        """Return which cells of a column are null; NaN is another cell."""
        return self.stored(name).is_null().to_numpy()

    def cells_of(self, name: Name, kind: Kind, first: int = 0, *, named: bool = True) -> dict[Name, Any]:
        """Return the cells that a kind reads, by column; `named` says that the user named the kind."""
        if kind.scaled:
            return {name: self.moments(name, cast("Date", kind), first)}
        if kind.numeric:
            return {column: self.column(column, first) for column in kind.columns or (name,)}
        return {name: self.categories(name, first, named=named)}

    def column(self, name: Name, first: int = 0) -> Column:
        """Return a column as numbers, or refuse one that holds none."""
        cells = without_codes(self.stored(name), self.codes.get(name, ()))
        return column_of(name, cells)

    def moments(self, name: Name, kind: Date, first: int = 0) -> tuple[pl.Series, Span]:
        """Return a column of dates, times or durations, and its span; refuse one that holds none."""
        raise NotImplementedError

    def categories(self, name: Name, first: int = 0, *, named: bool = True) -> pl.Series:
        """Return a column as categories, or refuse one that holds none; `named` says that the user calls it so."""
        raise NotImplementedError

    def sensitive_cells(self, name: Name, kind: Kind, first: int = 0) -> tuple[pl.Series, bool]:
        """Return the cells of a sensitive column as they are compared, and whether they have an order."""
        if kind.scaled:
            return kind.compared(name, self.moments(name, cast("Date", kind), first)[0])
        cells = self.keys([name])["0"] if kind.numeric else None
        if kind.additive and cells is not None and isinstance(cells.dtype, (pl.String, pl.Categorical, pl.Enum)):
            kind, cells = Nominal(), None  # text that is called numbers has no order
        return kind.compared(name, self.categories(name, first) if cells is None else cells)

    def missing(self, name: Name, kind: Kind) -> Bools:
        """Return which cells of a column are missing."""
        if kind.numeric:
            return np.isnan(self.column(name).values)
        return self.categories(name).is_null().to_numpy()

    def text_numbers(self, name: Name, first: int = 0) -> TextNumbers | None:
        """Return what numbers a text column holds, or None if the column is not text."""
        return None

    def text_types(self, names: Sequence[Name]) -> dict[Name, str | None]:
        """Return the types that columns of text mean, of a table that is all text."""
        return {}

    def keys(self, names: Sequence[Name]) -> pl.DataFrame:
        """Return what columns of any type mean, text in one Unicode form, to group records by; named by their place."""
        return named_by_place(composed_cells(self.stored(name)) for name in names)

    def cells(self, names: Sequence[Name]) -> pl.DataFrame:
        """Return columns as they are written, text where it is text; they are named by their place."""
        return named_by_place(map(self.stored, names))

    def spellings(self, name: Name, missing: Bools) -> frozenset[Spelling]:
        """Return the ways in which missing cells of a column are spelled: None for null, "NaN", and codes."""
        cells, codes = self.spelled(name), self.codes.get(name, ())
        occurring = [str(code) for code in codes if is_coded(cells, [code]).any()]
        if occurring:
            missing = missing & ~is_coded(cells, codes).to_numpy()
        null = self.nulls(name)
        plain = {None: missing & null, "NaN": missing & ~null}
        return frozenset([*occurring, *(spelling for spelling, where in plain.items() if where.any())])

    def words(self, name: Name, *, category: bool = False) -> Words:
        """Return a word for each cell: the same for cells that are written alike, and only then."""
        return cell_words(without_codes(self.spelled(name), self.codes.get(name, ())), category=category)

    # Other tables

    def take(self, rows: Ints) -> Table:
        """Return the table of some of the records."""
        raise NotImplementedError

    def without(self, names: Sequence[Name]) -> Table:
        """Return the table without some of the columns."""
        return self.only([name for name in self.names if name not in names]) if names else self

    def only(self, names: Sequence[Name]) -> Table:
        """Return the table of some of the columns."""
        raise NotImplementedError

    def in_own_dialect(self, delimiter: str = ",") -> Table:
        """Return the table as a CSV file of ours is written, whatever the dialect of the file that it came from."""
        return self

    def coded(self, codes: Codes) -> Table:
        """Return the table with codes for missing: as numbers, categories and words their cells are missing."""
        table = copy(self)
        table.codes = codes
        return table

    def released(
        self, new: Mapping[Name, NewColumn], strata: Mapping[Name, Mapping[Spelling, Spelling]] | None = None
    ) -> Table:
        """Return the table with new values, without metadata of the original.

        `strata` says which cells of columns that are not replaced are spelled otherwise, and how.
        """
        raise NotImplementedError

    def relabelled(self, texts: Mapping[Name, Sequence[str | None]]) -> Table:
        """Return the table with text in the place of some columns."""
        raise NotImplementedError


def named_by_place(columns: Iterable[pl.Series]) -> pl.DataFrame:
    """Return columns as a frame; polars would take some names for patterns."""
    return pl.DataFrame([column.alias(str(place)) for place, column in enumerate(columns)])


def check_names(names: Sequence[Name]) -> None:
    """Refuse a table in which a column name appears twice, or cannot be written."""
    twice = sorted({repr(str(name)) for name in names if names.count(name) > 1})
    if twice:
        appear = agreeing(len(twice), "appears", "appear")
        raise InputError(
            f"Column names must be unique, but {listed(twice)} {appear} more than once. "
            "Rename the columns before masking, or add a header line if the file has none."
        )
    for name in names:
        if any(sign == "\0" or "\ud800" <= sign <= "\udfff" for sign in str(name)):
            raise InputError(f"Column name {name!r} holds a character that no file can hold. Rename the column.")


def check_name(name: Name, names: Sequence[Name], what: str) -> None:
    """Refuse the name of a column that is not there, with the nearest ones."""
    # Python takes True and 1.0 for 1, tables do not.
    if not any(name == column and _type_of_name(name) == _type_of_name(column) for column in names):
        raise InputError(
            f"{parameter(what)} names column {name!r}, which the table does not have.{closest(name, names)} Its "
            f"columns are: {listed(names, 12)}."
        )


def _type_of_name(name: Name) -> str:
    """Return the type of a column's name, the same for numbers of Python and of NumPy."""
    if isinstance(name, bool):
        return "bool"
    return "int" if isinstance(name, Integral) else type(name).__name__


def stored_indexes(names: Sequence[Name]) -> list[Name]:
    """Return the columns that are an index without a name, as pandas and Dask store it in a file.

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
    """Return the columns that were asked for, or all numeric ones that are not set apart.

    Examples
    --------
    >>> choose_columns(["a", "b", "c"], ["a", "b"], None, apart=["b"])
    ['a']
    """
    if requested is None:
        chosen = [name for name in numeric if name not in apart]
        if not chosen:
            raise InputError(
                f"{parameter('columns')} is not given and the table has no numeric column to {to}. Name the columns: "
                "one cell that is not a number makes a column text."
            )
        return chosen
    chosen = list(requested)
    if not chosen:
        raise InputError(f"{parameter('columns')} must name at least one column, got none.")
    for name in chosen:
        check_name(name, names, "columns")
        if chosen.count(name) > 1:
            raise InputError(f"{parameter('columns')} must name each column once, but {name!r} appears twice.")
    return chosen


# Strata and labels


def number_rows(keys: pl.DataFrame) -> tuple[Ints, list[tuple[Any, ...]]]:
    """Number equal rows alike, in order of appearance; return the number of each row, and the rows by number."""
    unique = keys.unique(maintain_order=True).with_row_index("code")
    codes = keys.join(unique, on=keys.columns, how="left", nulls_equal=True, maintain_order="left")["code"]
    return codes.to_numpy().astype(np.int64), unique.drop("code").rows()


def stratum_codes(table: Table, by: Sequence[Name]) -> Ints:
    """Number the strata in order of appearance, and return that of each record; a missing value is one of its own.

    Examples
    --------
    >>> from shoal.tables.formats.frames import open_table
    >>> stratum_codes(open_table(np.array([[1.0], [2.0], [1.0]])), [0]).tolist()
    [0, 1, 0]
    """
    return number_rows(table.keys(by))[0] if by else np.zeros(table.rows, dtype=np.int64)


def describe_stratum(by: Sequence[Name], values: Sequence[object]) -> str:
    """Name a stratum for a message.

    Examples
    --------
    >>> describe_stratum(["region"], ["north"])
    "the stratum region='north'"
    """
    pairs = listed([f"{name}={value!r}" for name, value in zip(by, values, strict=True)])
    return f"the stratum {pairs}" if pairs else "the table"


def label_frame(records: Ints, labels: Ints, columns: Sequence[Name]) -> pl.DataFrame:
    """Return the labels of released records, or of their cells in the masked columns, as a table.

    `records` are their rows in the original; `record` counts these from 1.

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
