"""Columns: many groups in one pair of arrays, with their SSE, and what cuts and duals say about them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from shoal.types import Floats, Ints

__all__ = ["Columns", "Cuts", "cut_pairs", "no_cuts", "reduced_costs"]


@dataclass(frozen=True)
class Columns:
    """Groups: those of column j are ``member[start[j]:start[j + 1]]``, sorted.

    Examples
    --------
    >>> X = np.array([[0.0], [2.0], [9.0], [9.0]])
    >>> Columns.of(X, [np.array([0, 1]), np.array([2, 3])]).cost.tolist()
    [2.0, 0.0]
    """

    start: Ints
    member: Ints
    cost: Floats

    @classmethod
    def of(cls, X: Floats, groups: Iterable[Ints]) -> Columns:
        """Collect groups (sorted arrays of records) and sum their SSE from pair distances."""
        kept = list(groups)
        start = np.zeros(len(kept) + 1, dtype=np.int64)
        np.cumsum([len(group) for group in kept], out=start[1:])
        member = np.concatenate(kept) if kept else np.empty(0, dtype=np.int64)
        return cls(start, member, _costs(X, start, member))

    def __len__(self) -> int:
        return len(self.cost)

    def __getitem__(self, j: int | np.integer[Any]) -> Ints:
        return self.member[self.start[j] : self.start[j + 1]]

    @property
    def sizes(self) -> Ints:
        """The number of records of each group."""
        return np.diff(self.start)

    def take(self, which: Ints) -> Columns:
        """Return some of the columns."""
        sizes = self.sizes[which]
        start = np.zeros(len(which) + 1, dtype=np.int64)
        np.cumsum(sizes, out=start[1:])
        at = np.repeat(self.start[which] - start[:-1], sizes) + np.arange(start[-1])
        return Columns(start, self.member[at], self.cost[which])

    def join(self, other: Columns) -> Columns:
        """Return these columns followed by others."""
        return Columns(
            np.concatenate([self.start, other.start[1:] + self.start[-1]]),
            np.concatenate([self.member, other.member]),
            np.concatenate([self.cost, other.cost]),
        )

    def keys(self) -> list[bytes]:
        """Return one hashable key a column."""
        return [self[j].tobytes() for j in range(len(self))]


@dataclass(frozen=True)
class Cuts:
    """Subset-row cuts on triples (Jepsen, Petersen, Spoorendonk and Pisinger 2008).

    In a partition at most one group holds two or more of three records: for each triple R, the sum of x_G over the
    groups with |G ∩ R| ≥ 2 is at most 1. `price` is the multiplier μ_R ≥ 0: such a group pays μ_R, and Σ μ_R
    leaves the bound.
    """

    triple: Ints  # (c, 3)
    price: Floats


def no_cuts() -> Cuts:
    """Return an empty set of cuts."""
    return Cuts(np.empty((0, 3), dtype=np.int64), np.empty(0))


@njit(cache=True, nogil=True)
def _costs(X: Floats, start: Ints, member: Ints) -> Floats:
    d = X.shape[1]
    out = np.empty(len(start) - 1)
    for c in range(len(out)):
        total = 0.0
        for a in range(start[c], start[c + 1]):
            for b in range(start[c], a):
                for t in range(d):
                    delta = X[member[a], t] - X[member[b], t]
                    total += delta * delta
        out[c] = total / (start[c + 1] - start[c])
    return out


@njit(cache=True, nogil=True)
def _hits(start: Ints, member: Ints, n: int, triple: Ints) -> tuple[Ints, Ints]:
    """List (column, cut) for each column that holds two or more of the cut's triple."""
    first = np.zeros(n + 1, dtype=np.int64)
    for c in range(len(triple)):
        for t in range(3):
            first[triple[c, t] + 1] += 1
    for i in range(n):
        first[i + 1] += first[i]
    cut = np.empty(first[n], dtype=np.int64)
    fill = first[:n].copy()
    for c in range(len(triple)):
        for t in range(3):
            cut[fill[triple[c, t]]] = c
            fill[triple[c, t]] += 1
    count = np.zeros(len(triple), dtype=np.int64)
    columns, cuts = [np.int64(0) for _ in range(0)], [np.int64(0) for _ in range(0)]
    for column in range(len(start) - 1):
        for a in range(start[column], start[column + 1]):
            for at in range(first[member[a]], first[member[a] + 1]):
                count[cut[at]] += 1
                if count[cut[at]] == 2:
                    columns.append(np.int64(column))
                    cuts.append(cut[at])
        for a in range(start[column], start[column + 1]):
            for at in range(first[member[a]], first[member[a] + 1]):
                count[cut[at]] = 0
    return np.array(columns, dtype=np.int64), np.array(cuts, dtype=np.int64)


def cut_pairs(columns: Columns, n: int, triple: Ints) -> tuple[Ints, Ints]:
    """Return the pairs (column, cut) where the column holds two or more of the cut's three records."""
    if not len(triple) or not len(columns):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    found: tuple[Ints, Ints] = _hits(columns.start, columns.member, n, triple)
    return found


def reduced_costs(columns: Columns, duals: Floats, cuts: Cuts) -> Floats:
    """Return c_G − Σ π_i + Σ μ_R [|G ∩ R| ≥ 2] of every column.

    Examples
    --------
    >>> X = np.array([[0.0], [2.0]])
    >>> reduced_costs(Columns.of(X, [np.array([0, 1])]), np.array([0.5, 0.5]), no_cuts()).tolist()
    [1.0]
    """
    if not len(columns):
        return np.empty(0)
    rest = columns.cost - np.add.reduceat(duals[columns.member], columns.start[:-1])
    if len(cuts.price):
        column, cut = cut_pairs(columns, len(duals), cuts.triple)
        np.add.at(rest, column, cuts.price[cut])
    return rest
