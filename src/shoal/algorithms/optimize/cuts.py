"""Cuts: inequalities that every partition satisfies but a fractional solution may violate.

A rank-one Chvátal–Gomory cut consists of records R with weights p_i / q. The rows Σ_{G ∋ i} x_G = 1, summed with these
weights, give Σ_G (Σ_{i ∈ G∩R} p_i / q) x_G = Σ_{i∈R} p_i / q. If its coefficients are rounded down, the left side is at
most the right side, and for every partition it is an integer. The right side may therefore be rounded down too:

    Σ_G ⌊p(G∩R) / q⌋ x_G ≤ ⌊p(R) / q⌋.

For three records with weights ½, these are the subset-row cuts of M. Jepsen, B. Petersen, S. Spoorendonk and
D. Pisinger (Operations Research 56, 2008): at most one group holds two or more of the three records. D. Pecin,
A. Pessoa, M. Poggi, E. Uchoa and H. Santos (Operations Research Letters 45, 2017) list the weights that matter for up
to five records.

A branching decision (`optimize.branch_and_bound`) has the same form. For two records with weights ½, the coefficient of
a group is 1 if it holds both records. The left side then equals 1 if the records are together, and 0 if they are
separate.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations

import numpy as np

from shoal.algorithms.optimize.group_columns import GroupColumns, places_of
from shoal.core.compiler import kernel
from shoal.core.types import Floats, Ints
from shoal.kernels.counting_sort import sort_by_target

__all__ = ["Cuts", "Decision", "cut_entries", "double_rows", "no_cuts", "pair_prices", "reduced_costs"]

Decision = tuple[int, int, int]  # two records, then 1 if they are together or 0 if they are separate


@dataclass(frozen=True)
class Cuts:
    """Rank-one cuts with their multipliers; cut c covers the records ``member[start[c]:start[c + 1]]``.

    Examples
    --------
    >>> cuts = Cuts.of([((0, 1, 2), (1, 1, 1), 2), ((0, 2, 3, 4, 5), (1, 1, 1, 1, 1), 2)])
    >>> cuts.right_sides.tolist()
    [1, 2]
    """

    # The records of each cut.
    start: Ints
    member: Ints
    # The weight of record ``member[a]`` in cut c is ``part[a] / denominator[c]``.
    part: Ints
    denominator: Ints
    price: Floats  # the multiplier μ ≥ 0 of each cut: a group pays μ⌊p(G∩R)/q⌋, and the bound loses μ⌊p(R)/q⌋
    # −1 for a cut. For a decision, its right side: 1 if the two records are together, 0 if they are separate. The
    # multiplier of a decision may have any sign.
    decided: Ints

    @classmethod
    def of(cls, cuts: list[tuple[tuple[int, ...], tuple[int, ...], int]]) -> Cuts:
        """Collect cuts at price 0; each is a tuple of records, numerators of their weights, and denominator."""
        start = np.zeros(len(cuts) + 1, dtype=np.int64)
        np.cumsum([len(records) for records, _, _ in cuts], out=start[1:])
        return cls(
            start,
            np.array([i for records, _, _ in cuts for i in records], dtype=np.int64),
            np.array([p for _, parts, _ in cuts for p in parts], dtype=np.int64),
            np.array([denominator for _, _, denominator in cuts], dtype=np.int64),
            np.zeros(len(cuts)),
            np.full(len(cuts), -1),
        )

    @classmethod
    def of_rows(cls, member: Ints, part: Ints, denominator: int) -> Cuts:
        """Collect cuts at price 0 that have the same number of records, one cut per row, and the same denominator.

        Examples
        --------
        >>> Cuts.of_rows(np.array([[0, 1, 2]]), np.array([[1, 1, 1]]), 2).each()
        [((0, 1, 2), (1, 1, 1), 2)]
        """
        count, size = member.shape
        start = np.arange(count + 1) * size
        return cls(
            start,
            member.reshape(-1),
            part.reshape(-1),
            np.full(count, denominator),
            np.zeros(count),
            np.full(count, -1),
        )

    @classmethod
    def deciding(cls, decisions: Iterable[Decision]) -> Cuts:
        """Return the equations for decisions about pairs of records, at price 0."""
        triples = list(decisions)
        rows = cls.of([((i, j), (1, 1), 2) for i, j, _ in triples])
        return replace(rows, decided=np.array([decided for _, _, decided in triples], dtype=np.int64))

    def __len__(self) -> int:
        return len(self.price)

    def decisions(self) -> list[Decision]:
        """Return the decisions; a decision without two records of weight ½ is returned as (−1, −1, −1)."""
        return [
            (records[0], records[1], decided)
            if len(records) == 2 and (parts, denominator) == ((1, 1), 2)
            else (-1, -1, -1)
            for (records, parts, denominator), decided in zip(self.each(), self.decided.tolist(), strict=True)
            if decided >= 0
        ]

    @property
    def coefficients(self) -> Ints:
        """The largest possible coefficient of each cut, ⌊p(R)/q⌋."""
        if not len(self):
            return np.empty(0, dtype=np.int64)
        total: Ints = np.add.reduceat(self.part, self.start[:-1]) // self.denominator
        return total

    @property
    def right_sides(self) -> Ints:
        """The right sides: ⌊p(R)/q⌋ for a cut, 0 or 1 for a decision."""
        right: Ints = np.where(self.decided < 0, self.coefficients, self.decided)
        return right

    @property
    def worth(self) -> Floats:
        """The amount that each cut subtracts from the bound, which is μ times its right side."""
        return self.price * self.right_sides

    @property
    def magnitude(self) -> float:
        """The largest amount that a group can pay at absolute prices, to which rounding errors are relative."""
        return float((np.abs(self.price) * self.coefficients).sum())

    def priced(self, price: Floats) -> Cuts:
        """Return the same cuts at the given prices."""
        return replace(self, price=price)

    def paying(self, noise: float) -> Cuts:
        """Return the cuts whose absolute price exceeds `noise`."""
        return self.take(np.flatnonzero(np.abs(self.price) > noise))

    def each(self) -> list[tuple[tuple[int, ...], tuple[int, ...], int]]:
        """Return a list of the cuts, in the form that `of` accepts."""
        bounds = zip(self.start[:-1].tolist(), self.start[1:].tolist(), self.denominator.tolist(), strict=True)
        member, part = self.member.tolist(), self.part.tolist()
        return [(tuple(member[a:b]), tuple(part[a:b]), denominator) for a, b, denominator in bounds]

    def take(self, which: Ints) -> Cuts:
        """Return the cuts with the given numbers, with their prices."""
        start, at = places_of(self.start, which)
        return Cuts(
            start, self.member[at], self.part[at], self.denominator[which], self.price[which], self.decided[which]
        )

    def join(self, following: Cuts) -> Cuts:
        """Return these cuts followed by the cuts `following`."""
        return Cuts(
            np.concatenate([self.start, following.start[1:] + self.start[-1]]),
            np.concatenate([self.member, following.member]),
            np.concatenate([self.part, following.part]),
            np.concatenate([self.denominator, following.denominator]),
            np.concatenate([self.price, following.price]),
            np.concatenate([self.decided, following.decided]),
        )


def no_cuts() -> Cuts:
    """Return an empty set of cuts."""
    return Cuts.of([])


@kernel
def double_rows(rows: Ints) -> Ints:
    """Return a copy of an array with room for twice as many rows."""
    doubled = np.empty((2 * len(rows), rows.shape[1]), dtype=np.int64)
    doubled[: len(rows)] = rows
    return doubled


@kernel
def _entries(start: Ints, member: Ints, first: Ints, cut: Ints, part: Ints, denominator: Ints) -> Ints:
    """Return one row (column, cut, ⌊p(G∩R)/q⌋) per nonzero entry; record i is in ``cut[first[i]:first[i + 1]]``."""
    total = np.zeros(len(denominator), dtype=np.int64)
    entries, count = np.empty((1024, 3), dtype=np.int64), 0
    for column in range(len(start) - 1):
        for a in range(start[column], start[column + 1]):
            for at in range(first[member[a]], first[member[a] + 1]):
                total[cut[at]] += part[at]
        for a in range(start[column], start[column + 1]):
            for at in range(first[member[a]], first[member[a] + 1]):
                c = cut[at]
                if total[c] >= denominator[c]:
                    if count == len(entries):
                        entries = double_rows(entries)
                    entries[count, 0], entries[count, 1], entries[count, 2] = column, c, total[c] // denominator[c]
                    count += 1
                total[c] = 0
    return entries[:count]


def cut_entries(columns: GroupColumns, n: int, cuts: Cuts) -> tuple[Ints, Ints, Ints]:
    """Return column, cut and ⌊p(G∩R)/q⌋ for every pair of a column and a cut with a coefficient other than 0."""
    if not len(cuts) or not len(columns):
        nothing = np.empty(0, dtype=np.int64)
        return nothing, nothing, nothing
    order, first = sort_by_target(cuts.member, n)
    cut = np.repeat(np.arange(len(cuts)), np.diff(cuts.start))[order]
    entries = _entries(columns.start, columns.member, first, cut, cuts.part[order], cuts.denominator)
    return entries[:, 0], entries[:, 1], entries[:, 2]


def reduced_costs(columns: GroupColumns, duals: Floats, cuts: Cuts) -> Floats:
    """Return the reduced cost of every column, c_G − Σ π_i + Σ μ_R ⌊p(G∩R)/q⌋."""
    if not len(columns):
        return np.empty(0)
    rest = columns.cost - np.add.reduceat(duals[columns.member], columns.start[:-1])
    if len(cuts):
        column, cut, times = cut_entries(columns, len(duals), cuts)
        rest += np.bincount(column, cuts.price[cut] * times, minlength=len(columns))
    return rest


@cache
def _share(parts: tuple[int, ...], denominator: int, size: int) -> float:
    """Return the largest b with b·(pairs of S with p_i + p_j ≥ q) ≤ ⌊p(S)/q⌋ for all S ⊆ R of up to `size` records."""
    smallest = np.inf
    for count in range(2, min(size, len(parts)) + 1):
        for subset in set(combinations(sorted(parts), count)):
            pairs = sum(p + r >= denominator for p, r in combinations(subset, 2))
            if pairs:
                smallest = min(smallest, sum(subset) // denominator / pairs)
    return float(smallest)


def pair_prices(cuts: Cuts, size: int) -> tuple[Ints, Floats]:
    """Distribute the prices of cuts over pairs of records; no group of `size` records receives more than it pays.

    For a cut, let b be the smallest ⌊p(S)/q⌋ / (pairs of S with p_i + p_j ≥ q) over the subsets S of at most `size`
    records that have such a pair. Every such pair receives μ·b, so a group G with S = G∩R receives at most μ⌊p(S)/q⌋.
    For a triple with weights ½, b = 1/3; for a decision, b = 1 for prices of either sign. A pair is listed once for
    each cut that prices it.

    Examples
    --------
    >>> pairs, prices = pair_prices(Cuts.of([((4, 5, 9), (1, 1, 1), 2)]).priced(np.array([6.0])), 3)
    >>> pairs.tolist(), prices.tolist()
    ([[4, 5], [4, 9], [5, 9]], [2.0, 2.0, 2.0])
    """
    priced: list[tuple[Ints, Ints, Floats]] = []
    sizes = np.diff(cuts.start)
    for count in np.unique(sizes):
        which = np.flatnonzero((sizes == count) & (cuts.price != 0.0))
        at = cuts.start[which, None] + np.arange(count)
        member, part, denominator = cuts.member[at], cuts.part[at], cuts.denominator[which]
        kinds, kind = np.unique(np.column_stack([np.sort(part, axis=1), denominator]), axis=0, return_inverse=True)
        shares = np.array([_share(tuple(parts), q, size) for *parts, q in kinds.tolist()])
        price = cuts.price[which] * np.where(np.isfinite(shares), shares, 0.0)[kind.reshape(-1)]
        for a, b in combinations(range(count), 2):
            rows = np.flatnonzero((part[:, a] + part[:, b] >= denominator) & (price != 0.0))
            priced.append((which[rows], member[rows][:, [a, b]], price[rows]))
    if not priced:
        return np.empty((0, 2), dtype=np.int64), np.empty(0)
    cut, pair, price = (np.concatenate(part) for part in zip(*priced, strict=True))
    order = np.argsort(cut, kind="stable")
    return pair[order], price[order]
