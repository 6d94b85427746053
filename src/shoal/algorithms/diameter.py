"""Method D (diameter-based, fixed size): grow groups of k records from the two most distant records of the pool.

A group repeatedly takes the record nearest to its centroid until it has k records. The last k … 2k−1 records of the
pool form a group; fewer than k join the groups with the nearest centroids.

M. Laszlo and S. Mukherjee, Minimum spanning tree partitioning algorithm for microaggregation, IEEE Transactions
on Knowledge and Data Engineering 17 (2005), Section 4.2, after Domingo-Ferrer and Mateo-Sanz (2002).

The paper recomputes the diameter for every group (cubic time) or stores an n×n matrix. Here each record has an upper
bound on its distance to the farthest record in the pool, and a heap has the largest bound on top. These distances only
fall as records leave the pool, so the top bound is the diameter once it is exact. A group therefore takes a few
farthest-record queries instead of n. O(d n²) time at worst, near O(n log n) for few columns; O(n d) memory.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.core.compiler import kernel
from shoal.core.progress import DONE, STOP
from shoal.core.types import Floats, Ints, State
from shoal.kernels.distances import squared_distance
from shoal.kernels.group_growth import GroupBuffers, gather, new_group_buffers, place_leftovers
from shoal.kernels.pool import Pool, pool_centroid, pool_needs_refresh, pool_new, pool_refresh
from shoal.kernels.pool_queries import pool_farthest

__all__ = ["Diameters", "diameter", "diameters_new", "most_distant"]


def diameter(X: Floats, k: int, *, state: State) -> Ints:
    """Group the records by method D; ties go to the pair with the lowest record numbers."""
    pool = pool_new(X)
    labels = np.zeros(len(X), dtype=np.int64)
    diameters = diameters_new(X, pool)
    group, buffers = 0, new_group_buffers(X.shape[1], k)
    while pool.remaining[0] >= 2 * k and not state[STOP]:
        group = _diameter(X, pool, diameters, buffers, group, labels, state)
        pool_refresh(pool)
    if pool.remaining[0] >= k:
        labels[pool.place >= 0] = group
    else:
        place_leftovers(X, pool.place, group, labels)
    return labels


class Diameters(NamedTuple):
    """A heap of records that yields the two most distant records of the pool."""

    bound: Floats  # upper bound on the squared distance from each record to the farthest record
    partner: Ints  # the record at that distance; -1 if the bound was never exact
    heap: Ints  # record numbers, the largest bound on top
    waiting: Ints  # (1,): the number of records in the heap


@kernel(counted=False)
def _diameter(
    X: Floats, pool: Pool, diameters: Diameters, buffers: GroupBuffers, group: int, labels: Ints, state: State
) -> int:
    """Form groups until the pool is too small or needs a refresh; return the number of the next group."""
    k = len(buffers.members)
    while pool.remaining[0] >= 2 * k and not state[STOP]:
        a, b = most_distant(X, pool, diameters)
        for i in range(2):
            gather(X, pool, buffers, b if i else a, group, labels)
            group += 1
        state[DONE] += 2 * k
        if pool_needs_refresh(pool):
            break
    return group


def diameters_new(X: Floats, pool: Pool) -> Diameters:
    """Bound each record's distance to the farthest record by the triangle inequality through the centroid."""
    n = len(X)
    diameters = Diameters(bound=np.empty(n), partner=np.full(n, -1), heap=np.arange(n), waiting=np.full(1, n))
    _bound_all(X, pool_centroid(pool), diameters.bound, diameters.heap)
    return diameters


@kernel(counted=False)
def _bound_all(X: Floats, centre: Floats, bound: Floats, heap: Ints) -> None:
    n, reach = len(X), 0.0
    for i in range(n):
        bound[i] = np.sqrt(squared_distance(X[i], centre))
        reach = max(reach, bound[i])
    for i in range(n):
        bound[i] = (bound[i] + reach) ** 2 * (1 + 1e-9)
    for place in range(n // 2 - 1, -1, -1):
        _sink(heap, n, place, bound)


@kernel(inline=True)
def most_distant(X: Floats, pool: Pool, diameters: Diameters) -> tuple[int, int]:
    """Return the two most distant records of the pool."""
    bound, partner, heap, waiting = diameters
    a, b = heap[0], partner[heap[0]]
    while pool.place[a] < 0 or b < 0 or pool.place[b] < 0:
        if pool.place[a] < 0:
            waiting[0] -= 1
            heap[0] = heap[waiting[0]]
        else:
            partner[a] = pool_farthest(pool, X[a])
            bound[a] = squared_distance(X[a], X[partner[a]])
        _sink(heap, waiting[0], 0, bound)
        a, b = heap[0], partner[heap[0]]
    return a, b


@kernel
def _sink(heap: Ints, size: int, place: int, bound: Floats) -> None:
    """Move the record at `place` down the heap, below all records with larger bounds; lower numbers win ties."""
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


@kernel
def _before(a: int, b: int, bound: Floats) -> bool:
    return bool(bound[a] > bound[b] or (bound[a] == bound[b] and a < b))
