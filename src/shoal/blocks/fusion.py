"""Fusion: join leaves with fewer than k records to the leaves with the nearest centroids until none remain.

Solanas et al. 2006, Section 2.3, in the supervised variant of its footnote. In a round, every small leaf is linked to
the leaf of the same root with the nearest centroid. Only leaves with room for k − 1 more records below L qualify, or
all leaves if none has room. Linked leaves are joined, lowest first, unless they would exceed L records; then the
centroids are recomputed. Centroids are computed from exact integer sums and ties go to the lowest leaf, so the result
depends on the records alone.

A round usually halves the number of small leaves and takes one kd-tree search for each of them.
"""

from __future__ import annotations

import numpy as np

from shoal.blocks.quantisation import Frame, quantise_record
from shoal.core.compiler import kernel
from shoal.core.types import Floats, Ints
from shoal.kernels.pool import Pool, pool_new
from shoal.kernels.pool_queries import pool_nearest

__all__ = ["fuse", "leaf_sums"]

HALF = np.uint64(24)
LOW = np.uint64((1 << 24) - 1)


@kernel
def leaf_sums(X: Floats, leaves: Ints, frame: Frame, count: int) -> Ints:
    """Return the exact sums of the bins in each leaf, separately for the upper and the lower 24 bits."""
    d = X.shape[1]
    sums = np.zeros((count, 2 * d), dtype=np.int64)
    q = np.empty(d, dtype=np.uint64)
    for i in range(len(X)):
        quantise_record(X[i], frame, q)
        for j in range(d):
            sums[leaves[i], j] += np.int64(q[j] >> HALF)
            sums[leaves[i], d + j] += np.int64(q[j] & LOW)
    return sums


def fuse(sizes: Ints, sums: Ints, roots: Ints, spread: Floats, k: int, L: int) -> Ints:
    """Return the block of each leaf, which is the number of the lowest leaf in the block.

    `sizes`, `sums` (`leaf_sums`) and `roots` describe the leaves; a root with fewer than k records is one block.
    Distances are computed on columns divided by `spread`. A block has at most L records unless no other leaf has room
    for a small leaf.

    Examples
    --------
    >>> sums = np.array([[0, 8], [0, 9], [0, 90]])
    >>> fuse(np.array([4, 1, 4]), sums, np.zeros(3, dtype=np.int64), np.ones(1), k=2, L=9).tolist()
    [0, 0, 2]
    """
    d = len(spread)
    block = np.arange(len(sizes))
    sizes, sums = sizes.copy(), sums.copy()
    while True:
        heads = np.flatnonzero(block == np.arange(len(block)))
        unfinished = np.unique(roots[heads[sizes[heads] < k]])
        unfinished = unfinished[np.bincount(roots[heads])[unfinished] > 1]
        if not len(unfinished):
            return block
        inside = heads[np.isin(roots[heads], unfinished)]
        inside = inside[np.argsort(roots[inside], kind="stable")]
        for members in np.split(inside, np.flatnonzero(np.diff(roots[inside])) + 1):
            open_ones = members[sizes[members] <= L - k + 1]
            # The small leaf itself has room. A block may exceed L only if no other leaf has room.
            limited = len(open_ones) > 1
            candidates = open_ones if limited else members
            upper, lower = sums[candidates, :d], sums[candidates, d:]
            centroid = (upper * float(1 << 24) + lower) / sizes[candidates, None] / spread
            for leaf, partner in zip(
                candidates.tolist(), candidates[_linked(centroid, sizes[candidates], k)].tolist(), strict=True
            ):
                first, second = sorted((_head(block, leaf), _head(block, partner)))
                if first != second and (not limited or sizes[first] + sizes[second] <= L):
                    block[second] = first
                    sizes[first] += sizes[second]
                    sums[first] += sums[second]
        for leaf in range(len(block)):
            block[leaf] = _head(block, leaf)


def _head(block: Ints, leaf: int) -> int:
    """Return the lowest leaf fused with a leaf."""
    while block[leaf] != leaf:
        leaf = int(block[leaf])
    return leaf


def _linked(centroid: Floats, sizes: Ints, k: int) -> Ints:
    """Return the leaf with the nearest other centroid for each small leaf; link other leaves to themselves."""
    link = np.arange(len(sizes))
    if len(sizes) > 1:
        _link(centroid, sizes, k, pool_new(centroid), np.empty(2), np.empty(2, dtype=np.int64), link)
    return link


@kernel(counted=False)
def _link(centroid: Floats, sizes: Ints, k: int, pool: Pool, near: Floats, near_ids: Ints, link: Ints) -> None:
    for leaf in range(len(sizes)):
        if sizes[leaf] < k:
            pool_nearest(pool, centroid[leaf], near, near_ids)
            link[leaf] = near_ids[1] if near_ids[0] == leaf else near_ids[0]
