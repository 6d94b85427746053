"""From records to blocks, in a few passes that only count: moments, rounds of the tree, sums of its leaves.

The holder of the records offers `reduce`: run a function on every part of them and combine the results. All results
are exact counts and sums, so parts may have any size and order. The functions are defined at module level, so that they
can be sent to other processes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from shoal.blocks.fusing import fuse, leaf_sums
from shoal.blocks.quantising import Frame, bounds, frame_of, moments, scaling_of
from shoal.blocks.rule import Blocking, Extent
from shoal.blocks.tree import (
    Counts,
    Tree,
    combine_counts,
    count_boxes,
    deepen,
    grow,
    is_open,
    leaf_order,
    locate,
    new_tree,
)
from shoal.core.compiling import kernel
from shoal.core.measures import Scaling
from shoal.core.types import Floats, Ints

__all__ = [
    "Blocks",
    "InMemory",
    "Records",
    "assign",
    "extent_of",
    "find_blocks",
]

SAMPLE = 100_000  # records of the sample that tells how many levels a round counts
PIECE = 256  # records of a piece of a leaf of equal records, where any grouping is as good as any other


class Records(Protocol):
    """A holder of records in parts."""

    def reduce(self, function: Callable[..., Any], combine: Callable[[Any, Any], Any], *arguments: Any) -> Any:
        """Combine ``function(part number, X, roots, *arguments)`` of all parts."""

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return ``function(*arguments)``, run where kernels have been loaded."""


@dataclass(frozen=True)
class InMemory:
    """Records in a single part."""

    X: Floats
    roots: Ints

    def reduce(self, function: Callable[..., Any], combine: Callable[[Any, Any], Any], *arguments: Any) -> Any:
        """Run the function on all records."""
        return function(0, self.X, self.roots, *arguments)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run the function here."""
        return function(*arguments)


def extent_of(X: Floats, roots: Ints) -> Extent:
    """Return the extent of records in memory.

    Examples
    --------
    >>> extent_of(np.array([[1.0], [3.0]]), np.array([0, 0])).sizes
    array([2])
    """
    return Extent(bounds(X), np.bincount(roots).astype(np.int64))


class Blocks(NamedTuple):
    """The blocks of a table: enough to find the block of a record without looking at other records."""

    frame: Frame
    scale: Scaling
    tree: Tree
    first: Ints  # (leaves,): the block of the leaf, or of its first piece
    pieces: Ints  # (leaves,): the number of pieces that the leaf is divided into
    before: Mapping[int, Ints]  # for each part: how many records of divided leaves the parts before it hold
    sizes: Ints  # the number of records of each block, in Morton order
    facts: Mapping[str, object]


def find_blocks(records: Records, extent: Extent, rule: Blocking) -> Blocks:
    """Divide the records of every root into blocks.

    Parameters
    ----------
    records
        The records, in parts.
    extent
        Their bounds, and how many records each root has.
    rule
        How to divide them.

    Examples
    --------
    >>> X, roots = np.arange(100.0)[:, None], np.zeros(100, dtype=np.int64)
    >>> blocks = find_blocks(InMemory(X, roots), extent_of(X, roots), Blocking(L=30, k=3, split="all"))
    >>> blocks.sizes.tolist()
    [25, 25, 25, 25]
    """
    frame = frame_of(extent.limits)
    d = len(frame.low)
    tree, rounds = new_tree(extent.sizes, d, rule.L, rule.split), 0
    sums, counts = records.reduce(_survey, _combine_surveys, frame, tree)
    scale = scaling_of(sums, frame)
    sample: tuple[Floats, Ints] | None = None
    while is_open(tree):
        if rounds:
            if sample is None:
                sample = records.reduce(_sample, _combine_samples, max(1, int(extent.sizes.sum()) // SAMPLE))
            share = len(sample[0]) / int(extent.sizes.sum())
            tree = records.call(deepen, tree, sample[0], sample[1], frame, share, rule.L, rule.split)
            counts = records.reduce(_count, combine_counts, frame, tree)
        tree = records.call(grow, tree, counts, d, rule.L, rule.split)
        rounds += 1
    tree, owner = _in_order(tree, len(extent.sizes))
    block = np.arange(len(tree.sizes))
    if (tree.sizes < rule.k).any():
        sums = records.reduce(_sums, operator.add, frame, tree)
        block = records.call(fuse, tree.sizes, sums, owner, scale.spread, rule.k)
    # Records with the same bins are alike: a large leaf of them is divided into pieces. A small leaf never
    # links two large ones, so a block has at most one such leaf; its other leaves go with the first piece.
    divided = (tree.same > 0) & (tree.sizes > rule.L)
    pieces = np.where(divided, tree.sizes // max(rule.k, min(PIECE, rule.L)), 1)
    heads = block == np.arange(len(block))
    room = np.zeros(len(block), dtype=np.int64)
    np.maximum.at(room, block, pieces)
    first = (np.cumsum(room) - room)[block]
    before: Mapping[int, Ints] = {}
    if divided.any():
        before = _running(records.reduce(_count_divided, operator.or_, frame, tree, pieces))
    block_sizes = np.bincount(first[~divided], tree.sizes[~divided], int(room.sum())).astype(np.int64)
    for leaf in np.flatnonzero(divided):
        block_sizes[first[leaf] : first[leaf] + pieces[leaf]] += _piece_sizes(int(tree.sizes[leaf]), int(pieces[leaf]))
    facts = {
        "blocks": len(block_sizes),
        "block": rule.L,
        "split": rule.split,
        "fused": int((~heads).sum()),
        "oversized": int((block_sizes > rule.L).sum()),
        "rounds": rounds,
    }
    return Blocks(frame, scale, tree, first, pieces, before, block_sizes, facts)


def assign(part: int, X: Floats, roots: Ints, blocks: Blocks) -> Ints:
    """Return the block of each record of a part."""
    leaves = locate(X, roots, blocks.frame, blocks.tree)
    before = blocks.before.get(part)
    seen = np.zeros(len(blocks.first), dtype=np.int64) if before is None else before.copy()
    return _assign(leaves, blocks.first, blocks.pieces, blocks.tree.sizes, seen)


@kernel
def _assign(leaves: Ints, first: Ints, pieces: Ints, sizes: Ints, seen: Ints) -> Ints:
    found = np.empty(len(leaves), dtype=np.int64)
    for i in range(len(leaves)):
        leaf = leaves[i]
        found[i] = first[leaf]
        if pieces[leaf] > 1:
            found[i] += seen[leaf] * pieces[leaf] // sizes[leaf]
            seen[leaf] += 1
    return found


def _piece_sizes(n: int, pieces: int) -> Ints:
    # Record r goes to piece ⌊r·pieces/n⌋, so piece p begins at record ⌈p·n/pieces⌉.
    starts = -(-np.arange(pieces + 1) * n // pieces)
    return np.diff(starts)


def _in_order(tree: Tree, roots: int) -> tuple[Tree, Ints]:
    """Number the leaves in Morton order; return the tree and the root of each leaf."""
    order = leaf_order(tree, roots)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    leaf = tree.target < 0
    target = tree.target.copy()
    target[leaf] = -1 - rank[-1 - target[leaf]]
    tree = tree._replace(target=target, sizes=tree.sizes[order], same=tree.same[order])
    below = np.arange(len(tree.bit))  # the root above each node: nodes come after their parents
    owner = np.empty(len(order), dtype=np.int64)
    for node in range(len(below)):
        children = target[tree.first[node] : tree.first[node] + tree.children[node]]
        below[children[children >= 0]] = below[node]
        owner[-1 - children[children < 0]] = below[node]
    return tree, owner


def _running(counts: Mapping[int, Ints]) -> dict[int, Ints]:
    """Return for each part the sum of all parts before it."""
    before: dict[int, Ints] = {}
    total: Ints | None = None
    for part in sorted(counts):
        total = np.zeros_like(counts[part]) if total is None else total
        before[part] = total
        total = total + counts[part]
    return before


def _survey(part: int, X: Floats, roots: Ints, frame: Frame, tree: Tree) -> tuple[Ints, Counts]:
    return moments(X, frame), count_boxes(X, roots, frame, tree)


def _combine_surveys(one: tuple[Ints, Counts], other: tuple[Ints, Counts]) -> tuple[Ints, Counts]:
    return one[0] + other[0], combine_counts(one[1], other[1])


def _sample(part: int, X: Floats, roots: Ints, stride: int) -> tuple[Floats, Ints]:
    return X[::stride].copy(), roots[::stride].copy()


def _combine_samples(one: tuple[Floats, Ints], other: tuple[Floats, Ints]) -> tuple[Floats, Ints]:
    return np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]])


def _count(part: int, X: Floats, roots: Ints, frame: Frame, tree: Tree) -> Counts:
    return count_boxes(X, roots, frame, tree)


def _sums(part: int, X: Floats, roots: Ints, frame: Frame, tree: Tree) -> Ints:
    sums: Ints = leaf_sums(X, locate(X, roots, frame, tree), frame, len(tree.sizes))
    return sums


def _count_divided(part: int, X: Floats, roots: Ints, frame: Frame, tree: Tree, pieces: Ints) -> dict[int, Ints]:
    counts = np.bincount(locate(X, roots, frame, tree), minlength=len(tree.sizes))
    return {part: np.where(pieces > 1, counts, 0)}
