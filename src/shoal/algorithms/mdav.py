"""MDAV, maximum distance to average vector: groups of k around the two extremes, from the outside in.

J. Domingo-Ferrer and V. Torra, Ordinal, continuous and heterogeneous k-anonymity through microaggregation,
Data Mining and Knowledge Discovery 11 (2005). Three scans of the records left for every two groups:
O(d n²/k) time, O(n d) memory.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from shoal.algorithms._pool import pool_centroid, pool_new, pool_scan, pool_take
from shoal.progress import DONE, STOP
from shoal.types import Floats, Ints, State

__all__ = ["mdav"]


def mdav(X: Floats, k: int, *, state: State) -> Ints:
    """Group the records by MDAV; ties go to the lowest record number."""
    return _mdav(X, k, state)


@njit(cache=True, nogil=True)
def _mdav(X: Floats, k: int, state: State) -> Ints:
    pool = pool_new(X)
    labels = np.zeros(len(X), dtype=np.int64)
    near, near_ids = np.empty(k), np.empty(k, dtype=np.int64)
    none, no_ids = np.empty(0), np.empty(0, dtype=np.int64)
    group = 0
    while pool.left[0] >= 2 * k and not state[STOP]:
        r = pool_scan(pool, pool_centroid(pool), none, no_ids)
        two = pool.left[0] >= 3 * k
        # s is the farthest from r while r's group is still there.
        s = pool_scan(pool, X[r], near, near_ids)
        pool_take(pool, near_ids, group, labels)
        group += 1
        if two:
            pool_scan(pool, X[s], near, near_ids)
            pool_take(pool, near_ids, group, labels)
            group += 1
        state[DONE] += 2 * k if two else k
    for i in range(pool.left[0]):
        labels[pool.ids[i]] = group
    state[DONE] += pool.left[0]
    return labels
