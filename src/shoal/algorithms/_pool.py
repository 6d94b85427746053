"""The records that are still without a group, in a kd-tree that shrinks with them.

Records are halved at the median of the column that spreads most until they fit into leaves of `LEAF`; only every
fourth level is kept, so a node has up to 16 children, whose bounds are computed together, and a leaf's records lie in
contiguous columns: both are short runs of vector instructions. A record that leaves is replaced by the last of its
leaf, and boxes and reaches that it alone held shrink. Once half of the records have left, `pool_tidy` builds anew.

Every node knows how many records are left below it, their exact bounding box, and the greatest distance of one of them
to a common centre. Nearest records are pruned by the boxes, farthest ones by box and ball together (`_at_most`). A leaf
that cannot be pruned is first looked at in float32, at a quarter of the cost; only where that leaves a doubt are its
distances computed, in float64 and in the same order of columns as everywhere else.

Bounds prune without changing results. A box bound adds up the same terms in the same order as a distance, each at most
as large, and rounding keeps order: it is never above a computed distance. The other bounds are widened by more than
their rounding. Ties go to the lowest record number, so what could hold an equal distance is looked at.

Compiling costs more than most tables: so `mdav` calls `pool_new` and `pool_tidy` from Python, lest they be
compiled into it once more.

Building costs O(d n log n), a removal O(d LEAF) and mostly much less; memory is O(n d).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from shoal.algorithms._select import select_nth
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
    "pool_tidy",
    "pool_untidy",
    "squared_distance",
]

LEAF = 64
FAN = 4  # halvings between two levels that are kept
STEP = 16  # slots are looked at in float32 in multiples of this
FLAT = 3  # up to so many columns float32 saves nothing, and building anew pays late
SAMPLE = 200  # records that decide which column spreads most
NOBODY = np.iinfo(np.int64).max
ROUNDING = 1e-9  # far more than the bound by box and ball is rounded, for any sensible number of columns
UNIT = 2.0**-24  # of a float32
GREAT, TINY = 1e15, 1e-35  # beyond the first squares leave float32; products below the second vanish in it
STACK = 256  # levels × children, at most
ORDER = {"nnan", "nsz", "reassoc"}  # least and greatest are the same in any order
LOOSE = {"contract", "reassoc", "nnan", "ninf", "nsz"}  # for what is rounded anyhow

# numba's own types do not list the last two: kernels that take a pool compile twice as fast without these wrappers.
OUTER: dict[str, Any] = {"cache": True, "nogil": True, "no_cfunc_wrapper": True}
INNER: dict[str, Any] = {**OUTER, "no_cpython_wrapper": True}  # for what only kernels call

Singles = NDArray[np.float32]
LEVELS, TOP, BUILT, QUICK, SCANNED, LAST = range(6)


class Pool(NamedTuple):
    """Records without a group. Level 0 of the tree is its root, the last level are the leaves."""

    columns: Floats  # (leaves, d, LEAF)
    quick: Singles  # (leaves, 1 + d or one more, LEAF): half the squared norm, then the columns, from the origin
    ids: Ints  # (leaves, LEAF): the records
    radius: Floats  # (leaves, LEAF): their distances to the centre
    place: Ints  # leaf · LEAF + slot of each record, -1 once it has left
    left: Ints  # records left below each node
    low: Floats  # (d, nodes): bounding boxes
    high: Floats
    reach: Floats  # greatest distance to the centre below each node
    norm: Floats  # (leaves,): greatest distance to the origin when the tree was built
    start: Ints  # first node of each level
    shape: Ints  # LEVELS below the root, halvings to the first (TOP), records when BUILT, whether float32 is of use
    # (QUICK), leaves SCANNED for the farthest from the centroid since the centre was set, for the LAST farthest record
    centre: Floats  # (d,): the centre that radius and reach refer to
    origin: Floats  # (d,): the centroid when the tree was built
    total: Floats  # (d,): sum of the records left


@njit(**OUTER)
def pool_new(X: Floats) -> Pool:
    """Put all records into the pool; the centre is their centroid."""
    n, d = X.shape
    leaves = 1 << _halvings(n)
    nodes = 2 * leaves
    pool = Pool(
        np.empty((leaves, d, LEAF)),
        np.zeros((leaves, 1 + d + d % 2, LEAF), dtype=np.float32),
        np.empty((leaves, LEAF), dtype=np.int64),
        np.empty((leaves, LEAF)),
        np.empty(n, dtype=np.int64),
        np.zeros(nodes, dtype=np.int64),
        np.empty((d, nodes)),
        np.empty((d, nodes)),
        np.zeros(nodes),
        np.zeros(leaves),
        np.zeros(32, dtype=np.int64),
        np.zeros(6, dtype=np.int64),
        np.zeros(d),
        np.zeros(d),
        np.zeros(d),
    )
    for i in range(n):
        for j in range(d):
            pool.total[j] += X[i, j]
    _build(X, np.arange(n), pool)
    return pool


@njit(**INNER)
def _halvings(n: int) -> int:
    bits = 0
    while LEAF << bits < n:
        bits += 1
    return bits


@njit(**INNER)
def _build(X: Floats, ids: Ints, pool: Pool) -> None:
    """Build the tree of some rows, the records with the numbers `ids`."""
    n = len(X)
    bits = _halvings(n)
    levels = (bits + FAN - 1) // FAN
    top = bits - FAN * (levels - 1) if levels > 0 else 0
    pool.shape[LEVELS], pool.shape[TOP], pool.shape[BUILT] = levels, top, n
    pool.start[0], pool.start[1] = 0, 1
    for level in range(1, levels + 1):
        pool.start[level + 1] = pool.start[level] + (1 << top + FAN * (level - 1))
    for j in range(X.shape[1]):
        pool.origin[j] = pool.total[j] / n
    rows, begin = _halve(X, bits)
    reach = 0.0
    for leaf in range(1 << bits):
        _fill(X, ids, rows[begin[leaf] : begin[leaf + 1]], leaf, pool)
        reach = max(reach, pool.norm[leaf])
    pool.shape[QUICK] = X.shape[1] > FLAT and 1 / GREAT < reach < GREAT
    for level in range(levels - 1, -1, -1):
        for node in range(pool.start[level], pool.start[level + 1]):
            first, last = _children(pool, level, node)
            pool.left[node] = 0
            for child in range(first, last):
                pool.left[node] += pool.left[child]
            for j in range(X.shape[1]):
                _enclose(pool.low[j], pool.high[j], node, first, last)
    _set_centre(pool)


@njit(**INNER)
def _halve(X: Floats, bits: int) -> tuple[Ints, Ints]:
    """Halve the rows again and again by the column that spreads most in a sample; return them and the leaves' ends."""
    n, d = X.shape
    rows, keys = np.arange(n), np.empty((n, 1))
    begin = np.zeros((1 << bits) + 1, dtype=np.int64)
    begin[1] = n
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
    return rows, begin


@njit(**INNER)
def _fill(X: Floats, ids: Ints, rows: Ints, leaf: int, pool: Pool) -> None:
    """Put rows into a leaf."""
    node = pool.start[pool.shape[LEVELS]] + leaf
    pool.left[node] = len(rows)
    reach = 0.0
    for slot in range(len(rows)):
        record = ids[rows[slot]]
        pool.ids[leaf, slot] = record
        pool.place[record] = leaf * LEAF + slot
        norm = 0.0
        for j in range(X.shape[1]):
            value = X[rows[slot], j]
            delta = value - pool.origin[j]
            norm += delta * delta
            pool.columns[leaf, j, slot] = value
            pool.quick[leaf, 1 + j, slot] = delta
        pool.quick[leaf, 0, slot] = norm / 2
        reach = max(reach, norm)
    pool.norm[leaf] = np.sqrt(reach) * (1 + ROUNDING)
    _pad(pool, leaf, len(rows))
    for j in range(X.shape[1]):
        low, high = np.inf, -np.inf
        for slot in range(len(rows)):
            low, high = min(low, pool.columns[leaf, j, slot]), max(high, pool.columns[leaf, j, slot])
        pool.low[j, node], pool.high[j, node] = low, high


@njit(**INNER)
def _padded(size: int) -> int:
    return (size + STEP - 1) // STEP * STEP


@njit(**INNER)
def _pad(pool: Pool, leaf: int, size: int) -> None:
    """Fill the slots after the last record with copies of the first: they change neither least nor greatest."""
    for j in range(pool.quick.shape[1]):
        for slot in range(size, _padded(size)):
            pool.quick[leaf, j, slot] = pool.quick[leaf, j, 0]


@njit(**INNER)
def _children(pool: Pool, level: int, node: int) -> tuple[int, int]:
    """Return the first child of a node and the one after the last."""
    bits = FAN if level > 0 else pool.shape[TOP]
    first = pool.start[level + 1] + ((node - pool.start[level]) << bits)
    return first, first + (1 << bits)


@njit(fastmath=ORDER, **INNER)
def _enclose(low: Floats, high: Floats, node: int, first: int, last: int) -> None:
    """Make one side of a node's box hold those of its children."""
    least, greatest = np.inf, -np.inf
    for child in range(first, last):
        least, greatest = min(least, low[child]), max(greatest, high[child])
    low[node], high[node] = least, greatest


@njit(fastmath=ORDER, **INNER)
def _reach_of(pool: Pool, first: int, last: int) -> float:
    """Return the greatest reach of some nodes."""
    reach = 0.0
    for child in range(first, last):
        reach = max(reach, pool.reach[child])
    return reach


@njit(**INNER)
def _set_centre(pool: Pool) -> None:
    """Make the centroid of the records left the centre."""
    centre = pool_centroid(pool)
    for j in range(len(centre)):
        pool.centre[j] = centre[j]
    pool.shape[SCANNED] = 0
    levels = pool.shape[LEVELS]
    block = np.empty(LEAF)
    for node in range(pool.start[levels], pool.start[levels + 1]):
        leaf = node - pool.start[levels]
        block_distances(pool.columns[leaf], 0, pool.left[node], centre, block)
        reach = 0.0
        for slot in range(pool.left[node]):
            pool.radius[leaf, slot] = np.sqrt(block[slot])
            reach = max(reach, pool.radius[leaf, slot])
        pool.reach[node] = reach
    for level in range(levels - 1, -1, -1):
        for node in range(pool.start[level], pool.start[level + 1]):
            first, last = _children(pool, level, node)
            pool.reach[node] = _reach_of(pool, first, last)


@njit(**OUTER)
def pool_centroid(pool: Pool) -> Floats:
    """Return the mean of the records left."""
    centre = np.empty(len(pool.total))
    for j in range(len(centre)):
        centre[j] = pool.total[j] / pool.left[0]
    return centre


@njit(**OUTER)
def pool_take(pool: Pool, records: Ints, group: int, labels: Ints) -> None:
    """Give records their group and remove them."""
    for i in range(len(records)):
        labels[records[i]] = group
        pool_remove(pool, records[i])


@njit(**OUTER)
def pool_remove(pool: Pool, record: int) -> None:
    """Remove a record; the tree stays tight."""
    leaf, slot = divmod(pool.place[record], LEAF)
    levels = pool.shape[LEVELS]
    last = pool.left[pool.start[levels] + leaf] - 1
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
    if pool.shape[QUICK]:
        for j in range(1 + d):
            pool.quick[leaf, j, slot] = pool.quick[leaf, j, last]
        _pad(pool, leaf, last)
    _shrink(pool, leaf, gone, radius)


@njit(**INNER)
def _shrink(pool: Pool, leaf: int, gone: Floats, radius: float) -> None:
    """Count a record off and make bounds tight again, from its leaf to the root, as far as it touched them."""
    levels = pool.shape[LEVELS]
    node = pool.start[levels] + leaf
    pool.left[node] -= 1
    touched = radius == pool.reach[node]
    if touched:
        reach = 0.0
        for slot in range(pool.left[node]):
            reach = max(reach, pool.radius[leaf, slot])
        pool.reach[node] = reach
    for j in range(len(gone)):
        if gone[j] == pool.low[j, node] or gone[j] == pool.high[j, node]:
            touched = True
            low, high = np.inf, -np.inf
            for slot in range(pool.left[node]):
                low, high = min(low, pool.columns[leaf, j, slot]), max(high, pool.columns[leaf, j, slot])
            pool.low[j, node], pool.high[j, node] = low, high
    for level in range(levels - 1, -1, -1):
        node = pool.start[level] + ((node - pool.start[level + 1]) >> (FAN if level > 0 else pool.shape[TOP]))
        pool.left[node] -= 1
        if not touched:
            continue
        first, last = _children(pool, level, node)
        touched = radius == pool.reach[node]
        if touched:
            pool.reach[node] = _reach_of(pool, first, last)
        for j in range(len(gone)):
            if gone[j] == pool.low[j, node] or gone[j] == pool.high[j, node]:
                touched = True
                _enclose(pool.low[j], pool.high[j], node, first, last)


@njit(**OUTER)
def pool_untidy(pool: Pool) -> bool:
    """Tell whether half of the records have left since the tree was built; in few columns, most of them."""
    n, times = pool.left[0], 2 if len(pool.total) > FLAT else 8
    return bool(pool.shape[LEVELS] > 1 and n > 0 and times * n <= pool.shape[BUILT])


@njit(**OUTER)
def pool_tidy(pool: Pool) -> None:
    """Build the tree anew from the records left, in the same arrays, if that pays. Queries stay right without it."""
    if not pool_untidy(pool):
        return
    n, d = pool.left[0], len(pool.total)
    rows, ids = np.empty((n, d)), np.empty(n, dtype=np.int64)
    levels = pool.shape[LEVELS]
    row = 0
    for node in range(pool.start[levels], pool.start[levels + 1]):
        leaf = node - pool.start[levels]
        for slot in range(pool.left[node]):
            ids[row] = pool.ids[leaf, slot]
            for j in range(d):
                rows[row, j] = pool.columns[leaf, j, slot]
            row += 1
    _build(rows, ids, pool)


@njit(**OUTER)
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


@njit(fastmath=LOOSE, **INNER)
def _scores(quick: Singles, point: Singles, scores: Singles) -> None:
    """Write |x|²/2 − x·p for the records of a leaf, in float32; four columns at a time, for fewer stores."""
    size = len(scores)
    norms, a, b = quick[0, :size], quick[1, :size], quick[2, :size]
    p, q = point[0], point[1]
    for i in range(size):
        scores[i] = norms[i] - (a[i] * p + b[i] * q)
    j = 2
    if len(point) % 4 == 0:
        a, b = quick[3, :size], quick[4, :size]
        p, q = point[2], point[3]
        for i in range(size):
            scores[i] -= a[i] * p + b[i] * q
        j = 4
    while j < len(point):
        a, b, c, d = quick[1 + j, :size], quick[2 + j, :size], quick[3 + j, :size], quick[4 + j, :size]
        p, q, r, s = point[j], point[j + 1], point[j + 2], point[j + 3]
        for i in range(size):
            scores[i] -= (a[i] * p + b[i] * q) + (c[i] * r + d[i] * s)
        j += 4


@njit(fastmath=LOOSE, **INNER)
def _least(scores: Singles) -> float:
    least = scores[0]
    for i in range(len(scores)):
        least = min(least, scores[i])
    return float(least)


@njit(fastmath=LOOSE, **INNER)
def _greatest(scores: Singles) -> float:
    greatest = scores[0]
    for i in range(len(scores)):
        greatest = max(greatest, scores[i])
    return float(greatest)


@njit(**INNER)
def _quick_point(pool: Pool, point: Floats) -> tuple[Singles, float]:
    """Return a point from the origin in float32, and its distance to the origin; inf if float32 is of no use."""
    d = len(point)
    quick = np.zeros(d + d % 2, dtype=np.float32)
    square = 0.0
    for j in range(d):
        delta = point[j] - pool.origin[j]
        quick[j] = delta
        square += delta * delta
    offset = np.sqrt(square)
    return quick, offset if pool.shape[QUICK] and offset < GREAT else np.inf


@njit(**INNER)
def _doubt(pool: Pool, leaf: int, offset: float) -> float:
    """Return how much a squared distance from float32 can be off, for a point at a distance `offset` to the origin.

    With x and p counted from the origin, |x − p|² = |p|² + 2 (|x|²/2 − x·p). Rounding each number to float32, and each
    sum of d + 1 products, costs at most (d + 4) · UNIT · (|x| + |p|)², whatever the order of the sum.
    """
    width = offset + pool.norm[leaf]
    doubt: float = (pool.columns.shape[1] + 8) * UNIT * width * width + TINY
    return doubt


@njit(**INNER)
def _insert(distance: float, record: int, near: Floats, near_ids: Ints) -> None:
    """Put a record into the ascending list of the nearest, dropping the last."""
    t = len(near) - 1
    while t > 0 and (near[t - 1] > distance or (near[t - 1] == distance and near_ids[t - 1] > record)):
        near[t] = near[t - 1]
        near_ids[t] = near_ids[t - 1]
        t -= 1
    near[t] = distance
    near_ids[t] = record


@njit(**INNER)
def _at_least(pool: Pool, first: int, last: int, point: Floats, out: Floats) -> None:
    """Bound the squared distances from a point to the records below some nodes from below."""
    bounds = out[: last - first]
    for i in range(last - first):
        bounds[i] = 0.0
    for j in range(len(point)):
        p = point[j]
        low, high = pool.low[j, first:last], pool.high[j, first:last]
        for i in range(last - first):
            below, above = low[i] - p, p - high[i]
            # Choices by hand become vector instructions, max() becomes branches; so below.
            outside = below > above
            delta = below if outside else above
            away = delta > 0.0
            delta = delta if away else 0.0
            bounds[i] += delta * delta


@njit(fastmath={"contract", "reassoc"}, **INNER)
def _at_most(pool: Pool, first: int, last: int, ahead: Floats, offset: float, out: Floats) -> None:
    """Bound the same distances from above, `ahead` being the vector from the point to the centre, `offset` its length.

    With y = x − c, c the centre and a = c − p, |x − p|² = |a|² + |y|² + 2 a·y, where y lies in a box and |y| is at most
    the reach ρ. For any μ ≥ 0 that is at most |a|² + ρ² + μ ρ² + Σ max (2 a y − μ y²) over each side of the box: the
    best of box and ball in one (a Lagrangian bound). The μ taken suits the ball of all records.
    """
    bounds, reach = out[: last - first], pool.reach[first:last]
    mu = 0.6 * offset / pool.reach[0] if pool.reach[0] > 0.0 else 0.0
    for i in range(last - first):
        width = offset + reach[i]
        bounds[i] = offset * offset + (1.0 + mu) * (reach[i] * reach[i] + ROUNDING * width * width)
    for j in range(len(ahead)):
        centre, a = pool.centre[j], ahead[j]
        best = a / mu if mu > 0.0 else np.copysign(np.inf, a)
        low, high = pool.low[j, first:last], pool.high[j, first:last]
        for i in range(last - first):
            least, greatest = low[i] - centre, high[i] - centre
            above = best > least
            y = best if above else least
            below = y < greatest
            y = y if below else greatest
            bounds[i] += y * (2.0 * a - mu * y)


@njit(**INNER)
def _push(bounds: Floats, nodes: Ints, levels: Ints, base: int, top: int, bound: float, node: int, level: int) -> int:
    """Push a node onto the stack, above `base` in ascending order of the bounds; return the stack's top."""
    t = top
    while t > base and bounds[t] > bound:
        bounds[t + 1], nodes[t + 1], levels[t + 1] = bounds[t], nodes[t], levels[t]
        t -= 1
    bounds[t + 1], nodes[t + 1], levels[t + 1] = bound, node, level
    return top + 1


@njit(**OUTER)
def pool_nearest(pool: Pool, point: Floats, near: Floats, near_ids: Ints) -> None:
    """Find the records nearest to a point, as many as `near` holds, ascending."""
    wanted = len(near)
    for i in range(wanted):
        near[i] = np.inf
        near_ids[i] = NOBODY
    quick, offset = _quick_point(pool, point)
    bounds, nodes, levels = np.empty(STACK), np.empty(STACK, dtype=np.int64), np.empty(STACK, dtype=np.int64)
    block, scores, fan = np.empty(LEAF), np.empty(LEAF, dtype=np.float32), np.empty(1 << FAN)
    # The stack holds bounds with the sign turned: the nearest node is on top.
    top = _push(bounds, nodes, levels, -1, -1, 0.0, 0, 0)
    while top >= 0:
        bound, node, level = -bounds[top], nodes[top], levels[top]
        top -= 1
        size = pool.left[node]
        if bound > near[wanted - 1] or size == 0:
            continue
        if level < pool.shape[LEVELS]:
            first, last = _children(pool, level, node)
            _at_least(pool, first, last, point, fan)
            base = top
            for i in range(last - first):
                if fan[i] <= near[wanted - 1]:
                    top = _push(bounds, nodes, levels, base, top, -fan[i], first + i, level + 1)
            continue
        leaf = node - pool.start[level]
        if offset < np.inf:
            _scores(pool.quick[leaf], quick, scores[: _padded(size)])
            least = offset * offset + 2.0 * _least(scores[: _padded(size)])
            if least - _doubt(pool, leaf, offset) > near[wanted - 1]:
                continue
        block_distances(pool.columns[leaf], 0, size, point, block)
        for i in range(size):
            if block[i] <= near[wanted - 1]:
                record = pool.ids[leaf, i]
                if block[i] < near[wanted - 1] or record < near_ids[wanted - 1]:
                    _insert(block[i], record, near, near_ids)


@njit(**OUTER)
def pool_farthest(pool: Pool, point: Floats) -> int:
    """Return the record farthest from a point."""
    farthest, reach, scanned = NOBODY, -1.0, 0
    quick, offset = _quick_point(pool, point)
    ahead = np.empty(len(point))
    for j in range(len(point)):
        ahead[j] = pool.centre[j] - point[j]
    away = np.sqrt(squared_distance(pool.centre, point))
    bounds, nodes, levels = np.empty(STACK), np.empty(STACK, dtype=np.int64), np.empty(STACK, dtype=np.int64)
    block, scores, fan = np.empty(LEAF), np.empty(LEAF, dtype=np.float32), np.empty(1 << FAN)
    top = _push(bounds, nodes, levels, -1, -1, np.inf, 0, 0)
    while top >= 0:
        bound, node, level = bounds[top], nodes[top], levels[top]
        top -= 1
        size = pool.left[node]
        if bound < reach or size == 0:
            continue
        if level < pool.shape[LEVELS]:
            first, last = _children(pool, level, node)
            _at_most(pool, first, last, ahead, away, fan)
            base = top
            for i in range(last - first):
                if fan[i] >= reach:
                    top = _push(bounds, nodes, levels, base, top, fan[i], first + i, level + 1)
            continue
        leaf = node - pool.start[level]
        scanned += 1
        if offset < np.inf:
            _scores(pool.quick[leaf], quick, scores[: _padded(size)])
            greatest = offset * offset + 2.0 * _greatest(scores[: _padded(size)])
            if greatest + _doubt(pool, leaf, offset) < reach:
                continue
        block_distances(pool.columns[leaf], 0, size, point, block)
        for i in range(size):
            if block[i] >= reach:
                record = pool.ids[leaf, i]
                if block[i] > reach or record < farthest:
                    farthest, reach = record, block[i]
    pool.shape[LAST] = scanned
    return farthest


@njit(**OUTER)
def pool_farthest_from_centroid(pool: Pool) -> int:
    """Return the record farthest from the mean of those left.

    The centroid drifts away from the centre as records leave. Once that has cost as many scans as there are leaves, the
    centre is set anew.
    """
    farthest: int = pool_farthest(pool, pool_centroid(pool))
    pool.shape[SCANNED] += pool.shape[LAST]
    levels = pool.shape[LEVELS]
    if pool.shape[SCANNED] > pool.start[levels + 1] - pool.start[levels]:
        _set_centre(pool)
    return farthest
