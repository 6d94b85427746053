r"""Exact pricing for tables of any size: list all groups of negative reduced cost from near records, in O(n) memory.

The order of `optimize.pricing` applies. If a record of largest weighted degree is removed repeatedly from a group with
w ≤ 0, every prefix P of the reversed order also has w(P) ≤ 0. The search therefore starts with pairs of w_ij ≤ 0 and
adds one record v at a time. This record must satisfy Σ_{u∈P} w_uv ≤ gap = −w(P), and must have the largest degree in
the longer prefix.

**Candidates.** Every record u has a reach T_u ≥ 0 and a list N(u) of all v with w_uv ≤ T_u. If Σ_{u∈P} T_u ≥ gap, a
record v that fits has w_uv ≤ T_u for some u ∈ P, so v is in the union of the lists. Otherwise one query of the tree
finds the records that fit (`sparse.pair_weights`). With T_u = α c π_u⁺, the first case is common. If a list would be
too long, T_u = 0 is used, and queries replace the list.

**Rounding.** Let κ be the margin of `sparse.pair_weights`, and let A(P) = Σ_{u∈P}|π_u|. If w(P) ≤ 0, the distances and
prices of P sum to at most s c A(P), so the error of every sum over its pairs is at most 4 s κ A(P). A prefix is
accepted if its computed sum is below this error. A record v counts as having the largest degree if no other degree is
larger by more than this error. No group with w ≤ 0 is therefore lost, and no group is searched where all duals are 0.
Two orders of one group may both pass if degrees are equal except for rounding; such duplicates are removed at the end.
To make duplicates rare, `jitter` adds up to 2⁻³⁰ |π| to each dual, which can only make more groups negative.

At convergence, each record has about 10 … 50 near records and as many pairs. The cost is O(n log n) in few columns, and
memory is O(n).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shoal.algorithms.optimize.cuts import double_rows
from shoal.algorithms.optimize.sparse.pair_weights import PairWeights, query, weight
from shoal.core.compiler import kernel
from shoal.core.progress import STOP, spread
from shoal.core.types import Bools, Floats, Ints, State
from shoal.kernels.kdtree import DEPTH

__all__ = ["NegativeGroups", "jitter", "list_negative"]

# Number of records for which one thread lists groups in one call.
_CHUNK = 4096
# The reach of a record as a share of c π, and the maximum length of a list with this reach.
_REACH, _LONGEST = 0.5, 400
# Initial room for the candidates of a prefix; each retry has four times as much room.
_CANDIDATES = 4096
_DONE, _CROWDED, _MANY = range(3)


@dataclass(frozen=True)
class NegativeGroups:
    """The listed groups of one size, one per row; `complete` is true if none is missing, `visited` counts prefixes."""

    groups: Ints
    complete: bool
    visited: int


def jitter(duals: Floats) -> Floats:
    """Return the duals, each increased by a random share of up to 2⁻³⁰ of its absolute value.

    The random shares depend only on the number of duals.

    Examples
    --------
    >>> bool((jitter(np.array([1.0, -1.0])) >= [1.0, -1.0]).all())
    True
    """
    raised: Floats = duals + np.abs(duals) * np.random.default_rng(0).uniform(0.0, 2.0**-30, len(duals))
    return raised


class _Neighbours(NamedTuple):
    """The records near each record u, ``neighbour[first[u]:first[u + 1]]``, and the reach T_u of each record."""

    first: Ints
    neighbour: Ints
    reach: Floats


class _NearPrefix(NamedTuple):
    """A prefix of records, with sums over its first m records for every m."""

    records: Ints  # (s,)
    total: Floats  # (s + 1,): the sum of the pair weights
    size: Floats  # (s + 1,): A, the sum of |π|
    cursor: Ints  # (s + 1,): the candidate to try next
    candidate_count: Ints  # (s + 1,): the number of candidates
    inner_degree: Floats  # (s, s): the weighted degree of each record within the prefix
    candidate: Ints  # the candidates; a longer prefix appends to the candidates of a shorter prefix
    degree: Floats  # (s, candidates): the sum of the weights from each candidate to the prefix
    is_candidate: Bools  # one flag per record
    answer: Ints  # the records that a query found
    shift: Floats  # scratch arrays for queries
    stack: Ints


@kernel
def _lists(w: PairWeights, begin: int, end: int, reach: Floats, state: State) -> tuple[Ints, Ints]:
    """Return the number of near records of each record, and the joined lists of near records.

    If a list would be too long, set the reach of its record to 0.
    """
    count = np.zeros(end - begin, dtype=np.int64)
    neighbour, total = np.empty(32 * (end - begin), dtype=np.int64), 0
    near, single = np.empty(4 * _LONGEST, dtype=np.int64), np.empty(1, dtype=np.int64)
    shift, stack = np.empty(w.rows.shape[1]), np.empty(DEPTH, dtype=np.int64)
    for u in range(begin, end):
        if state[STOP]:
            break
        single[0] = u
        hits = query(w, single, 1, reach[u], near, shift, stack)
        if hits > _LONGEST and reach[u] > 0.0:
            reach[u] = 0.0
            hits = query(w, single, 1, 0.0, near, shift, stack)
        if hits > len(near):
            near = np.empty(2 * hits, dtype=np.int64)
            hits = query(w, single, 1, reach[u], near, shift, stack)
        if total + hits > len(neighbour):
            longer = np.empty(2 * (total + hits), dtype=np.int64)
            longer[:total] = neighbour[:total]
            neighbour = longer
        for at in range(hits):
            if near[at] != u:
                neighbour[total] = near[at]
                total += 1
                count[u - begin] += 1
    return count, neighbour[:total]


@kernel(counted=False, inner=True)
def _slack(w: PairWeights, prefix: _NearPrefix, m: int, v: int) -> float:
    """Return the maximum rounding error of a sum over a prefix of m records and v, if this sum is at most 0."""
    slack: float = 4.0 * len(prefix.records) * w.kappa * (prefix.size[m] + abs(w.duals[v]))
    return slack


@kernel(counted=False, inner=True)
def _try(w: PairWeights, prefix: _NearPrefix, m: int, v: int) -> bool:
    """Make v a candidate for a prefix of m records unless it already is a candidate; return False if there is no room.

    If v would be the last record and cannot fit, reject it before all distances are computed.
    """
    if prefix.is_candidate[v]:
        return True
    last = m + 1 == len(prefix.records)
    degree, rest = 0.0, 0.0
    for a in range(m):
        rest -= w.factor * (w.duals[prefix.records[a]] + w.duals[v])
    limit = 2.0 * _slack(w, prefix, m, v) - prefix.total[m]
    for a in range(m):
        u = prefix.records[a]
        if u == v:
            return True
        degree += weight(w, u, v)
        rest += w.factor * (w.duals[u] + w.duals[v])
        if last and degree + rest > limit:
            return True
    at = prefix.candidate_count[m]
    if at == len(prefix.candidate):
        return False
    prefix.candidate[at], prefix.degree[m, at] = v, degree
    prefix.is_candidate[v] = True
    prefix.candidate_count[m] = at + 1
    return True


@kernel(counted=False, inner=True)
def _inherit(w: PairWeights, prefix: _NearPrefix, m: int) -> None:
    """Pass the candidates of a prefix of m−1 records to the prefix of m records, with updated degrees."""
    v = prefix.records[m - 1]
    last = m + 1 == len(prefix.records)
    for at in range(prefix.candidate_count[m - 1]):
        x, degree = prefix.candidate[at], prefix.degree[m - 1, at]
        smallest = degree - w.factor * (w.duals[v] + w.duals[x])
        if x == v or (last and smallest > 2.0 * _slack(w, prefix, m, x) - prefix.total[m]):
            prefix.degree[m, at] = np.inf
        else:
            prefix.degree[m, at] = degree + weight(w, v, x)
    prefix.candidate_count[m], prefix.cursor[m] = prefix.candidate_count[m - 1], 0


@kernel(counted=False, inner=True)
def _find_candidates(w: PairWeights, near: _Neighbours, prefix: _NearPrefix, m: int) -> bool:
    """Find every record that may be added to a prefix of m records; return False if there are too many candidates."""
    v = prefix.records[m - 1]
    _inherit(w, prefix, m)
    for at in range(near.first[v], near.first[v + 1]):
        if not _try(w, prefix, m, near.neighbour[at]):
            return False
    gap = _slack(w, prefix, m, v) - prefix.total[m]
    reach = 0.0
    for a in range(m):
        reach += near.reach[prefix.records[a]]
    if reach * (1.0 - w.kappa) < gap and m > 1:
        hits = query(w, prefix.records, m, gap, prefix.answer, prefix.shift, prefix.stack)
        if hits > len(prefix.answer):
            return False
        for at in range(hits):
            if not _try(w, prefix, m, prefix.answer[at]):
                return False
    return True


@kernel(counted=False, inner=True)
def _forget_candidates(prefix: _NearPrefix, m: int) -> None:
    for at in range(prefix.candidate_count[m - 1], prefix.candidate_count[m]):
        prefix.is_candidate[prefix.candidate[at]] = False
    prefix.candidate_count[m] = prefix.candidate_count[m - 1]


@kernel(counted=False, inner=True)
def _next(w: PairWeights, prefix: _NearPrefix, m: int) -> int:
    """Return the position of the next candidate that fits a prefix and then has the largest degree, or −1 if none."""
    for at in range(prefix.cursor[m], prefix.candidate_count[m]):
        v, degree = prefix.candidate[at], prefix.degree[m, at]
        slack = _slack(w, prefix, m, v)
        if not prefix.total[m] + degree < slack:
            continue
        if m == 1:
            largest = v > prefix.records[0]
        else:
            largest = True
            for a in range(m):
                if prefix.inner_degree[m, a] + weight(w, prefix.records[a], v) > degree + slack:
                    largest = False
                    break
        if largest:
            prefix.cursor[m] = at + 1
            return at
    return -1


@kernel(counted=False, inner=True)
def _append(w: PairWeights, prefix: _NearPrefix, m: int, at: int) -> None:
    """Append the candidate at position `at` to a prefix of m records, and update the sums."""
    v, degree = prefix.candidate[at], prefix.degree[m, at]
    for a in range(m):
        prefix.inner_degree[m + 1, a] = prefix.inner_degree[m, a] + weight(w, prefix.records[a], v)
    prefix.inner_degree[m + 1, m] = degree
    prefix.records[m] = v
    prefix.total[m + 1] = prefix.total[m] + degree
    prefix.size[m + 1] = prefix.size[m] + abs(w.duals[v])


@kernel
def _search(
    w: PairWeights,
    near: _Neighbours,
    s: int,
    begin: int,
    end: int,
    room: int,
    max_visits: int,
    candidates: int,
    state: State,
) -> tuple[Ints, int, int]:
    """Find the groups whose prefixes start with one of the records begin … end−1.

    Return the groups, the reason why the search ended, and the number of visited prefixes.
    """
    sets, count, visited = np.empty((1024, s), dtype=np.int64), 0, 0
    prefix = _NearPrefix(
        np.empty(s, dtype=np.int64), np.zeros(s + 1), np.zeros(s + 1), np.zeros(s + 1, dtype=np.int64),
        np.zeros(s + 1, dtype=np.int64), np.zeros((s + 1, s + 1)), np.empty(candidates, dtype=np.int64),
        np.empty((s, candidates)), np.zeros(len(w.rows), dtype=np.bool_), np.empty(candidates, dtype=np.int64),
        np.empty(w.rows.shape[1]), np.empty(DEPTH, dtype=np.int64),
    )  # fmt: skip
    for i in range(begin, end):
        prefix.records[0], prefix.size[1] = i, abs(w.duals[i])
        if not _find_candidates(w, near, prefix, 1):
            return sets[:count], _CROWDED, visited
        m = 1
        while m >= 1:
            at = _next(w, prefix, m)
            if at < 0:
                _forget_candidates(prefix, m)
                m -= 1
                continue
            visited += 1
            if visited >= max_visits or count >= room or state[STOP]:
                return sets[:count], _MANY, visited
            if m + 1 < s:
                _append(w, prefix, m, at)
                m += 1
                if not _find_candidates(w, near, prefix, m):
                    return sets[:count], _CROWDED, visited
                continue
            if count == len(sets):
                sets = double_rows(sets)
            for a in range(m):
                sets[count, a] = prefix.records[a]
            sets[count, m] = prefix.candidate[at]
            count += 1
    return sets[:count], _DONE, visited


def list_negative(
    w: PairWeights, size: int, *, room: int, max_visits: int, state: State, threads: int = 1
) -> NegativeGroups:
    """Return all groups of one size whose pair weights sum to at most 0, unless there are too many.

    The search gives up (``complete=False``) beyond an average of `room` groups or `max_visits` prefixes per record, or
    if a stop is requested. The groups do not depend on the number of threads.
    """
    n = len(w.rows)
    if n < size:
        return NegativeGroups(np.empty((0, size), dtype=np.int64), True, 0)
    starts = range(0, n, _CHUNK)
    reach = _REACH * w.factor * np.maximum(w.duals, 0.0)
    lists = list(spread(lambda a: _lists(w, a, min(a + _CHUNK, n), reach, state), starts, threads))
    first = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.concatenate([count for count, _ in lists]), out=first[1:])
    near = _Neighbours(first, np.concatenate([neighbour for _, neighbour in lists]), reach)
    del lists

    def search(a: int) -> tuple[Ints, int, int]:
        end = min(a + _CHUNK, n)
        candidates = min(_CANDIDATES, n)
        while True:
            result = _search(w, near, size, a, end, room * (end - a), max_visits * (end - a), candidates, state)
            if result[1] != _CROWDED or candidates == n:
                return result
            candidates = min(4 * candidates, n)

    parts = [] if state[STOP] else list(spread(search, starts, threads))
    complete = bool(parts) and all(end == _DONE for _, end, _ in parts) and not state[STOP]
    return NegativeGroups(
        _distinct([sets for sets, _, _ in parts], size), complete, sum(visited for _, _, visited in parts)
    )


def _distinct(parts: Sequence[Ints], size: int) -> Ints:
    """Return the distinct groups of all parts in ascending order, each with its records sorted."""
    groups = np.sort(np.concatenate([*parts, np.empty((0, size), dtype=np.int64)]), axis=1)
    groups = groups[np.lexsort(groups.T[::-1])]
    same = (groups[1:] == groups[:-1]).all(axis=1)
    return np.ascontiguousarray(groups[np.r_[True, ~same][: len(groups)]])
