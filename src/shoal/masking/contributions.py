"""Dominated groups: one member makes up so much of a group's total that another member can estimate it.

Whoever knows the mean of a group and its size knows its total. The p %-rule of tables of totals says when that gives a
member away: the second largest contributor subtracts itself from the total and estimates the largest one to within p
percent. Amounts below zero count by their size: a loss hides nothing of a giant. O(n) per column.
"""

from __future__ import annotations

import numpy as np

from shoal.core.types import Floats, Ints
from shoal.kernels.largest import split_largest
from shoal.kernels.words import Words
from shoal.promises.dominance import PERCENT

__all__ = ["count_dominated"]

# The same sum in another order differs in the last digits: it must not decide, on any engine.
BELOW = PERCENT / 100 * (1 - 1e-9)


def count_dominated(
    values: Floats, labels: Ints, rounding: Floats, weights: Floats | None = None, units: Words | None = None
) -> tuple[int, int]:
    """Return how many groups one member dominates in a column, and how many groups have values there.

    Parameters
    ----------
    values
        The column as it was; NaN for missing cells, which no group shares with others.
    labels
        The group of each record, 0, 1, …
    rounding
        How far the released value of each record's group is from the group's exact mean.
    weights
        Weights of the records: a record contributes its weighted value.
    units
        Units of the records: the members of a group are its units, not its records.

    Examples
    --------
    >>> count_dominated(np.array([1.0, 2.0, 900.0, 5.0, 6.0, 7.0]), np.array([0, 0, 0, 1, 1, 1]), np.zeros(6))
    (1, 2)
    """
    seen = ~np.isnan(values)
    shares = np.ones(len(values)) if weights is None else weights
    amounts, moved, labels = (values * shares)[seen], (rounding * shares)[seen], labels[seen]
    if not len(labels):
        return 0, 0
    groups = int(labels.max()) + 1
    # The total that the released value stands for differs from the true one by this.
    error = np.bincount(labels, moved, minlength=groups)
    if units is not None:
        amounts, labels = _by_unit(amounts, labels, units[seen])
    # Members of opposite sign may cancel out, which nobody who estimates can know.
    error = np.where(np.bincount(labels, amounts < 0, minlength=groups) > 0, np.abs(error), error)
    largest, second, rest = np.full(groups, -1.0), np.zeros(groups), np.zeros(groups)
    split_largest(np.abs(amounts), labels, largest, second, rest)
    dominated = (largest > 0) & (np.abs(rest + error) < BELOW * largest)
    return int(dominated.sum()), int((largest >= 0).sum())


def _by_unit(amounts: Floats, labels: Ints, units: Words) -> tuple[Floats, Ints]:
    """Add up the amounts of each unit in each group; return them with their groups."""
    order = np.lexsort((units, labels))
    label, unit = labels[order], units[order]
    first = np.flatnonzero(np.r_[True, (label[1:] != label[:-1]) | (unit[1:] != unit[:-1])])
    return np.add.reduceat(amounts[order], first), label[first]
