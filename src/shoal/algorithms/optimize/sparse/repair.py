r"""Repair of multipliers: turn arbitrary multipliers into feasible multipliers, and compute the bound that these prove.

For duals π and prices μ ≥ 0, let r(G) be the reduced cost of a group (`optimize.lower_bounds`), and

    r_i = min over groups G ∋ i of r(G)/|G|.

Then π + r is feasible, because Σ_{i∈G} r_i ≤ Σ_{i∈G} r(G)/|G| = r(G) for every G. Any multipliers therefore prove a
bound, which is the sum of π + r minus the contribution of the cuts. Nothing is lost where the multipliers were
feasible. `prove_by` computes this bound from the multipliers alone. It uses r_i ≤ 0, so it needs only the groups with
r(G) < 0.

`repair` loses less. For small o_i > 0, all groups with r(G) ≤ o(G) are listed. Each listed group, smallest r(G) first,
subtracts its deficit from the duals of its records in equal parts. The duals are then raised, one after the other, as
far as the listed groups and o permit. A group that is not listed stays feasible, since no dual is raised by more than
o_i.

**Listed groups.** Without cuts, groups of k records are listed; with cuts, groups of k … 2k−1 records
(`optimize.lower_bounds`). The groups contain only priced copies, at most 2k−1 of a record (`sparse.near_table`). Copies
whose dual is fixed at 0 are not repaired; a group of only such copies has no deficit.

**Rounding.** Rounding cannot remove a group from the list (`sparse.near_pricing`). For listed groups, r(G) is computed
with at most d + s² + 8 roundings per term and one per cut; this error is subtracted before the repair. The returned
duals are checked again in the same way. The bound is the correctly rounded sum of the duals as stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from typing import NamedTuple

import numpy as np

from shoal.algorithms.optimize.cuts import Cuts, cut_entries, pair_prices
from shoal.algorithms.optimize.group_columns import GroupColumns
from shoal.algorithms.optimize.lower_bounds import sizes_that_matter
from shoal.algorithms.optimize.sparse.near_pricing import jitter, list_negative
from shoal.algorithms.optimize.sparse.near_table import NearTable
from shoal.algorithms.optimize.sparse.pair_weights import make_pair_weights
from shoal.core.compiler import kernel
from shoal.core.types import Bools, Floats, Ints, State
from shoal.kernels.counting_sort import sort_by_target

__all__ = ["Effort", "FeasibleDuals", "list_groups", "prove_by", "repair"]

# Number of passes that raise duals; the last pass uses all of the remaining slack, the others half of it.
_PASSES = 4


@dataclass(frozen=True)
class Effort:
    """The limits of a listing (average groups and prefixes per record), its threads and its progress state."""

    state: State
    room: int = 400
    max_visits: int = 2000
    threads: int = 1


@dataclass(frozen=True)
class FeasibleDuals:
    """Feasible multipliers and the bound that they prove."""

    value: float  # the bound on the SSE
    duals: Floats  # one per position of the table
    tolerance: float  # the amount subtracted from the duals for rounding
    groups: GroupColumns  # the listed groups, whose records are positions of the table
    rest: Floats  # their reduced costs before the repair
    visited: int  # number of visited prefixes


def list_groups(table: NearTable, k: int, duals: Floats, cuts: Cuts, effort: Effort) -> tuple[GroupColumns, int] | None:
    """Return all groups of the sizes that matter with a reduced cost of at most 0, and the number of visited prefixes.

    A group that pays for cuts may be listed even if its reduced cost is above 0. If there are too many groups, return
    None.
    """
    parts: list[GroupColumns] = []
    visited = 0
    priced = cuts.take(np.flatnonzero(cuts.price > 0.0))
    for size in sizes_that_matter(len(table), k, priced):
        weights = make_pair_weights(table.tree, duals, size, _by_record(priced, size, len(table)))
        listing = list_negative(
            weights, size, room=effort.room, max_visits=effort.max_visits, state=effort.state, threads=effort.threads
        )
        visited += listing.visited
        if not listing.complete:
            return None
        parts.append(GroupColumns.of_rows(table.rows, listing.groups))
    groups = parts[0]
    for part in parts[1:]:
        groups = groups.join(part)
    return groups, visited


def _by_record(cuts: Cuts, size: int, n: int) -> tuple[Ints, Ints, Floats]:
    """Return the priced pairs of each record (first, partner) and s times their prices, rounded down."""
    from scipy.sparse import coo_array

    pair, price = pair_prices(cuts, size)
    a, b = pair[:, 0], pair[:, 1]
    ends = (np.concatenate([a, b]), np.concatenate([b, a]))
    rows = coo_array((np.tile(price * size * (1 - 1e-12), 2), ends), shape=(n, n)).tocsr()
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data


def _reduced_costs(groups: GroupColumns, duals: Floats, cuts: Cuts, d: int) -> tuple[Floats, Floats]:
    """Return the reduced costs of groups and their maximum rounding errors."""
    if not len(groups):
        return np.empty(0), np.empty(0)
    at, sizes = groups.start[:-1], groups.sizes
    rest = groups.cost - np.add.reduceat(duals[groups.member], at)
    terms = groups.cost + np.add.reduceat(np.abs(duals)[groups.member], at)
    roundings = d + sizes * sizes + 8
    column, cut, times = cut_entries(groups, len(duals), cuts)
    if len(column):
        paid = np.bincount(column, cuts.price[cut] * times, minlength=len(groups))
        rest, terms = rest + paid, terms + paid
        roundings = roundings + np.bincount(column, minlength=len(groups))
    return rest, terms * roundings * 2.0**-52


def _lowered(groups: GroupColumns, short: Floats, duals: Floats, fixed: Bools) -> Floats:
    """Return the duals, each reduced by its largest share in a group's deficit, with a margin for rounding."""
    fix, sizes = np.zeros(len(duals)), groups.sizes
    free = ~fixed[groups.member]
    takers = np.bincount(groups.owner, free, len(groups))
    share = np.repeat(short / np.maximum(takers, 1), sizes)
    np.maximum.at(fix, groups.member[free], share[free])
    lowered: Floats = np.where(fix > 0.0, duals - fix * (1 + 2.0**-50) - np.abs(duals) * 2.0**-52, duals)
    return lowered


def prove_by(table: NearTable, k: int, duals: Floats, cuts: Cuts, effort: Effort) -> FeasibleDuals | None:
    """Return the bound that the given multipliers prove, or None if too many groups violate them."""
    listing = list_groups(table, k, jitter(duals), cuts, effort)
    if listing is None:
        return None
    groups, visited = listing
    rest, error = _reduced_costs(groups, duals, cuts, table.rows.shape[1])
    final = _lowered(groups, np.maximum(error - rest, 0.0), duals, table.fixed)
    without = _lowered(groups, np.maximum(-rest, 0.0), duals, table.fixed)
    return FeasibleDuals(_value(final, cuts), final, float((without - final).sum()), groups, rest, visited)


def _value(duals: Floats, cuts: Cuts) -> float:
    total = fsum(np.concatenate([duals, -cuts.worth]))
    return total - abs(total) * 2.0**-50 - float(cuts.worth.sum()) * 2.0**-50


class _Incidence(NamedTuple):
    """The records of each group and the groups of each record."""

    start: Ints  # the records of group j are member[start[j]:start[j + 1]]
    member: Ints
    first: Ints  # the groups of record i are of[first[i]:first[i + 1]]
    of: Ints


def _both_ways(groups: GroupColumns, n: int) -> _Incidence:
    order, first = sort_by_target(groups.member, n)
    return _Incidence(groups.start, groups.member, first, groups.owner[order])


def repair(table: NearTable, k: int, duals: Floats, cuts: Cuts, over: Floats, effort: Effort) -> FeasibleDuals | None:
    """Return feasible multipliers near the given multipliers, or None if too many groups must be listed.

    Prices stay unchanged; no dual is raised by more than `over`.
    """
    # A random share of `over` keeps degrees distinct, as `jitter` does.
    above = duals + over * np.random.default_rng(0).uniform(0.9, 1.0, len(duals))
    listing = list_groups(table, k, above, cuts, effort)
    if listing is None:
        return None
    groups, visited = listing
    d = table.rows.shape[1]
    rest, error = _reduced_costs(groups, duals, cuts, d)
    order = np.argsort(rest, kind="stable")
    linked = _both_ways(groups, len(duals))
    change = _lower(linked, rest - error, order, table.fixed)
    _raise(linked, rest - error, change, above - duals, table.fixed)
    near = np.minimum(duals + change, above)
    again, error = _reduced_costs(groups, near, cuts, d)
    final = _lowered(groups, np.maximum(error - again, 0.0), near, table.fixed)
    return FeasibleDuals(_value(final, cuts), final, float((near - final).sum()), groups, rest, visited)


@kernel
def _lower(groups: _Incidence, rest: Floats, order: Ints, fixed: Bools) -> Floats:
    """Return nonpositive changes to the duals that repair all groups; in `order`, each group subtracts its deficit."""
    start, member = groups.start, groups.member
    change = np.zeros(len(fixed))
    for j in order:
        lacks, free = -rest[j], 0
        for a in range(start[j], start[j + 1]):
            lacks += change[member[a]]
            free += not fixed[member[a]]
        if lacks > 0.0 and free > 0:
            for a in range(start[j], start[j + 1]):
                if not fixed[member[a]]:
                    change[member[a]] -= lacks / free
    return change


@kernel
def _raise(groups: _Incidence, rest: Floats, change: Floats, limits: Floats, fixed: Bools) -> None:
    """Increase the changes to the duals as far as the groups and `limits` permit."""
    start, member = groups.start, groups.member
    slack = rest.copy()
    for j in range(len(rest)):
        for a in range(start[j], start[j + 1]):
            slack[j] -= change[member[a]]
    for turn in range(_PASSES):
        for i in range(len(change)):
            gain = 0.0 if fixed[i] else limits[i] - change[i]
            for at in range(groups.first[i], groups.first[i + 1]):
                gain = min(gain, slack[groups.of[at]])
            if gain > 0.0:
                gain = gain / 2.0 if turn < _PASSES - 1 else gain
                change[i] += gain
                for at in range(groups.first[i], groups.first[i + 1]):
                    slack[groups.of[at]] -= gain
