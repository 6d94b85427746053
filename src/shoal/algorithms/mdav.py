"""MDAV, maximum distance to average vector: groups of k around the two extremes, from the outside in.

J. Domingo-Ferrer and V. Torra, Ordinal, continuous and heterogeneous k-anonymity through microaggregation,
Data Mining and Knowledge Discovery 11 (2005). Four queries of the records left for every two groups, each of
which a kd-tree cuts short: O(d n²/k) time at worst, near O(n log n) for few columns; O(n d) memory.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from shoal.algorithms._pool import (
    LAST,
    OUTER,
    SCANNED,
    Pool,
    pool_farthest,
    pool_mean,
    pool_nearest,
    pool_new,
    pool_remove,
    pool_tidy,
    pool_untidy,
)
from shoal.progress import DONE, STOP
from shoal.types import Floats, Ints, State

__all__ = ["mdav"]


def mdav(X: Floats, k: int, *, state: State) -> Ints:
    """Group the records by MDAV; ties go to the lowest record number."""
    pool = pool_new(X)
    labels = np.zeros(len(X), dtype=np.int64)
    near, near_ids = np.empty(k), np.empty(k, dtype=np.int64)
    group = 0
    while pool.left[0] >= 2 * k and not state[STOP]:
        group = _mdav(X, pool, near, near_ids, group, labels, state)
        pool_tidy(pool)
    state[DONE] += pool.left[0]
    labels[pool.place >= 0] = group
    return labels


@njit(**OUTER)
def _mdav(X: Floats, pool: Pool, near: Floats, near_ids: Ints, group: int, labels: Ints, state: State) -> int:
    """Form groups until all is done or the pool is to be tidied; return the number of the next group."""
    k = len(near)
    while pool.left[0] >= 2 * k and not state[STOP]:
        left = pool.left[0]
        # r is the farthest from the centroid, s the farthest from r while r's group is still there.
        r, s, point = 0, 0, pool_mean(pool)
        for i in range(2):
            r, s = s, pool_farthest(pool, point)
            point = X[s]
            pool.shape[SCANNED] += pool.shape[LAST] * (1 - i)
        for i in range(2 if left >= 3 * k else 1):
            pool_nearest(pool, X[s if i else r], near, near_ids)
            for j in range(k):
                labels[near_ids[j]] = group
                pool_remove(pool, near_ids[j])
            group += 1
        state[DONE] += left - pool.left[0]
        if pool_untidy(pool):
            break
    return group
