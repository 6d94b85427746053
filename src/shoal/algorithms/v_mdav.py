"""V-MDAV: groups of k around the farthest record, which grow to 2k−1 while a neighbour is close.

A. Solanas and A. Martínez-Ballesté, V-MDAV: a multivariate microaggregation with variable group size, COMPSTAT
2006. A record joins the group when its distance to the group (to the nearest member) is less than γ times its
distance to the nearest other record without a group. The centroid is that of the whole table: so computed, the
figures of Castro, Gentile and Spagnolo-Arrizabalaga (2022) come out to the digit. About k+3 queries a group, for
each γ: O(d n²) time at worst, near O(n log n) for few columns; O(n d) memory.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from shoal.algorithms._gather import place_leftovers
from shoal.algorithms._pool import (
    Pool,
    pool_centroid,
    pool_farthest,
    pool_nearest,
    pool_new,
    pool_remove,
    pool_take,
    pool_tidy,
)
from shoal.algorithms.registry import Outcome
from shoal.measures import sse
from shoal.progress import DONE, STOP
from shoal.types import Floats, Ints, State

__all__ = ["GAMMAS", "v_mdav"]

# No growth (0), the 0.2 that the paper gives for scattered data, its 1.1 for clustered data, and between.
GAMMAS = (0.0, 0.16, 0.32, 0.48, 0.64, 0.8, 0.96, 1.12)


def v_mdav(X: Floats, k: int, *, state: State, gamma: float | None) -> Outcome:
    """Group the records by V-MDAV with the γ given, else with the one of `GAMMAS` that loses least."""
    grid = GAMMAS if gamma is None else (gamma,)
    found: list[tuple[float, float, Ints]] = []
    before = state[DONE]
    for i, value in enumerate(grid):
        labels = _v_mdav(X, k, value, state)
        state[DONE] = before + len(X) * (i + 1) // len(grid)
        found.append((sse(X, labels), value, labels))
    _, best, labels = min(found, key=lambda candidate: candidate[:2])
    return Outcome(labels, facts={"gamma": best})


@njit(cache=True, nogil=True)
def _v_mdav(X: Floats, k: int, gamma: float, state: State) -> Ints:
    pool = pool_new(X)
    labels = np.zeros(len(X), dtype=np.int64)
    near, near_ids = np.empty(k), np.empty(k, dtype=np.int64)
    centre = pool_centroid(pool)
    group = 0
    while pool.left[0] >= k and not state[STOP]:
        farthest = pool_farthest(pool, centre)
        pool_nearest(pool, X[farthest], near, near_ids)
        pool_take(pool, near_ids, group, labels)
        if gamma > 0:
            _extend(X, pool, near_ids, gamma, group, labels)
        pool_tidy(pool)
        group += 1
    place_leftovers(X, pool, group, labels)
    return labels


@njit(cache=True, nogil=True)
def _extend(X: Floats, pool: Pool, records: Ints, gamma: float, group: int, labels: Ints) -> None:
    """Let the group grow to at most 2k−1 records."""
    k = len(records)
    members = np.empty(2 * k - 1, dtype=np.int64)
    neighbour = np.full(2 * k - 1, -1, dtype=np.int64)  # each member's nearest record without a group
    distance = np.empty(2 * k - 1)
    one, one_id = np.empty(1), np.empty(1, dtype=np.int64)
    two, two_ids = np.empty(2), np.empty(2, dtype=np.int64)
    members[:k] = records
    for size in range(k, 2 * k - 1):
        if pool.left[0] < 2:
            return
        best = 0
        for m in range(size):
            if neighbour[m] < 0 or pool.place[neighbour[m]] < 0:
                pool_nearest(pool, X[members[m]], one, one_id)
                neighbour[m], distance[m] = one_id[0], one[0]
            if distance[m] < distance[best] or (distance[m] == distance[best] and neighbour[m] < neighbour[best]):
                best = m
        candidate = neighbour[best]
        # The candidate itself is the nearest, at distance 0; the second is the nearest other.
        pool_nearest(pool, X[candidate], two, two_ids)
        if not distance[best] < gamma * gamma * two[1]:
            return
        members[size] = candidate
        labels[candidate] = group
        pool_remove(pool, candidate)
