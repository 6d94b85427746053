"""Optimal partitions of ordered records, found as shortest paths whose arc lengths are multivariate SSEs.

S. L. Hansen and S. Mukherjee, A polynomial algorithm for optimal univariate microaggregation, IEEE Transactions on
Knowledge and Data Engineering 15 (2003), applied to ordered multivariate records as in J. Domingo-Ferrer, A.
Martínez-Ballesté, J. M. Mateo-Sanz and F. Sebé, Efficient multivariate data-oriented microaggregation, VLDB Journal 15
(2006). The partition is optimal among all partitions into runs of k … 2k−1 consecutive records. O(k n d) time.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from shoal.algorithms.univariate import labels_of_path
from shoal.core.compiler import kernel
from shoal.core.measures import sse
from shoal.core.progress import STOP
from shoal.core.types import Floats, Ints, State

__all__ = ["best_of_orders", "group_in_order"]

# Path lengths restart from zero after this number of nodes, to stay precise in a long order.
REBASE = 512


def best_of_orders(X: Floats, k: int, orders: Iterable[tuple[str, Ints]], state: State) -> tuple[str, Ints]:
    """Group the records in each of the named orders; return name and labels of the order with the smallest SSE."""
    results = ((name, group_in_order(X, order, k, state)) for name, order in orders)
    return min(results, key=lambda result: sse(X, result[1]))


def group_in_order(X: Floats, order: Ints, k: int, state: State) -> Ints:
    """Group consecutive records in the given order to minimise the SSE."""
    labels: Ints = labels_of_path(_path(X[order], k, state), order)
    return labels


@kernel
def _path(X: Floats, k: int, state: State) -> Ints:
    """Return the predecessor of every node on its shortest path, as `univariate` does for one column."""
    n, d = X.shape
    length = np.full(n + 1, np.inf)
    length[0] = 0.0
    previous = np.zeros(n + 1, dtype=np.int64)
    total = np.empty(d)
    for j in range(k, n + 1):
        # Deviations from the last record of the group stay precise despite a large offset.
        total[:] = 0.0
        squares, best, predecessor = 0.0, np.inf, 0
        for m in range(2, min(2 * k - 1, j) + 1):
            spread = 0.0
            for t in range(d):
                delta = X[j - m, t] - X[j - 1, t]
                squares += delta * delta
                total[t] += delta
                spread += total[t] * total[t]
            if m >= k:
                candidate = length[j - m] + (squares - spread / m)
                if candidate < best:
                    best, predecessor = candidate, j - m
        length[j] = best
        previous[j] = predecessor
        if j % REBASE == 0:
            if state[STOP]:
                break
            if best < np.inf:
                for i in range(max(0, j - 2 * k), j + 1):
                    length[i] -= best
    return previous
