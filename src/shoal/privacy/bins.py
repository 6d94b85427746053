"""The bins of a column, from public knowledge alone: equal parts of the domain of a number, the list of categories."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shoal.core.types import Floats, Ints

__all__ = ["CategoryBins", "ColumnBins", "NumberBins", "WholeBins"]

MOST = 2**53  # whole numbers up to here are exact as floats


@dataclass(frozen=True)
class NumberBins:
    """Equal parts of an interval.

    Examples
    --------
    >>> NumberBins(0.0, 10.0, 256).encode(np.array([0.0, 5.0, 10.0])).tolist()
    [0, 128, 255]
    """

    lower: float
    upper: float
    size: int
    ordered = True

    def encode(self, values: Floats) -> Ints:
        """Return the bin of each value."""
        parts = np.floor((values - self.lower) / (self.upper - self.lower) * self.size)
        return np.clip(parts, 0, self.size - 1).astype(np.int64)

    def draw(self, codes: Ints, rng: np.random.Generator) -> Floats:
        """Return a value of each bin, all values of a bin being equally likely."""
        parts = (codes + rng.random(len(codes))) / self.size
        return np.clip(self.lower + parts * (self.upper - self.lower), self.lower, self.upper)


@dataclass(frozen=True)
class WholeBins:
    """Whole numbers of an interval, one in each bin if there are few, else equally many.

    Examples
    --------
    >>> bins = WholeBins(-0.5, 3.0, 256)
    >>> bins.size, bins.encode(np.array([0.0, 3.0, 9.0])).tolist()
    (4, [0, 3, 3])
    """

    lower: float
    upper: float
    limit: int
    ordered = True

    @cached_property
    def starts(self) -> Ints:
        """The first number of each bin, and the one after the last."""
        first = max(math.ceil(self.lower), -MOST)
        numbers = min(math.floor(self.upper), MOST) - first + 1
        size = min(self.limit, max(0, numbers))
        return first + numbers * np.arange(size + 1) // max(1, size)

    @property
    def size(self) -> int:
        """The number of bins; none where no whole number lies in the interval."""
        return len(self.starts) - 1

    def encode(self, values: Floats) -> Ints:
        """Return the bin of each value."""
        parts = np.searchsorted(self.starts, values, side="right") - 1
        return np.clip(parts, 0, self.size - 1)

    def draw(self, codes: Ints, rng: np.random.Generator) -> Floats:
        """Return a number of each bin, all numbers of a bin being equally likely."""
        return rng.integers(self.starts[codes], self.starts[codes + 1]).astype(np.float64)


@dataclass(frozen=True)
class CategoryBins:
    """Categories, each a bin: they are coded already."""

    size: int
    ordered = False

    def encode(self, values: Floats) -> Ints:
        """Return the bin of each code."""
        return np.clip(values, 0, self.size - 1).astype(np.int64)

    def draw(self, codes: Ints, rng: np.random.Generator) -> Floats:
        """Return the codes themselves."""
        return codes.astype(np.float64)


ColumnBins = NumberBins | WholeBins | CategoryBins
