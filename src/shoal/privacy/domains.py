"""Domains of the published columns, set by the user from public knowledge and not read from the data.

The sensitivity of a column is the width of its domain, so bounds read from the data reveal something about the data.
Bins divide a domain by public knowledge alone, into equal parts of an interval or into the listed categories.
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

# Within these limits, the noise for any budget, its squares and the sums of its squares are finite.
FARTHEST, NARROWEST = 1e100, 1e-100

BoundsGiven = Mapping[Any, tuple[float, float]] | Literal["data"]


@dataclass(frozen=True)
class Bounds:
    """The domain of each column, as vectors of lower and upper bounds."""

    lower: Floats
    upper: Floats
    from_data: bool = False

    @property
    def width(self) -> Floats:
        """The width Δ of each domain, which is the greatest possible change of a value."""
        width: Floats = self.upper - self.lower
        return width

    def clip(self, X: Floats) -> Floats:
        """Clip the values of each column to its domain."""
        clipped: Floats = np.clip(X, self.lower, self.upper)
        return clipped

    def outside(self, X: Floats) -> Ints:
        """Count the values of each column that are outside its domain."""
        return np.asarray(((self.lower > X) | (self.upper < X)).sum(axis=0), dtype=np.int64)


def read_bounds(bounds: BoundsGiven, names: Sequence[Name], X: Floats) -> Bounds:
    """Check the user's bounds, or read them from the data with a warning.

    ``"data"`` sets the domain from 0 (or the minimum, if that is lower) to 1.5 times the maximum, as in the paper's
    experiments. X is used only in this case.

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
                f"{parameter('bounds')} must contain the domain of every published column; {name!r} has none. Use the "
                "least and the greatest possible value, from public knowledge and not from the data."
            )
        pairs.append(_pair(name, bounds[name]))
    lower, upper = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    return Bounds(lower, upper)


def _pair(name: Name, pair: Any) -> tuple[float, float]:
    try:
        lower, upper = (float(end) for end in pair)
    except (TypeError, ValueError):
        raise InputError(
            f"{parameter('bounds')} must be (lower, upper) for column {name!r}, got {pair!r}; for example (0, 1e6)."
        ) from None
    if not (np.isfinite([lower, upper, upper - lower]).all() and lower < upper):
        raise InputError(
            f"{parameter('bounds')} must be two finite numbers, lower first, for column {name!r}, got {lower:g} and "
            f"{upper:g}."
        )
    if not _computable(lower, upper):
        raise InputError(
            f"{parameter('bounds')} must be between {-FARTHEST:g} and {FARTHEST:g} and at least {NARROWEST:g} apart, "
            f"or the noise exceeds the range of floating-point numbers; for column {name!r} got {lower:g} and "
            f"{upper:g}. Convert the column to other units, or use another domain."
        )
    return lower, upper


def _computable(lower: float, upper: float) -> bool:
    return lower >= -FARTHEST and upper <= FARTHEST and upper - lower >= NARROWEST


def _from_data(names: Sequence[Name], X: Floats) -> Bounds:
    warnings.warn(
        f"{setting('bounds', 'data')} reads the domain from the confidential values, so no guarantee holds: for "
        "experiments only. Do not release the result; a release needs bounds from public knowledge.",
        DataBoundsWarning,
        stacklevel=7,
    )
    with np.errstate(over="ignore"):
        lower, upper = np.minimum(X.min(axis=0), 0.0), 1.5 * X.max(axis=0)
    for name, low, high in zip(names, lower, upper, strict=True):
        if not _computable(low, high):
            raise InputError(
                f"{setting('bounds', 'data')} cannot read a domain for column {name!r}: 1.5 times its maximum must be "
                f"above 0 and above its minimum, and no value beyond {-FARTHEST:g} or {FARTHEST:g}. Set its bounds."
            )
    return Bounds(lower, upper, from_data=True)


MOST = 2**53  # all integers up to this one are exact as floats


@dataclass(frozen=True)
class NumberBins:
    """Bins of real numbers: equal parts of an interval.

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
        """Return a uniformly distributed random value from the bin of each code."""
        parts = (codes + rng.random(len(codes))) / self.size
        return np.clip(self.lower + parts * (self.upper - self.lower), self.lower, self.upper)


@dataclass(frozen=True)
class WholeBins:
    """Bins of the integers in an interval: one integer per bin if there are few, otherwise about equally many.

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
        """The first number of each bin, and the number after the last bin."""
        first = max(math.ceil(self.lower), -MOST)
        numbers = min(math.floor(self.upper), MOST) - first + 1
        size = min(self.limit, max(0, numbers))
        return first + numbers * np.arange(size + 1) // max(1, size)

    @property
    def size(self) -> int:
        """The number of bins; 0 if the interval contains no whole number."""
        return len(self.starts) - 1

    def encode(self, values: Floats) -> Ints:
        """Return the bin of each value."""
        parts = np.searchsorted(self.starts, values, side="right") - 1
        return np.clip(parts, 0, self.size - 1)

    def draw(self, codes: Ints, rng: np.random.Generator) -> Floats:
        """Return a uniformly distributed random integer from the bin of each code."""
        return rng.integers(self.starts[codes], self.starts[codes + 1]).astype(np.float64)


@dataclass(frozen=True)
class CategoryBins:
    """Bins of a categorical column, one per category; the values are already codes."""

    size: int
    ordered = False

    def encode(self, values: Floats) -> Ints:
        """Return the bin of each code."""
        return np.clip(values, 0, self.size - 1).astype(np.int64)

    def draw(self, codes: Ints, rng: np.random.Generator) -> Floats:
        """Return the codes unchanged."""
        return codes.astype(np.float64)


ColumnBins = NumberBins | WholeBins | CategoryBins
