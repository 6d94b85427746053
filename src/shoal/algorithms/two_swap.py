"""Method two-swap: exchange records between groups while this reduces the SSE. Group sizes do not change.

J. Castro, C. Gentile and E. Spagnolo-Arrizabalaga, An optimization-based decomposition heuristic for the
microaggregation problem, PSD 2022, Section 3. Let e_ig be the squared distance of record i to the centroid of group g,
c_g its size and D_ij the squared distance of two records. Swapping record i of group a with record j of group b changes
the SSE by

    e_ja − e_ia + e_ib − e_jb − D_ij (1/c_a + 1/c_b),

which follows from Σ_{j∈g} D_ij = c_g e_ig + SSE_g and the change in terms of pair sums (`optimize.patch`).

* ``steepest``, the paper's variant, repeatedly makes the best of all swaps. The best partner of each record is stored
  and searched again only if a swap may have changed it. O(d n²) time once, then O(d n k) per swap plus the searches for
  the few records whose partner changed; O(n d) memory.
* ``fast`` swaps each record in turn with its best partner in the groups of its nearest neighbours. O(d n k) time per
  sweep plus the neighbour lists; O(n min(k, 256)) memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from shoal.algorithms.initial_partition import initial_labels
from shoal.algorithms.registry import Outcome, find
from shoal.core.compiler import kernel
from shoal.core.measures import canonical_labels, centroids, group_sizes, sse
from shoal.core.progress import DONE, STOP
from shoal.core.types import Bools, Floats, Ints, State
from shoal.kernels.neighbours import list_size, nearest

__all__ = ["improve", "start_labels", "two_swap"]

# Minimum gain of a swap, relative to the largest gain possible with the values of the two groups. Smaller gains are
# rounding errors and could make swaps cycle.
_NOISE = 1e-14
# Maximum number of swaps (or attempts) per record, which guarantees termination; a few are typical.
_MOST = 1000


def two_swap(X: Floats, k: int, *, state: State, start: Any, variant: str) -> Outcome:
    """Improve the groups of another method, or the groups of given labels, by swaps."""
    if isinstance(start, str):
        labels, name = start_labels(X, k, start, state)
    else:
        labels, name = initial_labels(start, len(X), k, "two-swap"), "labels given"
    state[DONE] = 0
    return Outcome(improve(X, labels, variant=variant, state=state), facts={"start": name})


def start_labels(X: Floats, k: int, start: str, state: State) -> tuple[Ints, str]:
    """Return the initial partition and the name of its method; ``"best"`` is the better of MDAV and V-MDAV (Step 2)."""
    names = ("mdav", "v-mdav") if start == "best" else (start,)
    candidates = []
    for name in names:
        method = find(name)
        labels = method.run(X, k, method.read_options({}), state=state).labels
        # The decomposition divides groups in the order of their formation, so keep that order.
        candidates.append((sse(X, canonical_labels(labels)), name, labels))
    _, name, labels = min(candidates, key=lambda candidate: candidate[0])
    return labels, name


def improve(X: Floats, labels: Ints, *, variant: str = "steepest", state: State) -> Ints:
    """Improve any partition by swaps.

    `variant` is ``"steepest"`` or ``"fast"``. If a stop is requested, the current partition is returned.
    """
    swaps = _Swaps(X, labels.copy(), centroids(X, labels), group_sizes(labels))
    lists = lists_of(X, labels)
    if variant == "fast":
        step = list_size(len(X), int(swaps.size.min()))[1]
        width = 2 * int(swaps.size.min()) // step + 4
        _sweep(swaps, lists, nearest(X, width, step=step), state)
    else:
        _steepest(swaps, lists, state)
    return swaps.label


class _Swaps(NamedTuple):
    X: Floats
    label: Ints
    centre: Floats
    size: Ints


class _MemberLists(NamedTuple):
    reach: Floats  # (groups, d): the largest absolute value in each group
    first: Ints  # the members of group g are member[first[g]:first[g + 1]]
    member: Ints
    place: Ints  # the position of each record in `member`


def lists_of(X: Floats, labels: Ints) -> _MemberLists:
    """Return the members and the largest absolute values of each group."""
    size = group_sizes(labels)
    reach = np.zeros((len(size), X.shape[1]))
    np.maximum.at(reach, labels, np.abs(X))
    first = np.concatenate([[0], np.cumsum(size)])
    member = np.argsort(labels, kind="stable")
    place = np.empty(len(X), dtype=np.int64)
    place[member] = np.arange(len(X))
    return _MemberLists(reach, first, member, place)


@kernel
def _change(swaps: _Swaps, i: int, j: int) -> float:
    """Return the change of the SSE when i and j exchange groups; 0 within a group."""
    a, b = swaps.label[i], swaps.label[j]
    if a == b:
        return 0.0
    x, y = swaps.X[i], swaps.X[j]
    p, q = swaps.centre[a], swaps.centre[b]
    total, distance = 0.0, 0.0
    for t in range(len(x)):
        # (y−p)² − (x−p)² + (x−q)² − (y−q)² = 2 (x−y)(p−q), without cancellation.
        delta = x[t] - y[t]
        total += delta * (p[t] - q[t])
        distance += delta * delta
    change: float = 2.0 * total - distance * (1.0 / swaps.size[a] + 1.0 / swaps.size[b])
    return change


@kernel
def _rounding(swaps: _Swaps, lists: _MemberLists, i: int, j: int) -> float:
    """Return the possible rounding error of a swap's change, given the magnitude of the groups' values."""
    a, b = swaps.label[i], swaps.label[j]
    total = 0.0
    for t in range(swaps.X.shape[1]):
        total += abs(swaps.X[i, t] - swaps.X[j, t]) * (lists.reach[a, t] + lists.reach[b, t])
    return _NOISE * total


@kernel
def _apply(swaps: _Swaps, lists: _MemberLists, i: int, j: int) -> None:
    a, b = swaps.label[i], swaps.label[j]
    swaps.label[i], swaps.label[j] = b, a
    place_i, place_j = lists.place[i], lists.place[j]
    lists.member[place_i], lists.member[place_j] = j, i
    lists.place[i], lists.place[j] = place_j, place_i
    _recentre(swaps, lists, a)
    _recentre(swaps, lists, b)


@kernel
def _recentre(swaps: _Swaps, lists: _MemberLists, g: int) -> None:
    """Recompute a centroid from its members; updates would keep the rounding errors of values that have left."""
    begin, end = lists.first[g], lists.first[g + 1]
    for t in range(swaps.X.shape[1]):
        origin = swaps.X[lists.member[begin], t]
        total, reach = 0.0, 0.0
        for at in range(begin, end):
            value = swaps.X[lists.member[at], t]
            total += value - origin
            reach = max(reach, abs(value))
        swaps.centre[g, t] = origin + total / swaps.size[g]
        lists.reach[g, t] = reach


@kernel
def _partner(swaps: _Swaps, lists: _MemberLists, i: int, gain: Floats, partner: Ints) -> None:
    """Find the best partner j > i of record i."""
    gain[i], partner[i] = 0.0, -1
    for j in range(i + 1, len(swaps.label)):
        change = _change(swaps, i, j)
        if change < gain[i] and change < -_rounding(swaps, lists, i, j):
            gain[i], partner[i] = change, j


@kernel
def _steepest(swaps: _Swaps, lists: _MemberLists, state: State) -> None:
    n = len(swaps.label)
    gain, partner = np.zeros(n), np.full(n, -1)
    touched = np.zeros(n, dtype=np.bool_)
    for i in range(n):
        if state[STOP]:
            return
        _partner(swaps, lists, i, gain, partner)
        state[DONE] = i
    for _ in range(_MOST * n):
        i = int(np.argmin(gain))
        if gain[i] == 0.0 or state[STOP]:
            return
        j = partner[i]
        _apply(swaps, lists, i, j)
        for x in range(n):
            touched[x] = swaps.label[x] == swaps.label[i] or swaps.label[x] == swaps.label[j]
        _update_partners(swaps, lists, touched, gain, partner, state)


@kernel
def _update_partners(
    swaps: _Swaps, lists: _MemberLists, touched: Bools, gain: Floats, partner: Ints, state: State
) -> None:
    """Update the best partners after a swap; `touched` marks the members of the two changed groups."""
    for x in range(len(touched)):
        if state[STOP]:  # this loop takes seconds with large groups
            return
        if touched[x] or (partner[x] >= 0 and touched[partner[x]]):
            _partner(swaps, lists, x, gain, partner)
            continue
        for y in range(x + 1, len(touched)):
            if touched[y]:
                change = _change(swaps, x, y)
                if change < gain[x] and change < -_rounding(swaps, lists, x, y):
                    gain[x], partner[x] = change, y


@kernel
def _sweep(swaps: _Swaps, lists: _MemberLists, near: Ints, state: State) -> None:
    n = len(swaps.label)
    visited = np.full(len(swaps.size), -1)
    unchanged, i = 0, 0
    for _ in range(_MOST * n):
        if unchanged == n or state[STOP]:
            return
        best, j = 0.0, -1
        for t in range(near.shape[1]):
            g = swaps.label[near[i, t]]
            if g == swaps.label[i] or visited[g] == i:
                continue
            visited[g] = i
            for at in range(lists.first[g], lists.first[g + 1]):
                candidate = lists.member[at]
                change = _change(swaps, i, candidate)
                if change < best and change < -_rounding(swaps, lists, i, candidate):
                    best, j = change, candidate
        for t in range(near.shape[1]):
            visited[swaps.label[near[i, t]]] = -1
        if j >= 0:
            _apply(swaps, lists, i, j)
            unchanged = 0
        else:
            unchanged += 1
        state[DONE] = min(unchanged, n)
        i = i + 1 if i + 1 < n else 0
