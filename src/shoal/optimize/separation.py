"""Separation: find the triples of records whose subset-row cut the fractional solution violates most.

M. Jepsen, B. Petersen, S. Spoorendonk and D. Pisinger, Subset-row inequalities applied to the vehicle-routing
problem with time windows, Operations Research 56 (2008). With y_ij the weight of the groups that hold i and j,
and y_ijl likewise, a triple's left side is y_ij + y_il + y_jl − 2 y_ijl. It exceeds 1 only if
all three pairs are linked: with y_jl = 0 it is y_ij + y_il, weights of different groups of i, at most 1. So the
pairs linked around each record suffice: O(Σ_i deg(i)²) lookups, deg being the number of records that fractional
groups link to i.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from shoal.optimize.columns import Columns
from shoal.types import Floats, Ints

__all__ = ["violated_triples"]


@njit(cache=True, nogil=True)
def _triples(start: Ints, member: Ints, x: Floats, n: int, least: float) -> tuple[Ints, Floats]:
    first = np.zeros(n + 1, dtype=np.int64)
    for a in range(len(member)):
        first[member[a] + 1] += 1
    for i in range(n):
        first[i + 1] += first[i]
    column = np.empty(len(member), dtype=np.int64)
    fill = first[:n].copy()
    for c in range(len(x)):
        for a in range(start[c], start[c + 1]):
            column[fill[member[a]]] = c
            fill[member[a]] += 1
    weight = np.zeros(n)
    inside = np.zeros(n)
    slot = np.full(n, -1)
    found = np.empty((0, 3), dtype=np.int64)
    room, count = 0, 0
    excess = np.empty(0)
    for i in range(n):
        linked = [np.int64(0) for _ in range(0)]
        for at in range(first[i], first[i + 1]):
            c = column[at]
            for a in range(start[c], start[c + 1]):
                v = member[a]
                if v != i:
                    if slot[v] < 0:
                        slot[v] = len(linked)
                        linked.append(v)
                        weight[v] = 0.0
                    weight[v] += x[c]
        # For each j linked to i, sum y_jl and y_ijl over the groups of j in one go.
        for j in linked:
            if j < i:
                continue
            for l in linked:
                inside[l] = 0.0
            for at in range(first[j], first[j + 1]):
                c = column[at]
                with_i = False
                for a in range(start[c], start[c + 1]):
                    with_i = with_i or member[a] == i
                for a in range(start[c], start[c + 1]):
                    v = member[a]
                    if slot[v] >= 0:
                        inside[v] += -x[c] if with_i else x[c]
            for l in linked:
                if l <= j:
                    continue
                over = weight[j] + weight[l] + inside[l] - 1.0
                if over > least:
                    if count == room:
                        room = 2 * room + 64
                        more, worth = np.empty((room, 3), dtype=np.int64), np.empty(room)
                        more[:count] = found[:count]
                        worth[:count] = excess[:count]
                        found, excess = more, worth
                    found[count, 0], found[count, 1], found[count, 2] = i, j, l
                    excess[count] = over
                    count += 1
        for v in linked:
            slot[v] = -1
    return found[:count], excess[:count]


def violated_triples(columns: Columns, x: Floats, n: int, *, least: float, most: int, each: int) -> Ints:
    """Return up to `most` violated triples, the worst first, none of whose records is in more than `each`.

    Examples
    --------
    >>> X = np.zeros((3, 1))
    >>> halves = Columns.of(X, [np.array([0, 1]), np.array([1, 2]), np.array([0, 2])])
    >>> violated_triples(halves, np.full(3, 0.5), 3, least=0.1, most=9, each=1).tolist()
    [[0, 1, 2]]
    """
    used = np.flatnonzero(x > 1e-9)
    part = columns.take(used)
    triples, excess = _triples(part.start, part.member, x[used], n, least)
    order = np.lexsort((triples[:, 2], triples[:, 1], triples[:, 0], -np.round(excess, 9)))
    times = np.zeros(n, dtype=np.int64)
    kept = []
    for at in order:
        triple = triples[at]
        if (times[triple] < each).all():
            times[triple] += 1
            kept.append(triple)
            if len(kept) == most:
                break
    return np.array(kept, dtype=np.int64).reshape(-1, 3)
