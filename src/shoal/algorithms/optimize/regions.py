"""Regions: parts of a partition that can be searched side by side.

Groups are split near the median of their centroids along random directions until a part has few enough records: the
random projection trees of S. Dasgupta and Y. Freund (2008), which keep neighbours together in any number of columns.
(Split along one column, a table with many columns falls apart: almost all records are equal in a column that stands for
one rare category.) The split depends on the groups and the random generator only, not on the number of threads: so does
the result. O(n (d + log n) log n).
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
    done: list[Ints] = []
    while parts:
        part = parts.pop()
        if sizes[part].sum() <= largest or len(part) == 1:
            region[part] = len(done)
            done.append(part)
            continue
        # A direction and a place of its own: the next round's borders should lie elsewhere.
        along = (centres[part] - centres[part[0]]) * random.normal(size=X.shape[1])
        order = part[np.argsort(along.sum(axis=1), kind="stable")]
        middle = int(len(order) * random.uniform(0.35, 0.65)) or 1
        parts += [order[middle:], order[:middle]]
    of_record = region[labels]
    order = np.argsort(of_record, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(of_record[order])) + 1)
