"""How a column is stored, and its cells as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shoal.core.types import Floats, Name

__all__ = ["CATEGORY", "FLOAT", "MISSING", "TIMED", "Column", "Storage", "is_whole"]

# The types of polars and narwhals that hold no numbers and yet have an order and distances.
TIMED = {"Date": "date", "Datetime": "date", "Time": "time", "Duration": "duration"}

# Text that means a missing cell, whatever the format of the file.
MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", ".")


class Storage(NamedTuple):
    """How a column is stored."""

    type: str  # of its numbers: "float64", "float32", "int64", "uint8", …; or what else it holds
    whole: bool  # whether all its numbers are whole, whatever their type
    absent: float | None = None  # the number that means missing

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
            return Storage(self.type, whole="int" in self.type or is_whole(self.values))
        return Storage(self.type, whole=False)


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
