"""Building the pool: put all records into the tree, rebuild it from those left, move its centre."""

from __future__ import annotations

import numpy as np

from shoal.core.compiler import kernel
from shoal.core.types import Floats, Ints
from shoal.kernels.distances import squared_distances
from shoal.kernels.float32 import FLOAT32_LARGEST, Floats32
from shoal.kernels.pool import (
    FEW_COLUMNS,
    HALVINGS,
    LEAF,
    LEVELS,
    ROUNDING,
    SCANNED,
    STACK,
    TOP_HALVINGS,
    USE_FLOAT32,
    Pool,
    children_of,
    enclose,
    greatest_reach,
    pad_leaf,
)
from shoal.kernels.select import select_nth

__all__ = ["build_tree", "pool_new", "set_centre"]

SAMPLE = 200  # records that decide which column spreads most


def pool_new(X: Floats) -> Pool:
    """Put all records into the pool; the centre is their centroid."""
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
    """Return how often n records are halved until each part fits into a leaf."""
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
    """Halve the rows repeatedly by the column that spreads most in a sample, and write where each part begins."""
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
    """Copy some rows into a leaf, and return the greatest squared distance of one to the origin."""
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
    """Move the centre to the centroid of the records left."""
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
