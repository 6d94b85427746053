"""The pool of records without a group, in a kd-tree that shrinks as records leave the pool.

The tree is built by halving the records at the median of the column with the largest spread until they fit into leaves
of `LEAF` records. Only every fourth level is stored, so a node has up to 16 children. The bounds of these children are
computed together, and the records of a leaf are stored in contiguous columns; both need few vector instructions.

Every node stores the number of records below it, their exact bounding box and their greatest distance to a common
centre. Queries (`shoal.kernels.pool_queries`) use these bounds to skip nodes. A removal keeps the bounds exact. The
last record of the leaf replaces the removed record, and bounds that only the removed record determined shrink. After
enough removals, the tree is rebuilt.

Compiling takes longer than grouping most tables. Therefore, the tree is built from Python by kernels that are compiled
separately, and queries are inlined into their callers, ideally once per caller.

Building takes O(n d log n) time; a removal takes O(d LEAF), usually much less. Memory is O(n d).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.core.compiler import kernel
from shoal.core.types import Floats, Ints
from shoal.kernels.distances import squared_distances
from shoal.kernels.float32 import FLOAT32_LARGEST, Floats32
from shoal.kernels.quickselect import select_nth
from shoal.kernels.vector import greater, lesser

__all__ = [
    "LAST_SCANNED",
    "LEAF",
    "LEVELS",
    "ROUNDING",
    "SCANNED",
    "TOP_HALVINGS",
    "USE_FLOAT32",
    "Pool",
    "children_of",
    "padded_size",
    "pool_centroid",
    "pool_mean",
    "pool_needs_refresh",
    "pool_new",
    "pool_refresh",
    "pool_remove",
    "pool_view",
]

LEAF = 64  # maximum number of records in a leaf
HALVINGS = 4  # number of halvings between two stored levels
FEW_COLUMNS = 3  # with at most this number of columns, float32 saves nothing and rebuilding pays off late
VECTOR = 16  # float32 scores are computed for a multiple of this number of records
STACK = 256  # maximum of levels × children
SAMPLE = 200  # records that determine the column with the largest spread
EXTRA_SCANS = 50  # number of scans, beyond the number of leaves, before the centre is moved
ROUNDING = 1e-9  # far more than the rounding error of a bound, for any realistic number of columns

# Entries of `Pool.counts`: levels below the root; halvings between the root and level 1; records when the tree was
# built; 1 if float32 helps; leaves scanned by queries for the record farthest from the centroid since the centre was
# set; leaves scanned by the last query for a farthest record.
LEVELS, TOP_HALVINGS, BUILT, USE_FLOAT32, SCANNED, LAST_SCANNED = range(6)


class Pool(NamedTuple):
    """The records without a group. Level 0 of the tree is the root; the last level has the leaves."""

    columns: Floats  # (leaves, d, LEAF)
    columns32: Floats32  # (leaves, 1 + d or one more, LEAF): half the squared norm, then columns from the origin
    ids: Ints  # (leaves, LEAF): the records
    radius: Floats  # (leaves, LEAF): distances of these records to the centre
    place: Ints  # leaf · LEAF + slot of each record, -1 after its removal
    remaining: Ints  # the number of records below each node
    low: Floats  # (d, nodes): bounding boxes
    high: Floats
    reach: Floats  # the greatest distance to the centre below each node
    norm: Floats  # (leaves,): the greatest distance to the origin when the tree was built
    start: Ints  # the first node of each level
    counts: Ints  # statistics of the tree, see LEVELS etc.
    centre: Floats  # (d,): the centre for radius and reach
    origin: Floats  # (d,): the centroid when the tree was built
    total: Floats  # (d,): the sum of the remaining records
    # Scratch arrays that save allocations in queries; two queries of a pool must not run at the same time.
    mean: Floats  # (d,): the centroid
    to_centre: Floats  # (d,): the vector from the point to the centre
    point32: Floats32  # (d or one more,): the point relative to the origin
    scores: Floats32  # (LEAF,): see `score_records`
    distances: Floats  # (LEAF,): squared distances to the records of a leaf
    child_bounds: Floats  # (children of a node,): bounds on the distances to their records
    bounds: Floats  # (STACK,): bounds of the nodes still to be searched
    nodes: Ints


def pool_view(pool: Pool) -> Pool:
    """Return a view of the pool with its own buffers, for queries in another thread; copy `counts` before each use."""
    buffers = ("counts", "mean", "to_centre", "point32", "scores", "distances", "child_bounds", "bounds", "nodes")
    return pool._replace(**{name: getattr(pool, name).copy() for name in buffers})


def pool_centroid(pool: Pool) -> Floats:
    """Return the centroid of the remaining records."""
    mean: Floats = pool.total / pool.remaining[0]
    return mean


@kernel(inline=True)
def pool_mean(pool: Pool) -> Floats:
    """Return the centroid of the remaining records in the pool's buffer `mean`, for use in kernels."""
    mean, total, remaining = pool.mean, pool.total, pool.remaining[0]
    for j in range(len(mean)):
        mean[j] = total[j] / remaining
    return mean


@kernel(counted=False, inner=True)
def padded_size(size: int) -> int:
    """Return the number of records in a leaf after padding."""
    return (size + VECTOR - 1) // VECTOR * VECTOR


@kernel(counted=False, inner=True)
def pad_leaf(columns32: Floats32, size: int) -> None:
    """Pad a leaf with copies of its first record, which do not change the minimum and maximum score."""
    for j in range(len(columns32)):
        for slot in range(size, padded_size(size)):
            columns32[j, slot] = columns32[j, 0]


@kernel(counted=False, inner=True)
def children_of(start: Ints, top: int, node: int) -> tuple[int, int]:
    """Return the first child of a node and the node after its last child."""
    level = 0
    while node >= start[level + 1]:
        level += 1
    bits = HALVINGS if level > 0 else top
    first = start[level + 1] + ((node - start[level]) << bits)
    return first, first + (1 << bits)


@kernel(counted=False, inner=True)
def enclose(lows: Floats, highs: Floats, first: int, last: int, low: Floats, high: Floats, node: int) -> None:
    """Fit a node's box in one column to the boxes of its children or the values of its records."""
    lowest, highest = np.inf, -np.inf
    for child in range(first, last):
        lowest, highest = lesser(lowest, lows[child]), greater(highest, highs[child])
    low[node], high[node] = lowest, highest


@kernel(counted=False, inner=True)
def greatest_reach(reaches: Floats, first: int, last: int) -> float:
    """Return the greatest reach of some nodes or records."""
    reach = 0.0
    for child in range(first, last):
        reach = greater(reach, reaches[child])
    return reach


def pool_new(X: Floats) -> Pool:
    """Return a pool of all records, with their centroid as the centre."""
    n, d = X.shape
    leaves = 1 << _halvings(n)
    nodes = 2 * leaves
    pool = Pool(
        columns=np.empty((leaves, d, LEAF)),
        columns32=np.zeros((leaves, 1 + d + d % 2, LEAF), dtype=np.float32),
        ids=np.empty((leaves, LEAF), dtype=np.int64),
        radius=np.empty((leaves, LEAF)),
        place=np.empty(n, dtype=np.int64),
        remaining=np.zeros(nodes, dtype=np.int64),
        low=np.empty((d, nodes)),
        high=np.empty((d, nodes)),
        reach=np.zeros(nodes),
        norm=np.zeros(leaves),
        start=np.zeros(32, dtype=np.int64),
        counts=np.zeros(6, dtype=np.int64),
        centre=np.zeros(d),
        origin=np.zeros(d),
        total=np.zeros(d),
        mean=np.empty(d),
        to_centre=np.empty(d),
        point32=np.zeros(d + d % 2, dtype=np.float32),
        scores=np.empty(LEAF, dtype=np.float32),
        distances=np.empty(LEAF),
        child_bounds=np.empty(1 << HALVINGS),
        bounds=np.empty(STACK),
        nodes=np.empty(STACK, dtype=np.int64),
    )
    build_tree(X, np.arange(n), pool)
    return pool


def _halvings(n: int) -> int:
    """Return the number of halvings until each part of n records fits into a leaf."""
    bits = 0
    while LEAF << bits < n:
        bits += 1
    return bits


def build_tree(X: Floats, ids: Ints, pool: Pool) -> None:
    """Build the tree from the rows of X, which are the records `ids`."""
    n = len(X)
    bits = _halvings(n)
    levels = (bits + HALVINGS - 1) // HALVINGS
    top = bits - HALVINGS * (levels - 1) if levels > 0 else 0
    pool.counts[:] = levels, top, n, 0, 0, 0
    pool.start[:2] = 0, 1
    for level in range(1, levels + 1):
        pool.start[level + 1] = pool.start[level] + (1 << top + HALVINGS * (level - 1))
    rows = np.arange(n)
    begin = np.zeros((1 << bits) + 1, dtype=np.int64)
    begin[1] = n
    _halve(X, bits, np.empty((n, 1)), rows, begin)
    _fill(X, ids, rows, begin, pool)
    set_centre(pool)


@kernel(counted=False)
def _halve(X: Floats, bits: int, keys: Floats, rows: Ints, begin: Ints) -> None:
    """Halve the rows repeatedly by the column with the largest spread in a sample, and write the start of each part."""
    d = X.shape[1]
    for bit in range(bits):
        for part in range((1 << bit) - 1, -1, -1):
            a, b = begin[part], begin[part + 1]
            widest, width = 0, -1.0
            for j in range(d):
                total, squares, count = 0.0, 0.0, 0
                for i in range(a, b, (b - a) // SAMPLE + 1):
                    delta = X[rows[i], j] - X[rows[a], j]
                    total, squares, count = total + delta, squares + delta * delta, count + 1
                spread = squares - total * total / count
                if spread > width:
                    widest, width = j, spread
            for i in range(a, b):
                keys[i, 0] = X[rows[i], widest]
            middle = a + (b - a) // 2
            select_nth(keys, rows, 0, a, b - 1, middle)
            begin[2 * part], begin[2 * part + 1], begin[2 * part + 2] = a, middle, b


@kernel(counted=False)
def _fill(X: Floats, ids: Ints, rows: Ints, begin: Ints, pool: Pool) -> None:
    """Put the rows into the leaves and compute the bounding boxes."""
    n, d = X.shape
    levels = pool.counts[LEVELS]
    if pool.remaining[0] == 0:
        for i in range(n):
            for j in range(d):
                pool.total[j] += X[i, j]
    for j in range(d):
        pool.origin[j] = pool.total[j] / n
    farthest = 0.0
    for leaf in range(len(begin) - 1):
        node = pool.start[levels] + leaf
        size = begin[leaf + 1] - begin[leaf]
        pool.remaining[node] = size
        members = rows[begin[leaf] : begin[leaf + 1]]
        for slot in range(size):
            pool.ids[leaf, slot] = ids[members[slot]]
            pool.place[ids[members[slot]]] = leaf * LEAF + slot
        reach = _copy_rows(X, members, pool.origin, pool.columns[leaf], pool.columns32[leaf])
        pool.norm[leaf] = np.sqrt(reach) * (1 + ROUNDING)
        farthest = max(farthest, pool.norm[leaf])
        pad_leaf(pool.columns32[leaf], size)
        for j in range(d):
            enclose(pool.columns[leaf, j], pool.columns[leaf, j], 0, size, pool.low[j], pool.high[j], node)
    pool.counts[USE_FLOAT32] = d > FEW_COLUMNS and 1 / FLOAT32_LARGEST < farthest < FLOAT32_LARGEST
    _enclose_children(pool)


@kernel(inline=True)
def _enclose_children(pool: Pool) -> None:
    """Compute the counts and bounding boxes of the nodes above the leaves."""
    for level in range(pool.counts[LEVELS] - 1, -1, -1):
        for node in range(pool.start[level], pool.start[level + 1]):
            first, last = children_of(pool.start, pool.counts[TOP_HALVINGS], node)
            pool.remaining[node] = 0
            for child in range(first, last):
                pool.remaining[node] += pool.remaining[child]
            for j in range(len(pool.low)):
                enclose(pool.low[j], pool.high[j], first, last, pool.low[j], pool.high[j], node)


@kernel(counted=False, inner=True)
def _copy_rows(X: Floats, rows: Ints, origin: Floats, columns: Floats, columns32: Floats32) -> float:
    """Copy some rows into a leaf; return their greatest squared distance to the origin."""
    reach = 0.0
    for slot in range(len(rows)):
        norm = 0.0
        for j in range(len(origin)):
            value = X[rows[slot], j]
            delta = value - origin[j]
            norm += delta * delta
            columns[j, slot] = value
            columns32[1 + j, slot] = delta
        columns32[0, slot] = norm / 2
        reach = max(reach, norm)
    return reach


@kernel(counted=False)
def set_centre(pool: Pool) -> None:
    """Move the centre to the centroid of the remaining records."""
    for j in range(len(pool.total)):
        pool.centre[j] = pool.total[j] / pool.remaining[0]
    pool.counts[SCANNED] = 0
    levels = pool.counts[LEVELS]
    for level in range(levels, -1, -1):
        for node in range(pool.start[level], pool.start[level + 1]):
            first, last = 0, 0
            reaches = pool.reach
            if level == levels:
                leaf = node - pool.start[levels]
                last = pool.remaining[node]
                reaches = pool.radius[leaf]
                squared_distances(pool.columns[leaf], 0, last, pool.centre, reaches)
                for slot in range(last):
                    reaches[slot] = np.sqrt(reaches[slot])
            else:
                first, last = children_of(pool.start, pool.counts[TOP_HALVINGS], node)
            pool.reach[node] = greatest_reach(reaches, first, last)


@kernel(inline=True)
def pool_remove(pool: Pool, record: int) -> None:
    """Remove a record and tighten the bounds of the tree."""
    place, ids, total, columns32, radii = pool.place, pool.ids, pool.total, pool.columns32, pool.radius
    leaf, slot = place[record] // LEAF, place[record] % LEAF
    remaining, start, reach, low, high, columns = (
        pool.remaining,
        pool.start,
        pool.reach,
        pool.low,
        pool.high,
        pool.columns[leaf],
    )
    levels = pool.counts[LEVELS]
    last = remaining[start[levels] + leaf] - 1
    mover = ids[leaf, last]
    # Swap the two records, so that the removed record remains readable after the last one.
    for j in range(len(total)):
        value = columns[j, slot]
        total[j] -= value
        columns[j, slot] = columns[j, last]
        columns[j, last] = value
    radius = radii[leaf, slot]
    radii[leaf, slot] = radii[leaf, last]
    ids[leaf, slot] = mover
    place[mover] = place[record]
    place[record] = -1
    if pool.counts[USE_FLOAT32]:
        for j in range(1 + len(total)):
            columns32[leaf, j, slot] = columns32[leaf, j, last]
        pad_leaf(columns32[leaf], last)
    # Tighten the bounds that the record determined, from its leaf up to the root.
    node, touched = start[levels] + leaf, True
    for level in range(levels, -1, -1):
        first, end, reaches, lows, highs = 0, last, radii[leaf], columns, columns
        if level < levels:
            bits = HALVINGS if level > 0 else pool.counts[TOP_HALVINGS]
            node = start[level] + ((node - start[level + 1]) >> bits)
            first = start[level + 1] + ((node - start[level]) << bits)
            end, reaches, lows, highs = first + (1 << bits), reach, low, high
        remaining[node] -= 1
        if not touched:
            continue
        touched = radius == reach[node]
        if touched:
            reach[node] = greatest_reach(reaches, first, end)
        for j in range(len(columns)):
            removed = columns[j, last]
            if removed == low[j, node] or removed == high[j, node]:
                touched = True
                enclose(lows[j], highs[j], first, end, low[j], high[j], node)


@kernel(inline=True)
def pool_needs_refresh(pool: Pool) -> int:
    """Return the action of `pool_refresh`: nothing (0), move the centre (1) or rebuild the tree (2).

    Rebuilding pays off when half of the records have left, or most of them if there are few columns. Moving the centre
    pays off when the centroid has drifted far away. Queries for the record farthest from the centroid have then
    scanned more leaves than the number of leaves plus `EXTRA_SCANS`.
    """
    start, counts = pool.start, pool.counts
    n, levels, times = pool.remaining[0], counts[LEVELS], 2 if len(pool.total) > FEW_COLUMNS else 8
    if levels > 1 and n > 0 and times * n <= counts[BUILT]:
        return 2
    return int(n > 0 and counts[SCANNED] > start[levels + 1] - start[levels] + EXTRA_SCANS)


def pool_refresh(pool: Pool) -> None:
    """Rebuild the tree or move its centre, if that pays off. Queries are also correct without a refresh."""
    due = pool_needs_refresh.py_func(pool)
    if due == 2:
        levels = pool.counts[LEVELS]
        sizes = pool.remaining[pool.start[levels] : pool.start[levels + 1]]
        occupied = np.arange(LEAF) < sizes[:, np.newaxis]
        rows = pool.columns[: len(sizes)].transpose(0, 2, 1)[occupied]
        build_tree(np.ascontiguousarray(rows), pool.ids[: len(sizes)][occupied], pool)
    elif due == 1:
        set_centre(pool)
