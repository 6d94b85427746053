"""MDAV as a tuned compiled loop, to show what is possible without a tree. The labels are those of the plain loop.

Remaining records are packed in contiguous columns. One pass finds the nearest and the farthest records of a point.
Vector instructions compute the range of distances of a block, which shows if its records must be checked one by one.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from shoal.core.types import Floats, Ints
from shoal.kernels.distances import squared_distances

BLOCK = 256
ORDER = {"nnan", "nsz", "reassoc"}


@njit(cache=True, nogil=True)
def mdav(X: Floats, k: int) -> Ints:
    """Return MDAV's labels, with three passes over the remaining records per two groups."""
    n, d = X.shape
    columns = X.T.copy()
    ids, place = np.arange(n), np.arange(n)
    total = np.zeros(d)
    for i in range(n):
        for j in range(d):
            total[j] += X[i, j]
    labels = np.zeros(n, dtype=np.int64)
    near, near_ids = np.empty(k), np.empty(k, dtype=np.int64)
    left, group = n, 0
    while left >= 2 * k:
        r = scan(columns, ids, left, total / left, near[:0], near_ids[:0])
        two = left >= 3 * k
        s = scan(columns, ids, left, X[r], near, near_ids)
        left = take(X, columns, ids, place, left, total, near_ids, group, labels)
        group += 1
        if two:
            scan(columns, ids, left, X[s], near, near_ids)
            left = take(X, columns, ids, place, left, total, near_ids, group, labels)
            group += 1
    for i in range(left):
        labels[ids[i]] = group
    return labels


@njit(cache=True, nogil=True)
def scan(columns: Floats, ids: Ints, left: int, point: Floats, near: Floats, near_ids: Ints) -> int:
    """Find the nearest records of a point, ascending, and return the farthest; the lowest number wins ties."""
    wanted = len(near)
    near[:] = np.inf
    near_ids[:] = len(ids)
    farthest, reach = len(ids), -1.0
    block = np.empty(BLOCK)
    for start in range(0, left, BLOCK):
        size = min(BLOCK, left - start)
        squared_distances(columns, start, size, point, block)
        if greatest(block[:size]) >= reach:
            for i in range(size):
                if block[i] > reach or (block[i] == reach and ids[start + i] < farthest):
                    farthest, reach = ids[start + i], block[i]
        if wanted > 0 and least(block[:size]) <= near[wanted - 1]:
            for i in range(size):
                distance, record = block[i], ids[start + i]
                t = wanted - 1
                if distance > near[t] or (distance == near[t] and record > near_ids[t]):
                    continue
                while t > 0 and (near[t - 1] > distance or (near[t - 1] == distance and near_ids[t - 1] > record)):
                    near[t], near_ids[t] = near[t - 1], near_ids[t - 1]
                    t -= 1
                near[t], near_ids[t] = distance, record
    return farthest


@njit(cache=True, nogil=True, fastmath=ORDER)
def least(values: Floats) -> float:
    """Return the smallest value."""
    found = np.inf
    for i in range(len(values)):
        found = min(found, values[i])
    return found


@njit(cache=True, nogil=True, fastmath=ORDER)
def greatest(values: Floats) -> float:
    """Return the largest value."""
    found = -np.inf
    for i in range(len(values)):
        found = max(found, values[i])
    return found


@njit(cache=True, nogil=True)
def take(
    X: Floats,
    columns: Floats,
    ids: Ints,
    place: Ints,
    left: int,
    total: Floats,
    records: Ints,
    group: int,
    labels: Ints,
) -> int:
    """Assign records to a group; the last remaining records fill their places."""
    for record in records:
        labels[record] = group
        left -= 1
        here = place[record]
        for j in range(len(total)):
            total[j] -= X[record, j]
            columns[j, here] = columns[j, left]
        ids[here] = ids[left]
        place[ids[left]] = here
    return left
