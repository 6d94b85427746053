"""Regions: parts of a partition that can be searched in parallel.

Groups are split near the median of their centroids along random directions until a part is small enough: the random
projection trees of S. Dasgupta and Y. Freund (2008), which keep neighbours together in any number of columns.
(Splitting along one column breaks up wide tables: almost all records are equal in a column that represents one rare
category.) The split, and therefore the result, depends only on the groups and the random generator, not on the number
of threads. O(n (d + log n) log n).
"""

from __future__ import annotations

import numpy as np

from shoal.core.measures import centroids, group_sizes
from shoal.core.types import Floats, Ints

__all__ = ["split_groups"]


def split_groups(X: Floats, labels: Ints, largest: int, random: np.random.Generator) -> list[Ints]:
    """Return the records of each region, in ascending order; no group is divided.

    Examples
    --------
    >>> X = np.array([[0.0], [0.0], [5.0], [5.0]])
    >>> parts = split_groups(X, np.array([0, 0, 1, 1]), 2, np.random.default_rng(0))
    >>> [part.tolist() for part in parts]
    [[0, 1], [2, 3]]
    """
    if len(X) <= largest:
        return [np.arange(len(X))]
    centres, sizes = centroids(X, labels), group_sizes(labels)
    region = np.zeros(len(sizes), dtype=np.int64)
    parts = [np.arange(len(sizes))]
    regions: list[Ints] = []
    while parts:
        part = parts.pop()
        if sizes[part].sum() <= largest or len(part) == 1:
            region[part] = len(regions)
            regions.append(part)
            continue
        # Each split has its own direction and position, so that the next round has different borders.
        along = (centres[part] - centres[part[0]]) * random.normal(size=X.shape[1])
        order = part[np.argsort(along.sum(axis=1), kind="stable")]
        middle = int(len(order) * random.uniform(0.35, 0.65)) or 1
        parts += [order[middle:], order[:middle]]
    of_record = region[labels]
    order = np.argsort(of_record, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(of_record[order])) + 1)
