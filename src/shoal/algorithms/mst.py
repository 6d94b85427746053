"""Methods M, M-d and M-c: cut the longest edges of the minimum spanning tree while every group keeps k records.

M. Laszlo and S. Mukherjee, Minimum spanning tree partitioning algorithm for microaggregation, IEEE Transactions
on Knowledge and Data Engineering 17 (2005). M-d and M-c split groups of 2k records or more by D or C.

The paper walks to the root for every edge, which takes O(n²) time on a long chain. Here the tree is stored in preorder,
so the nodes below an edge form an interval. A Fenwick tree counts the nodes that are still connected to the edge, and a
segment tree finds the root above it. O(n log n) after the spanning tree. The tree may use any metric, but D and C split
by centroids and therefore use Euclidean distances.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.algorithms.centroid import centroid
from shoal.algorithms.diameter import diameter
from shoal.algorithms.initial_partition import split_large
from shoal.algorithms.spanning_tree import METRICS, Algorithm, Metric, SpanningTree, check_tree, find_tree
from shoal.core.checks import check_choice
from shoal.core.compiler import kernel
from shoal.core.errors import InputError
from shoal.core.messages import option
from shoal.core.types import Floats, Ints, State

__all__ = ["mst", "mst_c", "mst_d", "preorder"]


def mst(
    X: Floats,
    k: int,
    *,
    state: State,
    tree: SpanningTree | None = None,
    spanning: Algorithm = "auto",
    metric: Metric = "euclidean",
) -> Ints:
    """Group the records by method M; edges of equal length are cut in the order of their record numbers."""
    if not callable(metric):
        check_choice("metric", metric, METRICS)
    if tree is None:
        tree = find_tree(X, spanning, None, state, metric)
    else:
        check_tree(tree, X)
        if metric not in ("euclidean", tree.metric):
            raise InputError(
                f"{option('metric')} is {metric!r}, but the tree was built with {tree.metric!r}. Omit one."
            )
    labels: Ints = _cut(tree.ends, k)
    return labels


def mst_d(X: Floats, k: int, *, state: State, **options: Any) -> Ints:
    """Group the records by method M, then split oversized groups by method D."""
    return split_large(X, mst(X, k, state=state, **options), k, diameter, state)


def mst_c(X: Floats, k: int, *, state: State, **options: Any) -> Ints:
    """Group the records by method M, then split oversized groups by method C."""
    return split_large(X, mst(X, k, state=state, **options), k, centroid, state)


@kernel
def _cut(ends: Ints, k: int) -> Ints:
    """Cut edges, longest first, if both sides keep at least k records; return the resulting trees as labels."""
    n = len(ends) + 1
    record, parent, below = preorder(ends)
    spot = np.empty(n, dtype=np.int64)
    for i in range(n):
        spot[record[i]] = i
    # The size of each tree, stored at its root; 0 at all other nodes.
    tree_size = np.zeros(n, dtype=np.int64)
    tree_size[0] = n
    change = np.zeros(n + 1, dtype=np.int64)
    roots = np.zeros(2 * n, dtype=np.int64)
    for edge in range(n - 1):
        # The child has the later position in preorder.
        node = max(spot[ends[edge, 0]], spot[ends[edge, 1]])
        if below[node] < k:
            continue
        size = below[node] + _sum(change, node + below[node]) - _sum(change, node)
        if size < k:
            continue
        root = _deepest(roots, node)
        if tree_size[root] - size < k:
            continue
        tree_size[node] = size
        tree_size[root] -= size
        # The nodes up to the root lose these records; the nodes above lost them when the root was cut off.
        _add(change, node, -size)
        _add(change, root, size)
        _mark(roots, node, node + below[node])
    labels = np.empty(n, dtype=np.int64)
    group = 0
    for i in range(n):
        if tree_size[i] > 0:
            labels[record[i]] = group
            group += 1
        else:
            labels[record[i]] = labels[record[parent[i]]]
    return labels


@kernel
def preorder(ends: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the record, the parent's position and the subtree size at each position of a preorder from record 0."""
    n = len(ends) + 1
    start = np.zeros(n + 2, dtype=np.int64)
    for edge in range(n - 1):
        start[ends[edge, 0] + 2] += 1
        start[ends[edge, 1] + 2] += 1
    for i in range(2, n + 2):
        start[i] += start[i - 1]
    linked = np.empty(2 * n - 2, dtype=np.int64)
    for edge in range(n - 1):
        for side in range(2):
            a = ends[edge, side]
            linked[start[a + 1]] = ends[edge, 1 - side]
            start[a + 1] += 1
    record, parent, below = np.empty(n, dtype=np.int64), np.zeros(n, dtype=np.int64), np.ones(n, dtype=np.int64)
    waiting, origin = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    top, count = 0, 0
    while top >= 0:
        current, above = waiting[top], origin[top]
        top -= 1
        record[count], parent[count] = current, above
        for t in range(start[current], start[current + 1]):
            if count == 0 or linked[t] != record[above]:
                top += 1
                waiting[top], origin[top] = linked[t], count
        count += 1
    for i in range(n - 1, 0, -1):
        below[parent[i]] += below[i]
    return record, parent, below


@kernel
def _add(change: Ints, spot: int, amount: int) -> None:
    i = spot + 1
    while i < len(change):
        change[i] += amount
        i += i & -i


@kernel
def _sum(change: Ints, stop: int) -> int:
    """Return the sum of the amounts added at positions before `stop`."""
    total = 0
    i = stop
    while i > 0:
        total += change[i]
        i -= i & -i
    return total


@kernel
def _mark(roots: Ints, first: int, last: int) -> None:
    """Make `first` the root of the positions first … last−1 that do not have a deeper root."""
    i, j = first + len(roots) // 2, last + len(roots) // 2
    while i < j:
        if i & 1:
            roots[i] = max(roots[i], first)
            i += 1
        if j & 1:
            j -= 1
            roots[j] = max(roots[j], first)
        i //= 2
        j //= 2


@kernel
def _deepest(roots: Ints, spot: int) -> int:
    """Return the root of a position: the start of the innermost marked interval that contains the position."""
    root = 0
    i = spot + len(roots) // 2
    while i > 0:
        root = max(root, roots[i])
        i //= 2
    return root
