"""The value that stands for a group: mean (weighted if asked), median or medoid."""

from __future__ import annotations

import numpy as np

from shoal.core.measures import centroids, group_sizes
from shoal.core.types import Floats, Ints

__all__ = ["group_values"]


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
