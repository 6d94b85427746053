"""The exact minimum spanning tree of records, by Borůvka's algorithm on a kd-tree or by Prim's algorithm.

The tree is the first phase of M. Laszlo and S. Mukherjee, Minimum spanning tree partitioning algorithm for
microaggregation, IEEE Transactions on Knowledge and Data Engineering 17 (2005). Equal records are linked in a chain of
edges of length 0 and count as one record in the search. About O(d n log n) in low dimensions, O(d n²) at worst; O(n d)
memory. The paper's method works with any distance. Manhattan distances use Prim's algorithm, O(d n²); a user's distance
function is called about n²/2 times.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from shoal.core.compiler import kernel
from shoal.core.errors import InputError
from shoal.core.messages import option
from shoal.core.progress import DONE, STOP, fresh_state
from shoal.core.types import Floats, Ints, State
from shoal.kernels.boruvka import boruvka, find_root
from shoal.kernels.prim import prim
from shoal.kernels.sort import sort_values
from shoal.kernels.words import number_words, words_of

__all__ = ["METRICS", "Metric", "SpanningTree", "check_tree", "distinct", "find_tree", "spanning_tree"]

Algorithm = Literal["auto", "boruvka", "prim"]
Metric = Literal["euclidean", "manhattan"] | Callable[[Floats, Floats], float]
METRICS = ("euclidean", "manhattan")
METRIC_LARGEST = 5000  # maximum number of records for a user's function: 12 million calls
# Up to SMALL · GROWTH^d records, Prim's algorithm is faster (measured: n ≈ 1,200 for d = 2, 12,000 for d = 10).
SMALL, GROWTH = 700, 1.33


@dataclass(frozen=True, eq=False)
class SpanningTree:
    """A minimum spanning tree with its edges sorted from longest to shortest, ties by record number.

    Parameters
    ----------
    ends
        ``(n − 1, 2)``: the two records of each edge, the lower number first.
    lengths
        The length of each edge.
    metric
        The distance: ``"euclidean"``, ``"manhattan"``, or a function of two records.
    """

    ends: Ints
    lengths: Floats
    metric: Metric = "euclidean"

    @property
    def records(self) -> int:
        """The number of records in the tree."""
        return len(self.lengths) + 1

    @property
    def weight(self) -> float:
        """The total length of the edges."""
        return float(self.lengths.sum())

    def __repr__(self) -> str:
        return f"SpanningTree(records={self.records}, weight={self.weight:.6g})"


def spanning_tree(
    X: ArrayLike, algorithm: Algorithm = "auto", threads: int | None = None, metric: Metric = "euclidean"
) -> SpanningTree:
    """Compute the minimum spanning tree of records.

    Record numbers break ties, so the tree depends neither on the algorithm nor on the number of threads.

    Parameters
    ----------
    X
        Array ``(n, d)`` of finite numbers; a vector is one column.
    algorithm
        ``"boruvka"`` searches a kd-tree, ``"prim"`` compares all pairs, ``"auto"`` chooses by n and d.
    threads
        The number of threads; by default all cores.
    metric
        The distance: ``"euclidean"``, ``"manhattan"``, or a function of two records (arrays of d numbers) that returns
        a distance, for up to 5000 records. Only Euclidean distances use a kd-tree.

    Examples
    --------
    >>> tree = spanning_tree([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])
    >>> tree.ends.tolist()
    [[1, 2], [0, 2]]
    >>> tree.lengths.round(3).tolist()
    [4.243, 1.0]
    >>> spanning_tree([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]], metric="manhattan").lengths.tolist()
    [6.0, 1.0]

    One tree serves every k:

    >>> import shoal
    >>> values = [[1.0], [9.0], [1.2], [9.3], [1.5]]
    >>> tree = shoal.spanning_tree(values)
    >>> [shoal.partition(values, k, method="mst", tree=tree).tolist() for k in (2, 3)]
    [[0, 1, 0, 1, 0], [0, 0, 0, 0, 0]]
    """
    from shoal.core.checks import as_records, check_choice

    check_choice("algorithm", algorithm, ("auto", "boruvka", "prim"))
    if not callable(metric):
        check_choice("metric", metric, METRICS)
    return find_tree(as_records(X), algorithm, threads, fresh_state(), metric)


def find_tree(
    X: Floats, algorithm: Algorithm, threads: int | None, state: State, metric: Metric = "euclidean"
) -> SpanningTree:
    """Compute the tree as `spanning_tree` does, for a validated array."""
    n, exponent = len(X), 0
    if metric != "euclidean" and algorithm == "boruvka":
        raise InputError("Borůvka's algorithm requires Euclidean distances. Use 'prim' or 'auto' for another metric.")
    if not callable(metric):
        X, exponent = _in_range(X)
    unique, first = distinct(X)
    D = X if len(unique) == n else X[unique]
    if algorithm == "auto":
        few = np.log(len(D) / SMALL) <= D.shape[1] * np.log(GROWTH)
        algorithm = "prim" if few or metric != "euclidean" else "boruvka"
    if len(D) == 1:
        a, b, lengths = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0)
    elif callable(metric):
        a, b, lengths = _prim_by_function(D, metric, state)
    elif algorithm == "prim":
        a, b, lengths = prim(D, metric == "manhattan", state)
    else:
        a, b, lengths = boruvka(D, threads or os.cpu_count() or 1, state)
    if state[STOP]:
        # A stopped search has no tree yet: return a plain chain.
        a, b, lengths = np.arange(len(D) - 1), np.arange(1, len(D)), _chain_lengths(D, metric)
    elif metric == "euclidean":
        lengths = np.sqrt(lengths)
    alike = np.argsort(first, kind="stable") if len(unique) < n else unique
    linked = first[alike[1:]] == first[alike[:-1]]
    copies = alike[1:][linked]
    a, b = np.r_[unique[a], alike[:-1][linked]], np.r_[unique[b], copies]
    low, high = np.minimum(a, b), np.maximum(a, b)
    lengths = np.r_[lengths, np.zeros(len(copies))]
    order = sort_values(-lengths)[1]
    if (np.diff(lengths[order]) == 0).any():
        order = np.lexsort((high, low, -lengths))
    return SpanningTree(np.column_stack([low, high])[order], np.ldexp(lengths[order], exponent), metric)


def _chain_lengths(D: Floats, metric: Metric) -> Floats:
    """Return the distances between consecutive records."""
    if callable(metric):
        return np.array([metric(a, b) for a, b in pairwise(D)], dtype=np.float64)
    steps = np.diff(D, axis=0)
    lengths: Floats = np.linalg.norm(steps, 1 if metric == "manhattan" else 2, axis=1)
    return lengths


def _prim_by_function(X: Floats, metric: Callable[[Floats, Floats], float], state: State) -> tuple[Ints, Ints, Floats]:
    """Compute the tree by Prim's algorithm with a user's distance function; break ties as `prim` does."""
    n = len(X)
    if n > METRIC_LARGEST:
        raise InputError(
            f"{option('metric')} may be a function for up to {METRIC_LARGEST} distinct records, got {n}: it is called "
            "for every pair. Use 'euclidean' or 'manhattan', or mask the table in blocks."
        )
    best = {i: (np.inf, 0, i) for i in range(1, n)}  # per record outside the tree: length and ends of its best edge
    newest, edges = 0, []
    while best and not state[STOP]:
        for i, edge in best.items():
            best[i] = min(edge, (_measure(metric, X[newest], X[i]), min(newest, i), max(newest, i)))
        newest = min(best, key=best.__getitem__)
        edges.append(best.pop(newest))
        state[DONE] += 1
    lengths, low, high = zip(*edges, strict=True) if edges else ((), (), ())
    return np.array(low, dtype=np.int64), np.array(high, dtype=np.int64), np.array(lengths, dtype=np.float64)


def _measure(metric: Callable[[Floats, Floats], float], a: Floats, b: Floats) -> float:
    try:
        distance = float(metric(a, b))
    except Exception as error:
        raise InputError(f"{option('metric')} failed: {type(error).__name__}: {error}") from error
    if not 0 <= distance < np.inf:
        raise InputError(f"{option('metric')} must return a finite distance of at least 0, got {distance}.")
    return distance


def check_tree(tree: Any, X: Floats) -> None:
    """Reject a tree whose edges do not match the records or are out of order; do not check minimality."""
    n = len(X)
    requirement = f"{option('tree')} must be the shoal.spanning_tree of these {n} records"
    remedy = "Omit it to build a new tree."
    if not isinstance(tree, SpanningTree) or tree.records != n or tree.ends.shape != (n - 1, 2):
        raise InputError(f"{requirement}, got {tree!r}. {remedy}")
    low, high = tree.ends.T
    if n > 1 and (low.min() < 0 or high.max() >= n or not (low < high).all() or not _connected(tree.ends)):
        raise InputError(f"{requirement}, got edges that do not connect them. {remedy}")
    longer = tree.lengths[:-1] > tree.lengths[1:]
    in_turn = (low[:-1] < low[1:]) | ((low[:-1] == low[1:]) & (high[:-1] < high[1:]))
    if not (longer | ((tree.lengths[:-1] == tree.lengths[1:]) & in_turn)).all():
        raise InputError(f"{requirement} with edges from longest to shortest, got a different order. {remedy}")
    lengths = _lengths(X, tree)
    # The records may have been rescaled since the tree was built, which does not change the groups.
    if n > 1 and not np.allclose(_relative(lengths), _relative(tree.lengths), rtol=1e-6, atol=1e-12):
        edge = int(np.argmax(np.abs(_relative(lengths) - _relative(tree.lengths))))
        a, b = tree.ends[edge]
        raise InputError(
            f"{requirement}, got {tree.lengths[edge]:.6g} as the distance between records {a} and {b}; it is "
            f"{lengths[edge]:.6g}. shoal.mask standardises records first. {remedy}"
        )


def _lengths(X: Floats, tree: SpanningTree) -> Floats:
    """Compute the lengths of a tree's edges from the records."""
    if callable(tree.metric):
        return np.array([_measure(tree.metric, X[a], X[b]) for a, b in tree.ends], dtype=np.float64)
    scaled, exponent = _in_range(X)
    offsets = scaled[tree.ends[:, 0]] - scaled[tree.ends[:, 1]]
    lengths = np.abs(offsets).sum(axis=1) if tree.metric == "manhattan" else np.sqrt(np.square(offsets).sum(axis=1))
    measured: Floats = np.ldexp(lengths, exponent)
    return measured


def _relative(lengths: Floats) -> Floats:
    return lengths / (lengths.max() or 1.0)


@kernel
def _connected(ends: Ints) -> bool:
    """Return True if n−1 edges connect n records."""
    parent = np.arange(len(ends) + 1)
    for edge in range(len(ends)):
        a, b = find_root(parent, ends[edge, 0]), find_root(parent, ends[edge, 1])
        if a == b:
            return False
        parent[max(a, b)] = min(a, b)
    return True


def _in_range(X: Floats) -> tuple[Floats, int]:
    """Scale X by 2^−exponent if squared differences would overflow or underflow; return X and the exponent."""
    deviations = X / 2 - X[0] / 2
    span = float(np.abs(deviations).max())
    if span == 0 or 1e-100 < span < 1e100:
        return X, 0
    exponent = int(np.frexp(span)[1])
    return np.ldexp(deviations, -exponent), exponent + 1


def distinct(X: Floats) -> tuple[Ints, Ints]:
    """Return the first record of each set of equal records, and the first equal record for every record."""
    number = number_words(words_of(X))
    unique = np.flatnonzero(np.diff(np.maximum.accumulate(number), prepend=-1))
    return unique, unique[number]
