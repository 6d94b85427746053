"""Division of records into blocks in a few counting passes: moments, rounds of the tree, sums of its leaves.

The holder of the records provides `reduce`, which runs a function on every part and combines the results. All results
are exact counts and sums, so parts may have any size and order. The functions are defined at module level so that they
can be sent to other processes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from shoal.blocks.fusion import fuse, leaf_sums
from shoal.blocks.quantisation import Frame, frame_of, moments, scaling_of
from shoal.blocks.rule import Blocking, Extent, Split
from shoal.blocks.tree import (
    CODE_BITS,
    Counts,
    Tree,
    beginning_of_runs,
    combine_counts,
    count_boxes,
    deepen,
    grow,
    is_open,
    leaf_order,
    locate,
    new_tree,
    runs_of,
)
from shoal.core.compiler import kernel
from shoal.core.measures import Scaling, bounds
from shoal.core.types import Floats, Ints

__all__ = [
    "BlockRecords",
    "Blocks",
    "InMemory",
    "assign",
    "extent_of",
    "find_blocks",
    "find_scaling",
]

SAMPLE = 100_000  # size of the sample that determines the number of levels per round
PIECE = 256  # minimum number of records in a piece of a leaf of equal records, unless L is smaller


class BlockRecords(Protocol):
    """Protocol for a holder of records that are stored in parts."""

    def reduce(self, function: Callable[..., Any], combine: Callable[[Any, Any], Any], *arguments: Any) -> Any:
        """Combine the results of ``function(first, X, roots, *arguments)`` for all parts.

        `first` is the number of a part's first record.
        """

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run ``function(*arguments)`` in a process that has loaded the kernels; return the result."""


@dataclass(frozen=True)
class InMemory:
    """A holder of records in memory, in a single part."""

    X: Floats
    roots: Ints

    def reduce(self, function: Callable[..., Any], combine: Callable[[Any, Any], Any], *arguments: Any) -> Any:
        """Run the function on all records."""
        return function(0, self.X, self.roots, *arguments)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run the function in this process."""
        return function(*arguments)


def extent_of(X: Floats, roots: Ints) -> Extent:
    """Return the extent of records in memory.

    Examples
    --------
    >>> extent_of(np.array([[1.0], [3.0]]), np.array([0, 0])).sizes
    array([2])
    """
    return Extent(bounds(X), np.bincount(roots).astype(np.int64))


class Stage(NamedTuple):
    """A tree over some columns; the leaves of one stage are the roots of the next stage."""

    columns: Ints | None  # in the order of the tree; None for all columns in table order
    frame: Frame  # the frame of these columns
    tree: Tree


class Pieces(NamedTuple):
    """The division of leaves into pieces, each of which holds records of one leaf in input order."""

    first: Ints  # (leaves,): the block of the leaf, or of its first piece
    many: Ints  # (leaves,): the number of pieces of the leaf
    place: Ints  # (leaves,): the index of the leaf's first entry in `starts`
    starts: Ints  # for leaves with several pieces: the number of the leaf's records before each piece


class Blocks(NamedTuple):
    """The blocks of a table, with all data needed to assign a record to its block."""

    frame: Frame
    scale: Scaling
    stages: tuple[Stage, ...]
    pieces: Pieces
    before: Mapping[int, Ints]  # keyed by a part's first record: records of each divided leaf in earlier parts
    sizes: Ints  # the number of records in each block, in Morton order
    facts: Mapping[str, object]


def find_blocks(records: BlockRecords, extent: Extent, rule: Blocking) -> Blocks:
    """Divide the records of every root into blocks of at least k records.

    A block of a tree has up to max(L, 2·min(L, `PIECE`) − 1) + k − 1 records. Equal records are divided into pieces of
    up to twice the minimum size. A leaf with fewer than k records joins another leaf even if none has room. With
    split="sorted", a block has up to L records; with split="univariate", it has any number.

    Examples
    --------
    >>> X, roots = np.arange(100.0)[:, None], np.zeros(100, dtype=np.int64)
    >>> blocks = find_blocks(InMemory(X, roots), extent_of(X, roots), Blocking(L=30, k=3, split="all"))
    >>> blocks.sizes.tolist()
    [25, 25, 25, 25]
    """
    frame = frame_of(extent.limits)
    scale, stages, owner, rounds = _find_leaves(records, extent, rule, frame)
    tree = stages[-1].tree
    fused = 0
    if rule.split == "sorted":
        pieces = _cut_runs(tree.sizes, owner, rule)
    else:
        block = np.arange(len(tree.sizes))
        if (tree.sizes < rule.k).any():
            sums = records.reduce(_sums, operator.add, frame, stages)
            block = records.call(fuse, tree.sizes, sums, owner, scale.spread, rule.k, rule.L)
        pieces = _cut_leaves(tree, block, rule)
        fused = int((block != np.arange(len(block))).sum())
    before: Mapping[int, Ints] = {}
    if len(pieces.starts):
        before = _running(records.reduce(_count_divided, operator.or_, stages, pieces.many))
    sizes = _block_sizes(pieces, tree.sizes)
    facts = {
        "blocks": len(sizes),
        "block": rule.L,
        "split": rule.split,
        "fused": fused,
        "oversized": int((sizes > rule.L).sum()),
        "rounds": rounds,
    }
    return Blocks(frame, scale, stages, pieces, before, sizes, facts)


def find_scaling(records: BlockRecords, limits: Floats) -> Scaling:
    """Return the scaling that standardises the records of all parts; `limits` has the column bounds."""
    frame = frame_of(limits)
    return scaling_of(records.reduce(_moments, operator.add, frame), frame)


def _find_leaves(
    records: BlockRecords, extent: Extent, rule: Blocking, frame: Frame
) -> tuple[Scaling, tuple[Stage, ...], Ints, int]:
    """Grow the trees of all stages; return the scaling, the stages, the root of each leaf and the number of rounds."""
    stages: tuple[Stage, ...] = ()
    roots, owner, rounds, scale = extent.sizes, np.arange(len(extent.sizes)), 0, None
    sample: tuple[Floats, Ints] | None = None
    for columns in rule.turns(len(frame.low)):
        if stages and not (roots > rule.L).any():
            break
        stage_frame = frame if columns is None else Frame(frame.low[columns], frame.reach[columns])
        d, split = len(stage_frame.low), rule.split
        if split == "all" and d > CODE_BITS:
            split = "one"  # without selected columns, there may be too many to split at once
        stage = Stage(columns, stage_frame, new_tree(roots, d, rule.L, split))
        if scale is None:
            sums, counts = records.reduce(_survey, _combine_surveys, frame, stage)
            scale = scaling_of(sums, frame)
        elif is_open(stage.tree):
            counts = records.reduce(_count, combine_counts, stages, stage)
        first = True
        while is_open(stage.tree):
            if not first:
                if sample is None:
                    sample = records.reduce(_sample, _combine_samples, max(1, int(extent.sizes.sum()) // SAMPLE))
                share = len(sample[0]) / int(extent.sizes.sum())
                tree = records.call(_deepen, stages, stage, *sample, share, rule.L, split)
                stage = stage._replace(tree=tree)
                counts = records.reduce(_count, combine_counts, stages, stage)
            stage = stage._replace(tree=records.call(grow, stage.tree, counts, d, rule.L, rule.k, split))
            first = False
            rounds += 1
        tree, parents = _in_order(stage.tree, len(roots))
        stages, roots, owner = (*stages, stage._replace(tree=tree)), tree.sizes, owner[parents]
    return cast("Scaling", scale), stages, owner, rounds


def _cut_leaves(tree: Tree, block: Ints, rule: Blocking) -> Pieces:
    """Divide large leaves of equal records into pieces; `block` has the lowest leaf fused with each leaf."""
    # Records with the same bins are equivalent. A small leaf never links two large ones, so a block has at most one
    # divided leaf; the other leaves of the block join the first piece.
    divided = (tree.same > 0) & (tree.sizes > rule.L)
    many = np.where(divided, tree.sizes // max(rule.k, min(PIECE, rule.L)), 1)
    room = np.zeros(len(block), dtype=np.int64)
    np.maximum.at(room, block, many)
    first = (np.cumsum(room) - room)[block]
    # Piece p of n records begins at record ⌈p·n/pieces⌉.
    starts = [-(-np.arange(many[leaf]) * tree.sizes[leaf] // many[leaf]) for leaf in np.flatnonzero(many > 1)]
    return _pieces(first, many, starts)


def _cut_runs(sizes: Ints, owner: Ints, rule: Blocking) -> Pieces:
    """Cut the leaves of every root, which are sorted by a column, into runs of L records."""
    totals = np.bincount(owner, sizes).astype(np.int64)
    begins = [beginning_of_runs(int(total), rule.L, rule.k) for total in totals]
    blocks = np.cumsum([0, *map(len, begins)])
    ranks = np.cumsum(sizes) - sizes - (np.cumsum(totals) - totals)[owner]
    run = runs_of(ranks, totals[owner], rule.L, rule.k)
    many = runs_of(ranks + sizes - 1, totals[owner], rule.L, rule.k) - run + 1
    starts = [
        np.maximum(begins[owner[leaf]][run[leaf] : run[leaf] + many[leaf]] - ranks[leaf], 0)
        for leaf in np.flatnonzero(many > 1)
    ]
    return _pieces(blocks[owner] + run, many, starts)


def _pieces(first: Ints, many: Ints, starts: Sequence[Ints]) -> Pieces:
    divided = np.where(many > 1, many, 0)
    return Pieces(first, many, np.cumsum(divided) - divided, np.concatenate([np.empty(0, dtype=np.int64), *starts]))


def _block_sizes(pieces: Pieces, leaves: Ints) -> Ints:
    """Return the number of records in each block."""
    sizes = np.zeros(int((pieces.first + pieces.many).max()), dtype=np.int64)
    np.add.at(sizes, pieces.first, np.where(pieces.many == 1, leaves, 0))
    for leaf in np.flatnonzero(pieces.many > 1):
        starts = pieces.starts[pieces.place[leaf] :][: pieces.many[leaf]]
        sizes[pieces.first[leaf] :][: len(starts)] += np.diff(np.append(starts, leaves[leaf]))
    return sizes


def assign(first: int, X: Floats, roots: Ints, blocks: Blocks) -> Ints:
    """Return the block of each record of a part; `first` is the number of the part's first record."""
    leaves, before = _leaves(X, roots, blocks.stages), blocks.before.get(first)
    counts = np.zeros(len(blocks.pieces.first), dtype=np.int64) if before is None else before.copy()
    return _assign(leaves, *blocks.pieces, counts)


@kernel
def _assign(leaves: Ints, first: Ints, many: Ints, place: Ints, starts: Ints, counts: Ints) -> Ints:
    blocks = np.empty(len(leaves), dtype=np.int64)
    for i in range(len(leaves)):
        leaf = leaves[i]
        low, high = 0, many[leaf] - 1
        if high:
            while low < high:
                middle = (low + high + 1) // 2
                if starts[place[leaf] + middle] <= counts[leaf]:
                    low = middle
                else:
                    high = middle - 1
            counts[leaf] += 1
        blocks[i] = first[leaf] + low
    return blocks


def _columns(X: Floats, stage: Stage) -> Floats:
    return X if stage.columns is None else np.take(X, stage.columns, axis=1)


def _leaves(X: Floats, roots: Ints, stages: Sequence[Stage]) -> Ints:
    """Return the leaf of each record in the last stage, or its root if there are no stages."""
    for stage in stages:
        roots = locate(_columns(X, stage), roots, stage.frame, stage.tree)
    return roots


def _in_order(tree: Tree, roots: int) -> tuple[Tree, Ints]:
    """Number the leaves in Morton order; return the tree and the root of each leaf."""
    order = leaf_order(tree, roots)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    leaf = tree.target < 0
    target = tree.target.copy()
    target[leaf] = -1 - rank[-1 - target[leaf]]
    tree = tree._replace(target=target, sizes=tree.sizes[order], same=tree.same[order])
    below = np.arange(len(tree.bit))  # the root above each node; children come after their parents
    owner = np.empty(len(order), dtype=np.int64)
    for node in range(len(below)):
        children = target[tree.first[node] : tree.first[node] + tree.children[node]]
        below[children[children >= 0]] = below[node]
        owner[-1 - children[children < 0]] = below[node]
    return tree, owner


def _running(counts: Mapping[int, Ints]) -> dict[int, Ints]:
    """Return the summed counts of all earlier parts for each part, keyed by first record."""
    before: dict[int, Ints] = {}
    total: Ints | None = None
    for first in sorted(counts):
        total = np.zeros_like(counts[first]) if total is None else total
        before[first] = total
        total = total + counts[first]
    return before


def _moments(first: int, X: Floats, roots: Ints, frame: Frame) -> Ints:
    sums: Ints = moments(X, frame)
    return sums


def _survey(first: int, X: Floats, roots: Ints, frame: Frame, stage: Stage) -> tuple[Ints, Counts]:
    return moments(X, frame), _count(first, X, roots, (), stage)


def _combine_surveys(first: tuple[Ints, Counts], second: tuple[Ints, Counts]) -> tuple[Ints, Counts]:
    return first[0] + second[0], combine_counts(first[1], second[1])


def _sample(first: int, X: Floats, roots: Ints, stride: int) -> tuple[Floats, Ints]:
    return X[::stride].copy(), roots[::stride].copy()


def _combine_samples(first: tuple[Floats, Ints], second: tuple[Floats, Ints]) -> tuple[Floats, Ints]:
    return np.concatenate([first[0], second[0]]), np.concatenate([first[1], second[1]])


def _count(first: int, X: Floats, roots: Ints, stages: Sequence[Stage], stage: Stage) -> Counts:
    return count_boxes(_columns(X, stage), _leaves(X, roots, stages), stage.frame, stage.tree)


def _deepen(stages: Sequence[Stage], stage: Stage, X: Floats, roots: Ints, share: float, L: int, split: Split) -> Tree:
    return deepen(stage.tree, _columns(X, stage), _leaves(X, roots, stages), stage.frame, share, L, split)


def _sums(first: int, X: Floats, roots: Ints, frame: Frame, stages: Sequence[Stage]) -> Ints:
    sums: Ints = leaf_sums(X, _leaves(X, roots, stages), frame, len(stages[-1].tree.sizes))
    return sums


def _count_divided(first: int, X: Floats, roots: Ints, stages: Sequence[Stage], many: Ints) -> dict[int, Ints]:
    counts = np.bincount(_leaves(X, roots, stages), minlength=len(many))
    return {first: np.where(many > 1, counts, 0)} if len(X) else {}
