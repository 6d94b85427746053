"""The domain of every published column: public knowledge, given by the user and not read from the data.

The sensitivity of a column is the width of its domain, so a bound that follows the data tells about the data.
Bins divide a domain, from public knowledge alone: equal parts of an interval, or the list of categories.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from shoal.core.errors import DataBoundsWarning, InputError
from shoal.core.messages import parameter, setting
from shoal.core.types import Floats, Ints
from shoal.tables.columns import Name
from shoal.tables.table import check_name

__all__ = ["Bounds", "BoundsGiven", "CategoryBins", "ColumnBins", "NumberBins", "WholeBins", "read_bounds"]

# Within these limits the noise of any budget, and the squares and sums of squares behind it, are finite numbers.
FARTHEST, NARROWEST = 1e100, 1e-100

BoundsGiven = Mapping[Any, tuple[float, float]] | Literal["data"]


@dataclass(frozen=True)
class Bounds:
    """The domain of each column, lower and upper ends as vectors."""

    lower: Floats
    upper: Floats
    from_data: bool = False

    @property
    def width(self) -> Floats:
        """Δ of each column: how far a value can change at most."""
        width: Floats = self.upper - self.lower
        return width

    def clip(self, X: Floats) -> Floats:
        """Bring values into the domain."""
        clipped: Floats = np.clip(X, self.lower, self.upper)
        return clipped

    def outside(self, X: Floats) -> Ints:
        """Count the values of each column that are not in the domain."""
        return np.asarray(((self.lower > X) | (self.upper < X)).sum(axis=0), dtype=np.int64)


def read_bounds(bounds: BoundsGiven, names: Sequence[Name], X: Floats) -> Bounds:
    """Check the given bounds, or take them from the data with a warning.

    ``"data"`` stands for 0 (the minimum, if it is below) to 1.5 times the maximum, as in the paper's experiments; X is
    read for it only.

    Examples
    --------
    >>> read_bounds({"sales": (0, 10)}, ["sales"], np.array([[99.0]])).width.tolist()
    [10.0]
    """
    if isinstance(bounds, str):
        if bounds != "data":
            raise InputError(
                f"{parameter('bounds')} must be a mapping of columns to (lower, upper), or 'data', got {bounds!r}."
            )
        return _from_data(names, X)
    if not isinstance(bounds, Mapping):
        raise InputError(
            f"{parameter('bounds')} must be a mapping of columns to (lower, upper), got {type(bounds).__name__}."
        )
    for name in bounds:
        check_name(name, names, "bounds")
    pairs = []
    for name in names:
        if name not in bounds:
            raise InputError(
                f"{parameter('bounds')} must give the domain of every published column; {name!r} has none. Use the "
                "least and the greatest value it can have, from public knowledge and not from the data."
            )
        pairs.append(_pair(name, bounds[name]))
    lower, upper = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    return Bounds(lower, upper)


def _pair(name: Name, pair: Any) -> tuple[float, float]:
    try:
        lower, upper = (float(end) for end in pair)
    except (TypeError, ValueError):
        raise InputError(
            f"{parameter('bounds')} must give (lower, upper) for column {name!r}, got {pair!r}; for example (0, 1e6)."
        ) from None
    if not (np.isfinite([lower, upper, upper - lower]).all() and lower < upper):
        raise InputError(
            f"{parameter('bounds')} must give two finite numbers, the lower one first, for column {name!r}, got "
            f"{lower:g} and {upper:g}."
        )
    if not _computable(lower, upper):
        raise InputError(
            f"{parameter('bounds')} must lie between {-FARTHEST:g} and {FARTHEST:g} and at least {NARROWEST:g} apart, "
            f"or the noise leaves the range of floating-point numbers; for column {name!r} got {lower:g} and "
            f"{upper:g}. Convert the column to other units, or use another domain."
        )
    return lower, upper


def _computable(lower: float, upper: float) -> bool:
    return lower >= -FARTHEST and upper <= FARTHEST and upper - lower >= NARROWEST


def _from_data(names: Sequence[Name], X: Floats) -> Bounds:
    warnings.warn(
        f"{setting('bounds', 'data')} reads the domain from the confidential values, so nothing is guaranteed: for "
        "experiments only. Do not release the result; a release needs bounds from public knowledge.",
        DataBoundsWarning,
        stacklevel=7,
    )
    with np.errstate(over="ignore"):
        lower, upper = np.minimum(X.min(axis=0), 0.0), 1.5 * X.max(axis=0)
    for name, low, high in zip(names, lower, upper, strict=True):
        if not _computable(low, high):
            raise InputError(
                f"Column {name!r} has no domain that {setting('bounds', 'data')} could read: 1.5 times its maximum "
                f"must lie above 0 and above its minimum, and no value beyond {-FARTHEST:g} or {FARTHEST:g}. Set its "
                "bounds."
            )
    return Bounds(lower, upper, from_data=True)


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
