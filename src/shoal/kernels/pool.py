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

Compiling costs more than most tables. So the tree is built from Python, by kernels that are compiled on their own, and
queries are pasted into the kernels that ask them: best from one place in each.

Building costs O(d n log n), a removal O(d LEAF) and mostly much less; memory is O(n d).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.core.compiling import kernel
from shoal.core.types import Floats, Ints
from shoal.kernels.select import select_nth
from shoal.kernels.vector import greater, lesser

__all__ = [
    "Pool",
    "block_distances",
    "insert",
    "look_from",
    "pool_centroid",
    "pool_farthest",
    "pool_farthest_from_centroid",
    "pool_mean",
    "pool_nearest",
    "pool_new",
    "pool_remove",
    "pool_tidy",
    "pool_twin",
    "pool_untidy",
    "squared_distance",
]

LEAF = 64
FAN = 4  # halvings between two levels that are kept
STEP = 16  # slots are looked at in float32 in multiples of this
FLAT = 3  # up to so many columns float32 saves nothing, and building anew pays late
PATIENCE = 50  # scans that are no cause yet to set the centre anew
SAMPLE = 200  # records that decide which column spreads most
NOBODY = np.iinfo(np.int64).max
ROUNDING = 1e-9  # far more than the bound by box and ball is rounded, for any sensible number of columns
UNIT = 2.0**-24  # of a float32
GREAT, TINY = 1e15, 1e-35  # beyond the first squares leave float32; products below the second vanish in it
LEAST = 1e-300  # more than squares lose that are too small to be exact
STACK = 256  # levels × children, at most
LOOSE = {"contract", "reassoc", "nnan", "ninf", "nsz"}  # for what is rounded anyhow

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
    # What a query writes to, lest it ask for memory each time; so no two queries of one pool at once.
    mean: Floats  # (d,): the centroid
    ahead: Floats  # (d,): from the point to the centre
    single: Singles  # (d or one more,): the point from the origin
    scores: Singles  # (LEAF,): see `_scores`
    block: Floats  # (LEAF,): distances
    fan: Floats  # (children of a node,): bounds
    bounds: Floats  # (STACK,): of the nodes still to look at
    nodes: Ints


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
        np.empty(d),
        np.empty(d),
        np.zeros(d + d % 2, dtype=np.float32),
        np.empty(LEAF, dtype=np.float32),
        np.empty(LEAF),
        np.empty(1 << FAN),
        np.empty(STACK),
        np.empty(STACK, dtype=np.int64),
    )
    _build(X, np.arange(n), pool)
    return pool


def _halvings(n: int) -> int:
    bits = 0
    while LEAF << bits < n:
        bits += 1
    return bits


def _build(X: Floats, ids: Ints, pool: Pool) -> None:
    """Build the tree of some rows, the records with the numbers `ids`."""
    n = len(X)
    bits = _halvings(n)
    levels = (bits + FAN - 1) // FAN
    top = bits - FAN * (levels - 1) if levels > 0 else 0
    pool.shape[:] = levels, top, n, 0, 0, 0
    pool.start[:2] = 0, 1
    for level in range(1, levels + 1):
        pool.start[level + 1] = pool.start[level] + (1 << top + FAN * (level - 1))
    rows = np.arange(n)
    begin = np.zeros((1 << bits) + 1, dtype=np.int64)
    begin[1] = n
    _halve(X, bits, np.empty((n, 1)), rows, begin)
    _fill(X, ids, rows, begin, pool)
    _set_centre(pool)


@kernel(counted=False)
def _halve(X: Floats, bits: int, keys: Floats, rows: Ints, begin: Ints) -> None:
    """Halve the rows again and again by the column that spreads most in a sample, and write where parts begin."""
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
    """Put rows into the leaves, and boxes around them."""
    n, d = X.shape
    levels = pool.shape[LEVELS]
    if pool.left[0] == 0:
        for i in range(n):
            for j in range(d):
                pool.total[j] += X[i, j]
    for j in range(d):
        pool.origin[j] = pool.total[j] / n
    farthest = 0.0
    for leaf in range(len(begin) - 1):
        node = pool.start[levels] + leaf
        size = begin[leaf + 1] - begin[leaf]
        pool.left[node] = size
        reach = 0.0
        for slot in range(size):
            row = rows[begin[leaf] + slot]
            record = ids[row]
            pool.ids[leaf, slot] = record
            pool.place[record] = leaf * LEAF + slot
            norm = 0.0
            for j in range(d):
                delta = X[row, j] - pool.origin[j]
                norm += delta * delta
                pool.columns[leaf, j, slot] = X[row, j]
                pool.quick[leaf, 1 + j, slot] = delta
            pool.quick[leaf, 0, slot] = norm / 2
            reach = max(reach, norm)
        pool.norm[leaf] = np.sqrt(reach) * (1 + ROUNDING)
        farthest = max(farthest, pool.norm[leaf])
        _pad(pool.quick[leaf], size)
        for j in range(d):
            _enclose(pool.columns[leaf, j], pool.columns[leaf, j], 0, size, pool.low[j], pool.high[j], node)
    pool.shape[QUICK] = d > FLAT and 1 / GREAT < farthest < GREAT
    for level in range(levels - 1, -1, -1):
        for node in range(pool.start[level], pool.start[level + 1]):
            first, last = _children(pool.start, pool.shape[TOP], node)
            pool.left[node] = 0
            for child in range(first, last):
                pool.left[node] += pool.left[child]
            for j in range(d):
                _enclose(pool.low[j], pool.high[j], first, last, pool.low[j], pool.high[j], node)


@kernel(counted=False, inner=True)
def _padded(size: int) -> int:
    return (size + STEP - 1) // STEP * STEP


@kernel(counted=False, inner=True)
def _pad(quick: Singles, size: int) -> None:
    """Fill the slots of a leaf after the last record with copies of the first: least and greatest stay the same."""
    for j in range(len(quick)):
        for slot in range(size, _padded(size)):
            quick[j, slot] = quick[j, 0]


@kernel(counted=False, inner=True)
def _children(start: Ints, top: int, node: int) -> tuple[int, int]:
    """Return the first child of a node and the one after the last."""
    level = 0
    while node >= start[level + 1]:
        level += 1
    bits = FAN if level > 0 else top
    first = start[level + 1] + ((node - start[level]) << bits)
    return first, first + (1 << bits)


@kernel(counted=False, inner=True)
def _enclose(lows: Floats, highs: Floats, first: int, last: int, low: Floats, high: Floats, node: int) -> None:
    """Make one side of a node's box hold those of its children, or the values of its records."""
    least, greatest = np.inf, -np.inf
    for child in range(first, last):
        least, greatest = lesser(least, lows[child]), greater(greatest, highs[child])
    low[node], high[node] = least, greatest


@kernel(counted=False, inner=True)
def _reach_of(reaches: Floats, first: int, last: int) -> float:
    """Return the greatest reach of some nodes or records."""
    reach = 0.0
    for child in range(first, last):
        reach = greater(reach, reaches[child])
    return reach


@kernel(counted=False)
def _set_centre(pool: Pool) -> None:
    """Make the centroid of the records left the centre."""
    for j in range(len(pool.total)):
        pool.centre[j] = pool.total[j] / pool.left[0]
    pool.shape[SCANNED] = 0
    levels = pool.shape[LEVELS]
    for level in range(levels, -1, -1):
        for node in range(pool.start[level], pool.start[level + 1]):
            first, last = 0, 0
            reaches = pool.reach
            if level == levels:
                leaf = node - pool.start[levels]
                last = pool.left[node]
                reaches = pool.radius[leaf]
                block_distances(pool.columns[leaf], 0, last, pool.centre, reaches)
                for slot in range(last):
                    reaches[slot] = np.sqrt(reaches[slot])
            else:
                first, last = _children(pool.start, pool.shape[TOP], node)
            pool.reach[node] = _reach_of(reaches, first, last)


def pool_twin(pool: Pool) -> Pool:
    """Return the same pool with arrays of its own for queries to write to; what `shape` holds must be kept the same."""
    own = ("shape", "mean", "ahead", "single", "scores", "block", "fan", "bounds", "nodes")
    return pool._replace(**{name: getattr(pool, name).copy() for name in own})


def pool_centroid(pool: Pool) -> Floats:
    """Return the mean of the records left."""
    mean: Floats = pool.total / pool.left[0]
    return mean


@kernel(inline=True)
def pool_mean(pool: Pool) -> Floats:
    """Return the mean of the records left, in an array of the pool."""
    mean, total, left = pool.mean, pool.total, pool.left[0]
    for j in range(len(mean)):
        mean[j] = total[j] / left
    return mean


@kernel(inline=True)
def pool_remove(pool: Pool, record: int) -> None:
    """Remove a record; the tree stays tight."""
    place, ids, total, quick, radii = pool.place, pool.ids, pool.total, pool.quick, pool.radius
    leaf, slot = place[record] // LEAF, place[record] % LEAF
    left, start, reach, low, high, columns = pool.left, pool.start, pool.reach, pool.low, pool.high, pool.columns[leaf]
    levels = pool.shape[LEVELS]
    last = left[start[levels] + leaf] - 1
    mover = ids[leaf, last]
    # The two change places: what leaves can still be read behind the last.
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
    if pool.shape[QUICK]:
        for j in range(1 + len(total)):
            quick[leaf, j, slot] = quick[leaf, j, last]
        _pad(quick[leaf], last)
    # Make bounds that the record touched tight again, up to the root.
    node = start[levels] + leaf
    left[node] = last
    touched = radius == reach[node]
    if touched:
        reach[node] = _reach_of(radii[leaf], 0, last)
    for j in range(len(columns)):
        gone = columns[j, last]
        if gone == low[j, node] or gone == high[j, node]:
            touched = True
            _enclose(columns[j], columns[j], 0, last, low[j], high[j], node)
    for level in range(levels - 1, -1, -1):
        bits = FAN if level > 0 else pool.shape[TOP]
        node = start[level] + ((node - start[level + 1]) >> bits)
        left[node] -= 1
        if touched:
            first = start[level + 1] + ((node - start[level]) << bits)
            end = first + (1 << bits)
            touched = radius == reach[node]
            if touched:
                reach[node] = _reach_of(reach, first, end)
            for j in range(len(columns)):
                gone = columns[j, last]
                if gone == low[j, node] or gone == high[j, node]:
                    touched = True
                    _enclose(low[j], high[j], first, end, low[j], high[j], node)


@kernel(inline=True)
def pool_untidy(pool: Pool) -> int:
    """Tell whether `pool_tidy` has something to do: to set the centre anew (1) or the whole tree (2).

    The tree, once half of the records have left, in few columns most of them. The centre, once the centroid's drift
    away from it has cost as many scans as there are leaves, and a few.
    """
    start, shape = pool.start, pool.shape
    n, levels, times = pool.left[0], shape[LEVELS], 2 if len(pool.total) > FLAT else 8
    if levels > 1 and n > 0 and times * n <= shape[BUILT]:
        return 2
    return int(n > 0 and shape[SCANNED] > start[levels + 1] - start[levels] + PATIENCE)


def pool_tidy(pool: Pool) -> None:
    """Build the tree anew from the records left, or set its centre anew, if that pays. Queries stay right without."""
    due = pool_untidy.py_func(pool)
    if due == 2:
        levels = pool.shape[LEVELS]
        sizes = pool.left[pool.start[levels] : pool.start[levels + 1]]
        held = np.arange(LEAF) < sizes[:, np.newaxis]
        rows = pool.columns[: len(sizes)].transpose(0, 2, 1)[held]
        _build(np.ascontiguousarray(rows), pool.ids[: len(sizes)][held], pool)
    elif due == 1:
        _set_centre(pool)


@kernel(counted=False)
def squared_distance(a: Floats, b: Floats) -> float:
    """Add up squared differences, column by column: every distance in this package is added up in this order."""
    distance = 0.0
    for j in range(len(a)):
        delta = a[j] - b[j]
        distance += delta * delta
    return distance


@kernel(counted=False)
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


@kernel(counted=False, inner=True, fastmath=LOOSE)
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


@kernel(counted=False, inner=True, fastmath=LOOSE)
def _quick_bound(scores: Singles, d: int, sign: float, offset: float, norm: float) -> float:
    """Bound `sign` times the squared distances to the records of a leaf from below, the point being at `offset`.

    With x and p counted from the origin, |x − p|² = |p|² + 2 (|x|²/2 − x·p). Rounding each number to float32, and each
    sum of d + 1 products, costs at most (d + 4) · UNIT · (|x| + |p|)², whatever the order of the sum.
    """
    single = np.float32(sign)
    least = single * scores[0]
    for i in range(len(scores)):
        least = lesser(least, single * scores[i])
    width = offset + norm
    bound: float = sign * offset * offset + 2.0 * least - ((d + 8) * UNIT * width * width + TINY)
    return bound


@kernel(counted=False, inner=True)
def look_from(origin: Floats, point: Floats, single: Singles) -> float:
    """Write a point from the origin in float32; return its distance to the origin, inf if float32 is of no use."""
    square = 0.0
    for j in range(len(point)):
        delta = point[j] - origin[j]
        single[j] = delta
        square += delta * delta
    offset = np.sqrt(square)
    return float(offset if offset < GREAT else np.inf)


@kernel(counted=False, inner=True)
def insert(distance: float, record: int, near: Floats, near_ids: Ints) -> None:
    """Put a record into the ascending list of the nearest, dropping the last."""
    t = len(near) - 1
    while t > 0 and (near[t - 1] > distance or (near[t - 1] == distance and near_ids[t - 1] > record)):
        near[t] = near[t - 1]
        near_ids[t] = near_ids[t - 1]
        t -= 1
    near[t] = distance
    near_ids[t] = record


@kernel(counted=False, inner=True)
def _at_least(low_sides: Floats, high_sides: Floats, first: int, last: int, point: Floats, out: Floats) -> None:
    """Bound the squared distances from a point to the records below some nodes from below."""
    bounds = out[: last - first]
    for i in range(last - first):
        bounds[i] = 0.0
    for j in range(len(point)):
        p = point[j]
        low, high = low_sides[j, first:last], high_sides[j, first:last]
        for i in range(last - first):
            below, above = low[i] - p, p - high[i]
            # Choices by hand become vector instructions, max() becomes branches; so below.
            outside = below > above
            delta = below if outside else above
            away = delta > 0.0
            delta = delta if away else 0.0
            bounds[i] += delta * delta


@kernel(counted=False, inner=True, fastmath={"contract", "reassoc"})
def _at_most(
    low_sides: Floats,
    high_sides: Floats,
    reaches: Floats,
    middle: Floats,
    first: int,
    last: int,
    ahead: Floats,
    offset: float,
    out: Floats,
) -> None:
    """Bound the same distances from above, `ahead` being the vector from the point to the centre, `offset` its length.

    With y = x − c, c the centre and a = c − p, |x − p|² = |a|² + |y|² + 2 a·y, where y lies in a box and |y| is at most
    the reach ρ. For any μ ≥ 0 that is at most |a|² + ρ² + μ ρ² + Σ max (2 a y − μ y²) over each side of the box: the
    best of box and ball in one (a Lagrangian bound). The μ taken suits the ball of all records.
    """
    bounds, reach = out[: last - first], reaches[first:last]
    mu = 0.6 * offset / reaches[0] if reaches[0] > 0.0 else 0.0
    for i in range(last - first):
        width = offset + reach[i]
        bounds[i] = offset * offset + (1.0 + mu) * (reach[i] * reach[i] + ROUNDING * width * width) + LEAST
    for j in range(len(ahead)):
        centre, a = middle[j], ahead[j]
        best = a / mu if mu > 0.0 else np.copysign(np.inf, a)
        low, high = low_sides[j, first:last], high_sides[j, first:last]
        for i in range(last - first):
            least, greatest = low[i] - centre, high[i] - centre
            above = best > least
            y = best if above else least
            below = y < greatest
            y = y if below else greatest
            bounds[i] += y * (2.0 * a - mu * y)


@kernel(counted=False, inner=True)
def _push(bounds: Floats, nodes: Ints, base: int, top: int, bound: float, node: int) -> None:
    """Put a node onto the stack, above `base` in ascending order of the bounds, below `top`."""
    t = top
    while t > base and bounds[t] > bound:
        bounds[t + 1], nodes[t + 1] = bounds[t], nodes[t]
        t -= 1
    bounds[t + 1], nodes[t + 1] = bound, node


@kernel(inline=True)
def pool_nearest(pool: Pool, point: Floats, near: Floats, near_ids: Ints) -> None:
    """Find the records nearest to a point, as many as `near` holds, ascending."""
    left, start, ids, block, scores, fan = pool.left, pool.start, pool.ids, pool.block, pool.scores, pool.fan
    bounds, nodes = pool.bounds, pool.nodes
    end = len(near) - 1
    for i in range(end + 1):
        near[i] = np.inf
        near_ids[i] = NOBODY
    offset = look_from(pool.origin, point, pool.single) if pool.shape[QUICK] else np.inf
    leaves = start[pool.shape[LEVELS]]
    # The stack holds bounds with the sign turned: the nearest node is on top.
    bounds[0], nodes[0], top = 0.0, 0, 0
    while top >= 0:
        node = nodes[top]
        size = left[node]
        top -= 1
        if -bounds[top + 1] > near[end] or size == 0:
            continue
        if node < leaves:
            first, last = _children(start, pool.shape[TOP], node)
            _at_least(pool.low, pool.high, first, last, point, fan)
            base = top
            for i in range(last - first):
                if fan[i] <= near[end]:
                    _push(bounds, nodes, base, top, -fan[i], first + i)
                    top += 1
            continue
        leaf = node - leaves
        if offset < np.inf:
            used = scores[: _padded(size)]
            _scores(pool.quick[leaf], pool.single, used)
            least = _quick_bound(used, len(point), 1.0, offset, pool.norm[leaf])
            if least > near[end]:
                continue
        block_distances(pool.columns[leaf], 0, size, point, block)
        for i in range(size):
            if block[i] <= near[end]:
                record = ids[leaf, i]
                if block[i] < near[end] or record < near_ids[end]:
                    insert(block[i], record, near, near_ids)


@kernel(inline=True)
def pool_farthest(pool: Pool, point: Floats) -> int:
    """Return the record farthest from a point."""
    left, start, ids, block, scores, fan = pool.left, pool.start, pool.ids, pool.block, pool.scores, pool.fan
    bounds, nodes, centre, ahead = pool.bounds, pool.nodes, pool.centre, pool.ahead
    farthest, reach, scanned = NOBODY, -1.0, 0
    offset = look_from(pool.origin, point, pool.single) if pool.shape[QUICK] else np.inf
    square = 0.0
    for j in range(len(point)):
        ahead[j] = centre[j] - point[j]
        square += ahead[j] * ahead[j]
    away = np.sqrt(square)
    leaves = start[pool.shape[LEVELS]]
    bounds[0], nodes[0], top = np.inf, 0, 0
    while top >= 0:
        node = nodes[top]
        size = left[node]
        top -= 1
        if bounds[top + 1] < reach or size == 0:
            continue
        if node < leaves:
            first, last = _children(start, pool.shape[TOP], node)
            _at_most(pool.low, pool.high, pool.reach, centre, first, last, ahead, away, fan)
            base = top
            for i in range(last - first):
                if fan[i] >= reach:
                    _push(bounds, nodes, base, top, fan[i], first + i)
                    top += 1
            continue
        leaf = node - leaves
        scanned += 1
        if offset < np.inf:
            used = scores[: _padded(size)]
            _scores(pool.quick[leaf], pool.single, used)
            least = _quick_bound(used, len(point), -1.0, offset, pool.norm[leaf])
            if -least < reach:
                continue
        block_distances(pool.columns[leaf], 0, size, point, block)
        for i in range(size):
            if block[i] >= reach:
                record = ids[leaf, i]
                if block[i] > reach or record < farthest:
                    farthest, reach = record, block[i]
    pool.shape[LAST] = scanned
    return farthest


@kernel(inline=True)
def pool_farthest_from_centroid(pool: Pool) -> int:
    """Return the record farthest from the mean of those left, and count what that cost, see `_off_centre`."""
    farthest: int = pool_farthest(pool, pool_mean(pool))
    pool.shape[SCANNED] += pool.shape[LAST]
    return farthest
