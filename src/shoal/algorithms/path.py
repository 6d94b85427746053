"""Method path: order the records along a short path through space, then find the optimal groups for that order.

J. Domingo-Ferrer, A. Martínez-Ballesté, J. M. Mateo-Sanz and F. Sebé, Efficient multivariate data-oriented
microaggregation, VLDB Journal 15 (2006), propose the orders nearest point next and maximum distance, O(d n²). A.
Maya-López, F. Casino and A. Solanas, Improving multivariate microaggregation through Hamiltonian paths and optimal
univariate microaggregation, Symmetry 13 (2021), propose a travelling salesman's path (`tour`). Grouping takes O(k n d).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shoal.algorithms.diameter import Diameters, diameters_new, most_distant
from shoal.algorithms.record_order import best_of_orders
from shoal.algorithms.registry import Outcome
from shoal.algorithms.tour import tour
from shoal.core.compiler import kernel
from shoal.core.progress import DONE, STOP
from shoal.core.types import Floats, Ints, State
from shoal.kernels.distances import squared_distance
from shoal.kernels.group_growth import GroupBuffers, gather, new_group_buffers
from shoal.kernels.pool import Pool, pool_new, pool_remove
from shoal.kernels.pool_queries import pool_farthest_from_centroid, pool_nearest

__all__ = ["path"]


def path(X: Floats, k: int, *, state: State, order: str = "tour") -> Outcome:
    """Group the records in the order of a path, or in the best of several orders."""
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


def _nearest_point_next(X: Floats, state: State) -> Ints:
    """Return a path that starts farthest from the centroid and always continues to the nearest remaining record."""
    pool, order = pool_new(X), np.arange(len(X))
    count = _follow(X, pool, np.empty(1), np.empty(1, dtype=np.int64), order, state)
    # After a stop, the order of the rest does not matter because the result is discarded.
    order[count:] = np.flatnonzero(pool.place >= 0)
    return order


@kernel(counted=False)
def _follow(X: Floats, pool: Pool, near: Floats, near_ids: Ints, order: Ints, state: State) -> int:
    """Write the path to `order`; return the number of records written."""
    n = len(X)
    current = pool_farthest_from_centroid(pool)
    for i in range(n):
        order[i] = current
        pool_remove(pool, current)
        if i < n - 1:
            pool_nearest(pool, X[current], near, near_ids)
            current = near_ids[0]
        state[DONE] += 1
        if state[STOP]:
            return i + 1
    return n


def _maximum_distance(X: Floats, k: int, state: State) -> Ints:
    """Fill a path from both ends inwards with groups of k around the two most distant remaining records."""
    pool = pool_new(X)
    order, labels = np.arange(len(X)), np.zeros(len(X), dtype=np.int64)
    buffers, reach = new_group_buffers(X.shape[1], k), np.empty(2 * k)
    head = _both_ends(X, pool, diameters_new(X, pool), buffers, reach, order, labels, state)
    middle = np.flatnonzero(pool.place >= 0)
    if len(middle) < 2 * k:  # otherwise a stop was requested and the result is discarded
        _by_distance(X, X[order[head - 1] if head > 0 else middle[0]], middle, reach)
    order[head : len(X) - head] = middle
    return order


@kernel(counted=False)
def _both_ends(
    X: Floats,
    pool: Pool,
    diameters: Diameters,
    buffers: GroupBuffers,
    reach: Floats,
    order: Ints,
    labels: Ints,
    state: State,
) -> int:
    """Write the groups of k to both ends of `order`; return the number of records at each end."""
    k = len(buffers.members)
    head, last = 0, len(X) - 1
    while pool.remaining[0] >= 2 * k and not state[STOP]:
        a, b = most_distant(X, pool, diameters)
        for end in range(2):
            seed = b if end else a
            gather(X, pool, buffers, seed, 0, labels)
            _by_distance(X, X[seed], buffers.members, reach)
            for i in range(k):
                order[last - head - i if end else head + i] = buffers.members[i]
        head += k
        state[DONE] += 2 * k
    return head


@kernel(counted=False)
def _by_distance(X: Floats, point: Floats, records: Ints, reach: Floats) -> None:
    """Sort a few records by squared distance from a point, then by number; write the distances to `reach`."""
    for i in range(len(records)):
        record, distance = records[i], squared_distance(point, X[records[i]])
        t = i
        while t > 0 and (reach[t - 1] > distance or (reach[t - 1] == distance and records[t - 1] > record)):
            reach[t], records[t] = reach[t - 1], records[t - 1]
            t -= 1
        reach[t], records[t] = distance, record
