"""Exact Euclidean minimum spanning tree by Borůvka's rounds over a kd-tree.

In a round every component of the forest takes the shortest edge that leaves it. W. B. March, P. Ram and A. G. Gray,
Fast Euclidean minimum spanning tree, KDD 2010, search a space-partitioning tree for these edges; here each record
first keeps a list of its nearest neighbours, which answers most rounds without a search. A record whose list is
used up is searched for again only while the distance reached so far is not beyond the shortest edge known for its
component. About O(d n log n) in low dimensions, O(d n²) at worst; O(n d) memory.

Edges are compared by length, then by their lower and higher record number: the tree is unique, on any number of
threads.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from shoal.core.compiling import kernel
from shoal.core.progress import STOP
from shoal.core.types import Floats, Ints, State
from shoal.kernels.kdtree import (
    DEPTH,
    KdTree,
    build,
    leaf_distances,
    leaf_gaps,
    neighbours,
    push_children,
    siblings,
)

__all__ = ["boruvka"]

Bools = NDArray[np.bool_]

# Neighbours that a record keeps: more cost the first round, fewer the later ones (measured, d = 2 and d = 10).
KEPT = 8


def boruvka(X: Floats, threads: int, state: State) -> tuple[Ints, Ints, Floats]:
    """Return the ends (record numbers) and squared lengths of the n−1 edges; no two records may be equal."""
    n = len(X)
    tree = build(X)
    near = np.empty((n, min(KEPT, n - 1)))
    near_places = np.empty(near.shape, dtype=np.int64)
    used, fresh = np.zeros(n, dtype=np.int64), np.empty(n, dtype=np.bool_)
    ends_a, ends_b, squares = np.empty(n - 1, dtype=np.int64), np.empty(n - 1, dtype=np.int64), np.empty(n - 1)
    parent, component = np.arange(n), np.arange(n)
    best, best_from, best_to = np.empty(n), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    node_component = np.empty(len(tree.right), dtype=np.int64)
    with ThreadPoolExecutor(threads) as executor:
        on_all_leaves = _on_all_leaves(executor, tree, threads)
        on_all_leaves(neighbours, near, near_places, state)
        found = 0
        while found < n - 1 and not state[STOP]:
            best[:], fresh[:] = np.inf, True
            _shortest_known(tree, component, near, near_places, used, fresh, best, best_from, best_to)
            _node_components(tree, component, node_component)
            on_all_leaves(_search, component, node_component, best, near, near_places, used, fresh, state)
            _shortest_known(tree, component, near, near_places, used, fresh, best, best_from, best_to)
            found = _join(tree, parent, component, best, best_from, best_to, ends_a, ends_b, squares, found)
    return ends_a, ends_b, squares


def _on_all_leaves(executor: ThreadPoolExecutor, tree: KdTree, threads: int) -> Callable[..., None]:
    """Return a function that runs a kernel on all leaves, a part of them on each thread."""
    leaves = len(tree.leaves)
    # Parts take different times, so each thread gets a few.
    parts = min(leaves, 4 * threads if threads > 1 else 1)
    cuts = [leaves * part // parts for part in range(parts + 1)]

    def run(kernel: Callable[..., None], *arguments: object) -> None:
        jobs = [executor.submit(kernel, tree, a, b, *arguments) for a, b in pairwise(cuts)]
        for job in jobs:
            job.result()

    return run


@kernel
def _shorter(tree: KdTree, a: int, b: int, c: int, d: int) -> bool:
    """Tell whether the edge (a, b) comes before the equally long edge (c, d)."""
    i, j, k, l = tree.ids[a], tree.ids[b], tree.ids[c], tree.ids[d]
    return (min(i, j), max(i, j)) < (min(k, l), max(k, l))


@kernel
def _shortest_known(
    tree: KdTree,
    component: Ints,
    near: Floats,
    near_places: Ints,
    used: Ints,
    fresh: Bools,
    best: Floats,
    best_from: Ints,
    best_to: Ints,
) -> None:
    """Take, for each component, the shortest edge that leaves it to a next neighbour of a fresh record."""
    n, wanted = near.shape
    for place in range(n):
        if not fresh[place]:
            continue
        fresh[place] = False
        t, own = used[place], component[place]
        while t < wanted and component[near_places[place, t]] == own:
            t += 1
        used[place] = t
        if t == wanted:
            continue
        length, other = near[place, t], near_places[place, t]
        for part in (own, component[other]):
            if length < best[part] or (
                length == best[part] and _shorter(tree, place, other, best_from[part], best_to[part])
            ):
                best[part], best_from[part], best_to[part] = length, place, other


@kernel
def _node_components(tree: KdTree, component: Ints, node_component: Ints) -> None:
    """Write the component that all records of a node belong to, or −1."""
    n, size = len(tree.rows), tree.leaves.shape[2]
    for node in range(len(tree.right) - 1, -1, -1):
        if tree.right[node] > 0:
            left, right = node_component[node + 1], node_component[tree.right[node]]
            node_component[node] = left if left == right else -1
            continue
        start = size * (-1 - tree.right[node])
        node_component[node] = component[start]
        for place in range(start + 1, min(start + size, n)):
            if component[place] != component[start]:
                node_component[node] = -1
                break


@kernel
def _search(
    tree: KdTree,
    first: int,
    last: int,
    component: Ints,
    node_component: Ints,
    best: Floats,
    near: Floats,
    near_places: Ints,
    used: Ints,
    fresh: Bools,
    state: State,
) -> None:
    """Find the nearest record of another component for the records of some leaves whose lists are used up.

    What is found becomes the last entry of the list. If there is nothing up to the shortest edge known, the
    entry keeps the least distance that is still possible.
    """
    n, wanted = near.shape
    size = tree.leaves.shape[2]
    stack, gaps = np.empty(DEPTH, dtype=np.int64), np.empty(DEPTH)
    distances, point_gaps, limit = np.empty(size), np.empty(size), np.empty(size)
    asked = np.empty(size, dtype=np.int64)
    # Known to this call only, so that what others find changes nothing but the time.
    known = best.copy()
    for leaf in range(first, last):
        if state[STOP]:
            return
        count, single, reach = 0, True, 0.0
        for place in range(leaf * size, min((leaf + 1) * size, n)):
            if used[place] == wanted and near[place, wanted - 1] <= known[component[place]]:
                asked[count], limit[count] = place, known[component[place]]
                near_places[place, wanted - 1] = -1
                reach = max(reach, limit[count])
                single = single and component[place] == component[asked[0]]
                count += 1
        if count == 0:
            continue
        lone = component[asked[0]] if single else -2
        cap = np.inf
        own, top = siblings(tree, leaf, stack, gaps)
        top += 1
        stack[top], gaps[top] = own, 0.0
        while top >= 0:
            node, gap = stack[top], gaps[top]
            top -= 1
            if gap > reach or node_component[node] == lone:
                continue
            if tree.right[node] > 0:
                top = push_children(tree, own, node, stack, gaps, top)
                continue
            reach = 0.0
            if single:
                cap = known[lone]
            leaf_gaps(tree, leaf, node, point_gaps)
            for t in range(count):
                place = asked[t]
                limit[t] = min(limit[t], cap)
                if point_gaps[place - leaf * size] <= limit[t] and node_component[node] != component[place]:
                    limit[t] = min(limit[t], known[component[place]])
                    leaf_distances(tree, place, -1 - tree.right[node], distances)
                    limit[t] = _keep_foreign(
                        tree, place, -1 - tree.right[node], component, distances, limit[t], near, near_places
                    )
                    known[component[place]] = min(known[component[place]], limit[t])
                reach = max(reach, limit[t])
        for t in range(count):
            place = asked[t]
            # A neighbour beyond the limit, which others may have lowered, need not be the nearest.
            if near_places[place, wanted - 1] >= 0 and near[place, wanted - 1] <= limit[t]:
                used[place] = wanted - 1
                fresh[place] = True
            else:
                near[place, wanted - 1] = np.nextafter(limit[t], np.inf)


@kernel
def _keep_foreign(
    tree: KdTree,
    place: int,
    leaf: int,
    component: Ints,
    distances: Floats,
    limit: float,
    near: Floats,
    near_places: Ints,
) -> float:
    last = near_places.shape[1] - 1
    for i in range(len(distances)):
        distance, other = distances[i], leaf * len(distances) + i
        if distance > limit or distance == np.inf or component[other] == component[place]:
            continue
        current = near_places[place, last]
        if current < 0 or distance < near[place, last] or tree.ids[other] < tree.ids[current]:
            limit = distance
            near[place, last] = distance
            near_places[place, last] = other
    return limit


@kernel
def _root(parent: Ints, place: int) -> int:
    while parent[place] != place:
        parent[place] = parent[parent[place]]
        place = parent[place]
    return place


@kernel
def _join(
    tree: KdTree,
    parent: Ints,
    component: Ints,
    best: Floats,
    best_from: Ints,
    best_to: Ints,
    ends_a: Ints,
    ends_b: Ints,
    squares: Floats,
    found: int,
) -> int:
    """Join the components along their shortest edges; return how many edges there are now."""
    n = len(parent)
    for part in range(n):
        if best[part] == np.inf:
            continue
        a, b = _root(parent, best_from[part]), _root(parent, best_to[part])
        if a != b:
            parent[max(a, b)] = min(a, b)
            ends_a[found], ends_b[found] = tree.ids[best_from[part]], tree.ids[best_to[part]]
            squares[found] = best[part]
            found += 1
    for place in range(n):
        component[place] = _root(parent, place)
    return found
