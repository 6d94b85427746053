"""D, diameter-based fixed size: gather k records around each of the two most distant records left.

M. Laszlo and S. Mukherjee, Minimum spanning tree partitioning algorithm for microaggregation, IEEE Transactions
on Knowledge and Data Engineering 17 (2005), Section 4.2, after Domingo-Ferrer and Mateo-Sanz (2002).

The paper finds the diameter anew each time (cubic), or keeps an n×n matrix. Here each record keeps an upper bound on
the distance to the farthest record left; the records stand in a heap, the largest bound on top. Bounds only fall
as records leave, so once the top one is exact it is the diameter: a few farthest-record queries a group instead of n.
O(d n²) time at worst, near O(n log n) for few columns; O(n d) memory.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from shoal.algorithms._gather import gather, place_leftovers
from shoal.algorithms._pool import Pool, pool_centroid, pool_farthest, pool_new, pool_tidy, squared_distance
from shoal.progress import DONE, STOP
from shoal.types import Floats, Ints, State

__all__ = ["Diameters", "diameter", "diameters_new", "most_distant"]


def diameter(X: Floats, k: int, *, state: State) -> Ints:
    """Group the records by method D; ties go to the pair with the lowest record numbers."""
    return _diameter(X, k, state)


class Diameters(NamedTuple):
    """What finds the two most distant records left, again and again."""

    bound: Floats  # squared, on the distance of each record to the farthest one
    partner: Ints  # a record at that distance, once the bound was exact
    heap: Ints  # records, the largest bound on top
    waiting: Ints  # how many of them are in the heap, in one cell


@njit(cache=True, nogil=True)
def _diameter(X: Floats, k: int, state: State) -> Ints:
    n = len(X)
    pool = pool_new(X)
    labels = np.zeros(n, dtype=np.int64)
    diameters = diameters_new(X, pool)
    group = 0
    while pool.left[0] >= 2 * k and not state[STOP]:
        a, b = most_distant(X, pool, diameters)
        gather(X, pool, a, k, group, labels)
        gather(X, pool, b, k, group + 1, labels)
        group += 2
        pool_tidy(pool)
        state[DONE] += 2 * k
    if pool.left[0] >= k:
        for i in range(n):
            if pool.place[i] >= 0:
                labels[i] = group
    else:
        place_leftovers(X, pool, group, labels)
    return labels


@njit(cache=True, nogil=True)
def diameters_new(X: Floats, pool: Pool) -> Diameters:
    """Bound each record's farthest distance by the triangle through the centroid, rounded up."""
    n = len(X)
    centre = pool_centroid(pool)
    bound = np.empty(n)
    reach = 0.0
    for i in range(n):
        bound[i] = np.sqrt(squared_distance(X[i], centre))
        reach = max(reach, bound[i])
    for i in range(n):
        bound[i] = (bound[i] + reach) ** 2 * (1 + 1e-9)
    heap = np.arange(n)
    for place in range(n // 2 - 1, -1, -1):
        _sink(heap, n, place, bound)
    return Diameters(bound, np.full(n, -1, dtype=np.int64), heap, np.full(1, n, dtype=np.int64))


@njit(cache=True, nogil=True)
def most_distant(X: Floats, pool: Pool, diameters: Diameters) -> tuple[int, int]:
    """Return the two most distant records left."""
    bound, partner, heap, waiting = diameters
    while True:
        a = heap[0]
        b = partner[a]
        if pool.place[a] < 0:
            waiting[0] -= 1
            heap[0] = heap[waiting[0]]
        elif b >= 0 and pool.place[b] >= 0:
            return a, b
        else:
            partner[a] = pool_farthest(pool, X[a])
            bound[a] = squared_distance(X[a], X[partner[a]])
        _sink(heap, waiting[0], 0, bound)


@njit(cache=True, nogil=True)
def _sink(heap: Ints, size: int, place: int, bound: Floats) -> None:
    """Let a record sink below those with larger bounds, or with equal ones and lower numbers."""
    record = heap[place]
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and _before(heap[child + 1], heap[child], bound):
            child += 1
        if not _before(heap[child], record, bound):
            break
        heap[place] = heap[child]
        place = child
    heap[place] = record


@njit(cache=True, nogil=True)
def _before(a: int, b: int, bound: Floats) -> bool:
    return bool(bound[a] > bound[b] or (bound[a] == bound[b] and a < b))
