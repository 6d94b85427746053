"""The nearest neighbours of every record, by kd-tree: O(n log n) in few dimensions, never an n×n matrix."""

from __future__ import annotations

import numpy as np

from shoal.core.types import Floats, Ints

__all__ = ["nearest"]


def nearest(X: Floats, count: int, *, slack: float = 0.0) -> Ints:
    """Return the `count` nearest other records of each record, nearest first, ``(n, count)``.

    With `slack` each may be up to 1 + slack times as far as the one in its place: on 100,000 normal records in ten
    dimensions a slack of 1 takes a ninth of the time and still finds most of them.

    Examples
    --------
    >>> nearest(np.array([[0.0], [1.0], [5.0]]), 1).ravel().tolist()
    [1, 0, 1]
    """
    from scipy.spatial import cKDTree

    n = len(X)
    count = min(count, n - 1)
    # A common offset would cost the tree its digits.
    _, found = cKDTree(X - X[0]).query(X - X[0], count + 1, eps=slack, workers=-1)
    found = found.reshape(n, count + 1)
    # A record is not always first in its own list: duplicates may precede it, or push it out.
    other = found != np.arange(n)[:, None]
    full = other.all(axis=1)
    other[full, -1] = False
    return np.ascontiguousarray(found[other].reshape(n, count), dtype=np.int64)
