"""Whole numbers that keep a total: every group gets one whole number, and the sum over all records stays.

Groups g of n_g records with means m_g get whole numbers v_g within the range of their records, so that Σ n_g·v_g comes
as near as possible to a given total, with the least Σ n_g·(v_g − m_g)². Each size of groups has a convex cost of the
steps that its groups take together, and the sizes are combined by dynamic programming over what the total lacks.
Cost: O(H²·Σ 1/n) over the different sizes n, where H, how far sums may be from the total on the way, is bounded.
"""

from __future__ import annotations

import numpy as np

from shoal.core.measures import group_sizes
from shoal.core.types import Floats, Ints
from shoal.kinds.column import is_whole

__all__ = ["LARGEST", "keep_total", "keep_totals", "whole_total"]

WORK = 2.5e7  # of dynamic programming for one total
LARGEST = 2.0**62  # no total may be larger


def whole_total(values: Floats) -> int:
    """Return the total of whole numbers that are not missing; 0 if they are not whole, or too large.

    Examples
    --------
    >>> whole_total(np.array([2.0, np.nan, 3.0])), whole_total(np.array([0.5]))
    (5, 0)
    """
    seen = values[~np.isnan(values)]
    if not is_whole(seen) or np.abs(seen).max() * len(seen) >= LARGEST:
        return 0
    return int(seen.astype(np.int64).sum())


def keep_totals(means: Floats, column: Floats, labels: Ints, block: Ints, *, nonzero: bool) -> Floats:
    """Round the means of the groups of a column of whole numbers so that the total of every block is kept.

    Parameters
    ----------
    means
        Of each group; NaN where its cells are missing.
    column, labels, block
        Of each record: the whole number, the group, the block that the group lies in.
    nonzero
        Whether only zero itself may become zero.
    """
    order = np.argsort(labels, kind="stable")
    sizes = group_sizes(labels)
    starts = np.cumsum(sizes) - sizes
    sums, low, high = (function.reduceat(column[order], starts) for function in (np.add, np.minimum, np.maximum))
    if nonzero:
        low = np.where(means > 0, np.maximum(low, 1), low)
        high = np.where(means < 0, np.minimum(high, -1), high)
    rounded = np.rint(means)
    blocks = np.where(np.isnan(means), -1, block[order][starts])
    for number in np.unique(blocks[blocks >= 0]):
        here = np.flatnonzero(blocks == number)
        least, most, added = (found[here].astype(np.int64) for found in (low, high, sums))
        rounded[here] = keep_total(means[here], sizes[here], least, most, int(added.sum()))
    return rounded


def keep_total(means: Floats, sizes: Ints, low: Ints, high: Ints, total: int) -> Ints:
    """Round the means of groups so that their records add up to a total, as nearly as can be.

    Parameters
    ----------
    means, sizes
        Of each group.
    low, high
        The whole numbers that each group may get.
    total
        What all records should add up to.

    Examples
    --------
    >>> keep_total(np.array([0.4, 0.4, 0.5]), np.array([5, 5, 4]), np.zeros(3), np.full(3, 3), 6).tolist()
    [1, 0, 0]
    """
    values = np.clip(np.rint(means), low, high).astype(np.int64)
    different = np.unique(sizes)
    most = int(np.sqrt(WORK / np.sum(1 / different)))
    values = _approach(values, means, sizes, low, high, total, most // 2)
    short = int(total - sizes @ values)
    reach = min(most, abs(short) + int(different[-1]) ** 2)
    goal = int(np.clip(short, -reach, reach))
    costs = np.full(2 * reach + 1, np.inf)
    costs[reach] = 0.0
    taken: list[tuple[Ints, Ints, Ints, Ints]] = []
    for size in different[different <= reach].tolist():
        groups = np.flatnonzero(sizes == size)
        up, gain = _steps(values[groups], means[groups], high[groups], 1, reach // size)
        down, loss = _steps(values[groups], means[groups], low[groups], -1, reach // size)
        ways = np.arange(-len(down), len(up) + 1)
        prices = size * np.concatenate([np.cumsum(loss)[::-1], [0.0], np.cumsum(gain)])
        costs, chosen = _combine(costs, ways, prices, size)
        taken.append((np.array(size), groups[up], groups[down], chosen))
    off = np.abs(np.arange(-reach, reach + 1) - goal)
    off = np.where(np.isfinite(costs), off, 2 * reach + 1)
    nearest = np.flatnonzero(off == off.min())
    at = int(nearest[np.argmin(costs[nearest])])
    for size, up, down, chosen in reversed(taken):
        steps = int(chosen[at])
        np.add.at(values, up[:steps] if steps > 0 else down[:-steps], np.sign(steps))
        at -= int(size) * steps
    return values


def _approach(values: Ints, means: Floats, sizes: Ints, low: Ints, high: Ints, total: int, near: int) -> Ints:
    """Let groups take a step each, the cheapest first, until the total is near."""
    while abs(short := int(total - sizes @ values)) > near:
        sign = 1 if short > 0 else -1
        able = np.flatnonzero(values != (high if sign > 0 else low))
        order = able[np.argsort(sign * (values[able] - means[able]), kind="stable")]
        order = order[np.cumsum(sizes[order]) <= abs(short)]
        if not len(order):
            break
        values = values.copy()
        values[order] += sign
    return values


def _steps(values: Ints, means: Floats, limit: Ints, sign: int, most: int) -> tuple[Ints, Floats]:
    """Return the cheapest steps of some groups in one direction, and what each adds to the squared error of a record.

    A group may take several; a later one costs more.
    """
    who, costs = np.empty(0, dtype=np.int64), np.empty(0)
    for step in range(most):
        able = np.flatnonzero(sign * (limit - values) > step)
        new = 2 * (sign * (values[able] - means[able]) + step) + 1
        if not len(able) or (len(costs) == most and new.min() >= costs[-1]):
            break
        who, costs = np.concatenate([who, able]), np.concatenate([costs, new])
        order = np.argsort(costs, kind="stable")[:most]
        who, costs = who[order], costs[order]
    return who, costs


def _combine(costs: Floats, ways: Ints, prices: Floats, size: int) -> tuple[Floats, Ints]:
    """Return the least cost of each sum once groups of another size have taken some steps, and how many."""
    best, chosen = np.full_like(costs, np.inf), np.zeros(len(costs), dtype=np.int64)
    for steps, price in zip(ways.tolist(), prices.tolist(), strict=True):
        shift = steps * size
        here = slice(max(0, shift), len(costs) + min(0, shift))
        there = costs[max(0, -shift) : len(costs) - max(0, shift)] + price
        better = there < best[here]
        best[here][better] = there[better]
        chosen[here][better] = steps
    return best, chosen
