"""D, diameter-based fixed size: gather k records around each of the two most distant records left.

M. Laszlo and S. Mukherjee, Minimum spanning tree partitioning algorithm for microaggregation, IEEE Transactions
on Knowledge and Data Engineering 17 (2005), Section 4.2, after Domingo-Ferrer and Mateo-Sanz (2002).

The paper finds the diameter anew each time (cubic), or keeps an n×n matrix. Here each record keeps an upper
bound on the distance to the farthest record left. Bounds only fall as records leave, so the largest bound, once
it is exact, is the diameter: a few scans a group instead of n. O(d n²) typically, O(n d) memory.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from shoal.algorithms._gather import gather, place_leftovers
from shoal.algorithms._pool import Pool, pool_centroid, pool_new, pool_scan, squared_distance
from shoal.progress import DONE, STOP
from shoal.types import Floats, Ints, State

__all__ = ["diameter"]


def diameter(X: Floats, k: int, *, state: State) -> Ints:
    """Group the records by method D; ties go to the pair with the lowest record numbers."""
    labels: Ints = _diameter(X, k, state)
    return labels


@njit(cache=True, nogil=True)
def _diameter(X: Floats, k: int, state: State) -> Ints:
    n = len(X)
    pool = pool_new(X)
    labels = np.zeros(n, dtype=np.int64)
    bound = _bounds_from_centroid(X, pool_centroid(pool))
    partner = np.full(n, -1, dtype=np.int64)  # a record at that distance, if the bound was once exact
    group = 0
    while pool.left[0] >= 2 * k and not state[STOP]:
        a, b = _most_distant(X, pool, bound, partner)
        gather(X, pool, a, k, group, labels)
        gather(X, pool, b, k, group + 1, labels)
        group += 2
        state[DONE] += 2 * k
    if pool.left[0] >= k:
        for i in range(pool.left[0]):
            labels[pool.ids[i]] = group
    else:
        place_leftovers(X, pool, group, labels)
    return labels


@njit(cache=True, nogil=True)
def _bounds_from_centroid(X: Floats, centre: Floats) -> Floats:
    """Bound each record's reach by the triangle through the centroid, rounded up."""
    bound = np.empty(len(X))
    reach = 0.0
    for i in range(len(X)):
        bound[i] = np.sqrt(squared_distance(X[i], centre))
        reach = max(reach, bound[i])
    for i in range(len(X)):
        bound[i] = (bound[i] + reach) ** 2 * (1 + 1e-9)
    return bound


@njit(cache=True, nogil=True)
def _most_distant(X: Floats, pool: Pool, bound: Floats, partner: Ints) -> tuple[int, int]:
    none, no_ids = np.empty(0), np.empty(0, dtype=np.int64)
    while True:
        a, reach = -1, -1.0
        for i in range(pool.left[0]):
            record = pool.ids[i]
            if bound[record] > reach or (bound[record] == reach and record < a):
                a, reach = record, bound[record]
        b = partner[a]
        if b >= 0 and pool.place[b] >= 0:
            return a, b
        b = pool_scan(pool, X[a], none, no_ids)
        partner[a] = b
        bound[a] = squared_distance(X[a], X[b])
