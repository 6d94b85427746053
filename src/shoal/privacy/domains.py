"""The domain of every published column: public knowledge, given by the user and not read from the data.

The sensitivity of a column is the width of its domain, so a bound that follows the data tells about the data.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from shoal.core.errors import DataBoundsWarning, InputError
from shoal.core.messages import parameter, setting
from shoal.core.types import Floats, Ints
from shoal.tables.columns import Name
from shoal.tables.table import check_name

__all__ = ["Bounds", "BoundsGiven", "read_bounds"]

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

    Parameters
    ----------
    bounds
        ``{column: (lower, upper)}``; or ``"data"`` for 0 (the minimum, if it is below) to 1.5 times the maximum, as
        in the paper's experiments.
    names
        The columns of X.
    X
        The values, looked at for ``"data"`` only.

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
