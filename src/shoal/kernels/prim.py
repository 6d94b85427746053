"""Exact Euclidean or Manhattan minimum spanning tree by Prim's method, in batches of records.

R. C. Prim, Shortest connection networks and some generalizations (1957), the construction of M. Laszlo and S. Mukherjee
(2005), Section 3.1. No distance is stored: O(d n²) time, O(n d) memory. For few records or many columns, this is faster
than searching a tree. Edges are compared as in `shoal.kernels.boruvka`, so both give the same tree.
"""

from __future__ import annotations

import numpy as np

from shoal.core.compiler import kernel
from shoal.core.progress import DONE, STOP
from shoal.core.types import Floats, Ints, State
from shoal.kernels.distances import manhattan_distances, squared_distances

__all__ = ["prim"]

BATCH = 512  # records per batch of distances, which stays in the fastest cache


@kernel
def prim(X: Floats, manhattan: bool, state: State) -> tuple[Ints, Ints, Floats]:
    """Return the ends (record numbers) and the squared Euclidean or the Manhattan lengths of the n−1 edges."""
    n, d = X.shape
    ends_a, ends_b, squares = np.zeros(n - 1, dtype=np.int64), np.zeros(n - 1, dtype=np.int64), np.zeros(n - 1)
    # The records outside the tree, packed; the last record replaces a record that joins the tree.
    columns, ids = X.T.copy(), np.arange(n)
    nearest, link = np.full(n, np.inf), np.zeros(n, dtype=np.int64)
    distances = np.empty(BATCH)
    newest, place = 0, 0
    for edge in range(n - 1):
        if state[STOP]:
            break
        last = n - 1 - edge
        for j in range(d):
            columns[j, place] = columns[j, last]
        ids[place], nearest[place], link[place] = ids[last], nearest[last], link[last]
        place = -1
        for start in range(0, last, BATCH):
            size = min(BATCH, last - start)
            _measure(columns, start, size, X[newest], manhattan, distances)
            for i in range(start, start + size):
                distance = distances[i - start]
                if distance < nearest[i] or (distance == nearest[i] and newest < link[i]):
                    nearest[i], link[i] = distance, newest
                if place < 0 or nearest[i] < nearest[place]:
                    place = i
                elif nearest[i] == nearest[place]:
                    a, b, c, e = ids[i], link[i], ids[place], link[place]
                    if (min(a, b), max(a, b)) < (min(c, e), max(c, e)):
                        place = i
        newest = ids[place]
        ends_a[edge], ends_b[edge], squares[edge] = link[place], newest, nearest[place]
        state[DONE] += 1
    return ends_a, ends_b, squares


@kernel(counted=False)
def _measure(columns: Floats, start: int, size: int, point: Floats, manhattan: bool, out: Floats) -> None:
    if manhattan:
        manhattan_distances(columns, start, size, point, out)
    else:
        squared_distances(columns, start, size, point, out)
