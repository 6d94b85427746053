"""Regions: parts of a partition that can be searched side by side.

Groups are split by the median of their centroids along one column after another until a part has few enough records.
The split depends on the groups and the random generator only, not on the number of threads: so does the result.
O(n log n).
"""

from __future__ import annotations

import numpy as np

from shoal.core.measures import centroids, group_sizes
from shoal.core.types import Floats, Ints

__all__ = ["split_groups"]


def split_groups(X: Floats, labels: Ints, most: int, random: np.random.Generator) -> list[Ints]:
    """Return the records of each region, in ascending order; no group is divided.

    Examples
    --------
    >>> X = np.array([[0.0], [0.0], [5.0], [5.0]])
    >>> parts = split_groups(X, np.array([0, 0, 1, 1]), 2, np.random.default_rng(0))
    >>> [part.tolist() for part in parts]
    [[0, 1], [2, 3]]
    """
    if len(X) <= most:
        return [np.arange(len(X))]
    centres, sizes = centroids(X, labels), group_sizes(labels)
    region = np.zeros(len(sizes), dtype=np.int64)
    parts = [np.arange(len(sizes))]
    done: list[Ints] = []
    while parts:
        part = parts.pop()
        if sizes[part].sum() <= most or len(part) == 1:
            region[part] = len(done)
            done.append(part)
            continue
        spread = centres[part].max(axis=0) - centres[part].min(axis=0)
        # A wide column, but not always the same: the next round's borders should lie elsewhere.
        column = int(np.argmax(spread * random.uniform(0.5, 1.0, len(spread))))
        order = part[np.argsort(centres[part, column], kind="stable")]
        middle = int(len(order) * random.uniform(0.35, 0.65)) or 1
        parts += [order[middle:], order[:middle]]
    of_record = region[labels]
    order = np.argsort(of_record, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(of_record[order])) + 1)
