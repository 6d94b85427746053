"""A column before and after masking, sorted once for all that is measured by rank. O(n)."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from shoal.core.types import Floats, Ints
from shoal.kernels.sort import sort_values

__all__ = ["RankedColumn", "SortedCells", "order_columns"]


class SortedCells:
    """The cells of a column in ascending order.

    Parameters
    ----------
    cells
        The column.

    Examples
    --------
    >>> found = SortedCells(np.array([5.0, 2.0, 5.0]))
    >>> found.values.tolist(), found.records.tolist(), found.ranks.tolist()
    ([2.0, 5.0, 5.0], [1, 0, 2], [1.5, 0.0, 1.5])
    """

    def __init__(self, cells: Floats) -> None:
        self.values, self.records = sort_values(cells)
        n = len(cells)
        self.first: Ints = np.flatnonzero(np.r_[True, self.values[1:] != self.values[:-1]][:n])  # of equal values
        self.counts: Ints = np.diff(self.first, append=n)

    @cached_property
    def middles(self) -> Floats:
        """The rank of each different value from 0 on: the middle of those that share it."""
        return self.first + (self.counts - 1) / 2

    @cached_property
    def ranks(self) -> Floats:
        """The rank of each cell, from 0 on; equal ones share the middle."""
        ranks = np.empty(len(self.values))
        ranks[self.records] = np.repeat(self.middles, self.counts)
        return ranks


class RankedColumn:
    """The cells of a column that are not missing, before and after masking.

    Parameters
    ----------
    x, y
        The column before and after; the same cells are missing.
    """

    def __init__(self, x: Floats, y: Floats) -> None:
        present = ~np.isnan(x)
        self.x, self.y = (x, y) if present.all() else (x[present], y[present])
        self.records = np.flatnonzero(present)  # that have a value

    @cached_property
    def before(self) -> SortedCells:
        """The cells before masking in ascending order."""
        return SortedCells(self.x)

    @cached_property
    def after(self) -> SortedCells:
        """The cells after masking in ascending order."""
        return SortedCells(self.y)


def order_columns(X: Floats, Y: Floats) -> list[RankedColumn]:
    """Return the columns of two tables of the same records, each to be sorted when it is asked for."""
    return [RankedColumn(x, y) for x, y in zip(X.T, Y.T, strict=True)]
