"""The table of a proof: records in a kd-tree with their nearest neighbours, without copies that need no pricing.

**Copies.** If a record occurs 2k times or more, only 2k−1 copies are priced. All copies have the dual 0, and no cut
contains them. A group of at most 2k−1 records keeps its reduced cost if its copies are replaced by priced copies, so
the other copies need no pricing. Little is lost, because k copies form a group at no cost and their duals sum to at
most 0. Without this rule, a table with many copies would have more groups of reduced cost 0 than can be listed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.core.progress import STOP
from shoal.core.types import Bools, Floats, Ints, State
from shoal.kernels.kdtree import KdTree, build, neighbours

__all__ = ["NearTable", "make_near", "make_table"]

# Maximum k, and the number of neighbours from which groups are guessed up to this k.
_NEAR = ((3, 14), (7, 20), (np.inf, 30))


@dataclass(frozen=True)
class NearTable:
    """The priced records as positions in a kd-tree, with their nearest neighbours and feasible duals."""

    tree: KdTree  # the priced records
    ids: Ints  # the record number at each position
    records: int  # the number of records, including unpriced copies
    near: Ints  # the positions nearest to each position, nearest first, ``(n, count)``
    # A feasible dual per position: the sum of the squared distances to the k−1 nearest records, divided by 2k. A group
    # of s records costs Σ_i Σ_{j≠i} D_ij/(2s). The inner sum is at least (s−1)/(k−1) times the sum over the k−1 nearest
    # records, and (s−1)/s ≥ (k−1)/k.
    floor: Floats
    fixed: Bools  # true for positions with the dual 0, because their records have many copies

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def rows(self) -> Floats:
        """The records in the order of their positions."""
        return self.tree.rows


def make_near(X: Floats, k: int, state: State) -> NearTable | None:
    """Return the table of a proof with the neighbours needed to guess groups, or None if a stop is requested."""
    count = next(count for size, count in _NEAR if k <= size)
    return make_table(X, k, max(count, 2 * k - 1), state)


def make_table(X: Floats, k: int, count: int, state: State, zero: Bools | None = None) -> NearTable | None:
    """Return the table of a proof with up to `count` neighbours per record, or None if a stop is requested.

    `count` must be at least 2k−1. If duals are given, `zero` marks the records with the dual 0 that no cut contains;
    only copies of these records can be left out.
    """
    rows, copied = np.arange(len(X)), np.zeros(len(X), dtype=np.bool_)
    while True:
        n = len(rows)
        tree = build(np.ascontiguousarray(X[rows]))
        squared, near = np.empty((n, min(count, n - 1))), np.empty((n, min(count, n - 1)), dtype=np.int64)
        neighbours(tree, 0, len(tree.leaves), squared, near, state)
        if state[STOP]:
            return None
        ids = rows[tree.ids[:n]]
        if n < len(X) or n < 2 * k:
            break
        suspects = np.sort(ids[squared[:, 2 * k - 2] == 0.0])
        may = np.ones(len(suspects), dtype=np.bool_) if zero is None else zero[suspects]
        rank, copied[suspects] = _copies(X[suspects], may, 2 * k)
        surplus = suspects[copied[suspects] & (rank >= 2 * k - 1)]
        if not len(surplus):
            break
        rows = np.setdiff1d(rows, surplus)
    floor = squared[:, : k - 1].sum(axis=1) / (2 * k) * (1 - (X.shape[1] + k + 8) * 2.0**-52)
    fixed = copied[ids]
    return NearTable(tree, ids, len(X), near, np.where(fixed, 0.0, floor), fixed)


def _copies(X: Floats, may: Bools, enough: int) -> tuple[Ints, Bools]:
    """Return the number of earlier copies of each record, and a mask of the records with at least `enough` copies.

    A record is marked only if `may` is true for all its copies.

    Examples
    --------
    >>> rank, copied = _copies(np.array([[1.0], [1.0], [2.0], [1.0]]), np.ones(4, dtype=bool), 3)
    >>> rank.tolist(), copied.tolist()
    ([0, 1, 0, 2], [True, True, False, True])
    """
    _, number, count = np.unique(X, axis=0, return_inverse=True, return_counts=True)
    number = number.reshape(-1)
    order = np.argsort(number, kind="stable")
    rank = np.empty(len(X), dtype=np.int64)
    rank[order] = np.arange(len(X)) - np.repeat(np.cumsum(count) - count, count)
    all_may = np.bincount(number, may, len(count)) == count
    return rank, (all_may & (count >= enough))[number]
