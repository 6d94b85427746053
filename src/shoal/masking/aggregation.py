"""The numbers that represent a group: mean, median or medoid. Kinds of categories know their own."""

from __future__ import annotations

import numpy as np

from shoal.core.measures import centroids, group_sizes
from shoal.core.types import Floats, Ints

__all__ = ["group_values", "to_15_digits"]

TENS = np.array([float(10**i) for i in range(23)])
BOUNDS = np.array([float(f"1e{i}") for i in range(-7, 15)])


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
        return to_15_digits(centroids(X, labels, weights))
    starts = np.concatenate([[0], np.cumsum(group_sizes(labels))])
    if how == "medoid":
        distance = np.nansum(np.square(Z - centroids(Z, labels)[labels]), axis=1)
        # Equal distances go to the lowest record number: lexsort is stable, and rounding must not decide.
        medoids: Floats = X[np.lexsort((distance.round(12), labels))[starts[:-1]]]
        return medoids
    values = np.empty((len(starts) - 1, X.shape[1]))
    low = (starts[:-1] + starts[1:] - 1) // 2
    high = (starts[:-1] + starts[1:]) // 2
    for j, column in enumerate(X.T):
        ordered = column[np.lexsort((column, labels))]
        values[:, j] = ordered[low] + (ordered[high] - ordered[low]) / 2
    return to_15_digits(values)


def to_15_digits(values: Floats) -> Floats:
    """Round to 15 significant digits: of a computed value the others are noise, and 0.04 is not 0.039999999999999994.

    Every number of 15 digits is a float of its own, so that text has no more digits either. Floats from 10^15 on are
    nearly whole and stay as they are.

    Examples
    --------
    >>> to_15_digits(np.array([0.039999999999999994, 1 / 3, 4e-20 / 3, 2.0**60])).tolist()
    [0.04, 0.333333333333333, 1.33333333333333e-20, 1.152921504606847e+18]
    """
    size = np.abs(values)
    rounded = values.copy()
    # Within these bounds both the digits, as a whole number, and the power of ten are exact, and so is their quotient.
    exact = (size >= 1e-8) & (size < 1e15)
    power = TENS[22 - np.searchsorted(BOUNDS, size[exact], side="right")]
    rounded[exact] = np.rint(values[exact] * power) / power
    tiny = size < 1e-8
    rounded[tiny] = [float(f"{value:.15g}") for value in values[tiny]]
    return rounded
