"""MDAV, maximum distance to average vector: groups of k around the two extremes, from the outside in.

J. Domingo-Ferrer and V. Torra, Ordinal, continuous and heterogeneous k-anonymity through microaggregation,
Data Mining and Knowledge Discovery 11 (2005). Four queries of the records left for every two groups. A kd-tree cuts
them short while there are many records, three scans answer them once there are few. O(d n²/k) time at worst, near
O(n log n) for few columns; O(n d) memory.
"""

from __future__ import annotations

import os

import numpy as np

from shoal.core.compiling import kernel
from shoal.core.progress import DONE, STOP
from shoal.core.types import Floats, Ints, State
from shoal.kernels.foresight import ROWS, TURNS, USED, Foresight, Seer, take_listed
from shoal.kernels.pool import (
    GREAT,
    LAST,
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
from shoal.kernels.scan import Scan, scan_farthest, scan_look, scan_nearest, scan_new, scan_remove

__all__ = ["mdav"]

MANY, WIDE = 50_000, 6  # records and columns from which on a query is worth a second thread
FEW = 1500  # records and as many more for each column: fewer are scanned


def mdav(X: Floats, k: int, *, state: State, threads: int | None = None) -> Ints:
    """Group the records by MDAV; ties go to the lowest record number. Threads do not change the groups."""
    n, d = X.shape
    labels = np.zeros(n, dtype=np.int64)
    near, near_ids = np.empty(k), np.empty(k, dtype=np.int64)
    # Squares of larger numbers leave float32, and so may those of their distances to a centroid that is rounded.
    few = FEW * (1 + d) if max(X.max(), -X.min()) < GREAT / (2 * d) else 2 * k
    total, left, group = None, np.arange(n), 0
    if n >= few:
        pool = pool_new(X)
        with Seer(X, pool, k, threads or os.cpu_count() or 1 if n >= MANY and d >= WIDE else 1) as seer:
            while pool.left[0] >= max(few, 2 * k) and not state[STOP]:
                seer.look()
                group = _by_tree(X, pool, seer.ahead, few, near, near_ids, group, labels, state)
                pool_tidy(pool)
        total, left = pool.total, np.flatnonzero(pool.place >= 0)
    found = np.zeros(len(left), dtype=np.int64)
    if len(left) >= 2 * k and not state[STOP]:
        scan = scan_new(X[left], k, total)
        last = _by_scan(scan, np.empty(d), near, near_ids, found, state)
        found[scan.place >= 0] = last
    labels[left] = group + found
    state[DONE] += np.count_nonzero(found == found.max())
    return labels


@kernel(counted=False)
def _by_tree(
    X: Floats,
    pool: Pool,
    ahead: Foresight,
    few: int,
    near: Floats,
    near_ids: Ints,
    group: int,
    labels: Ints,
    state: State,
) -> int:
    """Form groups until few records are left, the pool is to be tidied or to be looked ahead; return the next group."""
    k = len(near)
    while pool.left[0] >= max(few, 2 * k) and ahead.known[TURNS] and not state[STOP]:
        left, row, known = pool.left[0], -1, False
        # r is the farthest from the centroid, s the farthest from r while r's group is still there.
        r, s, point = 0, 0, pool_mean(pool)
        for i in range(2):
            if i == 1:
                row = ahead.row[s]
                known = row >= 0 and pool.place[ahead.farthest[row]] >= 0
            r, s = s, ahead.farthest[row] if known else pool_farthest(pool, point)
            point = X[s]
            pool.shape[SCANNED] += pool.shape[LAST] * (1 - i)
        for i in range(2 if left >= 3 * k else 1):
            listed = known if i else row >= 0
            if not listed or not take_listed(ahead.near[row, i], pool.place, near_ids):
                pool_nearest(pool, X[s if i else r], near, near_ids)
            for j in range(k):
                labels[near_ids[j]] = group
                pool_remove(pool, near_ids[j])
            group += 1
        state[DONE] += left - pool.left[0]
        # What was foreseen has been used up once an extreme is not among it.
        ahead.known[USED] += row >= 0
        ahead.known[TURNS] -= ahead.known[TURNS] if ahead.known[ROWS] and row < 0 else 1
        if pool_untidy(pool):
            break
    return group


@kernel(counted=False)
def _by_scan(scan: Scan, point: Floats, near: Floats, near_ids: Ints, labels: Ints, state: State) -> int:
    """Form groups until less than two are left; return the number of the last one."""
    k, group, look, extreme = len(near), 0, 0, 0
    while scan.left[0] >= 2 * k and not state[STOP]:
        # Looks are from the centroid, from r and from s, by turns; the third only if three groups were left.
        for j in range(len(point)):
            point[j] = scan.total[j] / scan.left[0] if look == 0 else scan.X[extreme, j]
        scan_look(scan, point)
        if look < 2:
            extreme = scan_farthest(scan, point)
        if look > 0:
            scan_nearest(scan, point, near, near_ids)
            for j in range(k):
                labels[near_ids[j]] = group
                scan_remove(scan, near_ids[j])
            group += 1
            state[DONE] += k
        look = (look + 1) % 3
    return group
