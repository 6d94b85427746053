r"""Exact pricing: find every group whose reduced cost is below a limit, or prove that there is none.

For duals π (one per record) and cut prices μ, the reduced cost of a group G of s records is

    r(G) = T_G / s − Σ_{i∈G} π_i + Σ_R μ_R ⌊p(G∩R)/q⌋,      T_G = Σ_{pairs of G} D_ij.

**Pair weights.** Each record is in s−1 pairs, so s·Σ π_i = s/(s−1) Σ_pairs (π_i + π_j). A group pays at least as much
for a cut as its pairs receive, which is b_ij μ_R per pair (`optimize.cuts.pair_prices`). Hence s·r(G) ≥ w(G), where
w(G) is the sum over the pairs of G of

    w_ij = D_ij − s/(s−1) (π_i + π_j) + s Σ_R b_ij μ_R,

with equality when no cut has a price. A group with r(G) ≤ limit therefore has w(G) ≤ s·limit.

**Orderings.** Let P be a set of m ≥ 3 records, and let v ∈ P be a record of largest weighted degree Σ_{u∈P} w_uv. The
degrees sum to 2w(P), so the degree of v is at least 2w(P)/m, and w(P∖v) ≤ w(P)(1 − 2/m). The average pair weight of P∖v
is therefore at most that of P. If such records are removed repeatedly, every prefix of the reversed order has an
average pair weight of at most that of the whole group. The search therefore starts from all pairs and adds one record
at a time. It abandons a prefix of m records as soon as w(P) > s·limit·C(m,2)/C(s,2), which loses no group. Among equal
degrees, the record with the highest number is removed, so the record to remove is unique. A record is added only if it
is the record to remove from the longer prefix; every group is therefore visited exactly once.

**Rounding.** The weights are rounded down to multiples of a power of two that is coarse enough to make all sums of the
search exact in float64. Ties are then exact, no group is visited twice or missed, and the sums are lower bounds.

The cost is O(n²) for the weights and O(n) per visited prefix. Once the duals have converged, a table of 1000 records
has about 10³ prefixes for k = 3 and 10⁶ for k = 10. Memory is O(n²), which suits tables of a few thousand records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shoal.algorithms.optimize.cuts import Cuts, double_rows, pair_prices
from shoal.core.compiler import kernel
from shoal.core.progress import STOP
from shoal.core.types import Floats, Ints, State

__all__ = ["Enumeration", "distances", "enumerate_groups", "pair_weights"]


@dataclass(frozen=True)
class Enumeration:
    """The groups of one size found by pricing, one per row; `complete` is true if no group is missing."""

    groups: Ints
    complete: bool
    visited: int


@kernel
def distances(X: Floats) -> Floats:
    """Return the squared distances between all records; the table must be small enough for an n×n array."""
    n, d = X.shape
    out = np.empty((n, n))
    for i in range(n):
        out[i, i] = 0.0
        for j in range(i):
            total = 0.0
            for t in range(d):
                delta = X[i, t] - X[j, t]
                total += delta * delta
            out[i, j] = total
            out[j, i] = total
    return out


def pair_weights(D: Floats, d: int, duals: Floats, cuts: Cuts, size: int, out: Floats) -> None:
    """Write the weights w_ij for groups of one size to `out`, rounded down so that all sums are exact.

    `D` holds the squared distances over d data columns.
    """
    pair, price = pair_prices(cuts, size)
    _weights(D, d, duals, pair, price, size, out)


@kernel
def _weights(D: Floats, d: int, duals: Floats, pair: Ints, price: Floats, s: int, out: Floats) -> None:
    n = len(D)
    c = s / (s - 1.0)
    top = 0.0
    for i in range(n):
        for j in range(n):
            out[i, j] = D[i, j] - c * (duals[i] + duals[j])
    for t in range(len(pair)):
        i, j = pair[t, 0], pair[t, 1]
        out[i, j] += s * price[t]
        out[j, i] += s * price[t]
        top = max(top, s * abs(price[t]))
    for i in range(n):
        for j in range(n):
            if i != j:
                top = max(top, abs(out[i, j]), D[i, j])
        top = max(top, 2.0 * c * abs(duals[i]))
    if top == 0.0:
        top = 1.0
    # At most 2^51 units in any sum of up to s² weights.
    unit = 2.0 ** (np.ceil(np.log2(top * s * s)) - 51.0)
    # The distances contain at most d + 3 roundings; the lines above add a few roundings per cut of a pair.
    below = top * (d + 64.0 + len(pair)) * 2.0**-51
    for i in range(n):
        for j in range(n):
            out[i, j] = np.floor((out[i, j] - below) / unit) * unit


class _Prefix(NamedTuple):
    """A prefix of records, with sums over its first m records for every m."""

    records: Ints  # (s,)
    total: Floats  # (s + 1,): the sum of the pair weights
    cursor: Ints  # (s + 1,): the record to try next
    degree: Floats  # (s, n): the sum of the weights from each record to the prefix
    inner_degree: Floats  # (s, s): the weighted degree of each record within the prefix


@kernel
def _search(W: Floats, s: int, limit: float, room: int, max_visits: int, state: State) -> tuple[Ints, int, int]:
    """Enumerate the sets of s records whose weights sum to at most `limit`; stop at `room` sets or `max_visits` visits.

    Return the sets, their number (`room` + 1 if sets may be missing) and the number of visits.
    """
    n = len(W)
    sets = np.empty((min(room, 1024), s), dtype=np.int64)
    count, visited = 0, 0
    allowed = _allowed(s, limit)
    prefix = _Prefix(
        np.empty(s, dtype=np.int64),
        np.zeros(s + 1),
        np.empty(s + 1, dtype=np.int64),
        np.zeros((s, n)),
        np.zeros((s, s)),
    )
    for first in range(n):
        if state[STOP]:
            return sets[:count], room + 1, visited
        # Since degree[0] is 0, this initialises the prefix of a single record.
        _append(W, prefix, 0, first)
        prefix.cursor[1] = first + 1
        m = 1
        while m >= 1:
            v = _next(W, prefix, m, allowed[m + 1] - prefix.total[m])
            if v == n:
                m -= 1
                continue
            visited += m > 1  # do not count pairs
            if visited >= max_visits or state[STOP] or (m + 1 == s and count == room):
                return sets[:count], room + 1, visited
            if m + 1 < s:
                _append(W, prefix, m, v)
                m += 1
                continue
            if count == len(sets):
                sets = double_rows(sets)
            for t in range(m):
                sets[count, t] = prefix.records[t]
            sets[count, m] = v
            count += 1
    return sets[:count], count, visited


@kernel
def _allowed(s: int, limit: float) -> Floats:
    """Return the largest allowed sum of the weights in a prefix of m records, for every m."""
    average = limit / (s * (s - 1) // 2)
    allowed = np.empty(s + 1)
    for m in range(s + 1):
        # Round up, because the products may be rounded while the sums compared with them are exact.
        bound = average * (m * (m - 1) // 2)
        allowed[m] = bound + abs(bound) * 1e-14
    allowed[s] = limit
    return allowed


@kernel
def _next(W: Floats, prefix: _Prefix, m: int, gap: float) -> int:
    """Return the next record that adds at most `gap` to a prefix and would be removed first; n if there is none."""
    row = prefix.degree[m]
    v: int = prefix.cursor[m]
    while v < len(row) and not (row[v] <= gap and _is_removed(W, prefix, m, v)):
        v += 1
    prefix.cursor[m] = v + 1
    return v


@kernel
def _is_removed(W: Floats, prefix: _Prefix, m: int, v: int) -> bool:
    """Return True if v, added to a prefix, has the largest degree and, among equal degrees, the highest number."""
    degree = prefix.degree[m, v]
    for t in range(m):
        u = prefix.records[t]
        rival = prefix.inner_degree[m, t] + W[u, v]
        if u == v or rival > degree or (rival == degree and u > v):
            return False
    return True


@kernel
def _append(W: Floats, prefix: _Prefix, m: int, v: int) -> None:
    """Append record v to a prefix of m records, and update the sums."""
    for t in range(m):
        prefix.inner_degree[m + 1, t] = prefix.inner_degree[m, t] + W[prefix.records[t], v]
    row, longer, line = prefix.degree[m], prefix.degree[m + 1], W[v]
    prefix.inner_degree[m + 1, m] = row[v]
    prefix.records[m] = v
    prefix.total[m + 1] = prefix.total[m] + row[v]
    for x in range(len(row)):
        longer[x] = row[x] + line[x]
    prefix.cursor[m + 1] = 0


def enumerate_groups(  # noqa: PLR0913 - six parameters describe the groups, four the work
    D: Floats,
    d: int,
    duals: Floats,
    cuts: Cuts,
    size: int,
    limit: float,
    *,
    room: int,
    max_visits: int,
    state: State,
    work: Floats | None = None,
) -> Enumeration:
    """Return all groups of one size whose reduced cost may be at most `limit`, unless there are too many.

    `D` holds all squared distances, summed over d columns. Beyond `room` groups or `max_visits` prefixes, or if a stop
    is requested, the enumeration gives up (``complete=False``). `work` is an n×n scratch array.
    """
    W = np.empty_like(D) if work is None else work
    pair_weights(D, d, duals, cuts, size, W)
    groups, count, visited = _search(W, size, size * limit, room, max_visits, state)
    return Enumeration(np.sort(groups, axis=1), bool(count <= room), int(visited))
