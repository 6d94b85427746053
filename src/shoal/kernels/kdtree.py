"""A kd-tree with records packed for scanning, used by the spanning tree and the tour.

Splits of the widest side of the bounding box sort the records into leaves of equal size (the last leaf padded). Nodes
are numbered in preorder, so a node that covers the leaves a … b−1 has its children at ``node + 1`` and ``node + 2 (mid
− a)``. Building takes O(n d log n) time; the tree takes O(n d) memory.

Distances to boxes and to records are sums of rounded terms in the same order, and rounding is monotone. The computed
distance to a box therefore never exceeds that to a record in it, so pruning is exact, even for ties.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.core.compiler import kernel
from shoal.core.progress import DONE, STOP
from shoal.core.types import Floats, Ints, State
from shoal.kernels.distances import NO_RECORD
from shoal.kernels.quickselect import select_nth

__all__ = [
    "DEPTH",
    "LEAF",
    "KdTree",
    "Places",
    "box_gap",
    "build",
    "leaf_distances",
    "leaf_gaps",
    "neighbours",
    "push_children",
    "siblings",
]

# Leaves have 16 records for up to three columns and 32 for more, where boxes prune less (measured, d = 2 and d = 10).
FEW_COLUMNS, SMALL_LEAF, LEAF = 3, 16, 32
# A node has at most three quarters of its parent's leaves, and a search stores one sibling per level.
DEPTH = 128

Places = NDArray[np.integer[Any]]  # four or eight bytes


class KdTree(NamedTuple):
    """A kd-tree whose records are stored in the order of its leaves; a place is a position in this order."""

    rows: Floats  # (places, d): the records
    leaves: Floats  # (leaves, d, size): the records of each leaf by columns; inf for padding in the last leaf
    ids: Ints  # the record at each place, NO_RECORD for padding
    boxes: Floats  # (nodes, 2, d): minimum and maximum values
    right: Ints  # right child of each node, −1 − leaf at a leaf; the left child is the next node


@kernel
def build(X: Floats) -> KdTree:
    """Build the tree by halving the widest side of every node's box."""
    n, d = X.shape
    size = SMALL_LEAF if d <= FEW_COLUMNS else LEAF
    count = (n + size - 1) // size
    rows = np.empty((n, d))
    ids = np.full(count * size, NO_RECORD)
    for i in range(n):
        ids[i] = i
        for j in range(d):
            rows[i, j] = X[i, j]
    boxes = np.empty((2 * count - 1, 2, d))
    right = np.empty(2 * count - 1, dtype=np.int64)
    stack = np.empty((DEPTH, 3), dtype=np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, 0, count
    top = 0
    while top >= 0:
        node, a, b = stack[top, 0], stack[top, 1], stack[top, 2]
        top -= 1
        start, stop = a * size, min(b * size, n)
        widest = _enclose(rows, start, stop, boxes, node)
        if b - a == 1:
            right[node] = -1 - a
            continue
        mid = _middle(rows, widest, start, stop, boxes, node, a, b, size)
        select_nth(rows, ids, widest, start, stop - 1, mid * size)
        right[node] = node + 2 * (mid - a)
        stack[top + 1, 0], stack[top + 1, 1], stack[top + 1, 2] = right[node], mid, b
        stack[top + 2, 0], stack[top + 2, 1], stack[top + 2, 2] = node + 1, a, mid
        top += 2
    leaves = np.full((count, d, size), np.inf)
    for i in range(n):
        for j in range(d):
            leaves[i // size, j, i % size] = rows[i, j]
    return KdTree(rows, leaves, ids, boxes, right)


@kernel
def _enclose(rows: Floats, start: int, stop: int, boxes: Floats, node: int) -> int:
    """Write the bounding box of some rows and return its widest side."""
    d = rows.shape[1]
    for j in range(d):
        boxes[node, 0, j] = rows[start, j]
        boxes[node, 1, j] = rows[start, j]
    for i in range(start + 1, stop):
        for j in range(d):
            value = rows[i, j]
            boxes[node, 0, j] = min(boxes[node, 0, j], value)
            boxes[node, 1, j] = max(boxes[node, 1, j], value)
    widest, width = 0, -1.0
    for j in range(d):
        side = boxes[node, 1, j] - boxes[node, 0, j]
        if side > width:
            widest, width = j, side
    return widest


@kernel
def _middle(rows: Floats, axis: int, start: int, stop: int, boxes: Floats, node: int, a: int, b: int, size: int) -> int:
    """Return the leaf to split at, near the middle of the box, with at least a quarter of the leaves on each side."""
    middle = boxes[node, 0, axis] / 2 + boxes[node, 1, axis] / 2
    below = 0
    for i in range(start, stop):
        below += rows[i, axis] < middle
    margin = (b - a + 3) // 4
    return a + min(max((below + size // 2) // size, margin), b - a - margin)


@kernel
def box_gap(boxes: Floats, a: int, b: int) -> float:
    """Return the squared distance between two boxes."""
    gap = 0.0
    for j in range(boxes.shape[2]):
        delta = max(boxes[a, 0, j] - boxes[b, 1, j], boxes[b, 0, j] - boxes[a, 1, j], 0.0)
        gap += delta * delta
    return gap


@kernel
def leaf_gaps(tree: KdTree, leaf: int, node: int, out: Floats) -> None:
    """Write the squared distances from the records of a leaf to a box."""
    for i in range(len(out)):
        out[i] = 0.0
    for j in range(tree.rows.shape[1]):
        low, high = tree.boxes[node, 0, j], tree.boxes[node, 1, j]
        for i in range(len(out)):
            value = tree.leaves[leaf, j, i]
            delta = max(low - value, value - high, 0.0)
            out[i] += delta * delta


@kernel
def leaf_distances(tree: KdTree, place: int, leaf: int, out: Floats) -> None:
    """Write the squared distances from the record at a place to the records of a leaf."""
    # A loop to a constant would be unrolled into scalar instructions; this loop becomes vector instructions.
    for i in range(len(out)):
        out[i] = 0.0
    for j in range(tree.rows.shape[1]):
        value = tree.rows[place, j]
        for i in range(len(out)):
            delta = tree.leaves[leaf, j, i] - value
            out[i] += delta * delta


@kernel
def siblings(tree: KdTree, leaf: int, stack: Ints, gaps: Floats) -> tuple[int, int]:
    """Push the siblings of the nodes on the path to a leaf; return the leaf's node and the stack's top.

    A search that pops these nodes proceeds from the leaf outwards.
    """
    node, a, b = 0, 0, len(tree.leaves)
    top = -1
    while b - a > 1:
        mid = a + (tree.right[node] - node) // 2
        top += 1
        if leaf < mid:
            stack[top] = tree.right[node]
            node, b = node + 1, mid
        else:
            stack[top] = node + 1
            node, a = tree.right[node], mid
    for t in range(top + 1):
        gaps[t] = box_gap(tree.boxes, node, stack[t])
    return node, top


@kernel
def push_children(tree: KdTree, home: int, node: int, stack: Ints, gaps: Floats, top: int) -> int:
    """Push the two children of a node, the child nearer to the home leaf last; return the stack's top."""
    near, far = node + 1, tree.right[node]
    near_gap, far_gap = box_gap(tree.boxes, home, near), box_gap(tree.boxes, home, far)
    if near_gap > far_gap:
        near, far, near_gap, far_gap = far, near, far_gap, near_gap
    stack[top + 1], gaps[top + 1] = far, far_gap
    stack[top + 2], gaps[top + 2] = near, near_gap
    return top + 2


@kernel
def neighbours(tree: KdTree, first: int, last: int, near: Floats, near_places: Places, state: State) -> None:
    """Find the nearest other records for all records in the leaves first … last−1, as many as `near` has columns.

    The neighbours are sorted by squared distance, then by record number. The tree is traversed once for all records of
    a leaf, from the leaf outwards.
    """
    n, count, size = len(tree.rows), near.shape[1], tree.leaves.shape[2]
    stack, gaps = np.empty(DEPTH, dtype=np.int64), np.empty(DEPTH)
    distances, point_gaps = np.empty(size), np.empty(size)
    for leaf in range(first, last):
        if state[STOP]:
            return
        start, stop = leaf * size, min((leaf + 1) * size, n)
        for place in range(start, stop):
            for t in range(count):
                near[place, t] = np.inf
                near_places[place, t] = -1
            leaf_distances(tree, place, leaf, distances)
            distances[place - start] = np.inf
            _keep_nearest(tree, place, leaf, distances, near, near_places)
        home, top = siblings(tree, leaf, stack, gaps)
        reach = _reach(near, start, stop)
        while top >= 0:
            node, gap = stack[top], gaps[top]
            top -= 1
            if gap > reach:
                continue
            if tree.right[node] > 0:
                top = push_children(tree, home, node, stack, gaps, top)
                continue
            leaf_gaps(tree, leaf, node, point_gaps)
            for place in range(start, stop):
                if point_gaps[place - start] <= near[place, count - 1]:
                    leaf_distances(tree, place, -1 - tree.right[node], distances)
                    _keep_nearest(tree, place, -1 - tree.right[node], distances, near, near_places)
            reach = _reach(near, start, stop)
        state[DONE] += stop - start


@kernel
def _reach(near: Floats, start: int, stop: int) -> float:
    reach = 0.0
    for place in range(start, stop):
        reach = max(reach, near[place, near.shape[1] - 1])
    return reach


@kernel
def _keep_nearest(tree: KdTree, place: int, leaf: int, distances: Floats, near: Floats, near_places: Places) -> None:
    last = near.shape[1] - 1
    for i in range(len(distances)):
        distance = distances[i]
        if distance > near[place, last] or distance == np.inf:
            continue
        candidate = leaf * len(distances) + i
        t = last
        if distance == near[place, t] and tree.ids[near_places[place, t]] < tree.ids[candidate]:
            continue
        while t > 0 and (
            near[place, t - 1] > distance
            or (near[place, t - 1] == distance and tree.ids[near_places[place, t - 1]] > tree.ids[candidate])
        ):
            near[place, t] = near[place, t - 1]
            near_places[place, t] = near_places[place, t - 1]
            t -= 1
        near[place, t] = distance
        near_places[place, t] = candidate
