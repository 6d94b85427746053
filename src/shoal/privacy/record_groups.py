"""Groups of a differentially private release.

Algorithm 1 of the paper groups whole records; Algorithm 2 groups the records separately by each of several disjoint
sets of columns. This module treats both alike: a method divides the columns into sets and groups the records by each
set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shoal.algorithms.partition import find_groups
from shoal.core.measures import centroids, group_sizes, standardise
from shoal.core.types import Floats, Ints
from shoal.kernels.sort import sort_values
from shoal.privacy.domains import Bounds
from shoal.privacy.optimal import laplace_noise, optimal_for_noise
from shoal.privacy.publication_methods import PublicationMethod
from shoal.privacy.worst_case import worst_case_k

__all__ = ["ColumnGroups", "group_columns", "in_order"]


@dataclass(frozen=True)
class ColumnGroups:
    """The grouping of all records by one set of columns."""

    columns: tuple[int, ...]  # the column numbers
    # The group of each record and the size of each group.
    labels: Ints
    sizes: Ints
    # The greatest total change of all group sums, in units of Δ, when one record changes. It is 1 for given groups and
    # for groups along the values of one column (`in_order`); otherwise it is the number of groups.
    touched: int = 1

    def noise_scale(self, width: float, epsilon: float) -> float:
        """Return the noise scale for a group of one record; for a group of m records, divide this scale by m."""
        return self.touched * width / epsilon

    def averaging_error(self, X: Floats, clipped: Floats) -> Floats:
        """Return the SSE per column due to averaging (and clipping) alone."""
        columns = list(self.columns)
        means = centroids(clipped[:, columns], self.labels)[self.labels]
        with np.errstate(over="ignore"):  # clipping values far outside their domain may cause an infinite error
            error: Floats = np.square(X[:, columns] - means).sum(axis=0)
        return error

    def noise_error(self, scale: float) -> float:
        """Return the expected SSE due to noise in a column (Proposition 5): Σ size · 2 (scale / size)²."""
        return float(2 * scale**2 * (1.0 / self.sizes).sum())


def group_columns(
    entry: PublicationMethod,
    clipped: Floats,
    bounds: Bounds,
    budgets: Floats,
    sets: Sequence[Sequence[int]],
    k: int | None = None,
    group_labels: Ints | None = None,
) -> list[ColumnGroups]:
    """Group the records by each set of columns; `group_labels` are the groups of method ``"given"``.

    Examples
    --------
    >>> from shoal.privacy.publication_methods import find_publication_method
    >>> X = np.array([[1.0], [9.0], [2.0], [8.0]])
    >>> bounds = Bounds(np.array([0.0]), np.array([10.0]))
    >>> group_columns(find_publication_method("mdav-ir"), X, bounds, np.array([1.0]), [[0]], 2)[0].labels.tolist()
    [0, 1, 0, 1]
    """
    return [_group(entry, clipped, bounds, budgets, tuple(columns), k, group_labels) for columns in sets]


def _group(
    entry: PublicationMethod,
    clipped: Floats,
    bounds: Bounds,
    budgets: Floats,
    columns: tuple[int, ...],
    k: int | None,
    group_labels: Ints | None,
) -> ColumnGroups:
    n = len(clipped)
    X = np.ascontiguousarray(clipped[:, list(columns)])
    touched = 1
    if entry.name == "none":
        return ColumnGroups(columns, np.arange(n), np.ones(n, dtype=np.int64))
    if entry.name == "given" and group_labels is not None:
        labels = group_labels
    elif entry.name == "insensitive-ir" or (entry.name == "insensitive" and len(columns) == 1):
        labels = in_order(np.argsort(X[:, 0], kind="stable"), k or worst_case_k(n, float(budgets[columns[0]])))
    elif entry.name == "insensitive":
        labels = _insensitive(X, bounds.lower[list(columns)], bounds.width[list(columns)], k or 1)
        touched = int(labels.max()) + 1
    elif entry.name == "mdav-ir":
        labels = _mdav_of_column(X[:, 0], k or 1)
    elif entry.name == "optimal":
        scale = float(bounds.width[columns[0]] / budgets[columns[0]])
        labels = optimal_for_noise(X[:, 0], laplace_noise(n, scale), k or 1)
    elif k == 1:
        labels = np.arange(n)
    else:
        labels = find_groups(standardise(X), k or 1, str(entry.groups)).labels
    return ColumnGroups(columns, labels, group_sizes(labels), touched)


def in_order(order: Ints, k: int) -> Ints:
    """Group consecutive records of an order, k per group; the remainder joins the last group.

    Along the values of one column, this needs no more noise than given groups, because **the changes of all group sums
    add up to at most Δ**. Let one value grow from a to b. For every i, the i-th smallest value of the new column is at
    least the i-th smallest value of the old one, because no more values than before lie below any limit. Group sizes
    depend on n and k alone, so group g contains the same ranks before and after, and its sum does not decrease. All
    sums together grow by b − a. Since none decreases, the sum of their absolute changes is also b − a, which is at most
    Δ. For a value that decreases, exchange the two columns. (One changed value can change all n/k sums, and the paper
    therefore assumes n/k · Δ. But the gain of one group is the loss of its neighbour, so the sum telescopes.) Laplace
    noise of scale Δ/ε on every sum, which is Δ/(kε) on a mean of k, is therefore ε-differentially private from raw to
    released column (Definition 1). Rounding values to a grid keeps their order, and the proof holds for the numbers on
    the grid.

    With several columns, each column has its own order, and the release does not match rows to records. The proof holds
    for each column, and the budgets of the columns add up. The proof does not hold along an order of whole records,
    because the record that enters a group may be high in a column in which the record that leaves is low.

    Examples
    --------
    >>> in_order(np.array([2, 0, 1, 4, 3]), 2).tolist()
    [0, 1, 0, 1, 1]
    """
    n = len(order)
    labels = np.empty(n, dtype=np.int64)
    labels[order] = np.minimum(np.arange(n) // k, n // k - 1)
    return labels


def _mdav_of_column(column: Floats, k: int) -> Ints:
    """Group one column with MDAV in O(n log n), with its least and greatest values as the two extreme records."""
    values, order = sort_values(column)
    n = len(values)
    group = np.empty(n, dtype=np.int64)
    low, high, label = 0, n, 0
    while high - low >= 3 * k:
        group[low : low + k], group[high - k : high] = label, label + 1
        low, high, label = low + k, high - k, label + 2
    if high - low >= 2 * k:
        mean = values[low:high].mean()
        if mean - values[low] >= values[high - 1] - mean:
            group[low : low + k], low = label, low + k
        else:
            group[high - k : high], high = label, high - k
        label += 1
    group[low:high] = label
    labels = np.empty(n, dtype=np.int64)
    labels[order] = group
    return labels


def _insensitive(X: Floats, lower: Floats, width: Floats, k: int) -> Ints:
    """Group records, k per group, along an order of all possible records that is independent of the data.

    Records are ordered by distance from the lower corner of the domain, and ties by the values themselves. When one
    record changes, every group loses at most one record and gains at most one.
    """
    relative = (X - lower) / width
    return in_order(np.lexsort((*X.T[::-1], relative.sum(axis=1))), k)
