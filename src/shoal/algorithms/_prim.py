"""Exact Euclidean minimum spanning tree by Prim's method, a block of records at a time.

R. C. Prim, Shortest connection networks and some generalizations (1957), the construction of M. Laszlo and
S. Mukherjee (2005), Section 3.1. No distance is stored: O(d n²) time, O(n d) memory. It beats searching a tree for
few records or many dimensions. Edges are compared as in `_boruvka`, so both give the same tree.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from shoal.algorithms._pool import BLOCK, pool_new, pool_remove, squared_distances
from shoal.progress import DONE, STOP, State
from shoal.types import Floats, Ints

__all__ = ["prim"]


@njit(cache=True, nogil=True)
def prim(X: Floats, state: State) -> tuple[Ints, Ints, Floats]:
    """Return the ends (record numbers) and squared lengths of the n−1 edges."""
    n = len(X)
    ends_a, ends_b, squares = np.zeros(n - 1, dtype=np.int64), np.zeros(n - 1, dtype=np.int64), np.zeros(n - 1)
    pool = pool_new(X)
    nearest, link = np.full(n, np.inf), np.zeros(n, dtype=np.int64)  # by place, moved along with the pool
    block = np.empty(BLOCK)
    newest, place = 0, 0
    for edge in range(n - 1):
        if state[STOP]:
            break
        pool_remove(pool, newest)
        last = pool.left[0]
        nearest[place], link[place] = nearest[last], link[last]
        place = -1
        for start in range(0, last, BLOCK):
            stop = min(start + BLOCK, last)
            squared_distances(pool.columns, start, stop, X[newest], block)
            for i in range(start, stop):
                distance = block[i - start]
                if distance < nearest[i] or (distance == nearest[i] and newest < link[i]):
                    nearest[i], link[i] = distance, newest
                if place < 0 or nearest[i] < nearest[place]:
                    place = i
                elif nearest[i] == nearest[place]:
                    a, b, c, d = pool.ids[i], link[i], pool.ids[place], link[place]
                    if (min(a, b), max(a, b)) < (min(c, d), max(c, d)):
                        place = i
        newest = pool.ids[place]
        ends_a[edge], ends_b[edge], squares[edge] = link[place], newest, nearest[place]
        state[DONE] += 1
    return ends_a, ends_b, squares
