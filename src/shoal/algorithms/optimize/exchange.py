"""Simulated annealing by light steps, which move or exchange records and dissolve or form groups.

A step chooses a random record and the group of one of its nearest neighbours. The record moves to this group, or is
exchanged with the member that is cheapest to exchange. A few steps dissolve the record's group, or form a new group of
the record and its nearest neighbours. The neighbours leave groups that can spare them, or groups whose remaining
members then move elsewhere.

A change Δ in the SSE is accepted with probability (1 − Δ/8t)⁸, which is close to the exp(−Δ/t) of simulated annealing
(Kirkpatrick, Gelatt and Vecchi 1983). The temperature t falls to 0. It is relative to the distances between the record
and its neighbours, so dense and sparse parts of a table cool at the same time. Computing it needs only square roots,
which every machine rounds identically, so results are equal on all machines.

For each group, the sum of its records is stored. With centroids M, sizes c and e = x_j − x_i,

* moving record i from group a to b changes the SSE by c_b/(c_b + 1) |x_i − M_b|² − c_a/(c_a − 1) |x_i − M_a|²;
* exchanging i of a with j of b changes it by 2 e·(M_b − M_a) − |e|² (1/c_a + 1/c_b).

A step costs O(k d), independent of n. Memory is O(n d) plus the lists of neighbours. During annealing, a group may have
up to 3k−1 records because records could not pass through full groups otherwise. Groups of 2k or more records are split
afterwards (Domingo-Ferrer and Mateo-Sanz 2002).

Tables of more than `REGION` records are searched in regions, on all cores; the borders change every round. If a few
records cause most of the loss, as in tables with outliers, the last rounds process only these records.
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
ROUNDS = 10  # number of rounds for a table searched in regions
MOVES = 5.0  # moves per step, in multiples of k
WIDE = 10  # a larger k gets fewer moves, as each move takes longer
# If the costliest groups, with the share COSTLY of the records, have at least the share UNEVEN of the loss, AGAIN more
# rounds process only these groups. They use the share AGAIN_SHARE of the steps and start at the share WARM of cooling.
COSTLY, UNEVEN, AGAIN, AGAIN_SHARE, WARM = 0.2, 0.9, 4, 0.4, 0.5
HOT = 1.5  # the initial temperature, relative to the squared distances between a record and its neighbours
COLD = 0.95  # the share of the steps after which no increase in the SSE is accepted
WINDOW, STAY = 1024, 4  # size of a window of consecutive records, and steps per record before the next window
REGROUP = 0.15  # k times the share of steps that dissolve or form groups


def anneal_by_exchange(X: Floats, k: int, labels: Ints, steps: float, seed: int, state: State, threads: int) -> Ints:
    """Return groups of k to 2k−1 records after `steps` steps per record, or `labels` if these lose no more."""
    n = len(X)
    counted = n if n <= REGION else 3 * n // 4  # the progress of annealing; the initial partition has counted the rest
    order = leaves_of(X)[0]
    X = X[order]
    start = annealed = partition_of(X, labels[order])
    if not start.loss:  # the loss is already 0
        state[DONE] += counted
        return labels
    near, squares, step = neighbour_lists(X, k, state=state, threads=threads)
    # A record that joins its neighbours costs about half its mean squared distance to them.
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
    """Split all groups of 2k or more records."""
    if partition.sizes.max() < 2 * k:
        return partition
    return partition_of(X, split_large(X, partition.labels, k))


def _costliest(X: Floats, partition: Partition) -> tuple[Ints, float]:
    """Return the records of the costliest groups, about a fifth of all records, and their share of the loss."""
    labels, sizes = partition.labels, partition.sizes
    errors = np.square(X - partition.centroids[labels]).sum(axis=1)
    order = np.argsort(-np.bincount(labels, errors) / sizes, kind="stable")
    costly = np.zeros(len(sizes), dtype=np.bool_)
    # Select at least two groups, since a single group has no exchange partner.
    costly[order[: max(2, int(np.searchsorted(np.cumsum(sizes[order]), COSTLY * len(X))))]] = True
    rows = np.flatnonzero(costly[labels])
    return rows, float(errors[rows].sum() / max(errors.sum(), np.finfo(float).tiny))


class _Annealing(NamedTuple):
    """The data of all rounds: records in an order that keeps neighbours close, their neighbours and temperatures."""

    X: Floats
    k: int
    near: Ints
    scale: Floats
    seed: int
    state: State
    threads: int

    def run(self, partition: Partition, rows: Ints, moves: float, cooling: tuple[float, float], turn: int) -> Partition:
        """Anneal `rows`, the records of whole groups, with `moves` moves within regions; return the new partition."""
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
        """Return the labels of a region's records after `steps` steps; empty rows leave gaps between the labels."""
        records, near, scale = self.X, self.near, self.scale
        if len(part) < len(records):
            place = np.full(len(records), -1, dtype=np.int64)
            place[part] = np.arange(len(part))
            records, near, scale = np.ascontiguousarray(records[part]), place[near[part]], scale[part]
        groups = moving_groups(records, _compact(labels[part]), self.k)
        exchange(records, self.k, near, scale, groups, steps, cooling, self.state, word)
        return groups.label


def _compact(labels: Ints) -> Ints:
    """Renumber the groups as 0, 1, … without gaps, in the same order."""
    present = np.zeros(int(labels.max()) + 1, dtype=np.int64)
    present[labels] = 1
    compact: Ints = (np.cumsum(present) - 1)[labels]
    return compact


def compile_annealing() -> None:
    """Compile `exchange`, which takes longest to compile, with the argument types of `anneal_by_exchange`."""
    X, near = np.zeros((2, 2)), np.array([[1], [0]])
    groups = moving_groups(X, np.zeros(2, dtype=np.int64), 2)
    exchange(X, 2, near, np.zeros(2), groups, 0, (0.0, 1.0), fresh_state(), np.zeros(1, dtype=np.uint64))


class MovingGroups(NamedTuple):
    """A changing partition with one row of members per group; rows may be empty."""

    label: Ints  # the row of each record
    place: Ints  # the position of each record in its row
    size: Ints
    members: Ints  # (rows, 3k): room for one record more than a group may have, as exchanges need it
    sums: Floats  # (rows, d): the sum of each row's members
    free: Ints  # the numbers of the empty rows, in the first `free_count[0]` entries
    free_count: Ints  # (1,)
    moved: Ints  # the records that the current step has moved, in order, and the rows that they left
    origin: Ints
    dissolved: Ints  # the rows that the current step dissolves
    between: Floats  # (d,): twice the vector from one centroid to another


def moving_groups(X: Floats, labels: Ints, k: int) -> MovingGroups:
    """Convert labels 0, 1, … into rows of members; every group must have fewer than 2k records."""
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
    log = np.empty((3, min(n, 3 * k * (k + 2))), dtype=np.int64)  # a step moves a record at most once
    free_count = np.array([rows - groups])
    return MovingGroups(
        labels.copy(), place, size, members, sums, free, free_count, log[0], log[1], log[2], np.empty(d)
    )


@kernel(counted=False, inner=True)
def _put(X: Floats, groups: MovingGroups, i: int, into: int) -> None:
    """Move a record to another row; the last record of its old row takes its position there."""
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
    """Return the squared distance from a record to the centroid of a row."""
    total, share = 0.0, 1.0 / size
    for j in range(X.shape[1]):
        delta = X[i, j] - sums[row, j] * share
        total += delta * delta
    return total


@kernel(counted=False, inner=True)
def _leave(X: Floats, groups: MovingGroups, near: Ints, i: int, closed: int, new: int) -> tuple[float, int]:
    """Return the lowest cost of moving a record from a dissolved row, and the target row; −1 if there is none.

    Rows of fewer than `closed` records are excluded because the step dissolves them too; the row `new` is allowed.
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
    """Form a new group of a record and its nearest neighbours; return the change in the SSE and the number of moves.

    With `spare`, take records only from groups of more than k records.
    """
    label, size, new = groups.label, groups.size, groups.free[groups.free_count[0] - 1]
    change, count = 0.0, 0
    for t in range(near.shape[1] + 1):
        record = i if t == 0 else near[i, t - 1]
        row = label[record]
        c = size[row]
        if count == k or record < 0 or (spare and c <= k):
            continue
        if c > 1:
            change -= _square(X, groups.sums, row, c, record) * c / (c - 1)
        if count > 0:
            change += _square(X, groups.sums, new, count, record) * count / (count + 1)
        groups.moved[count], groups.origin[count] = record, row
        # Clear the rounding error that remains in the sums of an emptied row.
        if count == 0:
            for j in range(X.shape[1]):
                groups.sums[new, j] = 0.0
        _put(X, groups, record, new)
        count += 1
    return change, count


@kernel(counted=False, inner=True)
def _dissolve(
    X: Floats, groups: MovingGroups, near: Ints, k: int, row: int, count: int, change: float, limit: float, state: State
) -> tuple[float, int]:
    """Move all records of a row to other rows; return the total change in the SSE and the total number of moves.

    `change` and `count` are the totals so far, with the SSE of the row already subtracted. The change is infinite if it
    reaches the limit, or if a stop is requested, since large groups take a while.
    """
    size, members, new = groups.size, groups.members, groups.free[groups.free_count[0] - 1]
    while size[row] > 0 and change < limit and not state[STOP]:
        record = members[row, size[row] - 1]
        cost, into = _leave(X, groups, near, record, k, new)
        change += cost
        if change < limit:
            groups.moved[count], groups.origin[count] = record, row
            _put(X, groups, record, into)
            count += 1
    return (change if size[row] == 0 else np.inf), count


@kernel(counted=False, inner=True)
def _spread(X: Floats, groups: MovingGroups, row: int) -> float:
    """Return the SSE of the group in a row."""
    total = 0.0
    for t in range(groups.size[row]):
        total += _square(X, groups.sums, row, groups.size[row], groups.members[row, t])
    return total


@kernel(counted=False, inner=True)
def _to_dissolve(groups: MovingGroups, smallest: int, count: int) -> int:
    """List the rows that the first `count` moves left with 1 … `smallest`−1 records; return the number of rows."""
    size, dissolved, rows = groups.size, groups.dissolved, 0
    for t in range(count):
        row = groups.origin[t]
        is_new = 0 < size[row] < smallest
        for earlier in range(rows):
            is_new = is_new and dissolved[earlier] != row
        if is_new:
            dissolved[rows] = row
            rows += 1
    return rows


@kernel(counted=False, inner=True)
def _free_rows(groups: MovingGroups, count: int) -> None:
    """Add the rows emptied by the first `count` moves to the free rows."""
    size, origin = groups.size, groups.origin
    for t in range(count):
        if size[origin[t]] == 0:
            # Mark the row, which several records may have left, so that it is added only once.
            size[origin[t]] = -1
            groups.free[groups.free_count[0]] = origin[t]
            groups.free_count[0] += 1
    for t in range(count):
        size[origin[t]] = max(size[origin[t]], 0)


@kernel(counted=False, inner=True)
def _regroup(
    X: Floats, groups: MovingGroups, near: Ints, k: int, i: int, move: int, limit: float, state: State
) -> float:
    """Dissolve or form a group if that changes the SSE by less than `limit`; return the change made.

    Move 0 dissolves the group of record i. Moves 1 and 2 form a group around it: from groups that can spare records (1)
    or from any groups (2).
    """
    change, count = 0.0, 0
    if move == 0:
        groups.origin[0] = groups.label[i]
        rows = _to_dissolve(groups, len(X) + 1, 1)
    else:
        change, count = _gather(X, groups, near, k, i, move == 1)
        if count < k:
            change = np.inf
        rows = _to_dissolve(groups, k, count) if move == 2 else 0
    for t in range(rows):
        change -= _spread(X, groups, groups.dissolved[t])
    for t in range(rows):
        change, count = _dissolve(X, groups, near, k, groups.dissolved[t], count, change, limit, state)
    if change < limit:
        groups.free_count[0] -= move > 0
        _free_rows(groups, count)
        return change
    for t in range(count - 1, -1, -1):
        _put(X, groups, groups.moved[t], groups.origin[t])
    return 0.0


@kernel(counted=False, inner=True)
def _best_exchange(X: Floats, groups: MovingGroups, k: int, i: int, row: int) -> tuple[float, int]:
    """Return the smallest change in the SSE if a record moves to a row or is exchanged with one of its members.

    The second value is the number of this member, −1 for a move.
    """
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
    """Run `steps` steps unless a stop is requested; return the total change in the SSE.

    `scale` holds the scale of each record's temperature; `cooling` holds the shares of the cooling completed before and
    after these steps. The order of the records should keep neighbours close together. Many consecutive steps use
    the same window of records, whose data then stays in the processor's cache.
    """
    n, width, label = len(X), near.shape[1], groups.label
    window = min(n, WINDOW)
    total, heat, base = 0.0, 0.0, 0
    for step in range(steps):
        # Check every step, as one step with large groups takes longer than 64 steps with small groups.
        if state[STOP]:
            break
        if step % 64 == 0:
            heat = max(0.0, 1.0 - (cooling[0] + (cooling[1] - cooling[0]) * step / steps) / COLD)
            heat = HOT * heat * np.sqrt(heat)
            turn = step // (STAY * window)
            base = min(turn * window % n, n - window)
        i = base + below(rng, window)
        # A change below this limit is accepted, since then (1 − Δ/8t)⁸ > u.
        limit = 8.0 * heat * scale[i] * (1.0 - np.sqrt(np.sqrt(np.sqrt(uniform(rng)))))
        draw = uniform(rng)
        if draw * k < REGROUP:
            total += _regroup(X, groups, near, k, i, int(draw * k / REGROUP * 3.0), limit, state)
            continue
        # Squaring the random number favours the nearest neighbours without excluding the others.
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
