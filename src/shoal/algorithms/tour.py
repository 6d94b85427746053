"""A short path through all records: a travelling salesman's tour, improved by 2-opt and Or-opt and then opened.

J. L. Bentley, Fast algorithms for geometric traveling salesman problems, ORSA Journal on Computing 4 (1992). The tour
starts as a walk around the minimum spanning tree. Moves that shorten the tour link a record to one of its nearest
neighbours. They reverse a part of the tour (2-opt) or move one to three records next to the neighbour (Or-opt).
Neighbour lists keep these attempts cheap, and a queue skips records without a possible improvement. Finally, the
longest edge is removed. Typically O(n log n) attempts, and at most O(n) time per move; O(n d) memory.
"""

from __future__ import annotations

import numpy as np

from shoal.algorithms.mst import preorder
from shoal.algorithms.spanning_tree import distinct, find_tree
from shoal.core.compiler import kernel
from shoal.core.progress import DONE, STOP
from shoal.core.types import Floats, Ints, State
from shoal.kernels.distances import squared_distance
from shoal.kernels.kdtree import KdTree, build, neighbours

__all__ = ["tour"]

# Number of neighbours tried per record, and maximum number of records in an Or-opt move.
NEIGHBOURS, SEGMENT = 8, 3
# Minimum gain of a move, relative to the edges it removes; smaller gains may be rounding errors and could cycle.
GAIN = 1e-9
# Maximum number of moves per record; one or two are typical.
MOVES = 1000


def tour(X: Floats, state: State) -> Ints:
    """Return the records in the order of a short path, equal records next to each other."""
    unique, first = distinct(X)
    order = unique[_short_path(X[unique], state)] if len(unique) > 3 else unique
    rank = np.empty(len(X), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return np.argsort(rank[first], kind="stable")


def _short_path(X: Floats, state: State) -> Ints:
    n = len(X)
    walk = preorder(find_tree(X, "auto", None, state).ends)[0]
    state[DONE] = 0
    tree = build(X)
    near = np.empty((n, min(NEIGHBOURS, n - 1)))
    near_places = np.empty(near.shape, dtype=np.int64)
    neighbours(tree, 0, len(tree.leaves), near, near_places, state)
    state[DONE] = 0
    place = np.empty(n, dtype=np.int64)
    place[tree.ids[:n]] = np.arange(n)
    path: Ints = tree.ids[_improve(tree, near_places, place[walk], state)]
    return path


@kernel
def _distance(tree: KdTree, a: int, b: int) -> float:
    length: float = np.sqrt(squared_distance(tree.rows[a], tree.rows[b]))
    return length


@kernel
def _improve(tree: KdTree, near_places: Ints, at: Ints, state: State) -> Ints:
    """Improve a closed tour and return it opened at its longest edge; `at` has the tree position of each step."""
    n = len(at)
    step = np.empty(n, dtype=np.int64)
    for i in range(n):
        step[at[i]] = i
    queue, waiting = at.copy(), np.ones(n, dtype=np.bool_)
    head, count = 0, n
    ends = np.empty(8, dtype=np.int64)
    moves = MOVES * n
    while count > 0 and not state[STOP]:
        place = queue[head]
        waiting[place] = False
        head = (head + 1) % n
        count -= 1
        state[DONE] = n - count
        while moves > 0 and not state[STOP]:
            touched = _reverse_better(tree, near_places, at, step, place, ends)
            if touched == 0:
                touched = _move_better(tree, near_places, at, step, place, ends)
            if touched == 0:
                break
            moves -= 1
            for t in range(touched):
                if not waiting[ends[t]]:
                    waiting[ends[t]] = True
                    queue[(head + count) % n] = ends[t]
                    count += 1
    return _opened(tree, at)


@kernel
def _opened(tree: KdTree, at: Ints) -> Ints:
    """Remove the longest edge of a closed tour and return the path."""
    n = len(at)
    longest, cut = -1.0, 0
    for i in range(n):
        length = _distance(tree, at[i], at[(i + 1) % n])
        if length > longest:
            longest, cut = length, i + 1
    path = np.empty(n, dtype=np.int64)
    for i in range(n):
        path[i] = at[(cut + i) % n]
    return path


@kernel
def _reverse_better(tree: KdTree, near_places: Ints, at: Ints, step: Ints, a: int, ends: Ints) -> int:
    """Make the first improving 2-opt move that links a to a neighbour; return the number of changed ends (0 or 4)."""
    n = len(at)
    for direction in (1, -1):
        b = at[(step[a] + direction) % n]
        old = _distance(tree, a, b)
        for c in near_places[a]:
            new = _distance(tree, a, c)
            if new >= old:
                break
            d = at[(step[c] + direction) % n]
            second = _distance(tree, c, d)
            if old + second - new - _distance(tree, b, d) > GAIN * (old + second):
                if direction == 1:
                    _reverse(at, step, step[b], step[c])
                else:
                    _reverse(at, step, step[a], step[d])
                ends[0], ends[1], ends[2], ends[3] = a, b, c, d
                return 4
    return 0


@kernel
def _reverse(at: Ints, step: Ints, first: int, last: int) -> None:
    """Reverse the steps first … last of the closed tour, or all other steps, which gives the same tour."""
    n = len(at)
    inside = (last - first) % n + 1
    if 2 * inside > n:
        first, last = (last + 1) % n, (first - 1) % n
        inside = n - inside
    for _ in range(inside // 2):
        at[first], at[last] = at[last], at[first]
        step[at[first]], step[at[last]] = first, last
        first = first + 1 if first + 1 < n else 0
        last = last - 1 if last > 0 else n - 1


@kernel
def _move_better(tree: KdTree, near_places: Ints, at: Ints, step: Ints, a: int, ends: Ints) -> int:
    """Make the first improving Or-opt move that links a to a neighbour; return the number of changed ends (0 or 6)."""
    n = len(at)
    for direction in (1, -1):
        p = at[(step[a] - direction) % n]
        before = _distance(tree, p, a)
        for size in range(1, min(SEGMENT, n - 3) + 1):
            # The segment runs from a to e; its neighbours p and q become linked.
            e = at[(step[a] + direction * (size - 1)) % n]
            q = at[(step[a] + direction * size) % n]
            removed = before + _distance(tree, e, q)
            saved = removed - _distance(tree, p, q)
            for c in near_places[a]:
                new = _distance(tree, a, c)
                if new >= saved:
                    break
                if ((step[c] - step[a]) * direction) % n < size:
                    continue
                for side in (1, -1):
                    f = at[(step[c] + side) % n]
                    if ((step[f] - step[a]) * direction) % n < size:
                        continue
                    opened = _distance(tree, c, f)
                    if saved + opened - new - _distance(tree, e, f) > GAIN * (removed + opened):
                        start = step[a] if direction == 1 else step[e]
                        _move(at, step, start, size, c if side == 1 else f, direction != side)
                        ends[0], ends[1], ends[2], ends[3], ends[4], ends[5] = a, e, p, q, c, f
                        return 6
    return 0


@kernel
def _move(at: Ints, step: Ints, start: int, size: int, after: int, flip: bool) -> None:
    """Move the steps start … start+size−1 to just after the step of `after`, reversed if `flip`."""
    n = len(at)
    segment = np.empty(size, dtype=np.int64)
    for t in range(size):
        segment[size - 1 - t if flip else t] = at[(start + t) % n]
    ahead = (step[after] - start - size + 1) % n
    if 2 * ahead <= n - size:
        for t in range(ahead):
            i = (start + t) % n
            at[i] = at[(i + size) % n]
            step[at[i]] = i
        start += ahead
    else:
        for t in range(n - size - ahead):
            i = (start + size - 1 - t) % n
            at[i] = at[(i - size) % n]
            step[at[i]] = i
        start -= n - size - ahead
    for t in range(size):
        i = (start + t) % n
        at[i] = segment[t]
        step[at[i]] = i
