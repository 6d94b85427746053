"""The exact Euclidean minimum spanning tree of records: kd-tree Borůvka or Prim, whichever suits the data.

The first phase of M. Laszlo and S. Mukherjee, Minimum spanning tree partitioning algorithm for microaggregation,
IEEE Transactions on Knowledge and Data Engineering 17 (2005). Equal records are linked in a chain of edges of
length 0 and count as one record in the search. About O(d n log n) in low dimensions, O(d n²) at worst; O(n d)
memory.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from shoal.core.compiling import kernel
from shoal.core.progress import STOP, fresh_state
from shoal.core.types import Floats, Ints, State
from shoal.kernels.boruvka import boruvka
from shoal.kernels.prim import prim

__all__ = ["SpanningTree", "distinct", "find_tree", "spanning_tree"]

Algorithm = Literal["auto", "boruvka", "prim"]
# Up to SMALL · GROWTH^d records comparing all pairs beats the search (measured: n ≈ 1,200 for d = 2, 12,000 for 10).
SMALL, GROWTH = 700, 1.33


@dataclass(frozen=True, eq=False)
class SpanningTree:
    """A minimum spanning tree, its edges from the longest to the shortest, equal ones by record number.

    Parameters
    ----------
    ends
        ``(n − 1, 2)``: the two records of each edge, the lower number first.
    lengths
        Euclidean length of each edge.
    """

    ends: Ints
    lengths: Floats

    @property
    def records(self) -> int:
        """How many records the tree spans."""
        return len(self.lengths) + 1

    @property
    def weight(self) -> float:
        """The total length."""
        return float(self.lengths.sum())

    def __repr__(self) -> str:
        return f"SpanningTree(records={self.records}, weight={self.weight:.6g})"


def spanning_tree(X: ArrayLike, algorithm: Algorithm = "auto", threads: int | None = None) -> SpanningTree:
    """Find the minimum spanning tree of records under the Euclidean distance.

    Ties are broken by record number: the tree depends neither on the algorithm nor on the number of threads.

    Parameters
    ----------
    X
        Array ``(n, d)`` of finite numbers; a vector is one column.
    algorithm
        ``"boruvka"`` searches a kd-tree, ``"prim"`` compares all pairs, ``"auto"`` chooses by n and d.
    threads
        How many threads to use; all cores if not given.

    Examples
    --------
    >>> tree = spanning_tree([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])
    >>> tree.ends.tolist()
    [[1, 2], [0, 2]]
    >>> tree.lengths.round(3).tolist()
    [4.243, 1.0]

    The tree of a data set serves any k:

    >>> import shoal
    >>> values = [[1.0], [9.0], [1.2], [9.3], [1.5]]
    >>> tree = shoal.spanning_tree(values)
    >>> [shoal.partition(values, k, method="mst", tree=tree).tolist() for k in (2, 3)]
    [[0, 1, 0, 1, 0], [0, 0, 0, 0, 0]]
    """
    from shoal.core.checks import as_records

    return find_tree(as_records(X), algorithm, threads, fresh_state())


def find_tree(X: Floats, algorithm: Algorithm, threads: int | None, state: State) -> SpanningTree:
    """Do what `spanning_tree` does, for an array that has been validated."""
    n = len(X)
    X, exponent = _in_range(X)
    kept, first = distinct(X)
    D = X if len(kept) == n else X[kept]
    if algorithm == "auto":
        algorithm = "prim" if np.log(len(D) / SMALL) <= D.shape[1] * np.log(GROWTH) else "boruvka"
    if len(D) == 1:
        a, b, squares = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0)
    elif algorithm == "prim":
        a, b, squares = prim(D, state)
    else:
        a, b, squares = boruvka(D, threads or os.cpu_count() or 1, state)
    if state[STOP]:
        # The edges found are no tree yet: return a plain chain, which is one.
        a, b = np.arange(len(D) - 1), np.arange(1, len(D))
        squares = np.square(np.diff(D, axis=0)).sum(axis=1)
    alike = np.argsort(first, kind="stable") if len(kept) < n else kept
    linked = first[alike[1:]] == first[alike[:-1]]
    copies = alike[1:][linked]
    a, b = np.r_[kept[a], alike[:-1][linked]], np.r_[kept[b], copies]
    low, high = np.minimum(a, b), np.maximum(a, b)
    lengths = np.r_[np.sqrt(squares), np.zeros(len(copies))]
    order = np.argsort(-lengths)
    if (np.diff(lengths[order]) == 0).any():
        order = np.lexsort((high, low, -lengths))
    return SpanningTree(np.column_stack([low, high])[order], np.ldexp(lengths[order], exponent))


def _in_range(X: Floats) -> tuple[Floats, int]:
    """Scale by 2^−exponent where squares of differences would overflow or vanish; return the exponent too."""
    deviations = X / 2 - X[0] / 2
    span = float(np.abs(deviations).max())
    if span == 0 or 1e-100 < span < 1e100:
        return X, 0
    exponent = int(np.frexp(span)[1])
    return np.ldexp(deviations, -exponent), exponent + 1


@kernel
def distinct(X: Floats) -> tuple[Ints, Ints]:
    """Return the records that no earlier one equals, and for every record the first one that equals it."""
    n, d = X.shape
    size = 4
    while size < 2 * n:
        size *= 2
    table = np.full(size, -1)
    first, kept = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    count = 0
    bits = X.view(np.uint64)
    for i in range(n):
        code = np.uint64(0)
        for j in range(d):
            # 0.0 and −0.0 are equal and must share a code.
            word = bits[i, j] if X[i, j] != 0.0 else np.uint64(0)
            code = (code ^ word) * np.uint64(0x9E3779B97F4A7C15)
            code ^= code >> np.uint64(29)
        slot = np.int64(code & np.uint64(size - 1))
        while table[slot] >= 0 and not _equal(X, table[slot], i):
            slot = (slot + 1) % size
        if table[slot] < 0:
            table[slot] = i
            kept[count] = i
            count += 1
        first[i] = table[slot]
    return kept[:count], first


@kernel
def _equal(X: Floats, a: int, b: int) -> bool:
    j, d = 0, X.shape[1]
    while j < d and X[a, j] == X[b, j]:
        j += 1
    same: bool = j == d
    return same
