"""What masking asks of a table, or of a part of one, whatever library it comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, Protocol

import polars as pl

from shoal.core.errors import InputError, closest
from shoal.core.messages import agreeing, listed, parameter
from shoal.core.types import Bools, Ints
from shoal.kernels.words import Words
from shoal.kinds.date import Date
from shoal.kinds.storage import Column
from shoal.kinds.time_scale import Span
from shoal.tables.codes import Codes
from shoal.tables.columns import Name, NewColumn, Spelling
from shoal.tables.series import TextNumbers

__all__ = ["Table", "check_name", "check_names"]


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

    def text_numbers(self, name: Name, first: int = 0) -> TextNumbers | None:
        """Return what numbers a text column holds, or None if the column is not text."""

    def levels(self, name: Name) -> tuple[Any, ...] | None:
        """Return the values of a column in their order, if its type knows one."""

    def keys(self, names: Sequence[Name]) -> pl.DataFrame:
        """Return what columns of any type mean, text in one Unicode form, to group records by; named by their place."""

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
        """Return the table of some of the columns."""

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
