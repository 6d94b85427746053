"""Prediction of MDAV's next queries, which threads answer in advance without changing the groups.

The next extreme records r are among the records now farthest from the centroid. For some of these, threads find the
farthest record s and the nearest records of r and of s. Because records only leave the pool, such answers remain valid.
The farthest record is valid while it is in the pool, and a list of nearest records while k of its records are in the
pool. Queries without a valid prediction are run again. Predictions for records that leave as neighbours are wasted;
these are a few per cent if few extremes are predicted at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Self

import numpy as np

from shoal.core.compiler import kernel
from shoal.core.types import Floats, Ints
from shoal.kernels.pool import LEAF, LEVELS, Pool, pool_centroid, pool_view
from shoal.kernels.pool_queries import pool_farthest, pool_nearest

__all__ = ["ROWS", "TURNS", "USED", "Predictions", "Predictor", "take_remaining"]

MOST, LEAST = 64, 16  # maximum and minimum number of extremes predicted at a time
SPARE = 1  # neighbours listed in addition to those that a group needs
SHARES = 8  # parts of the work per thread, because parts take different times
PAUSE = 500  # extremes processed without predictions after predictions have helped little

# Entries of `Predictions.counts`: the number of predicted rows, the number of extremes until the next prediction, and
# the number of rows used.
ROWS, TURNS, USED = range(3)


class Predictions(NamedTuple):
    """The predicted answers for some records r, one row per record."""

    row: Ints  # (n,): the row of each record, -1 without a prediction
    farthest: Ints  # (MOST,): the record s that is farthest from r
    near: Ints  # (MOST, 2, k + SPARE): the nearest records of r and of s, nearest first
    counts: Ints  # ROWS, TURNS and USED


@kernel(inline=True)
def take_remaining(candidates: Ints, place: Ints, near_ids: Ints) -> bool:
    """Copy the first candidates that are still in the pool; return True if they fill `near_ids`."""
    count = 0
    for i in range(len(candidates)):
        if count < len(near_ids) and place[candidates[i]] >= 0:
            near_ids[count] = candidates[i]
            count += 1
    return count == len(near_ids)


class Predictor:
    """A set of threads that answer queries in advance; a single thread predicts nothing.

    `threads` includes the calling thread.
    """

    def __init__(self, X: Floats, pool: Pool, k: int, threads: int) -> None:
        n, rows = len(X), MOST if threads > 1 else 0
        near = np.empty((rows, 2, k + SPARE), dtype=np.int64)
        self.predictions = Predictions(
            row=np.full(n, -1),
            farthest=np.empty(rows, dtype=np.int64),
            near=near,
            counts=np.zeros(3, dtype=np.int64),
        )
        self._X, self._k = X, k
        self._pools = [pool, *(pool_view(pool) for _ in range(threads - 1))]
        self._workers = ThreadPoolExecutor(max(1, threads - 1))
        self._records = np.empty(0, dtype=np.int64)
        self._many = LEAST

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._workers.shutdown()

    def predict(self) -> None:
        """Predict extremes once the last predictions are used up; predict more if most were used, otherwise fewer."""
        counts = self.predictions.counts
        if counts[TURNS]:
            return
        if counts[ROWS]:
            self._many = min(MOST, 2 * self._many) if 4 * counts[USED] > 3 * counts[ROWS] else self._many // 2
        else:
            self._many = LEAST
        # Predict no more extremes than remain.
        many = min(self._many, int(self._pools[0].remaining[0]) // (2 * self._k)) if len(self._pools) > 1 else 0
        many = many if many >= LEAST else 0
        self.predictions.row[self._records] = -1
        self._records = _outermost(self._pools[0], many)
        rows = len(self._records)
        self.predictions.row[self._records] = np.arange(rows)
        counts[:] = rows, rows or PAUSE, 0
        # Each thread takes the next free share.
        shares = iter(np.array_split(np.arange(rows), min(rows, SHARES * len(self._pools))) if rows else [])
        tasks = [self._workers.submit(self._answer, pool, shares) for pool in self._pools[1:] if rows]
        self._answer(self._pools[0], shares)
        for task in tasks:
            task.result()

    def _answer(self, pool: Pool, shares: Iterator[Ints]) -> None:
        pool.counts[:] = self._pools[0].counts
        farthest, near_ids = self.predictions.farthest, self.predictions.near
        near = np.empty(near_ids.shape[2])
        for share in shares:
            rows = slice(share[0], share[-1] + 1)
            _answer(self._X, pool, self._records[rows], farthest[rows], near, near_ids[rows])


def _outermost(pool: Pool, count: int) -> Ints:
    """Return approximately the farthest records from the centroid, chosen from those farthest from the centre."""
    if count == 0:
        return np.empty(0, dtype=np.int64)
    levels = pool.counts[LEVELS]
    leaves = slice(pool.start[levels], pool.start[levels + 1])
    outer = _greatest(pool.reach[leaves], 2 * count)
    occupied = np.arange(LEAF) < pool.remaining[leaves][outer, None]
    radius, ids = pool.radius[outer][occupied], pool.ids[outer][occupied]
    outer = _greatest(radius, 2 * count)
    leaf, slot = np.divmod(pool.place[ids[outer]], LEAF)
    away = pool.columns[leaf, :, slot] - pool_centroid(pool)
    farthest: Ints = ids[outer][_greatest(np.einsum("ij,ij->i", away, away), count)]
    return farthest


def _greatest(values: Floats, count: int) -> Ints:
    return np.arange(len(values)) if len(values) <= count else np.argpartition(values, -count)[-count:]


@kernel(counted=False)
def _answer(X: Floats, pool: Pool, records: Ints, farthest: Ints, near: Floats, near_ids: Ints) -> None:
    """Find the record farthest from each record, and the nearest records of both."""
    for i in range(len(records)):
        farthest[i] = pool_farthest(pool, X[records[i]])
        for j in range(2):
            pool_nearest(pool, X[farthest[i] if j else records[i]], near, near_ids[i, j])
