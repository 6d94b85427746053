"""Separation: a local search for the cuts that a fractional solution violates most.

For each kind of weights (`optimize.cuts`), a cut starts from each record of a fractional group. It repeatedly adds the
record that increases the left side most, then exchanges records while the left side grows. The candidates are records
with strong links (shared groups of large value) to a record of the cut. With r records, an exchange costs
O(r · links · groups per record).

This is a heuristic: its cuts are valid and violated, but it may miss other violated cuts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.algorithms.optimize.cuts import Cuts, no_cuts
from shoal.algorithms.optimize.group_columns import GroupColumns
from shoal.core.compiler import kernel
from shoal.core.progress import STOP
from shoal.core.types import Floats, Ints, State

__all__ = ["violated_cuts"]

# Numerators and denominator of the weights: for up to five records, the undominated weights of Pecin et al. (2017);
# then odd sets.
KINDS: tuple[tuple[tuple[int, ...], int], ...] = (
    ((1, 1, 1), 2),
    ((2, 1, 1, 1), 3),
    ((1, 1, 1, 1, 1), 2),
    ((1, 1, 1, 1, 1), 3),
    ((2, 2, 1, 1, 1), 3),
    ((2, 2, 1, 1, 1), 4),
    ((3, 1, 1, 1, 1), 4),
    ((3, 2, 2, 1, 1), 5),
    ((3, 3, 2, 2, 1), 4),
    ((1, 1, 1, 1, 1, 1, 1), 2),
    ((1, 1, 1, 1, 1, 1, 1), 3),
    ((1, 1, 1, 1, 1, 1, 1, 1, 1), 2),
)
# Maximum number of links to try per record, strongest first.
_LINKS = 16
# While a cut grows, this share of the value of a column that already holds a record of the cut counts as a gain.
_PARTIAL = 0.15
# Maximum number of exchanges per position of a cut; one or two are common.
_EXCHANGES = 100


class _Cut(NamedTuple):
    """A cut under construction, with the fractional solution that it should cut off."""

    first: Ints  # the columns of record i are column[first[i]:first[i + 1]]
    column: Ints
    x: Floats  # the value of each column
    links: Ints  # (n, _LINKS): the records with the strongest links to each record, padded with −1
    parts: Ints  # the numerator of the weight at each position
    denominator: int  # the denominator of all weights
    records: Ints  # the record at each position, −1 if it is empty
    inside: Ints  # 1 for the records of the cut, 0 for all others
    weight: Ints  # for each column, the sum of its records' numerators


@kernel
def _gain(cut: _Cut, place: int, record: int, partial: float) -> float:
    """Return the gain in the left side from a record, plus the share `partial` of each column shared with the cut."""
    total, part, denominator = 0.0, cut.parts[place], cut.denominator
    for at in range(cut.first[record], cut.first[record + 1]):
        c = cut.column[at]
        total += cut.x[c] * ((cut.weight[c] + part) // denominator - cut.weight[c] // denominator)
        if cut.weight[c] > 0:
            total += partial * cut.x[c]
    return total


@kernel
def _put(cut: _Cut, place: int, record: int, sign: int) -> None:
    """Put a record at a position of the cut (sign 1) or remove it (sign −1)."""
    cut.records[place] = record if sign > 0 else -1
    cut.inside[record] = sign > 0
    for at in range(cut.first[record], cut.first[record + 1]):
        cut.weight[cut.column[at]] += sign * cut.parts[place]


@kernel
def _best(cut: _Cut, place: int, partial: float) -> tuple[int, float]:
    """Return the free record, linked to the cut, that has the largest gain at a position, and this gain."""
    best, greatest = -1, -np.inf
    for b in range(len(cut.records)):
        if b != place and cut.records[b] >= 0:
            for candidate in cut.links[cut.records[b]]:
                if candidate >= 0 and cut.inside[candidate] == 0:
                    gain = _gain(cut, place, candidate, partial)
                    if gain > greatest:
                        best, greatest = candidate, gain
    return best, greatest


@kernel
def _fill(cut: _Cut, record: int, place: int) -> float:
    """Fill the positions of a cut from one record, while linked records exist; return the left side."""
    total = _gain(cut, place, record, 0.0)
    _put(cut, place, record, 1)
    for a in range(len(cut.parts)):
        if cut.records[a] < 0:
            candidate, _ = _best(cut, a, _PARTIAL)
            if candidate < 0:
                break
            total += _gain(cut, a, candidate, 0.0)
            _put(cut, a, candidate, 1)
    return total


@kernel
def _exchange(cut: _Cut, total: float) -> float:
    """Exchange records of a full cut, one at a time, while the left side grows; return the left side."""
    r = len(cut.parts)
    unchanged, a = 0, 0
    for _ in range(_EXCHANGES * r):
        if unchanged == r:
            break
        record = cut.records[a]
        _put(cut, a, record, -1)
        current = _gain(cut, a, record, 0.0)
        candidate, gain = _best(cut, a, 0.0)
        unchanged += 1
        if candidate >= 0 and gain > current + 1e-6:
            total += gain - current
            record, unchanged = candidate, 0
        _put(cut, a, record, 1)
        a = (a + 1) % r
    return total


@kernel
def _search(cut: _Cut, starts: Ints, threshold: float, state: State) -> tuple[Ints, Floats]:
    """Return the records and violations of the violated cuts of one kind; after a stop request, some are missing."""
    r = len(cut.parts)
    right = cut.parts.sum() // cut.denominator
    rows, excess = np.empty((len(starts), r), dtype=np.int64), np.empty(len(starts))
    count = 0
    for record, place in starts:
        if state[STOP]:
            break
        total = _fill(cut, record, place)
        if cut.records.min() >= 0:
            total = _exchange(cut, total)
            if total - right > threshold:
                rows[count], excess[count] = cut.records, total - right
                count += 1
        for a in range(r):
            if cut.records[a] >= 0:
                _put(cut, a, cut.records[a], -1)
    return rows[:count], excess[:count]


@kernel
def _pick(records: Ints, n: int, each: int, limit: int) -> Ints:
    """Select up to `limit` rows in order, with no record in more than `each` of them; return their numbers."""
    times, picked, count = np.zeros(n, dtype=np.int64), np.empty(len(records), dtype=np.int64), 0
    for row in range(len(records)):
        free = count < limit
        for i in records[row]:
            free = free and times[i] < each
        if free:
            picked[count] = row
            count += 1
            for i in records[row]:
                times[i] += 1
    return picked[:count]


def _linked(columns: GroupColumns, x: Floats, n: int) -> tuple[Ints, Ints, Ints]:
    """Return the columns of each record (first, column), and the records most strongly linked to it, padded with −1."""
    from scipy.sparse import csr_array

    holds = csr_array((np.ones(len(columns.member)), columns.member, columns.start), shape=(len(columns), n))
    link = (holds.T @ holds.multiply(x[:, None])).tocsr()
    by_record = holds.tocsc()
    row, record = np.repeat(np.arange(n), np.diff(link.indptr)), link.indices
    edges = np.flatnonzero((record != row) & (link.data > 0))
    order = edges[np.lexsort((record[edges], -np.round(link.data[edges], 9), row[edges]))]
    rank = np.arange(len(order)) - np.searchsorted(row[order], row[order])
    links = np.full((n, _LINKS), -1, dtype=np.int64)
    links[row[order][rank < _LINKS], rank[rank < _LINKS]] = record[order][rank < _LINKS]
    return by_record.indptr.astype(np.int64), by_record.indices.astype(np.int64), links


def violated_cuts(
    columns: GroupColumns, x: Floats, n: int, *, threshold: float, limit: int, each: int, state: State
) -> Cuts:
    """Return violated cuts of each kind, largest violation first.

    At most `limit` cuts of a kind are returned, and at most `each` of these contain the same record.
    """
    used = np.flatnonzero(x > 1e-4)
    part, x = columns.take(used), x[used]
    open_ones = np.unique(part.member[np.repeat(x < 1 - 1e-4, part.sizes)])
    if not len(open_ones):
        return Cuts.of([])
    first, column, links = _linked(part, x, n)
    cuts = no_cuts()
    for parts, denominator in KINDS:
        places = np.array(sorted({parts.index(p) for p in parts} | {len(parts) - 1}))
        starts = np.column_stack([np.repeat(open_ones, len(places)), np.tile(places, len(open_ones))])
        records, weight = np.full(len(parts), -1), np.zeros(len(x), dtype=np.int64)
        cut = _Cut(first, column, x, links, np.array(parts), denominator, records, np.zeros(n, dtype=np.int64), weight)
        rows, excess = _search(cut, starts, threshold, state)
        # Several starts may find the same cut: identify a cut by its sorted pairs of record and numerator.
        coded = np.sort(rows * (denominator + 1) + cut.parts, axis=1)
        coded = coded[np.argsort(-np.round(excess, 9), kind="stable")]
        coded = coded[np.sort(np.unique(coded, axis=0, return_index=True)[1])]
        coded = coded[_pick(coded // (denominator + 1), n, each, limit)]
        cuts = cuts.join(Cuts.of_rows(coded // (denominator + 1), coded % (denominator + 1), denominator))
    return cuts
