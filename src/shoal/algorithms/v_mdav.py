"""V-MDAV: form groups of k around the farthest record and extend them to 2k−1 while a neighbour is close.

A. Solanas and A. Martínez-Ballesté, V-MDAV: a multivariate microaggregation with variable group size, COMPSTAT 2006. A
record joins a group if its distance to the nearest member is less than γ times its distance to the nearest other record
without a group. The centroid is that of the whole table, which exactly reproduces the results of Castro, Gentile and
Spagnolo-Arrizabalaga (2022). About k+3 queries per group and γ: O(d n²) time at worst, near O(n log n) for few columns;
O(n d) memory.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.algorithms.registry import Outcome
from shoal.core.compiler import kernel
from shoal.core.measures import sse
from shoal.core.progress import DONE, STOP
from shoal.core.types import Floats, Ints, State
from shoal.kernels.group_growth import place_leftovers
from shoal.kernels.pool import Pool, pool_centroid, pool_needs_refresh, pool_new, pool_refresh, pool_remove
from shoal.kernels.pool_queries import pool_farthest, pool_nearest

__all__ = ["GAMMAS", "v_mdav"]

# With 0, groups do not grow; the paper uses 0.2 for scattered and 1.1 for clustered data.
GAMMAS = (0.0, 0.16, 0.32, 0.48, 0.64, 0.8, 0.96, 1.12)


def v_mdav(X: Floats, k: int, *, state: State, gamma: float | None) -> Outcome:
    """Group the records by V-MDAV with the given γ, or with the best of `GAMMAS`."""
    grid = GAMMAS if gamma is None else (gamma,)
    results: list[tuple[float, float, Ints]] = []
    before = state[DONE]
    for i, value in enumerate(grid):
        labels = _v_mdav(X, k, value, state)
        state[DONE] = before + len(X) * (i + 1) // len(grid)
        results.append((sse(X, labels), value, labels))
    _, best, labels = min(results, key=lambda candidate: candidate[:2])
    return Outcome(labels, facts={"gamma": best})


class _Buffers(NamedTuple):
    """Scratch arrays for forming a group."""

    members: Ints  # (2k−1,)
    neighbour: Ints  # (2k−1,): each member's nearest record without a group
    distance: Floats  # (2k−1,): the squared distance to this neighbour
    near: Floats  # (k,)
    near_ids: Ints


def _v_mdav(X: Floats, k: int, gamma: float, state: State) -> Ints:
    pool = pool_new(X)
    labels = np.zeros(len(X), dtype=np.int64)
    buffers = _Buffers(
        members=np.empty(2 * k - 1, dtype=np.int64),
        neighbour=np.empty(2 * k - 1, dtype=np.int64),
        distance=np.empty(2 * k - 1),
        near=np.empty(k),
        near_ids=np.empty(k, dtype=np.int64),
    )
    centre = pool_centroid(pool)
    group = 0
    while pool.remaining[0] >= k and not state[STOP]:
        group = _groups(X, pool, centre, gamma, buffers, group, labels, state)
        pool_refresh(pool)
    if not state[STOP]:  # a stopped run may have no group for the leftovers
        place_leftovers(X, pool.place, group, labels)
    return labels


@kernel(counted=False)
def _groups(
    X: Floats,
    pool: Pool,
    centre: Floats,
    gamma: float,
    buffers: _Buffers,
    group: int,
    labels: Ints,
    state: State,
) -> int:
    """Form groups until the pool is too small or needs a refresh; return the number of the next group."""
    near, near_ids = buffers.near, buffers.near_ids
    k = len(near)
    while pool.remaining[0] >= k and not state[STOP]:
        farthest = pool_farthest(pool, centre)
        pool_nearest(pool, X[farthest], near, near_ids)
        for i in range(k):
            labels[near_ids[i]] = group
            pool_remove(pool, near_ids[i])
        if gamma > 0:
            _extend(X, pool, buffers, gamma, group, labels)
        group += 1
        if pool_needs_refresh(pool):
            break
    return group


@kernel(counted=False)
def _extend(X: Floats, pool: Pool, buffers: _Buffers, gamma: float, group: int, labels: Ints) -> None:
    """Extend the group of the records in `near_ids` to at most 2k−1 records."""
    members, neighbour, distance, near, near_ids = buffers
    k = len(near)
    for m in range(2 * k - 1):
        neighbour[m], members[m] = -1, near_ids[m] if m < k else -1
    for size in range(k, 2 * k - 1):
        if pool.remaining[0] < 2:
            return
        best = 0
        # The candidate is queried last. Its nearest record is itself, at distance 0, so the second nearest counts.
        for m in range(size + 1):
            asks = members[m] if m < size else neighbour[best]
            if m == size or neighbour[m] < 0 or pool.place[neighbour[m]] < 0:
                count = 1 if m < size else 2
                pool_nearest(pool, X[asks], near[:count], near_ids[:count])
            elif m < size:
                near_ids[0], near[0] = neighbour[m], distance[m]
            if m < size:
                neighbour[m], distance[m] = near_ids[0], near[0]
                if distance[m] < distance[best] or (distance[m] == distance[best] and neighbour[m] < neighbour[best]):
                    best = m
        candidate = neighbour[best]
        if not distance[best] < gamma * gamma * near[1]:
            return
        members[size] = candidate
        labels[candidate] = group
        pool_remove(pool, candidate)
