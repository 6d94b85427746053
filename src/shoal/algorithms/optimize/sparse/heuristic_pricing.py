"""Guessing: a group of small reduced cost for every record, from its nearest neighbours.

A group grows by the record of smallest weight and is improved by exchanges, as in `optimize.pricing.guess_groups`, but
among the neighbours of one record only: O(M² d + M k²) for each, with M neighbours.
"""

from __future__ import annotations

import numpy as np

from shoal.core.compiler import kernel
from shoal.core.progress import STOP
from shoal.core.types import Bools, Floats, Ints, State

__all__ = ["guess_near"]


@kernel
def guess_near(rows: Floats, near: Ints, duals: Floats, size: int, begin: int, end: int, state: State) -> Ints:
    """Return a group for each of the records begin … end−1, fewer if asked to stop."""
    count = near.shape[1] + 1
    sets = np.empty((end - begin, size), dtype=np.int64)
    place, W = np.empty(count, dtype=np.int64), np.zeros((count, count))
    degree, inside = np.empty(count), np.empty(count, dtype=np.bool_)
    group = np.empty(size, dtype=np.int64)
    for i in range(begin, end):
        if state[STOP]:
            return sets[: i - begin]
        place[0] = i
        for a in range(1, count):
            place[a] = near[i, a - 1]
        _fill(rows, duals, size / (size - 1.0), place, W)
        _gather(W, group, inside, degree)
        for _ in range(2 * size):
            if not _exchange(W, group, inside, degree):
                break
        for a in range(size):
            sets[i - begin, a] = place[group[a]]
    return sets


@kernel
def _fill(rows: Floats, duals: Floats, factor: float, place: Ints, W: Floats) -> None:
    """Write the pair weights of some records."""
    for a in range(len(place)):
        for b in range(a):
            total = -factor * (duals[place[a]] + duals[place[b]])
            for t in range(rows.shape[1]):
                delta = rows[place[a], t] - rows[place[b], t]
                total += delta * delta
            W[a, b] = total
            W[b, a] = total


@kernel
def _gather(W: Floats, group: Ints, inside: Bools, degree: Floats) -> None:
    """Add to the first record those of the smallest weights."""
    for v in range(len(W)):
        degree[v], inside[v] = W[0, v], False
    group[0], inside[0] = 0, True
    for m in range(1, len(group)):
        best, smallest = -1, np.inf
        for v in range(len(W)):
            if degree[v] < smallest and not inside[v]:
                best, smallest = v, degree[v]
        group[m], inside[best] = best, True
        for v in range(len(W)):
            degree[v] += W[best, v]


@kernel
def _exchange(W: Floats, group: Ints, inside: Bools, degree: Floats) -> bool:
    """Exchange the record and the other that gain most, the first record excepted; return False if nothing gains."""
    out, into, gain = -1, -1, 0.0
    for a in range(1, len(group)):
        u = group[a]
        for v in range(len(W)):
            change = degree[v] - W[u, v] - degree[u]
            if change < gain - 1e-12 * abs(degree[u]) and not inside[v]:
                out, into, gain = a, v, change
    if out < 0:
        return False
    u = group[out]
    for v in range(len(W)):
        degree[v] += W[into, v] - W[u, v]
    inside[u], inside[into], group[out] = False, True, into
    return True
