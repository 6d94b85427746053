"""The groups of a differentially private release.

Algorithm 1 of the paper groups whole records, Algorithm 2 disjoint sets of columns each on its own. Here both are one:
a method divides the columns into sets and groups the records of every set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shoal.algorithms.registry import find
from shoal.core.measures import canonical_labels, centroids, group_sizes, standardise
from shoal.core.progress import watch
from shoal.core.types import Floats, Ints
from shoal.kernels.sort import sort_values
from shoal.privacy.domains import Bounds
from shoal.privacy.optimal import laplace_noise, optimal_for_noise
from shoal.privacy.publication_methods import PublicationMethod

__all__ = ["Grouping", "group_columns"]


@dataclass(frozen=True)
class Grouping:
    """The groups of the records in some of the columns.

    Parameters
    ----------
    columns
        The column numbers.
    labels, sizes
        The group of each record and the size of each group.
    touched
        How many groups a change of one record can change.
    """

    columns: tuple[int, ...]
    labels: Ints
    sizes: Ints
    touched: int = 1

    def noise_scale(self, width: float, epsilon: float) -> float:
        """Return the scale of the noise on a group of one record; a group of m records has an m-th of it."""
        return self.touched * width / epsilon

    def averaging_error(self, X: Floats, clipped: Floats) -> Floats:
        """Return the SSE of each column that averaging (and clipping) alone causes."""
        columns = list(self.columns)
        means = centroids(clipped[:, columns], self.labels)[self.labels]
        with np.errstate(over="ignore"):  # values far outside their domain are clipped; their error may be infinite
            error: Floats = np.square(X[:, columns] - means).sum(axis=0)
        return error

    def noise_error(self, scale: float) -> float:
        """Return the SSE that noise is expected to add to a column (Proposition 5): Σ size · 2 (scale / size)²."""
        return float(2 * scale**2 * (1.0 / self.sizes).sum())


def group_columns(
    entry: PublicationMethod,
    clipped: Floats,
    bounds: Bounds,
    budgets: Floats,
    sets: Sequence[Sequence[int]],
    k: int,
) -> list[Grouping]:
    """Group the records in every set of columns.

    Examples
    --------
    >>> from shoal.privacy.publication_methods import find_publication_method
    >>> X = np.array([[1.0], [9.0], [2.0], [8.0]])
    >>> bounds = Bounds(np.array([0.0]), np.array([10.0]))
    >>> group_columns(find_publication_method("mdav-ir"), X, bounds, np.array([1.0]), [[0]], 2)[0].labels.tolist()
    [0, 1, 0, 1]
    """
    return [_group(entry, clipped, bounds, budgets, tuple(columns), k) for columns in sets]


def _group(
    entry: PublicationMethod,
    clipped: Floats,
    bounds: Bounds,
    budgets: Floats,
    columns: tuple[int, ...],
    k: int,
) -> Grouping:
    n = len(clipped)
    X = np.ascontiguousarray(clipped[:, list(columns)])
    if entry.name == "none":
        return Grouping(columns, np.arange(n), np.ones(n, dtype=np.int64))
    if entry.name == "insensitive":
        labels = _insensitive(X, bounds.lower[list(columns)], bounds.width[list(columns)], k)
        sizes = group_sizes(labels)
        return Grouping(columns, labels, sizes, touched=len(sizes))
    if entry.name == "mdav":
        Z = standardise(X)
        # In a thread, so that Ctrl-C is answered: MDAV takes O(n²/k).
        labels = canonical_labels(watch(lambda state: find("mdav").run(Z, k, state=state), n).labels)
    elif entry.name == "mdav-ir":
        labels = _mdav_of_column(X[:, 0], k)
    else:
        scale = float(bounds.width[columns[0]] / budgets[columns[0]])
        labels = optimal_for_noise(X[:, 0], laplace_noise(n, scale), k)
    return Grouping(columns, labels, group_sizes(labels))


def _mdav_of_column(column: Floats, k: int) -> Ints:
    """Group one column as MDAV does, in O(n log n): its two extremes are the two ends of the sorted values."""
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
    """Group k records at a time along an order of all possible records that does not depend on the data.

    The order is by distance from the lower corner of the domain, equal distances by the values themselves. When one
    record changes, every group loses at most one record and gains at most one.
    """
    relative = (X - lower) / width
    order = np.lexsort((*X.T[::-1], relative.sum(axis=1)))
    groups = len(X) // k
    labels = np.empty(len(X), dtype=np.int64)
    labels[order] = np.minimum(np.arange(len(X)) // k, groups - 1)
    return labels
