"""The table of a proof: records in a kd-tree, their nearest neighbours, and copies that need no pricing.

**Copies.** If a record occurs 2k times or more, only 2k−1 copies are priced, all with the dual 0, and no cut contains
them. A group of at most 2k−1 records with other copies has the same reduced cost as one with these, so the others need
no pricing and have the dual 0 too. Little is lost: k copies form a group at no cost, so their duals sum to at most 0.
Otherwise a table with many copies would have more groups of reduced cost 0 than can be listed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.core.progress import STOP
from shoal.core.types import Bools, Floats, Ints, State
from shoal.kernels.kdtree import KdTree, build, neighbours

__all__ = ["NearTable", "make_near", "make_table"]

# Neighbours from which groups are guessed, for groups of up to 3, up to 7 and more records.
_NEAR = ((3, 14), (7, 20), (np.inf, 30))


@dataclass(frozen=True)
class NearTable:
    """Records as places in a kd-tree."""

    tree: KdTree  # the records that are priced
    ids: Ints  # the record at each place
    records: int  # the number of records, including unpriced ones
    near: Ints  # the places nearest to each place, nearest first, ``(n, count)``
    # A dual per place that is feasible in any case: half its share of the distances to its k−1 nearest. A group of
    # s records costs Σ_i Σ_{j≠i} D_ij/(2s), where the inner sum is at least (s−1)/(k−1) times that over the k−1
    # nearest, and (s−1)/s ≥ (k−1)/k.
    floor: Floats
    fixed: Bools  # places with dual 0, because they have many copies

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def rows(self) -> Floats:
        """The records in the order of their places."""
        return self.tree.rows


def make_near(X: Floats, k: int, state: State) -> NearTable | None:
    """Put the records in a tree, with the neighbours needed to guess groups; None if a stop is requested."""
    count = next(count for size, count in _NEAR if k <= size)
    return make_table(X, k, max(count, 2 * k - 1), state)


def make_table(X: Floats, k: int, count: int, state: State, zero: Bools | None = None) -> NearTable | None:
    """Put the records in a tree, with `count` neighbours each (at least 2k−1); None if a stop is requested.

    If duals are given, `zero` marks the records with dual 0 that no cut contains: only copies of these can be left out.
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
    """Return the number of earlier copies of each record; mark those with `enough` copies that may all be left out.

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
