"""Columns of numbers on their way in and out: what they hold, and what is put in their place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shoal.core.types import Floats

if TYPE_CHECKING:
    from shoal.tables.times import Scale

__all__ = ["CATEGORY", "FLOAT", "TIMED", "Column", "Kind", "Name", "NewColumn", "Spelling", "is_whole", "round_to"]

Name = Any  # a string in most frames, a number in arrays, anything hashable in pandas
Spelling = str | None  # how a missing cell reads: its text, "NaN", or None for null and for an empty cell


# What types of polars and narwhals hold that are no numbers and yet have an order and distances.
TIMED = {"Date": "date", "Datetime": "date", "Time": "time", "Duration": "duration"}


class Kind(NamedTuple):
    """What a column holds."""

    type: str  # of its numbers: "float64", "float32", "int64", "uint8", …
    whole: bool  # whether all its numbers are whole, whatever their type
    absent: float | None = None  # the number that stands for missing

    @property
    def integer(self) -> bool:
        """Whether it stores integers."""
        return "int" in self.type

    @property
    def timed(self) -> bool:
        """Whether it holds dates, times of day or durations, counted in whole steps."""
        return self.type in TIMED.values()


FLOAT = Kind("float64", whole=False)
CATEGORY = Kind("category", whole=False)


@dataclass(frozen=True)
class Column:
    """A column as numbers; NaN where the cell is missing."""

    name: Name
    values: Floats
    type: str = "float64"

    @property
    def kind(self) -> Kind | None:
        """What the column holds; None if all its cells are missing."""
        if np.isnan(self.values).all():
            return None
        if self.type == CATEGORY.type or self.type in TIMED.values():
            return Kind(self.type, whole=False)
        return Kind(self.type, whole="int" in self.type or is_whole(self.values))


@dataclass(frozen=True)
class NewColumn:
    """The values that are released in a column's place.

    Parameters
    ----------
    values
        The new values; NaN where the cell is missing.
    kind
        What the column held, in all parts of the table.
    rounded
        Whether the values have been rounded, to be stored as integers if the column did.
    missing
        How missing cells are spelled: a code for missing, "NaN", or None.
    categories
        Of a column of categories: what the values, which are codes, stand for.
    scale
        Of a column of dates, times or durations: how the values count them.
    """

    values: Floats
    kind: Kind = FLOAT
    rounded: bool = False
    missing: Spelling = None
    categories: tuple[Any, ...] | None = None
    scale: Scale | None = None

    @property
    def integers(self) -> bool:
        """Whether integers are released."""
        return self.rounded and self.kind.integer

    @property
    def code(self) -> str | None:
        """The code that stands in missing cells, if there is one."""
        return None if self.missing in (None, "NaN") else self.missing

    def filled(self) -> NewColumn:
        """Return a column of numbers with the code for missing in its missing cells."""
        if self.code is None or self.categories is not None:
            return self
        return replace(self, values=np.where(np.isnan(self.values), float(self.code), self.values), missing=None)

    def cells(self) -> list[Any]:
        """Return the cells of a column of categories; where they are missing, the code for it or None."""
        names = self.categories or ()
        whole = self.code is not None and any(isinstance(name, int) for name in names)
        absent = int(float(str(self.code))) if whole else self.code
        return [absent if np.isnan(code) else names[int(code)] for code in self.values]


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
    most = float(np.nextafter(most, 0)) if int(most) > ends.max else most
    return np.clip(np.rint(values), float(ends.min), most).astype(kind)
