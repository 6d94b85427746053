r"""Pricing: find every group whose reduced cost is below a limit, or show that there is none.

For duals π (one for each record) and cut prices μ ≥ 0 the reduced cost of a group G of s records is

    r(G) = T_G / s − Σ_{i∈G} π_i + Σ_R μ_R ⌊p(G∩R)/q⌋,      T_G = Σ_{pairs of G} D_ij.

**Pair weights.** s·Σ π_i = s/(s−1) Σ_pairs (π_i + π_j), since each record is in s−1 pairs. And what a group pays for a
cut is at least what its pairs get of the price, b_ij μ_R each (`optimize.cuts.pair_prices`). Hence s·r(G) ≥ w(G),
the sum over the pairs of G of

    w_ij = D_ij − s/(s−1) (π_i + π_j) + s Σ_R b_ij μ_R,

with equality when no cut has a price. A group with r(G) ≤ limit therefore has w(G) ≤ s·limit.

**Orderings.** Let P have m ≥ 3 records and let v be one of largest weighted degree Σ_{u∈P} w_uv. The degrees sum
to 2w(P), so v's is at least 2w(P)/m and w(P∖v) ≤ w(P)(1 − 2/m), that is: the average pair weight of P∖v is at most
that of P. Removing such a record again and again, every prefix of the reversed order has an average no larger than
the whole's. So the search starts from all pairs, adds one record at a time, and leaves a prefix of m records as
soon as w(P) > s·limit·C(m,2)/C(s,2): no group is lost. With the highest record number deciding between equal degrees,
the record to remove is unique; a record is added only if it is the one that would be removed, and every group is met
exactly once.

**Rounding.** The weights are rounded down to multiples of a power of two so coarse that all sums of the search are
exact in float64. Ties are then exact, no group is met twice or missed, and the sums are lower bounds.

Cost: O(n²) for the weights and O(n) for each prefix visited: about 10³ prefixes at k = 3 and 10⁶ at k = 10 on
tables of 1000 records once the duals have converged. Memory O(n²), for tables of some thousands of records.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.algorithms.optimize.cuts import Cuts, pair_prices
from shoal.core.compiling import kernel
from shoal.core.progress import STOP
from shoal.core.types import Floats, Ints, State

__all__ = ["Found", "distances", "enumerate_groups", "guess_groups", "pair_weights"]


@dataclass(frozen=True)
class Found:
    """Groups of one size found by pricing, one in each row, and whether these are all."""

    groups: Ints
    complete: bool
    visited: int


@kernel
def distances(X: Floats) -> Floats:
    """Return all squared distances; only for tables small enough for a bound."""
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
    """Write the weights w_ij for groups of one size (d columns of data), rounded down so that all sums are exact."""
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
        top = max(top, s * price[t])
    for i in range(n):
        for j in range(n):
            if i != j:
                top = max(top, abs(out[i, j]), D[i, j])
        top = max(top, 2.0 * c * abs(duals[i]))
    if top == 0.0:
        top = 1.0
    # At most 2^51 units in any sum of up to s² weights.
    unit = 2.0 ** (np.ceil(np.log2(top * s * s)) - 51.0)
    # The distances are off by at most d + 3 roundings, the lines above by a few for each cut of a pair.
    below = top * (d + 64.0 + len(pair)) * 2.0**-51
    for i in range(n):
        for j in range(n):
            out[i, j] = np.floor((out[i, j] - below) / unit) * unit


@kernel
def _search(W: Floats, s: int, limit: float, room: int, most: int, state: State) -> tuple[Ints, int, int]:
    """Enumerate the sets of s records whose weights sum to at most `limit`; stop at `room` sets or `most` visits.

    Returns the sets, their number (room + 1 when there may be more) and the visits.
    """
    n = len(W)
    sets = np.empty((min(room, 1024), s), dtype=np.int64)
    found, visited = 0, 0
    average = limit / (s * (s - 1) // 2)
    allowed = np.empty(s + 1)
    for m in range(s + 1):
        # Rounded up: the products may round, the sums they are compared with do not.
        bound = average * (m * (m - 1) // 2)
        allowed[m] = bound + abs(bound) * 1e-14
    allowed[s] = limit
    chosen = np.empty(s, dtype=np.int64)
    total = np.zeros(s + 1)
    cursor = np.zeros(s + 1, dtype=np.int64)
    degree = np.zeros((s, n))  # degree[m, v]: the weights from v to the first m records
    own = np.zeros((s, s))  # own[m, t]: the weighted degree of the t-th record among the first m
    for i in range(n):
        if state[STOP]:
            return sets[:found], room + 1, visited
        for j in range(i + 1, n):
            if W[i, j] > allowed[2]:
                continue
            if s == 2:
                if found == room:
                    return sets[:found], room + 1, visited
                if found == len(sets):
                    sets = _grow(sets)
                sets[found, 0], sets[found, 1] = i, j
                found += 1
                continue
            chosen[0], chosen[1] = i, j
            total[2] = W[i, j]
            for v in range(n):
                degree[2, v] = W[i, v] + W[j, v]
            own[2, 0] = own[2, 1] = W[i, j]
            cursor[2] = 0
            m = 2
            while m >= 2:
                gap = allowed[m + 1] - total[m]
                row = degree[m]
                v = cursor[m]
                while v < n:
                    if row[v] <= gap:
                        last = True
                        for t in range(m):
                            u = chosen[t]
                            other = own[m, t] + W[u, v]
                            if u == v or other > row[v] or (other == row[v] and u > v):
                                last = False
                                break
                        if last:
                            break
                    v += 1
                cursor[m] = v + 1
                if v >= n:
                    m -= 1
                    continue
                visited += 1
                if visited >= most or state[STOP]:
                    return sets[:found], room + 1, visited
                if m + 1 == s:
                    if found == room:
                        return sets[:found], room + 1, visited
                    if found == len(sets):
                        sets = _grow(sets)
                    for t in range(m):
                        sets[found, t] = chosen[t]
                    sets[found, m] = v
                    found += 1
                    continue
                for t in range(m):
                    own[m + 1, t] = own[m, t] + W[chosen[t], v]
                own[m + 1, m] = row[v]
                chosen[m] = v
                total[m + 1] = total[m] + row[v]
                below = degree[m + 1]
                line = W[v]
                for x in range(n):
                    below[x] = row[x] + line[x]
                m += 1
                cursor[m] = 0
    return sets[:found], found, visited


@kernel
def _grow(sets: Ints) -> Ints:
    more = np.empty((2 * len(sets), sets.shape[1]), dtype=np.int64)
    more[: len(sets)] = sets
    return more


def enumerate_groups(
    D: Floats,
    d: int,
    duals: Floats,
    cuts: Cuts,
    size: int,
    limit: float,
    *,
    room: int,
    most: int,
    state: State,
    work: Floats | None = None,
) -> Found:
    """Return all groups of one size whose reduced cost may be at most `limit`, unless there are too many.

    Parameters
    ----------
    D, d
        All squared distances, and the number of columns they were summed over.
    duals, cuts
        The multipliers.
    size, limit
        The size of the groups and the largest reduced cost asked for.
    room, most
        Give up (``complete=False``) beyond this number of groups or prefixes.
    state
        Shared progress; a stop also gives up.
    work
        An n×n array to overwrite.

    Examples
    --------
    >>> from shoal.algorithms.optimize.cuts import no_cuts
    >>> from shoal.core.progress import fresh_state
    >>> D = distances(np.array([[0.0], [1.0], [5.0], [7.0]]))
    >>> found = enumerate_groups(D, 1, np.full(4, 0.5), no_cuts(), 2, 0.0, room=9, most=99, state=fresh_state())
    >>> found.groups.tolist()  # ½·1² − 1 is below 0, ½·2² − 1 is not
    [[0, 1]]
    """
    W = np.empty_like(D) if work is None else work
    pair_weights(D, d, duals, cuts, size, W)
    groups, count, visited = _search(W, size, size * limit, room, most, state)
    return Found(np.sort(groups, axis=1), bool(count <= room), int(visited))


@kernel
def guess_groups(W: Floats, size: int, limit: float, state: State) -> Ints:
    """Grow a group from each record by the smallest weights, improve it by exchanges, keep it if below the limit.

    Asked to stop, it returns the groups of the records so far.
    The heuristic that goes before the enumeration: O(n² s) and a few O(n s) exchanges for each record.
    """
    n = len(W)
    sets = np.empty((n, size), dtype=np.int64)
    found = 0
    degree = np.empty(n)
    inside = np.zeros(n, dtype=np.bool_)
    chosen = np.empty(size, dtype=np.int64)
    for first in range(n):
        if state[STOP]:
            break
        for v in range(n):
            degree[v] = W[first, v]
            inside[v] = False
        chosen[0] = first
        inside[first] = True
        total = 0.0
        for m in range(1, size):
            best, least = -1, np.inf
            for v in range(n):
                if degree[v] < least and not inside[v]:
                    best, least = v, degree[v]
            chosen[m] = best
            inside[best] = True
            total += least
            for v in range(n):
                degree[v] += W[best, v]
        # W has a meaningless diagonal: degrees of members are corrected where they are used.
        for _ in range(2 * size):
            out, into, gain = -1, -1, 0.0
            for t in range(1, size):
                u = chosen[t]
                lost = degree[u] - W[u, u]
                for v in range(n):
                    change = degree[v] - W[u, v] - lost
                    if change < gain and not inside[v]:
                        out, into, gain = t, v, change
            if out < 0:
                break
            u = chosen[out]
            for v in range(n):
                degree[v] += W[into, v] - W[u, v]
            inside[u], inside[into] = False, True
            chosen[out] = into
            total += gain
        if total < limit:
            sets[found] = chosen
            found += 1
    return sets[:found]
