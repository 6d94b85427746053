"""Heuristic pricing: guess a group with a small reduced cost for every record, before any complete enumeration.

A group repeatedly adds the record with the smallest sum of weights to its members (`optimize.pricing`), and is then
improved by exchanges. `guess_groups` considers all records: O(n s) per group, and O(n s) for each of a few exchanges.
`guess_near` considers the M nearest neighbours of each record, in O(M² d + M s²) per group.
"""

from __future__ import annotations

import numpy as np

from shoal.core.compiler import kernel
from shoal.core.progress import STOP
from shoal.core.types import Bools, Floats, Ints, State

__all__ = ["guess_groups", "guess_near"]


@kernel
def guess_groups(W: Floats, size: int, limit: float, state: State) -> Ints:
    """Guess a group for each record; return the groups whose weights sum to less than `limit`.

    If a stop is requested, return only the groups found so far.
    """
    n = len(W)
    sets = np.empty((n, size), dtype=np.int64)
    count = 0
    degree, inside = np.empty(n), np.zeros(n, dtype=np.bool_)
    group = np.empty(size, dtype=np.int64)
    for first in range(n):
        if state[STOP]:
            break
        total = _gather(W, first, group, inside, degree)
        for _ in range(2 * size):
            gain = _exchange(W, group, inside, degree, 0.0)
            if gain == 0.0:
                break
            total += gain
        if total < limit:
            sets[count] = group
            count += 1
    return sets[:count]


@kernel
def guess_near(rows: Floats, near: Ints, duals: Floats, size: int, begin: int, end: int, state: State) -> Ints:
    """Guess a group of near records for each record begin … end−1, or for fewer records if a stop is requested."""
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
        _gather(W, 0, group, inside, degree)
        for _ in range(2 * size):
            if _exchange(W, group, inside, degree, 1e-12) == 0.0:
                break
        for a in range(size):
            sets[i - begin, a] = place[group[a]]
    return sets


@kernel
def _fill(rows: Floats, duals: Floats, factor: float, place: Ints, W: Floats) -> None:
    """Write the weights of all pairs of the records `place` to W."""
    for a in range(len(place)):
        for b in range(a):
            total = -factor * (duals[place[a]] + duals[place[b]])
            for t in range(rows.shape[1]):
                delta = rows[place[a], t] - rows[place[b], t]
                total += delta * delta
            W[a, b] = total
            W[b, a] = total


@kernel
def _gather(W: Floats, first: int, group: Ints, inside: Bools, degree: Floats) -> float:
    """Grow a group from one record by repeatedly adding the record of smallest degree; return the sum of its weights.

    `degree` receives the sum of the weights from each record to the group.
    """
    for v in range(len(W)):
        degree[v], inside[v] = W[first, v], False
    group[0], inside[first] = first, True
    total = 0.0
    for m in range(1, len(group)):
        best, smallest = -1, np.inf
        for v in range(len(W)):
            if degree[v] < smallest and not inside[v]:
                best, smallest = v, degree[v]
        group[m], inside[best] = best, True
        total += smallest
        for v in range(len(W)):
            degree[v] += W[best, v]
    return total


@kernel
def _exchange(W: Floats, group: Ints, inside: Bools, degree: Floats, noise: float) -> float:
    """Make the best exchange of a member (not the first) for a non-member; return the change, or 0 if none improves.

    Improvements of at most `noise` times the degree of the member are ignored.
    """
    out, into, gain = -1, -1, 0.0
    for t in range(1, len(group)):
        u = group[t]
        # The degree of a member includes the diagonal of W, which is meaningless, so subtract it.
        lost = degree[u] - W[u, u]
        for v in range(len(W)):
            change = degree[v] - W[u, v] - lost
            if change < gain - noise * abs(lost) and not inside[v]:
                out, into, gain = t, v, change
    if out >= 0:
        u = group[out]
        for v in range(len(W)):
            degree[v] += W[into, v] - W[u, v]
        inside[u], inside[into], group[out] = False, True, into
    return gain
