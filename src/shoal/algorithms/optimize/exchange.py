"""Annealing by light steps: a record moves, two records change places, a group is dissolved or formed anew.

A step takes a random record and the group of one of its nearest neighbours. The record moves there, or is exchanged
with that member whose exchange costs least; a few steps dissolve the group of the record, or form a new one of the
record and its nearest neighbours, from groups that can spare them or whose remainder is dissolved with it. A change Δ
of the SSE is kept with probability (1 − Δ/8t)⁸ (simulated annealing, Kirkpatrick, Gelatt and Vecchi 1983, whose
exp(−Δ/t) is close to it). The temperature t falls to 0; it is relative to how far the neighbours of the record are, so
that dense and sparse parts of a table cool at the same time. The only function needed is the square root, which every
machine rounds alike: the result is the same everywhere.

Of each group the sum of its records is kept, so that with M the centroids, c the sizes and e = x_j − x_i

* moving record i from group a to b changes the SSE by c_b/(c_b + 1) |x_i − M_b|² − c_a/(c_a − 1) |x_i − M_a|²;
* exchanging i of a and j of b changes it by 2 e·(M_b − M_a) − |e|² (1/c_a + 1/c_b).

A step costs O(k d), whatever n; memory is O(n d), next to the lists of neighbours. While it runs a group may have up to
3k−1 records, or records could not pass through full groups: the caller splits those of 2k and more (Domingo-Ferrer and
Mateo-Sanz 2002).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.algorithms.optimize.random import Word, below, uniform
from shoal.core.compiler import kernel
from shoal.core.progress import STOP
from shoal.core.types import Floats, Ints, State

__all__ = ["Partition", "exchange", "new_partition"]

HOT = 1.5  # the first temperature, in squared distances of a record to its neighbours
COLD = 0.95  # the share of the steps after which nothing for the worse is kept
WINDOW, STAY = 1024, 4  # consecutive records that steps are taken at, and steps a record until the next so many follow
REGROUP = 0.15  # of the steps, divided by k: the share that dissolves or forms groups


class Partition(NamedTuple):
    """A partition while records move: rows of members, some of them empty."""

    label: Ints  # the row of each record
    place: Ints  # of each record in its row
    size: Ints
    members: Ints  # (rows, 3k): one place more than a group may have, for exchanges
    sums: Floats  # (rows, d): the sum of the members of each row
    free: Ints  # the empty rows, the first `left[0]` of them
    free_count: Ints  # (1,)
    moved: Ints  # records that a step has moved, in order, and where they were
    origin: Ints
    dissolved: Ints  # rows that a step dissolves
    between: Floats  # (d,): twice the way from one centroid to another


def new_partition(X: Floats, labels: Ints, k: int) -> Partition:
    """Turn labels 0, 1, … of groups below 2k records into rows of members."""
    n, d = X.shape
    groups, rows = int(labels.max()) + 1, n // k + 2
    size = np.zeros(rows, dtype=np.int64)
    size[:groups] = np.bincount(labels)
    order = np.argsort(labels, kind="stable")
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n) - np.repeat(np.cumsum(size[:groups]) - size[:groups], size[:groups])
    members = np.zeros((rows, 3 * k), dtype=np.int64)
    members[labels, place] = np.arange(n)
    sums = np.zeros((rows, d))
    sums[:groups] = np.add.reduceat(X[order], np.cumsum(size[:groups]) - size[:groups], axis=0)
    free = np.r_[groups:rows, np.zeros(groups, dtype=np.int64)]
    log = np.empty((3, min(n, 3 * k * (k + 2))), dtype=np.int64)  # a step moves a record once at most
    free_count = np.array([rows - groups])
    return Partition(labels.copy(), place, size, members, sums, free, free_count, log[0], log[1], log[2], np.empty(d))


@kernel(counted=False, inner=True)
def _put(X: Floats, partition: Partition, i: int, into: int) -> None:
    """Move a record to another row; the last of its own fills its place."""
    label, place, size, members, sums = partition[:5]
    row = label[i]
    size[row] -= 1
    last = members[row, size[row]]
    members[row, place[i]] = last
    place[last] = place[i]
    members[into, size[into]] = i
    place[i] = size[into]
    size[into] += 1
    label[i] = into
    for j in range(X.shape[1]):
        sums[row, j] -= X[i, j]
        sums[into, j] += X[i, j]


@kernel(counted=False, inner=True)
def _square(X: Floats, sums: Floats, row: int, size: int, i: int) -> float:
    """Return the squared distance of a record to the centroid of a row."""
    total, share = 0.0, 1.0 / size
    for j in range(X.shape[1]):
        delta = X[i, j] - sums[row, j] * share
        total += delta * delta
    return total


@kernel(counted=False, inner=True)
def _leave(X: Floats, partition: Partition, near: Ints, i: int, closed: int, new: int) -> tuple[float, int]:
    """Return what it costs to put a record of a row that is dissolved elsewhere, and the row; −1 if there is none.

    Rows of fewer than `closed` records, which are dissolved too, are left out, but for the new one.
    """
    label, size, room = partition.label, partition.size, partition.members.shape[1] - 1
    home, cheapest, into = label[i], np.inf, -1
    for t in range(near.shape[1]):
        row = label[near[i, t]] if near[i, t] >= 0 else home
        if row not in (home, into) and size[row] < room and (size[row] >= closed or row == new):
            c = size[row]
            cost = _square(X, partition.sums, row, c, i) * c / (c + 1)
            if cost < cheapest:
                cheapest, into = cost, row
    return cheapest, into


@kernel(counted=False, inner=True)
def _gather(X: Floats, partition: Partition, near: Ints, k: int, i: int, spare: bool) -> tuple[float, int]:
    """Form a new group of a record and its nearest neighbours; return the change of the SSE and how many moved.

    With `spare`, of groups that have more than k records only.
    """
    label, size, new = partition.label, partition.size, partition.free[partition.free_count[0] - 1]
    change, done = 0.0, 0
    for t in range(near.shape[1] + 1):
        record = i if t == 0 else near[i, t - 1]
        row = label[record]
        c = size[row]
        if done == k or record < 0 or (spare and c <= k):
            continue
        if c > 1:
            change -= _square(X, partition.sums, row, c, record) * c / (c - 1)
        if done > 0:
            change += _square(X, partition.sums, new, done, record) * done / (done + 1)
        partition.moved[done], partition.origin[done] = record, row
        # An empty row has the sum that rounding has left.
        if done == 0:
            for j in range(X.shape[1]):
                partition.sums[new, j] = 0.0
        _put(X, partition, record, new)
        done += 1
    return change, done


@kernel(counted=False, inner=True)
def _dissolve(
    X: Floats, partition: Partition, near: Ints, k: int, row: int, done: int, change: float, limit: float, state: State
) -> tuple[float, int]:
    """Put the records of a row, whose SSE is counted already, into others; return the change and how many moved.

    The change is infinite if it would not stay below the limit, or if asked to stop: large groups take a while.
    """
    size, members, new = partition.size, partition.members, partition.free[partition.free_count[0] - 1]
    while size[row] > 0 and change < limit and not state[STOP]:
        record = members[row, size[row] - 1]
        cost, into = _leave(X, partition, near, record, k, new)
        change += cost
        if change < limit:
            partition.moved[done], partition.origin[done] = record, row
            _put(X, partition, record, into)
            done += 1
    return (change if size[row] == 0 else np.inf), done


@kernel(counted=False, inner=True)
def _spread(X: Floats, partition: Partition, row: int) -> float:
    """Return the SSE of a row."""
    total = 0.0
    for t in range(partition.size[row]):
        total += _square(X, partition.sums, row, partition.size[row], partition.members[row, t])
    return total


@kernel(counted=False, inner=True)
def _to_dissolve(partition: Partition, smallest: int, done: int) -> int:
    """List the rows that records were taken from and that have fewer than `smallest` now; return how many there are."""
    size, dissolved, rows = partition.size, partition.dissolved, 0
    for t in range(done):
        row = partition.origin[t]
        fresh = 0 < size[row] < smallest
        for earlier in range(rows):
            fresh = fresh and dissolved[earlier] != row
        if fresh:
            dissolved[rows] = row
            rows += 1
    return rows


@kernel(counted=False, inner=True)
def _free_rows(partition: Partition, done: int) -> None:
    """Note the rows that are empty after so many records were moved."""
    size, origin = partition.size, partition.origin
    for t in range(done):
        if size[origin[t]] == 0:
            # Marked, as several records may have left it.
            size[origin[t]] = -1
            partition.free[partition.free_count[0]] = origin[t]
            partition.free_count[0] += 1
    for t in range(done):
        size[origin[t]] = max(size[origin[t]], 0)


@kernel(counted=False, inner=True)
def _regroup(
    X: Floats, partition: Partition, near: Ints, k: int, i: int, move: int, limit: float, state: State
) -> float:
    """Dissolve a group (move 0) or form one (1: of what others can spare; 2: of the nearest); return the change."""
    change, done = 0.0, 0
    if move == 0:
        partition.origin[0] = partition.label[i]
        rows = _to_dissolve(partition, len(X) + 1, 1)
    else:
        change, done = _gather(X, partition, near, k, i, move == 1)
        if done < k:
            change = np.inf
        rows = _to_dissolve(partition, k, done) if move == 2 else 0
    for t in range(rows):
        change -= _spread(X, partition, partition.dissolved[t])
    for t in range(rows):
        change, done = _dissolve(X, partition, near, k, partition.dissolved[t], done, change, limit, state)
    if change < limit:
        partition.free_count[0] -= move > 0
        _free_rows(partition, done)
        return change
    for t in range(done - 1, -1, -1):
        _put(X, partition, partition.moved[t], partition.origin[t])
    return 0.0


@kernel(counted=False, inner=True)
def _best_exchange(X: Floats, partition: Partition, k: int, i: int, row: int) -> tuple[float, int]:
    """Return the least change by moving a record to a row or exchanging it with a member, and which; −1 for moving."""
    size, sums, between = partition.size, partition.sums, partition.between
    home = partition.label[i]
    c, b = 1.0 / size[home], 1.0 / size[row]
    home_distance, row_distance = 0.0, 0.0
    for j in range(X.shape[1]):
        x, mean, row_mean = X[i, j], sums[home, j] * c, sums[row, j] * b
        home_distance += (x - mean) * (x - mean)
        row_distance += (x - row_mean) * (x - row_mean)
        between[j] = 2.0 * (row_mean - mean)
    best, partner = np.inf, -1
    if size[home] > k and size[row] < partition.members.shape[1] - 1:
        best = row_distance / (1.0 + b) - home_distance / (1.0 - c)
    weight = b + c
    for t in range(size[row]):
        member = partition.members[row, t]
        change = 0.0
        for j in range(X.shape[1]):
            e = X[member, j] - X[i, j]
            change += e * (between[j] - weight * e)
        if change < best:
            best, partner = change, member
    return best, partner


@kernel(counted=False)
def exchange(
    X: Floats,
    k: int,
    near: Ints,
    scale: Floats,
    partition: Partition,
    steps: int,
    cooling: tuple[float, float],
    state: State,
    rng: Word,
) -> float:
    """Take the given number of steps, unless asked to stop; return the change of the SSE.

    `scale` has the temperature of each record at the start; `cooling` are the shares of the cooling that are done
    before and after these steps. Records should be in an order that keeps neighbours together: steps stay at some
    of them for a while, whose data the processor then has at hand.
    """
    n, width, label = len(X), near.shape[1], partition.label
    window = min(n, WINDOW)
    total, heat, base = 0.0, 0.0, 0
    for step in range(steps):
        # A step of large groups takes longer than 64 of small ones.
        if state[STOP]:
            break
        if step % 64 == 0:
            heat = max(0.0, 1.0 - (cooling[0] + (cooling[1] - cooling[0]) * step / steps) / COLD)
            heat = HOT * heat * np.sqrt(heat)
            turn = step // (STAY * window)
            base = min(turn * window % n, n - window)
        i = base + below(rng, window)
        # What is kept is below this limit: (1 − Δ/8t)⁸ > u.
        limit = 8.0 * heat * scale[i] * (1.0 - np.sqrt(np.sqrt(np.sqrt(uniform(rng)))))
        draw = uniform(rng)
        if draw * k < REGROUP:
            total += _regroup(X, partition, near, k, i, int(draw * k / REGROUP * 3.0), limit, state)
            continue
        # The square prefers the nearest without excluding the others.
        draw = uniform(rng)
        neighbour = near[i, int(draw * draw * width)]
        if neighbour < 0 or label[neighbour] == label[i]:
            continue
        row, home = label[neighbour], label[i]
        change, partner = _best_exchange(X, partition, k, i, row)
        if change < limit:
            total += change
            _put(X, partition, i, row)
            if partner >= 0:
                _put(X, partition, partner, home)
    return total
