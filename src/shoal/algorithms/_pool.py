"""The records that are still without a group, in a kd-tree that shrinks with them.

Leaves hold up to `LEAF` records in contiguous columns, so that scanning one is a short run of vector instructions; a
record that leaves is replaced by the last of its leaf. Every node knows how many records are left below it, their exact
bounding box, and the greatest distance of one of them to a common centre. Both are kept tight as records leave: that is
what makes the farthest record findable. Where geometry helps little (many columns) a query visits most leaves and costs
little more than one scan.

Bounds prune without changing results. A box bound adds up the same terms in the same order as a distance, each at least
(or at most) as large, and rounding keeps order: it is never on the wrong side of a computed distance. The bound by the
centre is widened by more than its rounding. Ties go to the lowest record number, so nodes that could hold an equal
distance are visited.

Building costs O(d n log n), a removal O(d LEAF) and mostly much less; memory is O(n d).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from shoal.types import Floats, Ints

__all__ = [
    "Pool",
    "block_distances",
    "pool_centroid",
    "pool_farthest",
    "pool_farthest_from_centroid",
    "pool_nearest",
    "pool_new",
    "pool_remove",
    "pool_take",
    "squared_distance",
]

LEAF = 64
NOBODY = np.iinfo(np.int64).max
ROUNDING = 1e-9  # far more than the bound by the centre is rounded, for any sensible number of columns


class Pool(NamedTuple):
    """Records without a group. Node i of the tree has the children 2i+1 and 2i+2; the last nodes are the leaves."""

    columns: Floats  # (leaves, d, LEAF)
    ids: Ints  # (leaves, LEAF): the records
    radius: Floats  # (leaves, LEAF): their distances to the centre
    place: Ints  # leaf · LEAF + slot of each record, -1 once it has left
    left: Ints  # records left below each node
    low: Floats  # (nodes, d): bounding boxes
    high: Floats
    reach: Floats  # greatest distance to the centre below each node
    centre: Floats  # (d,): the centre that radius and reach refer to
    total: Floats  # (d,): sum of the records left
    scanned: Ints  # leaves scanned for the farthest from the centroid since the centre was set


@njit(cache=True, nogil=True)
def pool_new(X: Floats) -> Pool:
    """Put all records into the pool; the centre is their centroid."""
    n, d = X.shape
    leaves = 1
    while leaves * LEAF < n:
        leaves *= 2
    nodes = 2 * leaves - 1
    pool = Pool(
        np.empty((leaves, d, LEAF)),
        np.empty((leaves, LEAF), dtype=np.int64),
        np.empty((leaves, LEAF)),
        np.empty(n, dtype=np.int64),
        np.zeros(nodes, dtype=np.int64),
        np.empty((nodes, d)),
        np.empty((nodes, d)),
        np.zeros(nodes),
        np.zeros(d),
        np.zeros(d),
        np.zeros(1, dtype=np.int64),
    )
    for i in range(n):
        for j in range(d):
            pool.total[j] += X[i, j]
    _build(X, pool)
    _set_centre(pool)
    return pool


@njit(cache=True, nogil=True)
def _build(X: Floats, pool: Pool) -> None:
    """Halve the records at the median of the widest column until they fit into leaves."""
    n, d = X.shape
    records = np.arange(n)
    keys = np.empty(n)
    nodes = len(pool.left)
    start = np.zeros(nodes, dtype=np.int64)
    pool.left[0] = n
    first_leaf = nodes // 2
    for node in range(nodes):
        a, size = start[node], pool.left[node]
        widest, width = 0, -1.0
        for j in range(d):
            low, high = np.inf, -np.inf
            for i in range(a, a + size):
                low, high = min(low, X[records[i], j]), max(high, X[records[i], j])
            pool.low[node, j], pool.high[node, j] = low, high
            if high - low > width:
                widest, width = j, high - low
        if node < first_leaf:
            half = size // 2
            for i in range(a, a + size):
                keys[i] = X[records[i], widest]
            _select(keys, records, a, a + size - 1, a + half)
            left = 2 * node + 1
            start[left], pool.left[left] = a, half
            start[left + 1], pool.left[left + 1] = a + half, size - half
        else:
            leaf = node - first_leaf
            for slot in range(size):
                record = records[a + slot]
                pool.ids[leaf, slot] = record
                pool.place[record] = leaf * LEAF + slot
                for j in range(d):
                    pool.columns[leaf, j, slot] = X[record, j]


@njit(cache=True, nogil=True)
def _select(keys: Floats, records: Ints, low: int, high: int, middle: int) -> None:
    """Move the smaller keys before the middle and the larger ones after it (Hoare)."""
    while low < high:
        pivot = keys[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                records[i], records[j] = records[j], records[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return


@njit(cache=True, nogil=True)
def _set_centre(pool: Pool) -> None:
    """Make the centroid of the records left the centre."""
    centre = pool_centroid(pool)
    for j in range(len(centre)):
        pool.centre[j] = centre[j]
    pool.scanned[0] = 0
    first_leaf = len(pool.left) // 2
    block = np.empty(LEAF)
    for node in range(len(pool.left) - 1, -1, -1):
        pool.reach[node] = 0.0
        if node < first_leaf:
            pool.reach[node] = max(pool.reach[2 * node + 1], pool.reach[2 * node + 2])
            continue
        leaf = node - first_leaf
        block_distances(pool.columns[leaf], 0, pool.left[node], centre, block)
        for slot in range(pool.left[node]):
            pool.radius[leaf, slot] = np.sqrt(block[slot])
            pool.reach[node] = max(pool.reach[node], pool.radius[leaf, slot])


@njit(cache=True, nogil=True)
def pool_centroid(pool: Pool) -> Floats:
    """Return the mean of the records left."""
    centre = np.empty(len(pool.total))
    for j in range(len(centre)):
        centre[j] = pool.total[j] / pool.left[0]
    return centre


@njit(cache=True, nogil=True)
def pool_take(pool: Pool, records: Ints, group: int, labels: Ints) -> None:
    """Give records their group and remove them."""
    for i in range(len(records)):
        labels[records[i]] = group
        pool_remove(pool, records[i])


@njit(cache=True, nogil=True)
def pool_remove(pool: Pool, record: int) -> None:
    """Remove a record; boxes and reaches that it alone held shrink."""
    leaf, slot = divmod(pool.place[record], LEAF)
    node = len(pool.left) // 2 + leaf
    last = pool.left[node] - 1
    d = len(pool.total)
    gone = np.empty(d)
    radius = pool.radius[leaf, slot]
    mover = pool.ids[leaf, last]
    for j in range(d):
        gone[j] = pool.columns[leaf, j, slot]
        pool.total[j] -= gone[j]
        pool.columns[leaf, j, slot] = pool.columns[leaf, j, last]
    pool.ids[leaf, slot], pool.radius[leaf, slot] = mover, pool.radius[leaf, last]
    pool.place[mover] = pool.place[record]
    pool.place[record] = -1
    above = node
    pool.left[above] -= 1
    while above > 0:
        above = (above - 1) // 2
        pool.left[above] -= 1
    _shrink(pool, node, leaf, gone, radius)


@njit(cache=True, nogil=True)
def _shrink(pool: Pool, node: int, leaf: int, gone: Floats, radius: float) -> None:
    """Make the bounds of a leaf and of the nodes above it tight again, as far as the record that left touched them."""
    first_leaf = len(pool.left) // 2
    while True:
        touched = False
        if radius == pool.reach[node]:
            touched = True
            if node >= first_leaf:
                pool.reach[node] = 0.0
                for slot in range(pool.left[node]):
                    pool.reach[node] = max(pool.reach[node], pool.radius[leaf, slot])
            else:
                pool.reach[node] = max(pool.reach[2 * node + 1], pool.reach[2 * node + 2])
        for j in range(len(gone)):
            if gone[j] != pool.low[node, j] and gone[j] != pool.high[node, j]:
                continue
            touched = True
            low, high = np.inf, -np.inf
            if node >= first_leaf:
                for slot in range(pool.left[node]):
                    low, high = min(low, pool.columns[leaf, j, slot]), max(high, pool.columns[leaf, j, slot])
            else:
                for child in range(2 * node + 1, 2 * node + 3):
                    low, high = min(low, pool.low[child, j]), max(high, pool.high[child, j])
            pool.low[node, j], pool.high[node, j] = low, high
        if not touched or node == 0:
            return
        node = (node - 1) // 2


@njit(cache=True, nogil=True)
def squared_distance(a: Floats, b: Floats) -> float:
    """Add up squared differences, column by column: every distance in this package is added up in this order."""
    distance = 0.0
    for j in range(len(a)):
        delta = a[j] - b[j]
        distance += delta * delta
    return distance


@njit(cache=True, nogil=True)
def block_distances(columns: Floats, start: int, size: int, point: Floats, out: Floats) -> None:
    """Write the squared distances from a point to a block of records in columns, as `squared_distance` adds them up."""
    for i in range(size):
        out[i] = 0.0
    for j in range(len(point)):
        p = point[j]
        column = columns[j, start : start + size]
        for i in range(size):
            delta = column[i] - p
            out[i] += delta * delta


@njit(cache=True, nogil=True)
def _insert(distance: float, record: int, near: Floats, near_ids: Ints) -> None:
    """Put a record into the ascending list of the nearest, dropping the last."""
    t = len(near) - 1
    while t > 0 and (near[t - 1] > distance or (near[t - 1] == distance and near_ids[t - 1] > record)):
        near[t] = near[t - 1]
        near_ids[t] = near_ids[t - 1]
        t -= 1
    near[t] = distance
    near_ids[t] = record


@njit(cache=True, nogil=True)
def _at_least(pool: Pool, node: int, point: Floats) -> float:
    """Bound the squared distance from a point to the records below a node from below."""
    bound = 0.0
    for j in range(len(point)):
        delta = max(pool.low[node, j] - point[j], point[j] - pool.high[node, j], 0.0)
        bound += delta * delta
    return bound


@njit(cache=True, nogil=True)
def _at_most(pool: Pool, node: int, point: Floats, offset: float) -> float:
    """Bound the same distance from above, for a point at the distance `offset` from the centre.

    With c the centre, |x − p|² = |p − c|² + |x − c|² + 2 (c − p)·(x − c): the second term is at most the reach squared,
    the third at most its maximum over the box. In many columns that is far below the distance to the far corner.
    """
    corner, ahead = 0.0, 0.0
    for j in range(len(point)):
        low, high, centre = pool.low[node, j], pool.high[node, j], pool.centre[j]
        delta = max(high - point[j], point[j] - low)
        corner += delta * delta
        ahead += max((centre - point[j]) * (high - centre), (centre - point[j]) * (low - centre))
    reach = pool.reach[node]
    across: float = offset * offset + reach * reach + 2.0 * min(ahead, offset * reach)
    across += ROUNDING * (offset + reach) * (offset + reach)
    return min(corner, across)


@njit(cache=True, nogil=True)
def pool_nearest(pool: Pool, point: Floats, near: Floats, near_ids: Ints) -> None:
    """Find the records nearest to a point, as many as `near` holds, ascending."""
    wanted = len(near)
    for i in range(wanted):
        near[i] = np.inf
        near_ids[i] = NOBODY
    first_leaf = len(pool.left) // 2
    stack, bounds, block = np.empty(64, dtype=np.int64), np.empty(64), np.empty(LEAF)
    stack[0], bounds[0] = 0, 0.0
    top = 0
    while top >= 0:
        node, bound = stack[top], bounds[top]
        top -= 1
        if bound > near[wanted - 1] or pool.left[node] == 0:
            continue
        if node < first_leaf:
            left = 2 * node + 1
            to_left, to_right = _at_least(pool, left, point), _at_least(pool, left + 1, point)
            swap = to_left < to_right
            stack[top + 1], bounds[top + 1] = (left + 1, to_right) if swap else (left, to_left)
            stack[top + 2], bounds[top + 2] = (left, to_left) if swap else (left + 1, to_right)
            top += 2
            continue
        leaf = node - first_leaf
        block_distances(pool.columns[leaf], 0, pool.left[node], point, block)
        for i in range(pool.left[node]):
            if block[i] <= near[wanted - 1]:
                record = pool.ids[leaf, i]
                if block[i] < near[wanted - 1] or record < near_ids[wanted - 1]:
                    _insert(block[i], record, near, near_ids)


@njit(cache=True, nogil=True)
def _farthest(pool: Pool, point: Floats) -> tuple[int, int]:
    """Return the record farthest from a point, and how many leaves were scanned for it."""
    farthest, reach, scanned = NOBODY, -1.0, 0
    offset = np.sqrt(squared_distance(point, pool.centre))
    first_leaf = len(pool.left) // 2
    stack, bounds, block = np.empty(64, dtype=np.int64), np.empty(64), np.empty(LEAF)
    stack[0], bounds[0] = 0, np.inf
    top = 0
    while top >= 0:
        node, bound = stack[top], bounds[top]
        top -= 1
        if bound < reach or pool.left[node] == 0:
            continue
        if node < first_leaf:
            left = 2 * node + 1
            to_left, to_right = _at_most(pool, left, point, offset), _at_most(pool, left + 1, point, offset)
            swap = to_left > to_right
            stack[top + 1], bounds[top + 1] = (left + 1, to_right) if swap else (left, to_left)
            stack[top + 2], bounds[top + 2] = (left, to_left) if swap else (left + 1, to_right)
            top += 2
            continue
        leaf = node - first_leaf
        scanned += 1
        block_distances(pool.columns[leaf], 0, pool.left[node], point, block)
        for i in range(pool.left[node]):
            if block[i] >= reach:
                record = pool.ids[leaf, i]
                if block[i] > reach or record < farthest:
                    farthest, reach = record, block[i]
    return farthest, scanned


@njit(cache=True, nogil=True)
def pool_farthest(pool: Pool, point: Floats) -> int:
    """Return the record farthest from a point."""
    return _farthest(pool, point)[0]


@njit(cache=True, nogil=True)
def pool_farthest_from_centroid(pool: Pool) -> int:
    """Return the record farthest from the mean of those left.

    The centroid drifts away from the centre as records leave. Once that has cost as many scans as there are leaves, the
    centre is set anew.
    """
    farthest, scanned = _farthest(pool, pool_centroid(pool))
    pool.scanned[0] += scanned
    if pool.scanned[0] > len(pool.left) // 2:
        _set_centre(pool)
    return farthest
