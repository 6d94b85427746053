"""Division of a partition into regions that can be searched in parallel.

The groups are split near the median of their centroids along random directions until each part is small enough. These
are the random projection trees of S. Dasgupta and Y. Freund (2008), which keep neighbours together in any number of
columns. (Splits along single columns scatter neighbours in wide tables, where a column may represent one rare category
and be equal in almost all records.) The regions, and therefore the result, depend only on the groups and the random
generator, not on the number of threads. The cost is O(n (d + log n) log n).
"""

from __future__ import annotations

import numpy as np

from shoal.core.measures import centroids, group_sizes
from shoal.core.types import Floats, Ints

__all__ = ["split_groups"]


def split_groups(X: Floats, labels: Ints, largest: int, random: np.random.Generator) -> list[Ints]:
    """Return the records of each region, in ascending order.

    A region has at most `largest` records unless it consists of a single group; groups are never split.

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
        # Each split uses a random direction and position, so the borders change from round to round.
        along = (centres[part] - centres[part[0]]) * random.normal(size=X.shape[1])
        order = part[np.argsort(along.sum(axis=1), kind="stable")]
        middle = int(len(order) * random.uniform(0.35, 0.65)) or 1
        parts += [order[middle:], order[:middle]]
    of_record = region[labels]
    order = np.argsort(of_record, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(of_record[order])) + 1)
