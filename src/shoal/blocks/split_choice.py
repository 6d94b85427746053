"""Choice of the split for blocks: along all columns at once or along one column at a time.

Splitting all columns at once makes small blocks if there are many columns; splitting one at a time makes long blocks.
The better split depends on the records. A sample, drawn by record number, is split both ways into blocks with the same
share of the records, and grouped by MDAV. A table of up to SAMPLE records is its own sample, and the split with the
smaller loss is used. For larger tables, the usual split for the number of columns is used unless the other split loses
at least MARGIN less. If the blocks of a sample are small (below TRUSTED), borders matter more in the sample than in the
table, so the sample is ignored.

One pass over the records, and O(SAMPLE) time and memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from shoal.algorithms.registry import find
from shoal.blocks.block_groups import group_blocks
from shoal.blocks.blocking import BlockRecords, InMemory, assign, extent_of, find_blocks
from shoal.blocks.rule import Blocking, Extent, Split
from shoal.blocks.tree import CODE_BITS
from shoal.core.compiler import kernel
from shoal.core.measures import Scaling, sse
from shoal.core.progress import fresh_state
from shoal.core.types import Bools, Floats, Ints

__all__ = ["choose_split"]

SAMPLE = 20_000  # records
MARGIN = 0.05  # minimum share by which the other split must lose less in a sample
TRUSTED = 10  # minimum size of the sample's blocks in groups of k, averaged over the records
MIX = np.uint64(0x9E3779B97F4A7C15)
MIX_AGAIN = np.uint64(0xBF58476D1CE4E5B9)
SHIFT = np.uint64(32)


class Sample(NamedTuple):
    """A sample of the records: their numbers in the table, their values and their roots."""

    numbers: Ints
    X: Floats
    roots: Ints


def choose_split(
    records: BlockRecords, extent: Extent, rule: Blocking, place: Callable[[Floats, Scaling], Floats]
) -> Split:
    """Return the better split for the blocks of these records.

    `records`, `extent` and `rule` are the arguments of `find_blocks`; `rule` contains the usual split. `place` returns
    the coordinates in which records are grouped.

    Examples
    --------
    >>> X, roots = np.random.default_rng(0).lognormal(0, 2, (500, 6)), np.zeros(500, dtype=np.int64)
    >>> rule = Blocking(L=50, k=3, split="one")
    >>> choose_split(InMemory(X, roots), extent_of(X, roots), rule, lambda X, scale: scale.apply(X))
    'all'
    """
    along = len(rule.by) or extent.limits.shape[1]
    large = extent.sizes > rule.L
    total = int(extent.sizes[large].sum())
    share = min(1.0, SAMPLE / max(total, 1))
    if not total or not 1 < along <= CODE_BITS or (share < 1 and share * rule.L < TRUSTED * rule.k):
        return rule.split
    sample = records.reduce(_draw, _combine, share, large)
    split: Split = records.call(_compare, sample, share, rule, place)
    return split


def _draw(first: int, X: Floats, roots: Ints, share: float, large: Bools) -> Sample:
    rows = np.flatnonzero(_drawn(first, roots, large, np.uint64(share * float(1 << 32))))
    return Sample(first + rows, np.take(X, rows, axis=0), roots[rows])


@kernel
def _drawn(first: int, roots: Ints, large: Bools, limit: np.uint64) -> Bools:
    """Select the records whose number has a 32-bit hash below a limit."""
    selected = np.empty(len(roots), dtype=np.bool_)
    for i in range(len(roots)):
        mixed = np.uint64(first + i + 1) * MIX
        mixed = (mixed ^ (mixed >> SHIFT)) * MIX_AGAIN
        selected[i] = large[roots[i]] and (mixed >> SHIFT) < limit
    return selected


def _combine(first: Sample, second: Sample) -> Sample:
    return Sample(*(np.concatenate(pair) for pair in zip(first, second, strict=True)))


def _compare(sample: Sample, share: float, rule: Blocking, place: Callable[[Floats, Scaling], Floats]) -> Split:
    """Return the split of the rule, or the alternative split if that loses less."""
    order = np.argsort(sample.numbers)  # parts may arrive in any order
    X, roots = np.take(sample.X, order, axis=0), np.unique(sample.roots[order], return_inverse=True)[1]
    if np.bincount(roots, minlength=1).min() < rule.k:
        return rule.split
    alternative: Split = "one" if rule.split == "all" else "all"
    scaled = replace(rule, L=max(2 * rule.k, round(share * rule.L)))
    losses = [_loss(X, roots, replace(scaled, split=split), share < 1, place) for split in (rule.split, alternative)]
    return alternative if losses[1] < losses[0] * (1 - MARGIN if share < 1 else 1.0) else rule.split


def _loss(X: Floats, roots: Ints, rule: Blocking, sampled: bool, place: Callable[[Floats, Scaling], Floats]) -> float:
    """Return MDAV's loss in blocks of the sample, or NaN if the blocks are too small for a comparison."""
    blocks = find_blocks(InMemory(X, roots), extent_of(X, roots), rule)
    if sampled and np.square(blocks.sizes).sum() < TRUSTED * rule.k * len(X):
        return np.nan
    Z = place(X, blocks.scale)
    block = assign(0, X, roots, blocks)
    labels = group_blocks(Z, block, find("mdav"), rule.k, {}, records=len(X), seed=0, state=fresh_state())
    return sse(np.nan_to_num(Z), labels)
