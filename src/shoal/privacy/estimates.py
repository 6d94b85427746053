"""Estimates with error bars, computed only from public figures: the noisy sums and the scale of their noise.

Averaging in groups preserves the sum of a column. The noisy sums divided by n therefore estimate the mean of the
clipped column, with noise of standard deviation scale · √(2 · groups)/n. Truncation to the domain would bias this
estimate towards the middle, so estimates are computed before truncation.

If the groups follow the order of the values, each group contains fixed ranks. The noisy mean of the group at share q of
the records then estimates the q-quantile, with noise of standard deviation scale · √2/size. The estimated quantity is
the mean of the values at the ranks of the group.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shoal.core.display import for_people
from shoal.core.types import Floats, Ints

__all__ = ["QUANTILES", "Estimate", "Estimates", "estimate_column"]

QUANTILES = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class Estimate:
    """An estimated value with its standard error due to noise."""

    value: float
    error: float

    def __str__(self) -> str:
        return f"{for_people(self.value)} ± {for_people(self.error, 2)}"


@dataclass(frozen=True)
class Estimates:
    """Estimates for a whole column.

    Parameters
    ----------
    mean
        The mean; None for categories.
    quantiles
        The quantiles, if the order of the groups is fixed beforehand.
    shares
        The share of each category.
    """

    mean: Estimate | None = None
    quantiles: Mapping[float, Estimate] = field(default_factory=dict)
    shares: Mapping[Any, Estimate] = field(default_factory=dict)

    def rows(self) -> list[tuple[str, Estimate]]:
        """Return all estimates with their names."""
        names = [("mean", self.mean)] if self.mean is not None else []
        names += [(f"{100 * share:g} % quantile", figure) for share, figure in self.quantiles.items()]
        return names + [(f"share of {name}", figure) for name, figure in self.shares.items()]


def estimate_column(noisy: Floats, sizes: Ints, scale: float, *, ordered: bool) -> Estimates:
    """Return the estimates for a column from the noisy means of its groups.

    The means are not truncated; `scale` is the scale of the noise on the sum of a group; `ordered` means that the
    groups follow an order of values that was fixed beforehand.

    Examples
    --------
    >>> estimates = estimate_column(np.array([1.0, 5.0]), np.array([2, 2]), 0.1, ordered=True)
    >>> print(estimates.mean, "|", estimates.quantiles[0.75])
    3 ± 0.05 | 5 ± 0.071
    """
    n = int(sizes.sum())
    mean = Estimate(float(noisy @ sizes / n), scale * math.sqrt(2 * len(sizes)) / n)
    last = np.cumsum(sizes)
    groups = {share: int(np.searchsorted(last, math.ceil(share * n))) for share in QUANTILES} if ordered else {}
    quantiles = {
        share: Estimate(float(noisy[group]), scale * math.sqrt(2) / int(sizes[group]))
        for share, group in groups.items()
    }
    return Estimates(mean, quantiles)
