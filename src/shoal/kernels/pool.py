"""The pool: the records that do not have a group yet, in a kd-tree that shrinks with them.

The tree is built by halving the records at the median of the column that spreads most until they fit into leaves of
`LEAF` records. Only every fourth level is kept, so a node has up to 16 children, whose bounds are computed together,
and the records of a leaf lie in contiguous columns: both are short runs of vector instructions.

Every node knows how many records are left below it, their exact bounding box, and the greatest distance of one of them
to a common centre. Queries (`shoal.kernels.pool_queries`) use these to skip nodes. A removal
(`shoal.kernels.pool_removal`) keeps them exact. `shoal.kernels.pool_construction` builds the tree.

Compiling costs more than grouping most tables. So the tree is built from Python, by kernels that are compiled on their
own, and queries are inlined into the kernels that call them, best from one place in each.

Building costs O(d n log n), a removal O(d LEAF) and usually much less; memory is O(n d).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.core.compiler import kernel
from shoal.core.types import Floats, Ints
from shoal.kernels.float32 import Floats32
from shoal.kernels.vector import greater, lesser

__all__ = [
    "BUILT",
    "FEW_COLUMNS",
    "HALVINGS",
    "LAST_SCANNED",
    "LEAF",
    "LEVELS",
    "ROUNDING",
    "SCANNED",
    "STACK",
    "TOP_HALVINGS",
    "USE_FLOAT32",
    "Pool",
    "children_of",
    "enclose",
    "greatest_reach",
    "pad_leaf",
    "padded_size",
    "pool_centroid",
    "pool_mean",
    "pool_view",
]

LEAF = 64  # records of a leaf at most
HALVINGS = 4  # between two levels that are kept
FEW_COLUMNS = 3  # up to this number of columns float32 saves nothing, and rebuilding the tree pays late
VECTOR = 16  # float32 scores are computed for a multiple of this number of records
STACK = 256  # levels × children, at most
ROUNDING = 1e-9  # far more than the rounding error of a bound, for any sensible number of columns

# Places in `Pool.counts`: levels below the root; halvings between the root and level 1; records when the tree was
# built; whether float32 is of use; leaves that queries for the record farthest from the centroid have scanned since the
# centre was set; leaves that the last query for a farthest record has scanned.
LEVELS, TOP_HALVINGS, BUILT, USE_FLOAT32, SCANNED, LAST_SCANNED = range(6)


class Pool(NamedTuple):
    """The records without a group. Level 0 of the tree is the root, the last level are the leaves."""

    columns: Floats  # (leaves, d, LEAF)
    columns32: Floats32  # (leaves, 1 + d or one more, LEAF): half the squared norm, then columns from the origin
    ids: Ints  # (leaves, LEAF): the records
    radius: Floats  # (leaves, LEAF): their distances to the centre
    place: Ints  # leaf · LEAF + slot of each record, -1 once it has left
    remaining: Ints  # records left below each node
    low: Floats  # (d, nodes): bounding boxes
    high: Floats
    reach: Floats  # greatest distance to the centre below each node
    norm: Floats  # (leaves,): greatest distance to the origin when the tree was built
    start: Ints  # first node of each level
    counts: Ints  # numbers about the tree, see LEVELS and the names after it
    centre: Floats  # (d,): the centre that radius and reach refer to
    origin: Floats  # (d,): the centroid when the tree was built
    total: Floats  # (d,): sum of the records left
    # Buffers that a query writes to, which saves allocating them: two queries of a pool must not run at the same time.
    mean: Floats  # (d,): the centroid
    to_centre: Floats  # (d,): from the point to the centre
    point32: Floats32  # (d or one more,): the point from the origin
    scores: Floats32  # (LEAF,): see `score_records`
    distances: Floats  # (LEAF,): squared distances to the records of a leaf
    child_bounds: Floats  # (children of a node,): bounds on the distances to their records
    bounds: Floats  # (STACK,): of the nodes that are still to be searched
    nodes: Ints


def pool_view(pool: Pool) -> Pool:
    """Return a view of the pool with its own buffers, for queries in another thread; copy `counts` before each use."""
    buffers = ("counts", "mean", "to_centre", "point32", "scores", "distances", "child_bounds", "bounds", "nodes")
    return pool._replace(**{name: getattr(pool, name).copy() for name in buffers})


def pool_centroid(pool: Pool) -> Floats:
    """Return the centroid of the records left."""
    mean: Floats = pool.total / pool.remaining[0]
    return mean


@kernel(inline=True)
def pool_mean(pool: Pool) -> Floats:
    """Return the centroid of the records left, in the buffer `mean` of the pool: for kernels."""
    mean, total, remaining = pool.mean, pool.total, pool.remaining[0]
    for j in range(len(mean)):
        mean[j] = total[j] / remaining
    return mean


@kernel(counted=False, inner=True)
def padded_size(size: int) -> int:
    """Return the number of records of a leaf, padded."""
    return (size + VECTOR - 1) // VECTOR * VECTOR


@kernel(counted=False, inner=True)
def pad_leaf(columns32: Floats32, size: int) -> None:
    """Pad a leaf with copies of its first record, which leave the least and the greatest score as they are."""
    for j in range(len(columns32)):
        for slot in range(size, padded_size(size)):
            columns32[j, slot] = columns32[j, 0]


@kernel(counted=False, inner=True)
def children_of(start: Ints, top: int, node: int) -> tuple[int, int]:
    """Return the first child of a node and the one after the last."""
    level = 0
    while node >= start[level + 1]:
        level += 1
    bits = HALVINGS if level > 0 else top
    first = start[level + 1] + ((node - start[level]) << bits)
    return first, first + (1 << bits)


@kernel(counted=False, inner=True)
def enclose(lows: Floats, highs: Floats, first: int, last: int, low: Floats, high: Floats, node: int) -> None:
    """Make one side of a node's box enclose the boxes of its children, or the values of its records."""
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
