"""The records that are still without a group, packed so that scanning them is fast.

They lie in contiguous columns, and a record that leaves is replaced by the last one, so every scan reads
exactly the records that are left. Ties go to the lowest record number, whatever the packing: results do not
depend on it. One scan costs O(n d).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from shoal.types import Floats, Ints

__all__ = [
    "Pool",
    "pool_centroid",
    "pool_new",
    "pool_remove",
    "pool_scan",
    "pool_take",
    "squared_distance",
    "squared_distances",
]

# Distances are computed a block at a time, column by column: the block stays in the fastest cache and the
# inner loop becomes vector instructions.
BLOCK = 512
NOBODY = np.iinfo(np.int64).max


class Pool(NamedTuple):
    """Records without a group; the first ``left[0]`` places are in use."""

    columns: Floats  # (d, n)
    ids: Ints  # record at each place
    place: Ints  # place of each record, -1 once it has left
    total: Floats  # sum of the records left, per column
    left: Ints  # how many are left, in one cell


@njit(cache=True, nogil=True)
def pool_new(X: Floats) -> Pool:
    n, d = X.shape
    columns = np.empty((d, n))
    total = np.zeros(d)
    for j in range(d):
        for i in range(n):
            columns[j, i] = X[i, j]
            total[j] += X[i, j]
    left = np.full(1, n, dtype=np.int64)
    return Pool(columns, np.arange(n), np.arange(n), total, left)


@njit(cache=True, nogil=True)
def pool_remove(pool: Pool, record: int) -> None:
    last = pool.left[0] - 1
    place = pool.place[record]
    mover = pool.ids[last]
    for j in range(len(pool.total)):
        pool.total[j] -= pool.columns[j, place]
        pool.columns[j, place] = pool.columns[j, last]
    pool.ids[place] = mover
    pool.place[mover] = place
    pool.place[record] = -1
    pool.left[0] = last


@njit(cache=True, nogil=True)
def pool_centroid(pool: Pool) -> Floats:
    centre: Floats = pool.total / pool.left[0]
    return centre


@njit(cache=True, nogil=True)
def squared_distance(a: Floats, b: Floats) -> float:
    distance = 0.0
    for j in range(len(a)):
        delta = a[j] - b[j]
        distance += delta * delta
    return distance


@njit(cache=True, nogil=True)
def squared_distances(columns: Floats, start: int, stop: int, point: Floats, out: Floats) -> None:
    """Write the squared distances from the point to the places start … stop−1."""
    length = stop - start
    for i in range(length):
        out[i] = 0.0
    for j in range(len(point)):
        column = columns[j, start:stop]
        p = point[j]
        for i in range(length):
            delta = column[i] - p
            out[i] += delta * delta


@njit(cache=True, nogil=True)
def _insert(distance: float, record: int, near: Floats, near_ids: Ints) -> None:
    """Put a record into the ascending list of the nearest, dropping the last."""
    t = len(near) - 1
    while t > 0 and (near[t - 1] > distance or (near[t - 1] == distance and near_ids[t - 1] > record)):
        near[t] = near[t - 1]
        near_ids[t] = near_ids[t - 1]
        t -= 1
    near[t] = distance
    near_ids[t] = record


@njit(cache=True, nogil=True)
def pool_scan(pool: Pool, point: Floats, near: Floats, near_ids: Ints) -> int:
    """Find the records nearest to a point (as many as `near` holds, ascending) and return the farthest one."""
    wanted = len(near)
    for i in range(wanted):
        near[i] = np.inf
        near_ids[i] = NOBODY
    farthest, reach = -1, -1.0
    block = np.empty(BLOCK)
    count = pool.left[0]
    for start in range(0, count, BLOCK):
        stop = min(start + BLOCK, count)
        squared_distances(pool.columns, start, stop, point, block)
        for i in range(stop - start):
            distance = block[i]
            if distance >= reach:
                record = pool.ids[start + i]
                if distance > reach or record < farthest:
                    farthest, reach = record, distance
            if wanted > 0 and distance <= near[wanted - 1]:
                record = pool.ids[start + i]
                if distance < near[wanted - 1] or record < near_ids[wanted - 1]:
                    _insert(distance, record, near, near_ids)
    return farthest


@njit(cache=True, nogil=True)
def pool_take(pool: Pool, records: Ints, group: int, labels: Ints) -> None:
    """Give records their group and remove them."""
    for i in range(len(records)):
        labels[records[i]] = group
        pool_remove(pool, records[i])
