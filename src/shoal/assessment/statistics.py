"""Statistics of one table and distances between two tables, from arrays with NaN for missing cells."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from shoal.core.measures import scaling, standardise
from shoal.core.types import Floats, Ints
from shoal.kernels.sort import sort_values

__all__ = [
    "Pair",
    "RankedColumn",
    "SortedCells",
    "association",
    "correlation",
    "covariance",
    "il1s",
    "kolmogorov_smirnov",
    "mean",
    "order_columns",
    "rank_correlation",
    "relations",
    "spread",
    "wasserstein",
]


class Pair(NamedTuple):
    """A statistic before and after masking."""

    before: float
    after: float

    @property
    def change(self) -> float:
        """The relative change; NaN if the statistic was 0.

        Examples
        --------
        >>> Pair(4.0, 3.0).change
        -0.25
        """
        return (self.after - self.before) / abs(self.before) if self.before else float("nan")


def association(x: Floats, y: Floats, *, x_nominal: bool, y_nominal: bool) -> float:
    """Return the association of two columns, 0 to 1, over records with both cells; NaN if a column is constant.

    The association is Cramér's V for two columns without an order, the correlation ratio for one such column and one of
    numbers or ranks, and the absolute correlation for two columns with an order. It takes O(n + number of value pairs)
    time.

    Examples
    --------
    >>> sex, job = np.array([0.0, 0, 1, 1]), np.array([0.0, 1, 2, 2])
    >>> round(association(sex, job, x_nominal=True, y_nominal=True), 6)
    1.0
    """
    present = ~np.isnan(x) & ~np.isnan(y)
    x, y = x[present], y[present]
    if len(x) < 2 or (x == x[0]).all() or (y == y[0]).all():
        return float("nan")
    if not x_nominal and not y_nominal:
        return abs(float(correlation(np.column_stack([x, y]))[0, 1]))
    if x_nominal and y_nominal:
        rows, columns = int(x.max()) + 1, int(y.max()) + 1
        counts = np.bincount((x * columns + y).astype(np.int64), minlength=rows * columns).reshape(rows, columns)
        row_sums, column_sums = counts.sum(axis=1), counts.sum(axis=0)
        share = (np.square(counts) / np.maximum(np.outer(row_sums, column_sums), 1)).sum() - 1
        return float(np.sqrt(max(0.0, share) / (min((row_sums > 0).sum(), (column_sums > 0).sum()) - 1)))
    codes, values = (x, y) if x_nominal else (y, x)
    group, z = codes.astype(np.int64), standardise(values[:, None])[:, 0]
    between = np.square(np.bincount(group, z)) / np.maximum(np.bincount(group), 1)
    return float(np.sqrt(min(1.0, between.sum() / np.square(z).sum())))


def il1s(columns: Sequence[RankedColumn]) -> float:
    """Return 100 times the mean of |x − y| / (√2 S), where S is the standard deviation (n − 1) before masking.

    J. M. Mateo-Sanz, F. Sebé and J. Domingo-Ferrer (2004) chose this scale so that the figure depends neither on a
    column's unit nor on values near zero. Constant columns do not count.

    Examples
    --------
    >>> round(il1s([RankedColumn(np.array([0.0, 2.0]), np.array([1.0, 1.0]))]), 6)
    50.0
    """
    total, cells = 0.0, 0
    for column in columns:
        sd = spread(column.x) if len(column.x) else 0.0
        if sd > 0:
            total += float((np.abs(column.x - column.y) / (np.sqrt(2) * sd)).sum())
            cells += len(column.x)
    return 100 * total / cells if cells else 0.0


def wasserstein(column: RankedColumn) -> float:
    """Return the first Wasserstein distance: for equal counts, the mean distance between sorted values.

    Examples
    --------
    >>> wasserstein(RankedColumn(np.array([1.0, 5.0]), np.array([4.0, 1.0])))
    0.5
    """
    return float(np.abs(column.before.values - column.after.values).mean())


def kolmogorov_smirnov(column: RankedColumn) -> float:
    """Return the largest difference between the two cumulative distributions.

    Between two released values, the released distribution is constant, so the difference is largest at a released
    value.

    Examples
    --------
    >>> kolmogorov_smirnov(RankedColumn(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.5, 1.5, 3.5, 3.5])))
    0.25
    """
    x, after = column.before.values, column.after
    released = after.values[after.first]
    below = np.searchsorted(x, released) - after.first
    up_to = np.searchsorted(x, released, side="right") - after.first - after.counts
    return float(np.abs([below, up_to]).max() / len(x))


def rank_correlation(column: RankedColumn) -> float:
    """Return Spearman's rank correlation; NaN if a column is constant.

    Examples
    --------
    >>> rank_correlation(RankedColumn(np.array([1.0, 2.0, 9.0]), np.array([5.0, 6.0, 7.0])))
    1.0
    """
    a, b = (order.ranks - (len(order.ranks) - 1) / 2 for order in (column.before, column.after))
    length = np.sqrt((a @ a) * (b @ b))
    return min(1.0, float(a @ b / length)) if length > 0 else float("nan")


def covariance(X: Floats) -> Floats:
    """Return the covariance matrix (n − 1), each entry over the records that have both cells.

    Examples
    --------
    >>> covariance(np.array([[1.0, 2.0], [3.0, 6.0], [8.0, np.nan]])).round(6).tolist()
    [[13.0, 4.0], [4.0, 8.0]]
    """
    return relations(X)[0]


def correlation(X: Floats) -> Floats:
    """Return the correlation matrix, each entry over the records that have both cells; NaN for constant columns.

    Examples
    --------
    >>> correlation(np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])).round(6).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    return relations(X)[1]


def relations(X: Floats) -> tuple[Floats, Floats]:
    """Return covariances and correlations in one pass over the records."""
    scale = scaling(X)
    n, products, squares = _together(scale.apply(X))
    unit = 2 * scale.reach * scale.spread
    with np.errstate(invalid="ignore", divide="ignore"):
        together: Floats = products / (n - 1) * np.outer(unit, unit)
        # If a column is constant where the other has values, rounding errors leave about 1e-16 n instead of 0.
        length = np.sqrt(np.where(squares > 1e-12 * n, squares * squares.T, np.nan))
        return np.where(n > 1, together, np.nan), np.clip(products / length, -1.0, 1.0)


def mean(x: Floats, weights: Floats | None = None) -> float:
    """Return the (weighted) mean of a column.

    Examples
    --------
    >>> mean(np.array([1.0, 4.0]), np.array([2.0, 1.0]))
    2.0
    """
    return float(x.mean() if weights is None else x[0] + np.average(x - x[0], weights=weights))


def spread(x: Floats, weights: Floats | None = None) -> float:
    """Return the standard deviation (n − 1) of a column; if weighted, an estimate for the population.

    The variance is n / (n − 1) · Σ w (x − x̄)² / Σ w. Only relative weights matter, so equal weights change nothing.

    Examples
    --------
    >>> spread(np.array([1.0, 4.0, 4.0])), spread(np.array([1.0, 4.0]), np.array([1.0, 2.0]))
    (1.7320508075688772, 2.0)
    """
    if len(x) < 2:
        return 0.0
    # Deviations from a value of the column are exactly 0 for equal values of any size.
    deviations = x - x[0]
    if weights is None:
        return float(np.std(deviations, ddof=1))
    squares = np.square(deviations - np.average(deviations, weights=weights))
    return float(np.sqrt(len(x) / (len(x) - 1) * np.average(squares, weights=weights)))


def _together(Z: Floats) -> tuple[Floats, Floats, Floats]:
    """Return n, Σ dᵢdⱼ and Σ dᵢ² for the deviations d of columns i and j, over the records with both cells."""
    present, cells = (~np.isnan(Z)).astype(np.float64), np.nan_to_num(Z)
    n, sums = present.T @ present, cells.T @ present
    with np.errstate(invalid="ignore", divide="ignore"):
        return n, cells.T @ cells - sums * sums.T / n, np.square(cells).T @ present - np.square(sums) / n


class SortedCells:
    """The cells of a column in ascending order.

    Parameters
    ----------
    cells
        The column.

    Examples
    --------
    >>> cells = SortedCells(np.array([5.0, 2.0, 5.0]))
    >>> cells.values.tolist(), cells.records.tolist(), cells.ranks.tolist()
    ([2.0, 5.0, 5.0], [1, 0, 2], [1.5, 0.0, 1.5])
    """

    def __init__(self, cells: Floats) -> None:
        self.values, self.records = sort_values(cells)
        n = len(cells)
        # The start of each run of equal values.
        self.first: Ints = np.flatnonzero(np.r_[True, self.values[1:] != self.values[:-1]][:n])
        self.counts: Ints = np.diff(self.first, append=n)

    @cached_property
    def middles(self) -> Floats:
        """The rank of each distinct value, starting at 0, which is the middle rank of its cells."""
        return self.first + (self.counts - 1) / 2

    @cached_property
    def ranks(self) -> Floats:
        """The rank of each cell, starting at 0; equal cells share their middle rank."""
        ranks = np.empty(len(self.values))
        ranks[self.records] = np.repeat(self.middles, self.counts)
        return ranks


class RankedColumn:
    """The non-missing cells of a column, before and after masking.

    Parameters
    ----------
    x, y
        The column before and after; both have the same missing cells.
    """

    def __init__(self, x: Floats, y: Floats) -> None:
        present = ~np.isnan(x)
        self.x, self.y = (x, y) if present.all() else (x[present], y[present])
        self.records = np.flatnonzero(present)  # indices of records with a value

    @cached_property
    def before(self) -> SortedCells:
        """The cells before masking in ascending order."""
        return SortedCells(self.x)

    @cached_property
    def after(self) -> SortedCells:
        """The cells after masking in ascending order."""
        return SortedCells(self.y)


def order_columns(X: Floats, Y: Floats) -> list[RankedColumn]:
    """Return the columns of two tables of the same records, each sorted on first use."""
    return [RankedColumn(x, y) for x, y in zip(X.T, Y.T, strict=True)]
