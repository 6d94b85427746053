"""Answers that MDAV will ask for, found ahead of time by several threads; the groups stay the same.

The next extremes r are among the records that are farthest from the centroid now. For some of these, threads find the
farthest record s and the nearest ones of r and of s. As records only ever leave, such answers stay right: the farthest
while it is there, and of a list of the nearest the first k that are there, if so many are. What has become wrong or was
not foreseen is asked again. Answers of records that left as a neighbour were found in vain: a few in a hundred if few
are foreseen at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Self

import numpy as np

from shoal.core.compiling import kernel
from shoal.core.types import Floats, Ints
from shoal.kernels.pool import (
    LEAF,
    LEVELS,
    Pool,
    pool_centroid,
    pool_farthest,
    pool_nearest,
    pool_twin,
)

__all__ = ["ROWS", "TURNS", "USED", "Foresight", "Seer", "take_listed"]

MOST, LEAST = 64, 16  # extremes foreseen at a time
SPARE = 1  # neighbour more than a group needs
SHARES = 8  # of a thread: what is foreseen does not take the same time
PAUSE = 500  # extremes that are not foreseen once it was of little use
ROWS, TURNS, USED = range(3)


class Foresight(NamedTuple):
    """What is known of some records."""

    row: Ints  # (n,): where a record stands below, -1 if nowhere
    farthest: Ints  # (MOST,): its farthest record s
    near: Ints  # (MOST, 2, k + SPARE): the nearest of the record, and of s, ascending
    known: Ints  # how many ROWS there are, in how many TURNS to look again, and how many rows were USED


@kernel(inline=True)
def take_listed(listed: Ints, place: Ints, near_ids: Ints) -> bool:
    """Take the first records of a list that have not left; say whether they are enough."""
    found = 0
    for i in range(len(listed)):
        if found < len(near_ids) and place[listed[i]] >= 0:
            near_ids[found] = listed[i]
            found += 1
    return found == len(near_ids)


class Seer:
    """Threads that look ahead; one alone knows nothing and asks as it goes."""

    def __init__(self, X: Floats, pool: Pool, k: int, threads: int) -> None:
        n, rows = len(X), MOST if threads > 1 else 0
        near = np.empty((rows, 2, k + SPARE), dtype=np.int64)
        self.ahead = Foresight(np.full(n, -1), np.empty(rows, dtype=np.int64), near, np.zeros(3, dtype=np.int64))
        self._X, self._k = X, k
        self._pools = [pool, *(pool_twin(pool) for _ in range(threads - 1))]
        self._workers = ThreadPoolExecutor(max(1, threads - 1))
        self._records = np.empty(0, dtype=np.int64)
        self._many = LEAST

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._workers.shutdown()

    def look(self) -> None:
        """Foresee the next extremes once the last ones are used up: more while most are of use, else fewer or none."""
        known = self.ahead.known
        if known[TURNS]:
            return
        if known[ROWS]:
            self._many = min(MOST, 2 * self._many) if 4 * known[USED] > 3 * known[ROWS] else self._many // 2
        else:
            self._many = LEAST
        # Not more than there are still to come.
        many = min(self._many, int(self._pools[0].left[0]) // (2 * self._k)) if len(self._pools) > 1 else 0
        many = many if many >= LEAST else 0
        self.ahead.row[self._records] = -1
        self._records = _outermost(self._pools[0], many)
        rows = len(self._records)
        self.ahead.row[self._records] = np.arange(rows)
        known[:] = rows, rows or PAUSE, 0
        # Each thread takes the next share there is.
        shares = iter(np.array_split(np.arange(rows), min(rows, SHARES * len(self._pools))) if rows else [])
        others = [self._workers.submit(self._foresee, pool, shares) for pool in self._pools[1:] if rows]
        self._foresee(self._pools[0], shares)
        for other in others:
            other.result()

    def _foresee(self, pool: Pool, shares: Iterator[Ints]) -> None:
        pool.shape[:] = self._pools[0].shape
        farthest, near_ids = self.ahead.farthest, self.ahead.near
        near = np.empty(near_ids.shape[2])
        for share in shares:
            rows = slice(share[0], share[-1] + 1)
            _foresee(self._X, pool, self._records[rows], farthest[rows], near, near_ids[rows])


def _outermost(pool: Pool, count: int) -> Ints:
    """Return the records farthest from the centroid, nearly: among twice as many that are farthest from the centre."""
    if count == 0:
        return np.empty(0, dtype=np.int64)
    levels = pool.shape[LEVELS]
    leaves = slice(pool.start[levels], pool.start[levels + 1])
    chosen = _greatest(pool.reach[leaves], 2 * count)
    held = np.arange(LEAF) < pool.left[leaves][chosen, None]
    radius, ids = pool.radius[chosen][held], pool.ids[chosen][held]
    chosen = _greatest(radius, 2 * count)
    leaf, slot = np.divmod(pool.place[ids[chosen]], LEAF)
    away = pool.columns[leaf, :, slot] - pool_centroid(pool)
    found: Ints = ids[chosen][_greatest(np.einsum("ij,ij->i", away, away), count)]
    return found


def _greatest(values: Floats, count: int) -> Ints:
    return np.arange(len(values)) if len(values) <= count else np.argpartition(values, -count)[-count:]


@kernel(counted=False)
def _foresee(X: Floats, pool: Pool, records: Ints, farthest: Ints, near: Floats, near_ids: Ints) -> None:
    """Find the farthest of each record, and the nearest of both."""
    for i in range(len(records)):
        farthest[i] = pool_farthest(pool, X[records[i]])
        for j in range(2):
            pool_nearest(pool, X[farthest[i] if j else records[i]], near, near_ids[i, j])
