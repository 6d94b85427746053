"""Path: string the records on a short path through space, then group them by a shortest path over that order.

J. Domingo-Ferrer, A. Martínez-Ballesté, J. M. Mateo-Sanz and F. Sebé, Efficient multivariate data-oriented
microaggregation, VLDB Journal 15 (2006): nearest point next and maximum distance, O(d n²). A. Maya-López, F. Casino
and A. Solanas, Improving multivariate microaggregation through Hamiltonian paths and optimal univariate
microaggregation, Symmetry 13 (2021): a travelling salesman's path (`_tour`). The grouping is O(k n d).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numba import njit

from shoal.algorithms._gather import gather
from shoal.algorithms._ordered import best_of_orders
from shoal.algorithms._pool import pool_centroid, pool_new, pool_remove, pool_scan, squared_distance
from shoal.algorithms._tour import tour
from shoal.algorithms.diameter import bounds_from_centroid, most_distant
from shoal.algorithms.registry import Outcome
from shoal.progress import DONE, STOP, State
from shoal.types import Floats, Ints

__all__ = ["path"]


def path(X: Floats, k: int, *, state: State, order: str = "tour") -> Outcome:
    """Group the records in the order of a path, or in the best of several such orders."""
    name, labels = best_of_orders(X, k, _orders(X, k, order, state), state)
    return Outcome(labels, facts={"order": name})


def _orders(X: Floats, k: int, order: str, state: State) -> Iterator[tuple[str, Ints]]:
    names = ("tour", "nearest", "maximum") if order == "best" else (order,)
    for i, name in enumerate(names):
        if i and state[STOP]:
            return
        state[DONE] = 0
        if name == "tour":
            yield name, tour(X, state)
        elif name == "nearest":
            yield name, _nearest_point_next(X, state)
        else:
            yield name, _maximum_distance(X, k, state)


@njit(cache=True, nogil=True)
def _nearest_point_next(X: Floats, state: State) -> Ints:
    """Start at the record farthest from the centroid and go on to the nearest one left."""
    n = len(X)
    pool = pool_new(X)
    order = np.arange(n)
    near, near_ids = np.empty(1), np.empty(1, dtype=np.int64)
    here = pool_scan(pool, pool_centroid(pool), np.empty(0), np.empty(0, dtype=np.int64))
    for i in range(n):
        order[i] = here
        pool_remove(pool, here)
        if i < n - 1:
            pool_scan(pool, X[here], near, near_ids)
            here = near_ids[0]
        state[DONE] += 1
        if state[STOP]:
            # What is left follows in any order: the caller is about to give up.
            order[i + 1 :] = pool.ids[: n - i - 1]
            break
    return order


@njit(cache=True, nogil=True)
def _maximum_distance(X: Floats, k: int, state: State) -> Ints:
    """Take k records at a time around each of the two most distant ones: one lot from each end of the path inwards."""
    n = len(X)
    pool = pool_new(X)
    order, labels = np.arange(n), np.zeros(n, dtype=np.int64)
    bound, partner = bounds_from_centroid(X, pool_centroid(pool)), np.full(n, -1)
    head, tail = 0, n
    ids = pool.ids.copy()
    while pool.left[0] >= 2 * k and not state[STOP]:
        a, b = most_distant(X, pool, bound, partner)
        for end in range(2):
            seed = a if end == 0 else b
            before = pool.left[0]
            ids[:before] = pool.ids[:before]
            gather(X, pool, seed, k, 0, labels)
            taken, reach = np.empty(k, dtype=np.int64), np.empty(k)
            count = 0
            for i in range(before):
                if pool.place[ids[i]] < 0:
                    taken[count], reach[count] = ids[i], squared_distance(X[seed], X[ids[i]])
                    count += 1
            rank = np.argsort(reach, kind="mergesort")
            for i in range(k):
                if end == 0:
                    order[head] = taken[rank[i]]
                    head += 1
                else:
                    tail -= 1
                    order[tail] = taken[rank[i]]
        state[DONE] += 2 * k
    middle = np.sort(pool.ids[: pool.left[0]])
    reach = np.empty(len(middle))
    start = order[head - 1] if head > 0 else middle[0]
    for i in range(len(middle)):
        reach[i] = squared_distance(X[start], X[middle[i]])
    order[head:tail] = middle[np.argsort(reach, kind="mergesort")]
    return order
