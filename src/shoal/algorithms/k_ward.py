"""k-Ward: Ward's hierarchical clustering, stopped when every group has k records.

J. Domingo-Ferrer and J. M. Mateo-Sanz, Practical data-oriented microaggregation for statistical disclosure control,
IEEE Transactions on Knowledge and Data Engineering 14 (2002). Hansen and Mukherjee (2003) and Laszlo and Mukherjee
(2005) compare their methods with this heuristic:

1. Form two groups, each of one of the two most distant records and the k − 1 records nearest to it. Every other record
   is a group of one.
2. Join the two groups whose union increases the SSE least, but never two groups of k records or more. Repeat until
   every group has k records.
3. Divide every group of 2k records or more in the same way.

Joining a and b adds |a| |b| / (|a| + |b|) times the squared distance of their centroids to the SSE. Every group stores
its best partner among the later groups, and searches again only after a union with that partner. O(d n²) time
typically, O(d n³) at worst; O(n d) memory.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.core.compiler import kernel
from shoal.core.progress import DONE, STOP
from shoal.core.types import Floats, Ints, State
from shoal.kernels.distances import insert_nearest, squared_distance

__all__ = ["k_ward"]


def k_ward(X: Floats, k: int, *, state: State) -> Ints:
    """Group the records by k-Ward; ties go to the lowest record numbers."""
    labels: Ints = np.empty(len(X), dtype=np.int64)
    waiting, group = [np.arange(len(X))], 0
    while waiting:
        members = waiting.pop()
        if len(members) < 2 * k or state[STOP]:
            labels[members] = group
            group += 1
            state[DONE] += len(members)
            continue
        # Sums of deviations stay precise despite a large offset.
        parts = _divide(X[members] - X[members[0]], k, state)
        waiting += [members[parts == part] for part in np.unique(parts)]
    return labels


class _WardGroups(NamedTuple):
    """The current groups, each identified by its first record."""

    first: Ints  # (n,): the first record of each record's group
    active: Ints  # the numbers of the groups, ascending
    total: Floats  # (n, d): the sum of each group's records
    centre: Floats
    size: Ints
    increase: Floats  # the increase of the SSE if a group joins its best later partner
    partner: Ints


@kernel
def _divide(X: Floats, k: int, state: State) -> Ints:
    """Run Steps 1 and 2 and return the first record of each record's group; form one group after a stop."""
    n = len(X)
    groups = _WardGroups(
        np.arange(n),
        np.empty(n, dtype=np.int64),
        np.zeros(X.shape),
        np.empty(X.shape),
        np.zeros(n, dtype=np.int64),
        np.empty(n),
        np.empty(n, dtype=np.int64),
    )
    ends = np.zeros(2, dtype=np.int64)
    _most_distant(X, ends, state)
    for end in ends:
        _form(X, k, int(end), groups.first)
    count = _list(X, groups)
    for at in range(count):
        if state[STOP]:
            break
        _find_partner(groups, count, at, k)
    small = n - 2 * k
    while small > 0 and not state[STOP]:
        best = 0
        for at in range(1, count):
            if groups.increase[groups.active[at]] < groups.increase[groups.active[best]]:
                best = at
        a = groups.active[best]
        b = groups.partner[a]
        size = groups.size
        small -= int(size[a] < k) + int(size[b] < k) - int(size[a] + size[b] < k)
        count = _join(groups, count, a, b)
        _update_partners(groups, count, best, b, k)
    if small > 0:
        groups.first[:] = 0
    return groups.first


@kernel
def _most_distant(X: Floats, ends: Ints, state: State) -> None:
    """Write the two most distant records to `ends`.

    A loop without writes would read `state` only once and miss a stop.
    """
    reach = -1.0
    for i in range(len(X)):
        if state[STOP]:
            break
        for j in range(i + 1, len(X)):
            distance = squared_distance(X[i], X[j])
            if distance > reach:
                ends[0], ends[1], reach = i, j, distance


@kernel
def _form(X: Floats, k: int, end: int, first: Ints) -> None:
    """Form a group of the record `end` and the k − 1 nearest records that are not in a group of several records."""
    n = len(X)
    alone = np.ones(n, dtype=np.bool_)
    for i in range(n):
        if first[i] != i:
            alone[i] = alone[first[i]] = False
    near, near_ids = np.full(k, np.inf), np.full(k, n)
    for i in range(n):
        if alone[i]:
            distance = squared_distance(X[i], X[end])
            if distance < near[k - 1]:
                insert_nearest(distance, i, near, near_ids)
    lowest = near_ids.min()
    for t in range(k):
        first[near_ids[t]] = lowest


@kernel
def _list(X: Floats, groups: _WardGroups) -> int:
    """List the groups, compute their sums and centroids, and return the number of groups."""
    n, d = X.shape
    count = 0
    for i in range(n):
        g = groups.first[i]
        groups.size[g] += 1
        for j in range(d):
            groups.total[g, j] += X[i, j]
        if g == i:
            groups.active[count] = i
            count += 1
    for at in range(count):
        g = groups.active[at]
        for j in range(d):
            groups.centre[g, j] = groups.total[g, j] / groups.size[g]
    return count


@kernel
def _join(groups: _WardGroups, count: int, a: int, b: int) -> int:
    """Merge group b into the earlier group a; return the number of remaining groups."""
    groups.size[a] += groups.size[b]
    for j in range(groups.total.shape[1]):
        groups.total[a, j] += groups.total[b, j]
        groups.centre[a, j] = groups.total[a, j] / groups.size[a]
    for i in range(len(groups.first)):
        if groups.first[i] == b:
            groups.first[i] = a
    place = 0
    for t in range(count):
        if groups.active[t] != b:
            groups.active[place] = groups.active[t]
            place += 1
    return place


@kernel
def _increase(groups: _WardGroups, a: int, b: int) -> float:
    """Return the increase of the SSE if two groups are joined."""
    size = groups.size
    added: float = size[a] * size[b] / (size[a] + size[b]) * squared_distance(groups.centre[a], groups.centre[b])
    return added


@kernel
def _find_partner(groups: _WardGroups, count: int, at: int, k: int) -> None:
    """Store the later group whose union with the group at `at` increases the SSE least, or -1 if none is allowed."""
    a = groups.active[at]
    groups.increase[a], groups.partner[a] = np.inf, -1
    for t in range(at + 1, count):
        b = groups.active[t]
        if groups.size[a] < k or groups.size[b] < k:
            added = _increase(groups, a, b)
            if added < groups.increase[a]:
                groups.increase[a], groups.partner[a] = added, b


@kernel
def _update_partners(groups: _WardGroups, count: int, at: int, absorbed: int, k: int) -> None:
    """Update the best partners after the group at `at` has absorbed another group."""
    joined, increase, partner = groups.active[at], groups.increase, groups.partner
    for t in range(count):
        x = groups.active[t]
        if t == at or partner[x] == joined or partner[x] == absorbed:
            _find_partner(groups, count, t, k)
        elif t < at and (groups.size[x] < k or groups.size[joined] < k):
            added = _increase(groups, x, joined)
            if added < increase[x] or (added == increase[x] and joined < partner[x]):
                increase[x], partner[x] = added, joined
