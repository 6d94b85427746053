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

Tables beyond `REGION` records are searched in regions, on all cores, whose borders change from round to round. Where
few records have most of the loss, as in tables with outliers, the last rounds are theirs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.algorithms.initial_partition import split_large
from shoal.algorithms.optimize.random import Word, below, uniform
from shoal.algorithms.optimize.regions import split_groups
from shoal.core.compiler import kernel
from shoal.core.measures import Partition, partition_of
from shoal.core.progress import DONE, STOP, fresh_state, spread
from shoal.core.types import Floats, Ints, State
from shoal.kernels.neighbours import leaves_of, neighbour_lists

__all__ = ["MovingGroups", "anneal_by_exchange", "compile_annealing", "exchange", "moving_groups"]

REGION = 10_000
ROUNDS = 10  # of a table in regions
MOVES = 5.0  # times k: the moves of one step
WIDE = 10  # groups of more records take longer a move, and get the fewer
# Where this part of the records, the groups that lose most, has this share of the loss, so many rounds with this share
# of the steps are theirs alone, from the temperature at this share of the cooling.
COSTLY, UNEVEN, AGAIN, AGAIN_SHARE, WARM = 0.2, 0.9, 4, 0.4, 0.5
HOT = 1.5  # the first temperature, in squared distances of a record to its neighbours
COLD = 0.95  # the share of the steps after which nothing for the worse is kept
WINDOW, STAY = 1024, 4  # consecutive records that steps are taken at, and steps a record until the next so many follow
REGROUP = 0.15  # of the steps, divided by k: the share that dissolves or forms groups


def anneal_by_exchange(X: Floats, k: int, labels: Ints, steps: float, seed: int, state: State, threads: int) -> Ints:
    """Return groups of k to 2k−1 records after so many steps a record, or the given ones if they lose no more."""
    n = len(X)
    counted = n if n <= REGION else 3 * n // 4  # what the start leaves to count
    order = leaves_of(X)[0]
    X = X[order]
    start = annealed = partition_of(X, labels[order])
    if not start.loss:  # nothing to gain
        state[DONE] += counted
        return labels
    near, squares, step = neighbour_lists(X, k, state=state, threads=threads)
    # A record that joins its neighbours costs about half their squared distance.
    scale = np.ascontiguousarray(squares[:, : (k - 1) // step].mean(axis=1) / 2)
    again = AGAIN if _costliest(X, start)[1] >= UNEVEN else 0
    rounds = 1 if n <= REGION else ROUNDS
    moves = MOVES * k * min(1.0, (WIDE / k) ** 2) * steps * n
    annealing = _Annealing(X, k, near, scale, seed, state, threads)
    for turn in range(rounds):
        if state[STOP]:
            break
        share = (1.0 - (AGAIN_SHARE if again else 0.0)) / rounds
        cooling = turn / rounds, (turn + 1) / rounds
        annealed = annealing.run(annealed, np.arange(n), share * moves, cooling, turn)
        state[DONE] += counted // rounds
    for turn in range(again):
        if state[STOP]:
            break
        annealed = _below_2k(X, annealed, k)
        rows = _costliest(X, annealed)[0]
        warmed = annealing.run(annealed, rows, AGAIN_SHARE / again * moves, (WARM, 1.0), rounds + turn)
        annealed = warmed if warmed.loss < annealed.loss else annealed
    annealed = _below_2k(X, annealed, k)
    if annealed.loss >= start.loss:
        return labels
    back = np.empty(n, dtype=np.int64)
    back[order] = annealed.labels
    return back


def _below_2k(X: Floats, partition: Partition, k: int) -> Partition:
    """Return the groups after those of 2k records and more were split."""
    if partition.sizes.max() < 2 * k:
        return partition
    return partition_of(X, split_large(X, partition.labels, k))


def _costliest(X: Floats, partition: Partition) -> tuple[Ints, float]:
    """Return the records of the groups that lose most, about a fifth of all, and their share of the loss."""
    labels, sizes = partition.labels, partition.sizes
    errors = np.square(X - partition.centroids[labels]).sum(axis=1)
    order = np.argsort(-np.bincount(labels, errors) / sizes, kind="stable")
    costly = np.zeros(len(sizes), dtype=np.bool_)
    # Two at least: a group alone has nothing to exchange.
    costly[order[: max(2, int(np.searchsorted(np.cumsum(sizes[order]), COSTLY * len(X))))]] = True
    rows = np.flatnonzero(costly[labels])
    return rows, float(errors[rows].sum() / max(errors.sum(), np.finfo(float).tiny))


class _Annealing(NamedTuple):
    """Records in an order that keeps neighbours together, their nearest, the temperature of each, and how to run."""

    X: Floats
    k: int
    near: Ints
    scale: Floats
    seed: int
    state: State
    threads: int

    def run(self, partition: Partition, rows: Ints, moves: float, cooling: tuple[float, float], turn: int) -> Partition:
        """Return the partition after so many moves of some records, all those of some groups, in regions."""
        parts = [rows]
        if len(rows) > REGION:
            labels, random = _compact(partition.labels[rows]), np.random.default_rng((self.seed, turn))
            parts = [rows[part] for part in split_groups(self.X[rows], labels, REGION, random)]

        def anneal(number: int) -> Ints:
            steps = int(moves * len(parts[number]) / len(rows))
            word = np.random.SeedSequence((self.seed, turn, number)).generate_state(1, np.uint64).astype(np.uint64)
            return self._anneal(partition.labels, parts[number], steps, cooling, word)

        numbers = range(len(parts))
        annealed = map(anneal, numbers) if len(parts) == 1 else spread(anneal, numbers, self.threads)
        changed, offset = partition.labels.copy(), len(self.X)
        for part, part_labels in zip(parts, annealed, strict=True):
            changed[part] = part_labels + offset
            offset += len(part)
        return partition_of(self.X, changed)

    def _anneal(self, labels: Ints, part: Ints, steps: int, cooling: tuple[float, float], word: Word) -> Ints:
        """Return the groups of a region after so many steps; rows that are empty leave gaps in their numbers."""
        records, near, scale = self.X, self.near, self.scale
        if len(part) < len(records):
            place = np.full(len(records), -1, dtype=np.int64)
            place[part] = np.arange(len(part))
            records, near, scale = np.ascontiguousarray(records[part]), place[near[part]], scale[part]
        groups = moving_groups(records, _compact(labels[part]), self.k)
        exchange(records, self.k, near, scale, groups, steps, cooling, self.state, word)
        return groups.label


def _compact(labels: Ints) -> Ints:
    """Number the groups that some records are in 0, 1, …, in the order of their numbers."""
    present = np.zeros(int(labels.max()) + 1, dtype=np.int64)
    present[labels] = 1
    compact: Ints = (np.cumsum(present) - 1)[labels]
    return compact


def compile_annealing() -> None:
    """Compile the kernel that is run last and takes longest to compile, as `anneal_by_exchange` calls it."""
    X, near = np.zeros((2, 2)), np.array([[1], [0]])
    groups = moving_groups(X, np.zeros(2, dtype=np.int64), 2)
    exchange(X, 2, near, np.zeros(2), groups, 0, (0.0, 1.0), fresh_state(), np.zeros(1, dtype=np.uint64))


class MovingGroups(NamedTuple):
    """A partition while records move: rows of members, some of them empty."""

    label: Ints  # the row of each record
    place: Ints  # of each record in its row
    size: Ints
    members: Ints  # (rows, 3k): one place more than a group may have, for exchanges
    sums: Floats  # (rows, d): the sum of the members of each row
    free: Ints  # the empty rows, the first `free_count[0]` of them
    free_count: Ints  # (1,)
    moved: Ints  # records that a step has moved, in order, and where they were
    origin: Ints
    dissolved: Ints  # rows that a step dissolves
    between: Floats  # (d,): twice the way from one centroid to another


def moving_groups(X: Floats, labels: Ints, k: int) -> MovingGroups:
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
    return MovingGroups(
        labels.copy(), place, size, members, sums, free, free_count, log[0], log[1], log[2], np.empty(d)
    )


@kernel(counted=False, inner=True)
def _put(X: Floats, groups: MovingGroups, i: int, into: int) -> None:
    """Move a record to another row; the last of its own fills its place."""
    label, place, size, members, sums = groups[:5]
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
def _leave(X: Floats, groups: MovingGroups, near: Ints, i: int, closed: int, new: int) -> tuple[float, int]:
    """Return what it costs to put a record of a row that is dissolved elsewhere, and the row; −1 if there is none.

    Rows of fewer than `closed` records, which are dissolved too, are left out, but for the new one.
    """
    label, size, room = groups.label, groups.size, groups.members.shape[1] - 1
    home, cheapest, into = label[i], np.inf, -1
    for t in range(near.shape[1]):
        row = label[near[i, t]] if near[i, t] >= 0 else home
        if row not in (home, into) and size[row] < room and (size[row] >= closed or row == new):
            c = size[row]
            cost = _square(X, groups.sums, row, c, i) * c / (c + 1)
            if cost < cheapest:
                cheapest, into = cost, row
    return cheapest, into


@kernel(counted=False, inner=True)
def _gather(X: Floats, groups: MovingGroups, near: Ints, k: int, i: int, spare: bool) -> tuple[float, int]:
    """Form a new group of a record and its nearest neighbours; return the change of the SSE and how many moved.

    With `spare`, of groups that have more than k records only.
    """
    label, size, new = groups.label, groups.size, groups.free[groups.free_count[0] - 1]
    change, done = 0.0, 0
    for t in range(near.shape[1] + 1):
        record = i if t == 0 else near[i, t - 1]
        row = label[record]
        c = size[row]
        if done == k or record < 0 or (spare and c <= k):
            continue
        if c > 1:
            change -= _square(X, groups.sums, row, c, record) * c / (c - 1)
        if done > 0:
            change += _square(X, groups.sums, new, done, record) * done / (done + 1)
        groups.moved[done], groups.origin[done] = record, row
        # An empty row has the sum that rounding has left.
        if done == 0:
            for j in range(X.shape[1]):
                groups.sums[new, j] = 0.0
        _put(X, groups, record, new)
        done += 1
    return change, done


@kernel(counted=False, inner=True)
def _dissolve(
    X: Floats, groups: MovingGroups, near: Ints, k: int, row: int, done: int, change: float, limit: float, state: State
) -> tuple[float, int]:
    """Put the records of a row, whose SSE is counted already, into others; return the change and how many moved.

    The change is infinite if it would not stay below the limit, or if asked to stop: large groups take a while.
    """
    size, members, new = groups.size, groups.members, groups.free[groups.free_count[0] - 1]
    while size[row] > 0 and change < limit and not state[STOP]:
        record = members[row, size[row] - 1]
        cost, into = _leave(X, groups, near, record, k, new)
        change += cost
        if change < limit:
            groups.moved[done], groups.origin[done] = record, row
            _put(X, groups, record, into)
            done += 1
    return (change if size[row] == 0 else np.inf), done


@kernel(counted=False, inner=True)
def _spread(X: Floats, groups: MovingGroups, row: int) -> float:
    """Return the SSE of a row."""
    total = 0.0
    for t in range(groups.size[row]):
        total += _square(X, groups.sums, row, groups.size[row], groups.members[row, t])
    return total


@kernel(counted=False, inner=True)
def _to_dissolve(groups: MovingGroups, smallest: int, done: int) -> int:
    """List the rows that records were taken from and that have fewer than `smallest` now; return how many there are."""
    size, dissolved, rows = groups.size, groups.dissolved, 0
    for t in range(done):
        row = groups.origin[t]
        fresh = 0 < size[row] < smallest
        for earlier in range(rows):
            fresh = fresh and dissolved[earlier] != row
        if fresh:
            dissolved[rows] = row
            rows += 1
    return rows


@kernel(counted=False, inner=True)
def _free_rows(groups: MovingGroups, done: int) -> None:
    """Note the rows that are empty after so many records were moved."""
    size, origin = groups.size, groups.origin
    for t in range(done):
        if size[origin[t]] == 0:
            # Marked, as several records may have left it.
            size[origin[t]] = -1
            groups.free[groups.free_count[0]] = origin[t]
            groups.free_count[0] += 1
    for t in range(done):
        size[origin[t]] = max(size[origin[t]], 0)


@kernel(counted=False, inner=True)
def _regroup(
    X: Floats, groups: MovingGroups, near: Ints, k: int, i: int, move: int, limit: float, state: State
) -> float:
    """Dissolve a group (move 0) or form one (1: of what others can spare; 2: of the nearest); return the change."""
    change, done = 0.0, 0
    if move == 0:
        groups.origin[0] = groups.label[i]
        rows = _to_dissolve(groups, len(X) + 1, 1)
    else:
        change, done = _gather(X, groups, near, k, i, move == 1)
        if done < k:
            change = np.inf
        rows = _to_dissolve(groups, k, done) if move == 2 else 0
    for t in range(rows):
        change -= _spread(X, groups, groups.dissolved[t])
    for t in range(rows):
        change, done = _dissolve(X, groups, near, k, groups.dissolved[t], done, change, limit, state)
    if change < limit:
        groups.free_count[0] -= move > 0
        _free_rows(groups, done)
        return change
    for t in range(done - 1, -1, -1):
        _put(X, groups, groups.moved[t], groups.origin[t])
    return 0.0


@kernel(counted=False, inner=True)
def _best_exchange(X: Floats, groups: MovingGroups, k: int, i: int, row: int) -> tuple[float, int]:
    """Return the least change by moving a record to a row or exchanging it with a member, and which; −1 for moving."""
    size, sums, between = groups.size, groups.sums, groups.between
    home = groups.label[i]
    c, b = 1.0 / size[home], 1.0 / size[row]
    home_distance, row_distance = 0.0, 0.0
    for j in range(X.shape[1]):
        x, mean, row_mean = X[i, j], sums[home, j] * c, sums[row, j] * b
        home_distance += (x - mean) * (x - mean)
        row_distance += (x - row_mean) * (x - row_mean)
        between[j] = 2.0 * (row_mean - mean)
    best, partner = np.inf, -1
    if size[home] > k and size[row] < groups.members.shape[1] - 1:
        best = row_distance / (1.0 + b) - home_distance / (1.0 - c)
    weight = b + c
    for t in range(size[row]):
        member = groups.members[row, t]
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
    groups: MovingGroups,
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
    n, width, label = len(X), near.shape[1], groups.label
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
            total += _regroup(X, groups, near, k, i, int(draw * k / REGROUP * 3.0), limit, state)
            continue
        # The square prefers the nearest without excluding the others.
        draw = uniform(rng)
        neighbour = near[i, int(draw * draw * width)]
        if neighbour < 0 or label[neighbour] == label[i]:
            continue
        row, home = label[neighbour], label[i]
        change, partner = _best_exchange(X, groups, k, i, row)
        if change < limit:
            total += change
            _put(X, groups, i, row)
            if partner >= 0:
                _put(X, groups, partner, home)
    return total
