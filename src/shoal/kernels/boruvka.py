"""Exact Euclidean minimum spanning tree by Borůvka's rounds over a kd-tree.

In each round, every component of the forest adds the shortest edge that leaves it. W. B. March, P. Ram and A. G. Gray,
Fast Euclidean minimum spanning tree, KDD 2010, search a space-partitioning tree for these edges. Here each record
first stores its nearest neighbours, which answer most rounds without a search. A record whose list is exhausted starts
a new search only if its last distance is not beyond its component's shortest edge. About O(d n log n) in low
dimensions, O(d n²) at worst; O(n d) memory.

Edges are compared by length, then by their lower and by their higher record number. The tree is therefore unique, for
any number of threads. Places and components are four-byte numbers if these suffice, which halves the memory.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from shoal.core.compiler import kernel
from shoal.core.progress import STOP
from shoal.core.types import Bools, Floats, Ints, State
from shoal.kernels.kdtree import (
    DEPTH,
    KdTree,
    Places,
    build,
    leaf_distances,
    leaf_gaps,
    neighbours,
    push_children,
    siblings,
)

__all__ = ["boruvka", "find_root"]

# Neighbours stored per record. More slow the first round, fewer slow the later rounds (measured, d = 2 and d = 10).
KEPT = 8


class _NearLists(NamedTuple):
    """The nearest neighbours of each record, as places in the tree."""

    near: Floats  # (n, KEPT): squared distances, ascending
    near_places: Places
    used: Places  # number of leading entries in the record's own component
    fresh: Bools  # true until the next entry has been examined


class _Edges(NamedTuple):
    """The shortest edge that leaves each component."""

    square: Floats
    start: Places
    end: Places


def boruvka(X: Floats, threads: int, state: State) -> tuple[Ints, Ints, Floats]:
    """Return the ends (record numbers) and squared lengths of the n−1 edges; all records must be distinct."""
    n = len(X)
    tree = build(X)
    shape = (n, min(KEPT, n - 1))
    short: np.dtype[np.integer[Any]] = np.dtype(np.int32 if n <= np.iinfo(np.int32).max else np.int64)
    used, fresh = np.zeros(n, dtype=short), np.empty(n, dtype=np.bool_)
    lists = _NearLists(np.empty(shape), np.empty(shape, dtype=short), used, fresh)
    best = _Edges(np.empty(n), np.empty(n, dtype=short), np.empty(n, dtype=short))
    start, end, square = np.empty(n - 1, dtype=np.int64), np.empty(n - 1, dtype=np.int64), np.empty(n - 1)
    edges = _Edges(square, start, end)
    parent, component = np.arange(n, dtype=short), np.arange(n, dtype=short)
    node_component = np.empty(len(tree.right), dtype=short)
    with ThreadPoolExecutor(threads) as executor:
        on_all_leaves = _on_all_leaves(executor, tree, threads)
        on_all_leaves(neighbours, lists.near, lists.near_places, state)
        count = 0
        while count < n - 1 and not state[STOP]:
            best.square[:], fresh[:] = np.inf, True
            _shortest_known(tree, component, lists, best)
            _node_components(tree, component, node_component)
            on_all_leaves(_search, component, node_component, best.square, lists, state)
            _shortest_known(tree, component, lists, best)
            count = _join(tree, parent, component, best, edges, count)
    return start, end, square


def _on_all_leaves(executor: ThreadPoolExecutor, tree: KdTree, threads: int) -> Callable[..., None]:
    """Return a function that runs a kernel on all leaves, divided among the threads."""
    leaves = len(tree.leaves)
    # Parts take different times, so each thread gets several.
    parts = min(leaves, 4 * threads if threads > 1 else 1)
    cuts = [leaves * part // parts for part in range(parts + 1)]

    def run(kernel: Callable[..., None], *arguments: object) -> None:
        jobs = [executor.submit(kernel, tree, a, b, *arguments) for a, b in pairwise(cuts)]
        for job in jobs:
            job.result()

    return run


@kernel
def _shorter(tree: KdTree, a: int, b: int, c: int, d: int) -> bool:
    """Return True if the edge (a, b) comes before the equally long edge (c, d)."""
    i, j, k, l = tree.ids[a], tree.ids[b], tree.ids[c], tree.ids[d]
    return (min(i, j), max(i, j)) < (min(k, l), max(k, l))


@kernel
def _shortest_known(tree: KdTree, component: Places, lists: _NearLists, best: _Edges) -> None:
    """Find the shortest edge that leaves each component, among fresh records and their next neighbours."""
    n, length = lists.near.shape
    for place in range(n):
        if not lists.fresh[place]:
            continue
        lists.fresh[place] = False
        t, home = lists.used[place], component[place]
        while t < length and component[lists.near_places[place, t]] == home:
            t += 1
        lists.used[place] = t
        if t == length:
            continue
        square, neighbour = lists.near[place, t], lists.near_places[place, t]
        for part in (home, component[neighbour]):
            if square < best.square[part] or (
                square == best.square[part] and _shorter(tree, place, neighbour, best.start[part], best.end[part])
            ):
                best.square[part], best.start[part], best.end[part] = square, place, neighbour


@kernel
def _node_components(tree: KdTree, component: Places, node_component: Places) -> None:
    """Write the component that all records of each node share, or −1 if they differ."""
    n, size = len(tree.rows), tree.leaves.shape[2]
    for node in range(len(tree.right) - 1, -1, -1):
        if tree.right[node] > 0:
            first, second = node_component[node + 1], node_component[tree.right[node]]
            node_component[node] = first if first == second else -1
            continue
        start = size * (-1 - tree.right[node])
        node_component[node] = component[start]
        for place in range(start + 1, min(start + size, n)):
            if component[place] != component[start]:
                node_component[node] = -1
                break


class _Query(NamedTuple):
    """Scratch arrays for a search of the leaves."""

    component: Places
    node_component: Places
    bounds: Floats  # the squared length of each component's shortest edge so far
    places: Ints  # the places in a leaf whose records need a search
    limit: Floats  # the maximum squared length of an edge for each of these places
    distances: Floats
    point_gaps: Floats


@kernel
def _search(
    tree: KdTree,
    first: int,
    last: int,
    component: Places,
    node_component: Places,
    shortest: Floats,
    lists: _NearLists,
    state: State,
) -> None:
    """Find the nearest record of another component for the records with exhausted lists in some leaves.

    The result becomes the last entry of a record's list. If no record is within the shortest edge so far, the entry
    stores the smallest distance that is still possible.
    """
    size = tree.leaves.shape[2]
    stack, gaps = np.empty(DEPTH, dtype=np.int64), np.empty(DEPTH)
    # Use a private copy, because results of other threads would change only the time.
    bounds, places, limit = shortest.copy(), np.empty(size, dtype=np.int64), np.empty(size)
    query = _Query(component, node_component, bounds, places, limit, np.empty(size), np.empty(size))
    for leaf in range(first, last):
        if state[STOP]:
            return
        count, lone, reach = _ask(leaf * size, query, lists)
        if count == 0:
            continue
        home, top = siblings(tree, leaf, stack, gaps)
        top += 1
        stack[top], gaps[top] = home, 0.0
        while top >= 0:
            node, gap = stack[top], gaps[top]
            top -= 1
            if gap > reach or node_component[node] == lone:
                continue
            if tree.right[node] > 0:
                top = push_children(tree, home, node, stack, gaps, top)
            else:
                reach = _look(tree, leaf, node, bounds[lone] if lone >= 0 else np.inf, count, query, lists)
        _answer(count, query, lists)


@kernel
def _ask(start: int, query: _Query, lists: _NearLists) -> tuple[int, int, float]:
    """Collect the records of a leaf that need a search.

    Return the number of these records, their common component (or −2) and the maximum squared length of an edge.
    """
    n, length = lists.near.shape
    count, lone, reach = 0, -2, 0.0
    for place in range(start, min(start + len(query.places), n)):
        home = query.component[place]
        if lists.used[place] == length and lists.near[place, length - 1] <= query.bounds[home]:
            query.places[count], query.limit[count] = place, query.bounds[home]
            lists.near_places[place, length - 1] = -1
            reach = max(reach, query.bounds[home])
            lone = home if count == 0 or lone == home else -2
            count += 1
    return count, lone, reach


@kernel
def _look(tree: KdTree, leaf: int, node: int, cap: float, count: int, query: _Query, lists: _NearLists) -> float:
    """Find the nearest records of other components in a leaf; return the maximum squared length of an edge."""
    reach, limit, bounds = 0.0, query.limit, query.bounds
    other_leaf = -1 - tree.right[node]
    leaf_gaps(tree, leaf, node, query.point_gaps)
    for t in range(count):
        place = query.places[t]
        home = query.component[place]
        limit[t] = min(limit[t], cap)
        if query.point_gaps[place - leaf * len(limit)] <= limit[t] and query.node_component[node] != home:
            limit[t] = min(limit[t], bounds[home])
            leaf_distances(tree, place, other_leaf, query.distances)
            limit[t] = _keep_foreign(tree, place, other_leaf, query.component, query.distances, limit[t], lists)
            bounds[home] = min(bounds[home], limit[t])
        reach = max(reach, limit[t])
    return reach


@kernel
def _answer(count: int, query: _Query, lists: _NearLists) -> None:
    """Use the results of a search as the next neighbours of the records."""
    last = lists.near.shape[1] - 1
    for t in range(count):
        place = query.places[t]
        # Other records may have lowered the limit; a neighbour beyond the limit need not be the nearest.
        if lists.near_places[place, last] >= 0 and lists.near[place, last] <= query.limit[t]:
            lists.used[place] = last
            lists.fresh[place] = True
        else:
            lists.near[place, last] = np.nextafter(query.limit[t], np.inf)


@kernel
def _keep_foreign(
    tree: KdTree, place: int, leaf: int, component: Places, distances: Floats, limit: float, lists: _NearLists
) -> float:
    """Store the nearest record of a leaf in another component; return the new maximum squared length of an edge."""
    near, near_places = lists.near, lists.near_places
    last = near.shape[1] - 1
    for i in range(len(distances)):
        distance, candidate = distances[i], leaf * len(distances) + i
        if distance > limit or distance == np.inf or component[candidate] == component[place]:
            continue
        current = near_places[place, last]
        if current < 0 or distance < near[place, last] or tree.ids[candidate] < tree.ids[current]:
            limit = distance
            near[place, last] = distance
            near_places[place, last] = candidate
    return limit


@kernel
def find_root(parent: Places, place: int) -> int:
    """Return the root of a component and halve the path to the root."""
    while parent[place] != place:
        parent[place] = parent[parent[place]]
        place = parent[place]
    return place


@kernel
def _join(tree: KdTree, parent: Places, component: Places, best: _Edges, edges: _Edges, count: int) -> int:
    """Join the components along their shortest edges; return the number of edges so far."""
    n = len(parent)
    for part in range(n):
        if best.square[part] == np.inf:
            continue
        a, b = find_root(parent, best.start[part]), find_root(parent, best.end[part])
        if a != b:
            parent[max(a, b)] = min(a, b)
            edges.start[count], edges.end[count] = tree.ids[best.start[part]], tree.ids[best.end[part]]
            edges.square[count] = best.square[part]
            count += 1
    for place in range(n):
        component[place] = find_root(parent, place)
    return count
