"""MDAV (maximum distance to average vector): form groups of k around two extreme records, from the outside in.

J. Domingo-Ferrer and V. Torra, Ordinal, continuous and heterogeneous k-anonymity through microaggregation,
Data Mining and Knowledge Discovery 11 (2005). Every two groups need four queries of the pool. A kd-tree
answers the queries while many records remain; three scans answer them when few remain. O(d n²/k) time at worst, near
O(n log n) for few columns; O(n d) memory.

The groups are identical to those of a plain float64 loop over the same array, ties included. In a table with many ties,
the last digit of the z-scores decides, so programs that standardise in a different order form different groups.
"""

from __future__ import annotations

import os

import numpy as np

from shoal.core.compiler import kernel
from shoal.core.progress import DONE, STOP
from shoal.core.types import Floats, Ints, State
from shoal.kernels.float32 import FLOAT32_LARGEST
from shoal.kernels.pool import (
    LAST_SCANNED,
    SCANNED,
    Pool,
    pool_mean,
    pool_needs_refresh,
    pool_new,
    pool_refresh,
    pool_remove,
)
from shoal.kernels.pool_queries import pool_farthest, pool_nearest
from shoal.kernels.prediction import ROWS, TURNS, USED, Predictions, Predictor, take_remaining
from shoal.kernels.scan import Scan, scan_farthest, scan_nearest, scan_new, scan_remove, scan_score

__all__ = ["mdav"]

MANY, WIDE = 50_000, 6  # a second thread pays off from this number of records and columns
FEW = 1500  # below FEW · (1 + d) records, scans are faster than the tree


def mdav(X: Floats, k: int, *, state: State, threads: int | None = None) -> Ints:
    """Group the records by MDAV; ties go to the lowest record number. Threads do not change the groups."""
    n, d = X.shape
    labels = np.zeros(n, dtype=np.int64)
    near, near_ids = np.empty(k), np.empty(k, dtype=np.int64)
    # Squares of larger numbers, and squared distances to a rounded centroid, may overflow float32.
    few = FEW * (1 + d) if max(X.max(), -X.min()) < FLOAT32_LARGEST / (2 * d) else 2 * k
    total, rest, group = None, np.arange(n), 0
    if n >= few:
        pool = pool_new(X)
        with Predictor(X, pool, k, threads or os.cpu_count() or 1 if n >= MANY and d >= WIDE else 1) as predictor:
            while pool.remaining[0] >= max(few, 2 * k) and not state[STOP]:
                predictor.predict()
                group = _by_tree(X, pool, predictor.predictions, few, near, near_ids, group, labels, state)
                pool_refresh(pool)
        total, rest = pool.total, np.flatnonzero(pool.place >= 0)
    rest_labels = np.zeros(len(rest), dtype=np.int64)
    if len(rest) >= 2 * k and not state[STOP]:
        scan = scan_new(X if len(rest) == n else X[rest], k, total)
        last = _by_scan(scan, np.empty(d), near, near_ids, rest_labels, state)
        rest_labels[scan.place >= 0] = last
    labels[rest] = group + rest_labels
    state[DONE] += np.count_nonzero(rest_labels == rest_labels.max())
    return labels


@kernel(counted=False)
def _by_tree(
    X: Floats,
    pool: Pool,
    predictions: Predictions,
    few: int,
    near: Floats,
    near_ids: Ints,
    group: int,
    labels: Ints,
    state: State,
) -> int:
    """Form groups until few records remain or a refresh is needed; return the number of the next group."""
    k = len(near)
    while pool.remaining[0] >= max(few, 2 * k) and predictions.counts[TURNS] and not state[STOP]:
        before, row, predicted = pool.remaining[0], -1, False
        # Record r is farthest from the centroid; s is farthest from r before r's group is removed.
        r, s, point = 0, 0, pool_mean(pool)
        for i in range(2):
            if i == 1:
                row = predictions.row[s]
                predicted = row >= 0 and pool.place[predictions.farthest[row]] >= 0
            r, s = s, predictions.farthest[row] if predicted else pool_farthest(pool, point)
            point = X[s]
            pool.counts[SCANNED] += pool.counts[LAST_SCANNED] * (1 - i)
        for i in range(2 if before >= 3 * k else 1):
            available = predicted if i else row >= 0
            if not available or not take_remaining(predictions.near[row, i], pool.place, near_ids):
                pool_nearest(pool, X[s if i else r], near, near_ids)
            for j in range(k):
                labels[near_ids[j]] = group
                pool_remove(pool, near_ids[j])
            group += 1
        state[DONE] += before - pool.remaining[0]
        # The predictions are exhausted when an extreme record is not among them.
        predictions.counts[USED] += row >= 0
        predictions.counts[TURNS] -= predictions.counts[TURNS] if predictions.counts[ROWS] and row < 0 else 1
        if pool_needs_refresh(pool):
            break
    return group


@kernel(counted=False)
def _by_scan(scan: Scan, point: Floats, near: Floats, near_ids: Ints, labels: Ints, state: State) -> int:
    """Form groups until fewer than 2k records remain; return the number of the last group."""
    k, group, turn, extreme = len(near), 0, 0, 0
    while scan.remaining[0] >= 2 * k and not state[STOP]:
        # Score records by distance from the centroid, r and s in turn; skip s if fewer than 3k records remained.
        for j in range(len(point)):
            point[j] = scan.total[j] / scan.remaining[0] if turn == 0 else scan.X[extreme, j]
        scan_score(scan, point)
        if turn < 2:
            extreme = scan_farthest(scan, point)
        if turn > 0:
            scan_nearest(scan, point, near, near_ids)
            for j in range(k):
                labels[near_ids[j]] = group
                scan_remove(scan, near_ids[j])
            group += 1
            state[DONE] += k
        turn = (turn + 1) % 3
    return group
