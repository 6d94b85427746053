"""Queries of the pool: the records nearest to and farthest from a point.

Bounding boxes prune searches for nearest records; boxes and balls together prune searches for farthest records
(`_upper_bounds`). A leaf that cannot be pruned is scored in float32 first, at a quarter of the cost. Its distances are
computed in float64 only if the scores do not rule the leaf out.

Pruning does not change the results. A box bound adds its terms in the same order as a distance, and each term is at
most as large. Rounding preserves order, so the bound never exceeds a computed distance. The other bounds are widened by
more than their rounding error. Ties go to the lowest record number, so nodes that may contain an equal distance are
searched.
"""

from __future__ import annotations

import numpy as np

from shoal.core.compiler import kernel
from shoal.core.types import Floats, Ints
from shoal.kernels.distances import NO_RECORD, insert_nearest, squared_distances
from shoal.kernels.float32 import Floats32, score_bound, score_records, to_float32
from shoal.kernels.pool import (
    LAST_SCANNED,
    LEVELS,
    ROUNDING,
    SCANNED,
    TOP_HALVINGS,
    USE_FLOAT32,
    Pool,
    children_of,
    padded_size,
    pool_mean,
)

__all__ = ["pool_farthest", "pool_farthest_from_centroid", "pool_nearest"]

UNDERFLOW = 1e-300  # more than the loss from squares that underflow


@kernel(counted=False, inner=True)
def _lower_bounds(low_sides: Floats, high_sides: Floats, first: int, last: int, point: Floats, out: Floats) -> None:
    """Write lower bounds on the squared distances from a point to the records below some nodes."""
    bounds = out[: last - first]
    for i in range(last - first):
        bounds[i] = 0.0
    for j in range(len(point)):
        p = point[j]
        low, high = low_sides[j, first:last], high_sides[j, first:last]
        for i in range(last - first):
            below, above = low[i] - p, p - high[i]
            # Conditional expressions become vector instructions, max() becomes branches; the same applies below.
            outside = below > above
            delta = below if outside else above
            away = delta > 0.0
            delta = delta if away else 0.0
            bounds[i] += delta * delta


@kernel(counted=False, inner=True, fastmath={"contract", "reassoc"})
def _upper_bounds(
    low_sides: Floats,
    high_sides: Floats,
    reaches: Floats,
    middle: Floats,
    first: int,
    last: int,
    to_centre: Floats,
    offset: float,
    out: Floats,
) -> None:
    """Write upper bounds on squared distances; `to_centre` is the vector from point to centre, `offset` its length.

    Let c be the centre, y = x − c and a = c − p. Then |x − p|² = |a|² + |y|² + 2 a·y, where y is in a box and |y| is at
    most the reach ρ. For any μ ≥ 0, this is at most |a|² + ρ² + μ ρ² + Σ max (2 a y − μ y²), with the maximum over each
    side of the box. This Lagrangian bound combines box and ball. The μ used here suits the ball of all records.
    """
    bounds, reach = out[: last - first], reaches[first:last]
    mu = 0.6 * offset / reaches[0] if reaches[0] > 0.0 else 0.0
    for i in range(last - first):
        width = offset + reach[i]
        bounds[i] = offset * offset + (1.0 + mu) * (reach[i] * reach[i] + ROUNDING * width * width) + UNDERFLOW
    for j in range(len(to_centre)):
        centre, a = middle[j], to_centre[j]
        best = a / mu if mu > 0.0 else np.copysign(np.inf, a)
        low, high = low_sides[j, first:last], high_sides[j, first:last]
        for i in range(last - first):
            lower, upper = low[i] - centre, high[i] - centre
            above = best > lower
            y = best if above else lower
            below = y < upper
            y = y if below else upper
            bounds[i] += y * (2.0 * a - mu * y)


@kernel(counted=False, inner=True)
def _push(
    bounds: Floats, nodes: Ints, base: int, child_bounds: Floats, sign: float, threshold: float, first: int, last: int
) -> int:
    """Push nodes with known bounds onto the stack in ascending order and return the top of the stack.

    Bounds are multiplied by `sign`; nodes whose product is below `threshold` are skipped.
    """
    top = base
    for i in range(last - first):
        bound, t = sign * child_bounds[i], top
        if bound < threshold:
            continue
        while t > base and bounds[t] > bound:
            bounds[t + 1], nodes[t + 1] = bounds[t], nodes[t]
            t -= 1
        bounds[t + 1], nodes[t + 1] = bound, first + i
        top += 1
    return top


@kernel(counted=False, inner=True)
def _score_leaf(
    columns32: Floats32, size: int, point32: Floats32, sign: float, offset: float, norm: float, scores: Floats32, d: int
) -> float:
    """Return a lower bound on `sign` times the squared distances to the records of a leaf, or −inf without float32."""
    if offset == np.inf:
        return -np.inf
    used = scores[: padded_size(size)]
    score_records(columns32, point32, used)
    return score_bound(used, d, sign, offset, norm)


@kernel(inline=True)
def pool_nearest(pool: Pool, point: Floats, near: Floats, near_ids: Ints) -> None:
    """Find the records nearest to a point, as many as `near` holds, in ascending order of distance."""
    remaining, start, ids = pool.remaining, pool.start, pool.ids
    distances, scores, child_bounds = pool.distances, pool.scores, pool.child_bounds
    bounds, nodes = pool.bounds, pool.nodes
    end = len(near) - 1
    for i in range(end + 1):
        near[i] = np.inf
        near_ids[i] = NO_RECORD
    offset = to_float32(pool.origin, point, pool.point32) if pool.counts[USE_FLOAT32] else np.inf
    leaves = start[pool.counts[LEVELS]]
    # The stack has negated bounds, so the nearest node is on top.
    bounds[0], nodes[0], top = 0.0, 0, 0
    while top >= 0:
        node = nodes[top]
        size = remaining[node]
        top -= 1
        if -bounds[top + 1] > near[end] or size == 0:
            continue
        if node < leaves:
            first, last = children_of(start, pool.counts[TOP_HALVINGS], node)
            _lower_bounds(pool.low, pool.high, first, last, point, child_bounds)
            top = _push(bounds, nodes, top, child_bounds, -1.0, -near[end], first, last)
            continue
        leaf = node - leaves
        leaf_bound = _score_leaf(
            pool.columns32[leaf], size, pool.point32, 1.0, offset, pool.norm[leaf], scores, len(point)
        )
        if leaf_bound > near[end]:
            continue
        squared_distances(pool.columns[leaf], 0, size, point, distances)
        for i in range(size):
            if distances[i] <= near[end]:
                record = ids[leaf, i]
                if distances[i] < near[end] or record < near_ids[end]:
                    insert_nearest(distances[i], record, near, near_ids)


@kernel(inline=True)
def pool_farthest(pool: Pool, point: Floats) -> int:
    """Return the record farthest from a point."""
    remaining, start, ids = pool.remaining, pool.start, pool.ids
    distances, scores, child_bounds = pool.distances, pool.scores, pool.child_bounds
    bounds, nodes, centre, to_centre = pool.bounds, pool.nodes, pool.centre, pool.to_centre
    farthest, reach, scanned = NO_RECORD, -1.0, 0
    offset = to_float32(pool.origin, point, pool.point32) if pool.counts[USE_FLOAT32] else np.inf
    square = 0.0
    for j in range(len(point)):
        to_centre[j] = centre[j] - point[j]
        square += to_centre[j] * to_centre[j]
    away = np.sqrt(square)
    leaves = start[pool.counts[LEVELS]]
    bounds[0], nodes[0], top = np.inf, 0, 0
    while top >= 0:
        node = nodes[top]
        size = remaining[node]
        top -= 1
        if bounds[top + 1] < reach or size == 0:
            continue
        if node < leaves:
            first, last = children_of(start, pool.counts[TOP_HALVINGS], node)
            _upper_bounds(pool.low, pool.high, pool.reach, centre, first, last, to_centre, away, child_bounds)
            top = _push(bounds, nodes, top, child_bounds, 1.0, reach, first, last)
            continue
        leaf = node - leaves
        scanned += 1
        leaf_bound = _score_leaf(
            pool.columns32[leaf], size, pool.point32, -1.0, offset, pool.norm[leaf], scores, len(point)
        )
        if -leaf_bound < reach:
            continue
        squared_distances(pool.columns[leaf], 0, size, point, distances)
        for i in range(size):
            if distances[i] >= reach:
                record = ids[leaf, i]
                if distances[i] > reach or record < farthest:
                    farthest, reach = record, distances[i]
    pool.counts[LAST_SCANNED] = scanned
    return farthest


@kernel(inline=True)
def pool_farthest_from_centroid(pool: Pool) -> int:
    """Return the record farthest from the centroid of the remaining records, and count the scanned leaves.

    `shoal.kernels.pool.pool_needs_refresh` reads the count.
    """
    farthest: int = pool_farthest(pool, pool_mean(pool))
    pool.counts[SCANNED] += pool.counts[LAST_SCANNED]
    return farthest
