"""The value that stands for a group: of numbers mean, median or medoid; of categories mode, median or ancestor."""

from __future__ import annotations

import numpy as np

from shoal.core.measures import centroids, group_sizes
from shoal.core.types import Floats, Ints

__all__ = ["group_category", "group_values"]


def group_values(X: Floats, Z: Floats, labels: Ints, how: str = "mean", weights: Floats | None = None) -> Floats:
    """Return the values of each group, one row a group, in the units of X.

    Parameters
    ----------
    X
        The records as they are.
    Z
        The same records standardised: the medoid is the record nearest to its group's centroid there.
    labels
        The group of each record, 0, 1, …
    how
        The aggregate.
    weights
        Weights of the records, for the mean.

    Examples
    --------
    >>> X = np.array([[1.0], [2.0], [9.0]])
    >>> group_values(X, X, np.zeros(3, dtype=np.int64), "median").tolist()
    [[2.0]]
    """
    if how == "mean":
        return centroids(X, labels, weights)
    starts = np.concatenate([[0], np.cumsum(group_sizes(labels))])
    if how == "medoid":
        distance = np.nansum(np.square(Z - centroids(Z, labels)[labels]), axis=1)
        # Equal distances go to the lowest record number: lexsort is stable.
        medoids: Floats = X[np.lexsort((distance, labels))[starts[:-1]]]
        return medoids
    values = np.empty((len(starts) - 1, X.shape[1]))
    low = (starts[:-1] + starts[1:] - 1) // 2
    high = (starts[:-1] + starts[1:]) // 2
    for j, column in enumerate(X.T):
        ordered = column[np.lexsort((column, labels))]
        values[:, j] = ordered[low] + (ordered[high] - ordered[low]) / 2
    return values


def group_category(codes: Floats, labels: Ints, how: str, ancestors: Ints | None = None) -> Floats:
    """Return the code of each group; one whose cells are missing has none.

    Parameters
    ----------
    codes
        The code of each record's value; of ordinal values in their order.
    labels
        The group of each record, 0, 1, …
    how
        ``"mode"`` (the lowest of several), ``"median"`` (the lower of two) or ``"ancestor"``.
    ancestors
        Of each value of a hierarchy, its ancestors from itself to the root.

    Examples
    --------
    >>> group_category(np.array([0.0, 2.0, 2.0, 1.0]), np.array([0, 0, 0, 1]), "mode").tolist()
    [2.0, 1.0]
    """
    order = np.lexsort((codes, labels))
    ordered, starts = codes[order], np.concatenate([[0], np.cumsum(group_sizes(labels))])
    low, high = ordered[starts[:-1]], ordered[starts[1:] - 1]
    if how == "median":
        middles: Floats = ordered[(starts[:-1] + starts[1:] - 1) // 2]
        return middles
    if how == "ancestor" and ancestors is not None:
        return _common_ancestors(ordered, starts, ancestors)
    # Runs of equal codes within a group; the longest of each group, the first of several.
    begins = np.flatnonzero(np.r_[True, (np.diff(ordered) != 0) | (np.diff(labels[order]) != 0)])
    lengths = np.diff(np.r_[begins, len(ordered)])
    group = labels[order][begins]
    best = np.lexsort((-lengths, group))[np.searchsorted(np.sort(group), np.arange(len(low)))]
    modes: Floats = np.where(np.isnan(high), np.nan, ordered[begins[best]])
    return modes


def _common_ancestors(ordered: Floats, starts: Ints, ancestors: Ints) -> Floats:
    """Return the nearest node that is above all values of a group."""
    missing = np.isnan(ordered[starts[:-1]])
    codes = np.where(np.isnan(ordered), 0, ordered).astype(np.int64)
    found = np.full(len(starts) - 1, np.nan)
    for level in range(ancestors.shape[1] - 1, -1, -1):
        above = ancestors[codes, level]
        alike = np.minimum.reduceat(above, starts[:-1]) == np.maximum.reduceat(above, starts[:-1])
        found = np.where(alike & ~missing, above[starts[:-1]], found)
    return found
