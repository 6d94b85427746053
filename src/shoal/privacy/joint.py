"""A joint release: what is decided before the budget is spent, and the records that are drawn.

Columns of numbers come first, then those of categories, as everywhere in a plan.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.core.errors import InputError
from shoal.core.messages import parameter
from shoal.core.types import Floats, Ints
from shoal.privacy.accounting import check_delta, rho_of
from shoal.privacy.bins import CategoryBins, ColumnBins, NumberBins, WholeBins
from shoal.privacy.preparing import Prepared
from shoal.privacy.synthesis import Spending, bins_of_numbers, share, synthesise
from shoal.tables.columns import Name

__all__ = ["Counting", "DrawnRecords", "draw_records", "plan_counting"]

WIDEST = 2.0**40  # of noise on counts, in 64-bit integers


@dataclass(frozen=True)
class Counting:
    """The measurement of the counts of a joint release, from public figures alone.

    Parameters
    ----------
    delta
        δ of the promise.
    bins
        The bins of each column.
    spending
        How the budget is spent.
    """

    delta: float
    bins: tuple[ColumnBins, ...]
    spending: Spending


@dataclass(frozen=True)
class DrawnRecords:
    """The records of a joint release: numbers, codes of categories, and the pairs of columns that were measured."""

    values: Floats
    codes: list[Ints]
    tree: tuple[tuple[Name, Name], ...]


def plan_counting(prepared: Prepared, epsilon: float, delta: float | None) -> Counting:
    """Share a budget (ε, δ) among the counts of columns and pairs."""
    n, columns = len(prepared.X), len(prepared.published)
    delta = check_delta(delta, n)
    rho = rho_of(epsilon, delta)
    bins: list[ColumnBins] = []
    if rho > 0:
        limit = bins_of_numbers(rho, n, columns, _contributions(prepared))
        for lower, upper, integer in zip(prepared.bounds.lower, prepared.bounds.upper, prepared.whole, strict=True):
            ends = float(lower), float(upper)
            bins.append(WholeBins(*ends, limit) if integer else NumberBins(*ends, limit))
        bins += [CategoryBins(len(answer.categories)) for answer in prepared.answers]
        spending = share(rho, n, bins, _contributions(prepared))
    if rho <= 0 or max(*spending.histogram_scales, spending.pair_scale) > WIDEST:
        raise InputError(
            f"{parameter('epsilon')} and {parameter('delta')} leave a budget too small for counts, got {epsilon:g} and "
            f"{delta:g}. Use larger ones or fewer columns."
        )
    return Counting(delta, tuple(bins), spending)


def draw_records(prepared: Prepared, counting: Counting, rng: np.random.Generator | None) -> DrawnRecords:
    """Measure and draw; what is returned is covered by (ε, δ)."""
    records = np.column_stack([prepared.clipped, *(answer.codes for answer in prepared.answers)])
    released = synthesise(records, counting.bins, counting.spending, _contributions(prepared), rng)
    numbers, names = len(prepared.names), prepared.published
    codes = [released.values[:, numbers + j].astype(np.int64) for j in range(len(prepared.answers))]
    return DrawnRecords(released.values[:, :numbers], codes, tuple((names[a], names[b]) for a, b in released.tree))


def _contributions(prepared: Prepared) -> int:
    return 1 if prepared.unit is None else prepared.unit.contributions
