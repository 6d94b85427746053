"""Fusing: a leaf with fewer than k records is joined to the leaf with the nearest centroid, until there are none.

Solanas et al. 2006, Section 2.3. In a round, every small leaf is linked to the leaf of the same root whose centroid is
nearest; linked leaves become one, and their centroids are recomputed. Centroids come from exact integer sums
and ties go to the lowest leaf, so the result depends on the records alone.

Each round at least halves the number of small leaves; it costs one search of a kd-tree for each of them.
"""

from __future__ import annotations

import numpy as np

from shoal.blocks.quantising import Frame, quantise_record
from shoal.core.compiling import kernel
from shoal.core.types import Floats, Ints
from shoal.kernels.pool import Pool
from shoal.kernels.pool_building import pool_new
from shoal.kernels.pool_queries import pool_nearest

__all__ = ["fuse", "leaf_sums"]

HALF = np.uint64(24)
LOW = np.uint64((1 << 24) - 1)


@kernel
def leaf_sums(X: Floats, leaves: Ints, frame: Frame, count: int) -> Ints:
    """Sum the integers of each leaf's records, exactly: the upper and the lower 24 bits separately."""
    d = X.shape[1]
    sums = np.zeros((count, 2 * d), dtype=np.int64)
    q = np.empty(d, dtype=np.uint64)
    for i in range(len(X)):
        quantise_record(X[i], frame, q)
        for j in range(d):
            sums[leaves[i], j] += np.int64(q[j] >> HALF)
            sums[leaves[i], d + j] += np.int64(q[j] & LOW)
    return sums


def fuse(sizes: Ints, sums: Ints, roots: Ints, spread: Floats, k: int) -> Ints:
    """Return the block of each leaf: the lowest leaf that it was fused with, or itself.

    Parameters
    ----------
    sizes, sums, roots
        For each leaf: the number of its records, their sums (`leaf_sums`) and the root it belongs to.
    spread
        The standard deviation of each column; distances are between standardised columns.
    k
        The least number of records of a block; a root with fewer is one block.

    Examples
    --------
    >>> sums = np.array([[0, 8], [0, 9], [0, 90]])
    >>> fuse(np.array([4, 1, 4]), sums, np.zeros(3, dtype=np.int64), np.ones(1), k=2).tolist()
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
            upper, lower = sums[members, :d], sums[members, d:]
            centroid = (upper * float(1 << 24) + lower) / sizes[members, None] / spread
            for leaf, other in zip(members, members[_linked(centroid, sizes[members], k)], strict=True):
                _join(block, int(leaf), int(other))
        for leaf in inside.tolist():
            head = _head(block, leaf)
            if head != leaf:
                sizes[head] += sizes[leaf]
                sums[head] += sums[leaf]
        for leaf in range(len(block)):
            block[leaf] = _head(block, leaf)


def _head(block: Ints, leaf: int) -> int:
    """Return the lowest leaf that a leaf was fused with."""
    while block[leaf] != leaf:
        leaf = int(block[leaf])
    return leaf


def _join(block: Ints, one: int, other: int) -> None:
    one, other = _head(block, one), _head(block, other)
    block[max(one, other)] = min(one, other)


def _linked(centroid: Floats, sizes: Ints, k: int) -> Ints:
    """Return for each small leaf the leaf with the nearest other centroid, for the other leaves the leaf itself."""
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
