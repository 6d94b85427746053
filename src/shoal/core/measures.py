"""Measures of a partition: labels, sizes, centroids, SSE and information loss. No other module computes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from shoal.core.compiler import kernel
from shoal.core.types import Floats, Ints

__all__ = [
    "Partition",
    "Scaling",
    "bounds",
    "canonical_labels",
    "centroids",
    "group_errors",
    "group_sizes",
    "information_loss",
    "number_through",
    "partition_of",
    "released_loss",
    "scaling",
    "split_largest",
    "squared_errors",
    "sse",
    "sst",
    "standardise",
]


def canonical_labels(labels: ArrayLike) -> Ints:
    """Number the groups 0, 1, … in order of first appearance (down each column of a 2-D array).

    Examples
    --------
    >>> canonical_labels([7, 3, 7, 9]).tolist()
    [0, 1, 0, 2]
    """
    array = np.asarray(labels)
    if array.ndim == 2:
        return np.column_stack([canonical_labels(column) for column in array.T])
    if array.dtype.kind in "iu" and len(array) and array.min() >= 0 and array.max() < 2 * len(array):
        # Allocate with numpy, which uses huge pages; numba does not.
        numbered = np.empty(len(array), dtype=np.int64)
        _renumber(np.ascontiguousarray(array, dtype=np.int64), np.full(int(array.max()) + 1, -1), numbered)
        return numbered
    _, first, inverse = np.unique(array, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


@kernel(counted=False)
def _renumber(labels: Ints, number: Ints, numbered: Ints) -> None:
    """Number labels by first appearance; `number` has one entry per label, initially −1."""
    count = 0
    for i in range(len(labels)):
        label = labels[i]
        if number[label] < 0:
            number[label] = count
            count += 1
        numbered[i] = number[label]


def group_sizes(labels: ArrayLike) -> Ints:
    """Count the records in each group.

    Examples
    --------
    >>> group_sizes([0, 1, 0]).tolist()
    [2, 1]
    """
    return np.bincount(np.asarray(labels)).astype(np.int64)


def _plain(X: Floats) -> Floats:
    """Return numbers in the type and layout that kernels are compiled for."""
    return np.ascontiguousarray(X, dtype=np.float64)


def number_through(n: int, members: Iterable[Ints], labels: Iterable[Ints]) -> Ints:
    """Combine the labels of disjoint sets of records into labels of all n records; number groups consecutively.

    Examples
    --------
    >>> number_through(4, [np.array([0, 2]), np.array([1, 3])], [np.array([0, 1]), np.array([0, 0])]).tolist()
    [0, 2, 1, 2]
    """
    numbered, offset = np.empty(n, dtype=np.int64), 0
    for rows, set_labels in zip(members, labels, strict=True):
        numbered[rows] = set_labels + offset
        offset += int(set_labels.max()) + 1
    return numbered


def centroids(X: Floats, labels: Ints, weights: Floats | None = None) -> Floats:
    """Return the (weighted) mean of each group, one row per group; the mean of equal values is exactly that value.

    Examples
    --------
    >>> centroids(np.array([[1.0], [3.0], [8.0]]), np.array([0, 0, 1])).tolist()
    [[2.0], [8.0]]
    """
    X = _plain(X)
    pivot, means = _deviations(X, labels, np.ones(len(X)) if weights is None else _plain(weights))
    centres: Floats = np.take(X, pivot, axis=0) + means
    return centres


def _deviations(X: Floats, labels: Ints, weights: Floats) -> tuple[Ints, Floats]:
    """Return the first record of each group and the group's (weighted) mean deviation from this record.

    These deviations stay precise despite a large offset and are 0 where values are equal.
    """
    groups = int(labels.max()) + 1 if len(labels) else 0
    pivot, means = np.zeros(groups, dtype=np.int64), np.zeros((groups, X.shape[1]))
    _average_deviations(X, labels, weights, pivot, means, np.zeros(groups))
    return pivot, means


@kernel(counted=False)
def _average_deviations(X: Floats, labels: Ints, weights: Floats, pivot: Ints, means: Floats, total: Floats) -> None:
    n, d = X.shape
    for i in range(n):
        pivot[labels[n - 1 - i]] = n - 1 - i
    for i in range(n):
        g = labels[i]
        total[g] += weights[i]
        for j in range(d):
            means[g, j] += (X[i, j] - X[pivot[g], j]) * weights[i]
    for g in range(len(total)):
        for j in range(d):
            means[g, j] /= total[g]


def sse(X: Floats, labels: Ints) -> float:
    """Return the sum of squared distances of the records to the centroids of their groups.

    Examples
    --------
    >>> sse(np.array([[1.0], [3.0], [8.0]]), np.array([0, 0, 1]))
    2.0
    """
    X = _plain(X)
    return _squares(X, labels, *_deviations(X, labels, np.ones(len(X))))


def _squares(X: Floats, labels: Ints, pivot: Ints, means: Floats) -> float:
    """Return the sum of squared deviations from the means, which are relative to the first record of each group."""
    return float(np.square(X - X[pivot[labels]] - means[labels]).sum())


class Partition(NamedTuple):
    """A partition of records: labels numbered by first appearance, with the sizes and centroids of the groups."""

    labels: Ints
    sizes: Ints
    centroids: Floats
    loss: float  # the SSE


def partition_of(X: Floats, labels: Ints) -> Partition:
    """Return the groups of records, numbered 0, 1, …, with their sizes, centroids and SSE.

    Examples
    --------
    >>> partition_of(np.array([[1.0], [3.0], [8.0]]), np.array([5, 5, 2]))
    Partition(labels=array([0, 0, 1]), sizes=array([2, 1]), centroids=array([[2.], [8.]]), loss=2.0)
    """
    X, labels = _plain(X), canonical_labels(labels)
    pivot, means = _deviations(X, labels, np.ones(len(X)))
    centres: Floats = np.take(X, pivot, axis=0) + means
    return Partition(labels, group_sizes(labels), centres, _squares(X, labels, pivot, means))


def sst(X: Floats) -> float:
    """Return the sum of squared distances of the records to their common centroid.

    Examples
    --------
    >>> sst(np.array([[1.0], [3.0]]))
    2.0
    """
    return sse(X, np.zeros(len(X), dtype=np.int64))


def information_loss(X: Floats, labels: Ints) -> float:
    """Return 100·SSE/SST; 0 when all records are equal.

    Examples
    --------
    >>> information_loss(np.array([[0.0], [2.0], [9.0], [9.0]]), np.array([0, 0, 1, 1]))
    3.0303030303030303
    """
    total = sst(X)
    return 100 * sse(X, labels) / total if total > 0 else 0.0


class Scaling(NamedTuple):
    """The scaling that standardises a table: z = ((x/2 − pivot/2) / reach − mean) / spread, per column.

    The pivot is a value of the column, so a constant column becomes exactly 0 and a large offset does not reduce
    precision. The reach keeps squares finite.
    """

    pivot: Floats
    reach: Floats
    mean: Floats
    spread: Floats

    def apply(self, X: Floats) -> Floats:
        """Standardise records with the same columns; missing values (NaN) stay missing."""
        Z = np.empty(X.shape)
        _apply(_plain(X), self.pivot, self.reach, self.mean, self.spread, Z)
        return Z


@kernel(counted=False)
def _apply(X: Floats, pivot: Floats, reach: Floats, mean: Floats, spread: Floats, Z: Floats) -> None:
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            # Halve first: the difference of two finite numbers may overflow.
            Z[i, j] = ((X[i, j] / 2 - pivot[j] / 2) / reach[j] - mean[j]) / spread[j]


def scaling(X: Floats) -> Scaling:
    """Return the scaling that gives every column mean 0 and variance 1; ignore missing values.

    Examples
    --------
    >>> scaling(np.array([[1.0, 5.0], [3.0, 5.0]])).apply(np.array([[5.0, 5.0]])).tolist()
    [[3.0, 0.0]]
    """
    d = X.shape[1]
    scale = Scaling(np.zeros(d), np.ones(d), np.zeros(d), np.ones(d))
    for j, column in enumerate(X.T):
        values = column[~np.isnan(column)]
        if not len(values):
            continue
        scale.pivot[j] = values[0]
        # Halve first: the difference of two finite numbers may overflow.
        deviations = values / 2 - values[0] / 2
        scale.reach[j] = np.abs(deviations).max() or 1.0
        with np.errstate(over="ignore"):  # no ratio exceeds 1, but NumPy 1 divides the padding of its last register too
            deviations /= scale.reach[j]
        scale.mean[j] = deviations.mean()
        scale.spread[j] = np.sqrt(np.square(deviations - scale.mean[j]).mean()) or 1.0
    return scale


def bounds(X: Floats) -> Floats:
    """Return the minimum and the maximum of each column, in two rows; ignore missing values (NaN).

    Examples
    --------
    >>> bounds(np.array([[1.0], [np.nan], [3.0]])).tolist()
    [[1.0], [3.0]]
    """
    extremes = np.repeat([[np.inf], [-np.inf]], X.shape[1], axis=1)
    _widen(X, extremes)
    return extremes


@kernel(counted=False)
def _widen(X: Floats, extremes: Floats) -> None:
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            x = X[i, j]
            if not np.isnan(x):
                extremes[0, j], extremes[1, j] = min(extremes[0, j], x), max(extremes[1, j], x)


def standardise(X: Floats) -> Floats:
    """Scale every column to mean 0 and variance 1, and constant columns to 0. Missing values (NaN) stay missing.

    Examples
    --------
    >>> standardise(np.array([[1.0, 5.0], [3.0, 5.0]])).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    return scaling(X).apply(X)


def released_loss(
    Z: Floats,
    released: Floats,
    starts: Ints | None = None,
    lost: Floats | None = None,
    *,
    left_out: float = 0.0,
) -> tuple[float, Floats]:
    """Return 100·SSE/SST of released values relative to the standardised values, in total and per column.

    This extends `information_loss` from group means to any released values; missing values are ignored. If columns have
    several coordinates, `starts` holds the first coordinate of each column. `lost` holds, per column, the squared
    deviations from the mean of values that were made missing. `left_out` is the number of suppressed records per
    released record; each counts as an average record that loses all information.

    Examples
    --------
    >>> released_loss(np.array([[-1.0], [1.0]]), np.array([[0.0], [0.0]]))
    (100.0, array([100.]))
    """
    errors, totals = squared_errors(_plain(Z), _plain(released))
    if starts is not None:
        errors, totals = np.add.reduceat(errors, starts), np.add.reduceat(totals, starts)
    if lost is not None:
        errors, totals = errors + lost, totals + lost
    errors, totals = errors + left_out * totals, totals + left_out * totals
    each = 100 * errors / np.where(totals > 0, totals, np.inf)
    total = totals.sum()
    return (float(100 * errors.sum() / total) if total > 0 else 0.0), each


def group_errors(Z: Floats, released: Floats, labels: Ints, *, fewer: int) -> Floats:
    """Return the squared errors per group and column for groups of fewer than `fewer` records; 0 for other groups.

    Examples
    --------
    >>> Z, released = np.array([[1.0], [3.0], [9.0]]), np.array([[2.0], [2.0], [9.5]])
    >>> group_errors(Z, released, np.array([0, 0, 1]), fewer=2).tolist()
    [[0.0], [0.25]]
    """
    sizes = group_sizes(labels)
    errors = np.zeros((len(sizes), Z.shape[1]))
    if (sizes < fewer).any():
        _add_group_errors(_plain(Z), _plain(released), np.ascontiguousarray(labels), errors)
        errors[sizes >= fewer] = 0.0
    return errors


@kernel(counted=False)
def _add_group_errors(Z: Floats, released: Floats, labels: Ints, errors: Floats) -> None:
    for i in range(Z.shape[0]):
        for j in range(Z.shape[1]):
            if not np.isnan(Z[i, j]):
                error = released[i, j] - Z[i, j]
                errors[labels[i], j] += error * error


def squared_errors(Z: Floats, released: Floats) -> tuple[Floats, Floats]:
    """Return the sums of squares of released − Z and of Z, per column; ignore missing values (NaN).

    Examples
    --------
    >>> squared_errors(np.array([[1.0], [3.0]]), np.array([[2.0], [2.0]]))
    (array([2.]), array([10.]))
    """
    errors, totals = np.zeros(Z.shape[1]), np.zeros(Z.shape[1])
    add_squared_errors(Z, released, errors, totals)
    return errors, totals


@kernel(counted=False)
def add_squared_errors(Z: Floats, released: Floats, errors: Floats, totals: Floats) -> None:
    """Add the squares of released − Z to `errors` and the squares of Z to `totals`, in place."""
    for i in range(Z.shape[0]):
        for j in range(Z.shape[1]):
            if not np.isnan(Z[i, j]):
                error = released[i, j] - Z[i, j]
                errors[j] += error * error
                totals[j] += Z[i, j] * Z[i, j]


@kernel(counted=False)
def split_largest(amounts: Floats, labels: Ints, largest: Floats, second: Floats, rest: Floats) -> None:
    """Update the two largest amounts and the sum of the other amounts of each group, in place."""
    for i in range(len(labels)):
        amount, g = amounts[i], labels[i]
        if amount > largest[g]:
            rest[g] += second[g]
            second[g] = max(largest[g], 0.0)
            largest[g] = amount
        elif amount > second[g]:
            rest[g] += second[g]
            second[g] = amount
        else:
            rest[g] += amount
