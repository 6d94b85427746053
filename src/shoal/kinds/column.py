"""A column as kinds see it: how it is stored, its numbers, its cells as they are recognised and compared."""

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
    "composed",
    "composed_cells",
    "decimals_of",
    "is_whole",
    "one_form",
    "word_of",
]

# The types of polars and narwhals that hold no numbers and yet have an order and distances.
TIMED = {"Date": "date", "Datetime": "date", "Time": "time", "Duration": "duration"}

# Text that means a missing cell, whatever the format of the file.
MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", ".")

MOST_DECIMALS = 10
SAMPLE = 2000  # cells whose spelling is looked at
MOST = 0.9  # the share of cells that must look alike


def word_of(kind: Any) -> str | None:
    """Return "date", "time" or "duration" for a type of polars or narwhals, None for any other.

    Examples
    --------
    >>> word_of(pl.Datetime("ms", "UTC")), word_of(pl.Time()), word_of(pl.Int64())
    ('date', 'time', None)
    """
    return TIMED.get(kind.base_type().__name__)


class Storage(NamedTuple):
    """How a column is stored."""

    type: str  # of its numbers: "float64", "float32", "int64", "uint8", …; or what else it holds
    whole: bool  # whether all its numbers are whole, whatever their type
    absent: float | None = None  # the number that means missing
    decimals: int | None = None  # the most that a number has; None if it has all digits, or if there are no numbers

    @property
    def integer(self) -> bool:
        """Whether it stores integers."""
        return "int" in self.type

    @property
    def timed(self) -> bool:
        """Whether it holds dates, times of day or durations, counted in whole steps."""
        return self.type in TIMED.values()


FLOAT = Storage("float64", whole=False)
CATEGORY = Storage("category", whole=False)


@dataclass(frozen=True)
class Column:
    """A column as numbers; NaN where the cell is missing."""

    name: Name
    values: Floats
    type: str = "float64"

    @property
    def storage(self) -> Storage | None:
        """How the column is stored; None if all its cells are missing."""
        if np.isnan(self.values).all():
            return None
        if "int" in self.type or "float" in self.type:
            numbers = self.values.astype(np.float32) if self.type == "float32" else self.values
            decimals = 0 if "int" in self.type else decimals_of(numbers)
            return Storage(self.type, whole=decimals == 0, decimals=decimals)
        return Storage(self.type, whole=False)


def decimals_of(values: npt.NDArray[Any]) -> int | None:
    """Return the most decimals that a number has; None for more than ten or than are exact, or for no number.

    Each number is judged by itself, so that the parts of a column agree with the column.

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
    for numbers in (present[:SAMPLE], present):  # a few say that numbers have all digits
        decimals, left = 0, numbers[np.rint(numbers) != numbers]
        while len(left):
            decimals += 1
            power = 10.0**decimals
            if decimals > MOST_DECIMALS or np.abs(left).max() * power >= exact:
                return None
            left = left[np.rint(left * power) / power != left]
    return decimals


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
    present = values[~np.isnan(values)]
    return bool(len(present) and (np.rint(present) == present).all())


@dataclass(frozen=True)
class Cells:
    """The cells of a column, those that are missing or blank left out."""

    values: pl.Series  # numbers, text, truth values, dates, times or durations
    records: int  # with those that miss a cell
    present: int  # cells that are there
    text: bool  # whether they are text

    @staticmethod
    def of(column: pl.Series | Column) -> Cells:
        """Take the cells of a column."""
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
            values = values if plain else stripped.filter(stripped != "")  # no copy without need
        elif not (kind.is_integer() or kind.is_temporal() or kind == pl.Boolean):
            values = pl.Series([repr(value) for value in values.to_list()], dtype=pl.String)
        return Cells(values, len(series), len(values), values.dtype == pl.String)

    @classmethod
    def of_columns(cls, columns: Mapping[Name, pl.Series]) -> dict[Name, Cells]:
        """Take the cells of several columns."""
        return {name: cls.of(column) for name, column in columns.items()}

    @cached_property
    def distinct(self) -> int:
        """The number of different values."""
        return self.values.n_unique()

    @cached_property
    def whole(self) -> bool:
        """Whether they are whole numbers."""
        kind = self.values.dtype
        return kind.is_integer() or (kind.is_float() and is_whole(self.values.to_numpy()))

    @property
    def numbers(self) -> Floats:
        """The numbers, none if they are none; not kept, for whole numbers are copied."""
        numeric = self.values.dtype.is_numeric()
        return self.values.cast(pl.Float64).to_numpy() if numeric else np.empty(0)

    @cached_property
    def spelled(self) -> list[str]:
        """Some of the cells, from all over the column, as text; none if they are neither text nor whole numbers."""
        if not (self.text or self.whole):
            return []
        some = self.values.gather_every(max(1, self.present // SAMPLE))
        if self.text:
            return some.str.slice(0, 200).to_list()
        return [str(int(number)) for number in some.to_list() if np.isfinite(number)]

    def look_like(self, pattern: re.Pattern[str]) -> bool:
        """Say whether most of the cells are spelled like that."""
        return self.first_like({"pattern": pattern}) is not None

    def first_like(self, patterns: Mapping[str, re.Pattern[str]]) -> str | None:
        """Return the name of the first pattern that most of the cells are spelled like; None if there is none."""
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


# Text in one Unicode form: é is one character or an e with an accent, and means the same. Values are compared in the
# composed form, NFC. Where records must look alike, one of the spellings is released.


def composed(value: Any) -> Any:
    r"""Return a text in NFC; any other value as it is.

    Examples
    --------
    >>> composed("Zoe\u0308") == "Zo\u00eb", composed(7)
    (True, 7)
    """
    return normalize("NFC", value) if isinstance(value, str) else value


def composed_cells(cells: pl.Series) -> pl.Series:
    """Return text and categories in NFC; ASCII, and cells of any other type, as they are."""
    if isinstance(cells.dtype, (pl.Categorical, pl.Enum)):
        listed = cells.unique().cast(pl.String)
        return cells if composed_cells(listed).equals(listed) else composed_cells(cells.cast(pl.String))
    if cells.dtype != pl.String or (cells.str.len_bytes() == cells.str.len_chars()).all():
        return cells
    return cells.str.normalize("NFC")


def one_form(values: Iterable[Any]) -> dict[Spelling, Spelling]:
    r"""Return which texts are to be spelled otherwise, and how, so that none is spelled in several Unicode forms.

    Of several spellings the shortest is chosen, the first of these by the alphabet.

    Examples
    --------
    >>> one_form(["Zoe\u0308", "Zo\u00eb", "Ann", 7]) == {"Zoe\u0308": "Zo\u00eb"}
    True
    """
    texts = [value for value in values if isinstance(value, str)]
    if all(map(str.isascii, texts)):
        return {}
    chosen: dict[str, str] = {}
    for text in sorted(texts, key=lambda text: (len(text.encode()), text)):
        chosen.setdefault(composed(text), text)
    return {text: chosen[composed(text)] for text in texts if chosen[composed(text)] != text}
