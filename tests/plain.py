"""MDAV as a plain compiled loop over the remaining records: the reference for the kd-tree where Python is too slow."""

import numpy as np
from numba import njit

BLOCK = 512


@njit(cache=True, nogil=True)
def mdav(X, k):
    """Return MDAV's labels, with three passes over the remaining records per two groups, in contiguous columns."""
    n, d = X.shape
    columns = X.T.copy()
    ids, place = np.arange(n), np.arange(n)
    total = np.zeros(d)
    for i in range(n):
        for j in range(d):
            total[j] += X[i, j]
    labels = np.zeros(n, dtype=np.int64)
    near, near_ids = np.empty(k), np.empty(k, dtype=np.int64)
    none, no_ids = np.empty(0), np.empty(0, dtype=np.int64)
    left, group = n, 0
    while left >= 2 * k:
        r = scan(columns, ids, left, total / left, none, no_ids)
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
def scan(columns, ids, left, point, near, near_ids):
    """Find the nearest records of a point, ascending, and return the farthest; the lowest number wins ties."""
    wanted = len(near)
    near[:] = np.inf
    near_ids[:] = len(ids)
    farthest, reach = len(ids), -1.0
    block = np.empty(BLOCK)
    for start in range(0, left, BLOCK):
        size = min(BLOCK, left - start)
        block[:size] = 0.0
        for j in range(len(point)):
            column = columns[j, start : start + size]
            for i in range(size):
                delta = column[i] - point[j]
                block[i] += delta * delta
        for i in range(size):
            record = ids[start + i]
            if block[i] > reach or (block[i] == reach and record < farthest):
                farthest, reach = record, block[i]
            if wanted > 0 and (
                block[i] < near[wanted - 1] or (block[i] == near[wanted - 1] and record < near_ids[wanted - 1])
            ):
                t = wanted - 1
                while t > 0 and (near[t - 1] > block[i] or (near[t - 1] == block[i] and near_ids[t - 1] > record)):
                    near[t], near_ids[t] = near[t - 1], near_ids[t - 1]
                    t -= 1
                near[t], near_ids[t] = block[i], record
    return farthest


@njit(cache=True, nogil=True)
def take(X, columns, ids, place, left, total, records, group, labels):
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
