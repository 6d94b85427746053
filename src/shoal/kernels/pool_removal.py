"""Removing records from the pool, and refreshing its tree once enough of them have left.

The last record of the leaf takes the place of the one that is removed, and bounding boxes and reaches that it alone
determined shrink. A removal costs O(d LEAF) and usually much less.
"""

from __future__ import annotations

import numpy as np

from shoal.core.compiler import kernel
from shoal.kernels.pool import (
    BUILT,
    FEW_COLUMNS,
    HALVINGS,
    LEAF,
    LEVELS,
    SCANNED,
    TOP_HALVINGS,
    USE_FLOAT32,
    Pool,
    enclose,
    greatest_reach,
    pad_leaf,
)
from shoal.kernels.pool_construction import build_tree, set_centre

__all__ = ["pool_needs_refresh", "pool_refresh", "pool_remove"]

EXTRA_SCANS = 50  # beyond the number of leaves, before the centre is moved


@kernel(inline=True)
def pool_remove(pool: Pool, record: int) -> None:
    """Remove a record and keep the bounds of the tree tight."""
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
    # The two records are swapped, so that the one removed can still be read behind the last.
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
    # Tighten the bounds that the record touched, from its leaf up to the root.
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
    """Return what `pool_refresh` would do: nothing (0), move the centre (1) or rebuild the tree (2).

    Rebuilding pays once half of the records have left, with few columns once most of them have. Moving the centre pays
    once the centroid has drifted away from it so far that queries for the record farthest from the centroid have
    scanned more leaves than there are, and `EXTRA_SCANS`.
    """
    start, counts = pool.start, pool.counts
    n, levels, times = pool.remaining[0], counts[LEVELS], 2 if len(pool.total) > FEW_COLUMNS else 8
    if levels > 1 and n > 0 and times * n <= counts[BUILT]:
        return 2
    return int(n > 0 and counts[SCANNED] > start[levels + 1] - start[levels] + EXTRA_SCANS)


def pool_refresh(pool: Pool) -> None:
    """Rebuild the tree from the records left, or move its centre, if that pays. Queries are correct without it."""
    due = pool_needs_refresh.py_func(pool)
    if due == 2:
        levels = pool.counts[LEVELS]
        sizes = pool.remaining[pool.start[levels] : pool.start[levels + 1]]
        occupied = np.arange(LEAF) < sizes[:, np.newaxis]
        rows = pool.columns[: len(sizes)].transpose(0, 2, 1)[occupied]
        build_tree(np.ascontiguousarray(rows), pool.ids[: len(sizes)][occupied], pool)
    elif due == 1:
        set_centre(pool)
