"""Columns in the form that kinds use: storage, numbers, and cells for recognition and comparison."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Any, NamedTuple
from unicodedata import normalize

import numpy as np
import numpy.typing as npt
import polars as pl

from shoal.core.types import Floats, Name, Spelling

__all__ = [
    "CATEGORY",
    "FLOAT",
    "MISSING",
    "MOST",
    "TIMED",
    "Cells",
    "Column",
    "Storage",
    "common_decimals",
    "composed",
    "composed_cells",
    "decimals_of",
    "is_whole",
    "one_form",
    "word_of",
]

# Non-numeric types of polars and narwhals that have an order and distances.
TIMED = {"Date": "date", "Datetime": "date", "Time": "time", "Duration": "duration"}

# Text that means a missing cell in any file format.
MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", ".")

MOST_DECIMALS = 10
SAMPLE = 2000  # cells whose spelling is examined
MOST = 0.9  # the share of cells that must match a pattern


def word_of(kind: Any) -> str | None:
    """Return "date", "time" or "duration" for a type of polars or narwhals; None for other types.

    Examples
    --------
    >>> word_of(pl.Datetime("ms", "UTC")), word_of(pl.Time()), word_of(pl.Int64())
    ('date', 'time', None)
    """
    return TIMED.get(kind.base_type().__name__)


class Storage(NamedTuple):
    """The storage of a column, with the type and precision of its numbers."""

    type: str  # of its numbers: "float64", "float32", "int64", "uint8", …; or a word for other content
    whole: bool  # True if all its numbers are whole, for any type
    absent: float | None = None  # the number that means missing
    decimals: int | None = None  # the most decimals of a number; None for full precision or no numbers

    @property
    def integer(self) -> bool:
        """True if the column stores integers."""
        return "int" in self.type

    @property
    def timed(self) -> bool:
        """True for dates, times of day or durations, counted in whole steps."""
        return self.type in TIMED.values()


FLOAT = Storage("float64", whole=False)
CATEGORY = Storage("category", whole=False)


@dataclass(frozen=True)
class Column:
    """A column as numbers, with NaN for missing cells."""

    name: Name
    values: Floats
    type: str = "float64"

    @property
    def storage(self) -> Storage | None:
        """The storage of the column; None if all its cells are missing."""
        if np.isnan(self.values).all():
            return None
        if "int" in self.type or "float" in self.type:
            numbers = self.values.astype(np.float32) if self.type == "float32" else self.values
            decimals = 0 if "int" in self.type else decimals_of(numbers)
            return Storage(self.type, whole=decimals == 0, decimals=decimals)
        return Storage(self.type, whole=False)


def decimals_of(values: npt.NDArray[Any]) -> int | None:
    """Return the largest number of decimals; None if it exceeds ten or is inexact, or if there are no numbers.

    Each number is judged separately, so that the result for a column follows from its parts.

    Examples
    --------
    >>> decimals_of(np.array([3509.7, 12.25, np.nan])), decimals_of(np.array([1 / 3])), decimals_of(np.array([-7.0]))
    (2, None, 0)
    >>> decimals_of(np.array([3509.7], dtype=np.float32))
    1
    """
    present, decimals = values[~np.isnan(values)], 0
    exact = 2.0 ** (np.finfo(values.dtype).nmant + 1)
    if not len(present):
        return None
    for numbers in (present[:SAMPLE], present):  # a sample often shows that numbers have full precision
        decimals, remaining = 0, numbers[np.rint(numbers) != numbers]
        while len(remaining):
            decimals += 1
            power = 10.0**decimals
            if decimals > MOST_DECIMALS or np.abs(remaining).max() * power >= exact:
                return None
            remaining = remaining[np.rint(remaining * power) / power != remaining]
    return decimals


def common_decimals(storages: Iterable[Storage | None]) -> int | None:
    """Return the largest number of decimals in any part; None if a part has full precision or no part has numbers."""
    decimals = [storage.decimals for storage in storages if storage is not None]
    return None if None in decimals else max(decimals, default=None)  # type: ignore[type-var]


def is_whole(values: Floats) -> bool:
    """Return True if all non-missing numbers are whole; a column without numbers is not whole.

    Examples
    --------
    >>> is_whole(np.array([2.0, np.nan])), is_whole(np.array([2.5])), is_whole(np.array([np.nan]))
    (True, False, False)
    """
    sample = values[:1000]
    if (np.rint(sample) != sample)[~np.isnan(sample)].any():
        return False
    present = values[~np.isnan(values)]
    return bool(len(present) and (np.rint(present) == present).all())


@dataclass(frozen=True)
class Cells:
    """The cells of a column without missing and blank cells."""

    values: pl.Series  # numbers, text, truth values, dates, times or durations
    records: int  # number of records, including records with a missing cell
    present: int  # number of cells that are not missing
    text: bool  # True if the cells are text

    @staticmethod
    def of(column: pl.Series | Column) -> Cells:
        """Return the cells of a column."""
        series = pl.Series(column.values) if isinstance(column, Column) else column
        values, kind = series.drop_nulls(), series.dtype
        if kind.is_float():
            values = values.drop_nans()
        elif kind.is_decimal():
            values = values.cast(pl.Float64)
        elif kind in (pl.Categorical, pl.Enum, pl.String):
            values = values.cast(pl.String)
            stripped = values.str.strip_chars()
            plain = (stripped == values).all() and (values != "").all()
            values = values if plain else stripped.filter(stripped != "")  # avoids a needless copy
        elif not (kind.is_integer() or kind.is_temporal() or kind == pl.Boolean):
            values = pl.Series([repr(value) for value in values.to_list()], dtype=pl.String)
        return Cells(values, len(series), len(values), values.dtype == pl.String)

    @classmethod
    def of_columns(cls, columns: Mapping[Name, pl.Series]) -> dict[Name, Cells]:
        """Return the cells of several columns, by name."""
        return {name: cls.of(column) for name, column in columns.items()}

    @cached_property
    def distinct(self) -> int:
        """The number of different values."""
        return self.values.n_unique()

    @cached_property
    def whole(self) -> bool:
        """True if the cells are whole numbers."""
        kind = self.values.dtype
        return kind.is_integer() or (kind.is_float() and is_whole(self.values.to_numpy()))

    @property
    def numbers(self) -> Floats:
        """The numbers; empty for other types. Not cached, because whole numbers are copied."""
        numeric = self.values.dtype.is_numeric()
        return self.values.cast(pl.Float64).to_numpy() if numeric else np.empty(0)

    @cached_property
    def spelled(self) -> list[str]:
        """A sample of cells from the whole column, as text; empty if the cells are neither text nor whole numbers."""
        if not (self.text or self.whole):
            return []
        sample = self.values.gather_every(max(1, self.present // SAMPLE))
        if self.text:
            return sample.str.slice(0, 200).to_list()
        return [str(int(number)) for number in sample.to_list() if np.isfinite(number)]

    def look_like(self, pattern: re.Pattern[str]) -> bool:
        """Return True if most of the cells match a pattern."""
        return self.first_like({"pattern": pattern}) is not None

    def first_like(self, patterns: Mapping[str, re.Pattern[str]]) -> str | None:
        """Return the name of the first pattern that most of the cells match; None if there is none."""
        spelled = self.spelled
        allowed = len(spelled) - ceil(MOST * len(spelled))
        for name, pattern in patterns.items() if spelled else ():
            unlike = 0
            for cell in spelled:
                unlike += pattern.fullmatch(cell) is None
                if unlike > allowed:
                    break
            else:
                return name
        return None


# Text has several Unicode forms: é is one character, or an e with a combining accent. Values are compared in composed
# form (NFC). If records must look the same, only one of the spellings is released.


def composed(value: Any) -> Any:
    r"""Return text in NFC; return other values unchanged.

    Examples
    --------
    >>> composed("Zoe\u0308") == "Zo\u00eb", composed(7)
    (True, 7)
    """
    return normalize("NFC", value) if isinstance(value, str) else value


def composed_cells(cells: pl.Series) -> pl.Series:
    """Return text and categories in NFC; return ASCII and other types unchanged."""
    if isinstance(cells.dtype, (pl.Categorical, pl.Enum)):
        categories = cells.unique().cast(pl.String)
        return cells if composed_cells(categories).equals(categories) else composed_cells(cells.cast(pl.String))
    if cells.dtype != pl.String or (cells.str.len_bytes() == cells.str.len_chars()).all():
        return cells
    return cells.str.normalize("NFC")


def one_form(values: Iterable[Any]) -> dict[Spelling, Spelling]:
    r"""Return new spellings for texts with several Unicode forms, so that each text has only one form.

    The shortest spelling is used; among several, the first in alphabetical order.

    Examples
    --------
    >>> one_form(["Zoe\u0308", "Zo\u00eb", "Ann", 7]) == {"Zoe\u0308": "Zo\u00eb"}
    True
    """
    texts = [value for value in values if isinstance(value, str)]
    if all(map(str.isascii, texts)):
        return {}
    spelling: dict[str, str] = {}
    for text in sorted(texts, key=lambda text: (len(text.encode()), text)):
        spelling.setdefault(composed(text), text)
    return {text: spelling[composed(text)] for text in texts if spelling[composed(text)] != text}
