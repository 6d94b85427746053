"""Refinement: move records between neighbouring groups to reduce the loss of the released values.

The methods minimise the SSE, the sum of squared distances to centroids. Categorical columns release the mode, the
median or the common ancestor of a group instead. The partition with the smallest SSE may therefore not have the
smallest loss. Here the cost of a group is the sum of squared distances from its records to its released values. A step
picks a random record and the group of one of its nearest neighbours. The record moves to that group, provided that both
sizes stay between k and 2k − 1, or is exchanged with a random member of it. A change Δ of the cost is accepted with
probability min(1, exp(−Δ/t)) while t falls to 0 (simulated annealing, Kirkpatrick, Gelatt and Vecchi 1983). The costs
of the two groups are recomputed: O(k d) per step, and O(k²) for each median. Memory is O(n min(k, 256)), regardless of
the number of categories. The result never costs more than the given partition.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.algorithms.optimize.random import Word, below, seeded, uniform
from shoal.core.compiler import kernel
from shoal.core.measures import canonical_labels, group_sizes
from shoal.core.progress import STOP
from shoal.core.types import Floats, Ints, State
from shoal.kernels.neighbours import list_size, nearest

__all__ = ["ANCESTOR", "MEAN", "MEDIAN", "MODE", "Variables", "group_cost", "refine"]

MEAN, MEDIAN, MODE, ANCESTOR = range(4)
HOT = 0.3  # the first temperature, in mean costs per record
COLD = 0.95  # after this share of the steps, no increase of the cost is accepted


class Variables(NamedTuple):
    """The columns of a release: the kind of released value, the values and the distances between them."""

    release: Ints  # MEAN, MEDIAN, MODE or ANCESTOR
    values: Floats  # (n, d): coordinates of numbers and ranks, codes of other categories
    table: Ints  # for each column of unordered categories, its index in `squares` and `ancestors`
    squares: Floats  # (tables, values, nodes): squared distances
    ancestors: Ints  # (tables, values, depth): the path from each value to the root, padded with the root


def refine(
    X: Floats, labels: Ints, k: int, variables: Variables, *, steps: int, seed: int | None, state: State
) -> Ints:
    """Run `steps` random steps per record and return the improved labels.

    `X` determines the neighbours, `variables` the cost of a group, and `seed` the random steps.
    """
    n, sizes = len(X), group_sizes(labels)
    if len(sizes) < 2 or not steps:
        return labels
    count, step = list_size(n, k)
    near = nearest(X, count, step=step, slack=0.0 if n <= 5000 else 1.0)
    rng = seeded(int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed)
    members = np.zeros((len(sizes), max(2 * k - 1, int(sizes.max()))), dtype=np.int64)
    refined = labels.copy()
    gain = _anneal(variables, k, near, members, refined, steps * n, state, rng)
    return canonical_labels(refined) if gain < 0 else labels


@kernel
def group_cost(variables: Variables, records: Ints, s: int, ordered: Floats, count: Ints) -> float:
    """Return the cost of a group of s records; `ordered` and `count` (all zeros) are scratch arrays."""
    cost = 0.0
    values = variables.values
    for j in range(values.shape[1]):
        release = variables.release[j]
        if release == MEAN:
            mean = 0.0
            for a in range(s):
                mean += values[records[a], j]
            mean /= s
            for a in range(s):
                cost += (values[records[a], j] - mean) ** 2
        elif release == MEDIAN:
            for a in range(s):
                value, b = values[records[a], j], a
                while b > 0 and ordered[b - 1] > value:
                    ordered[b] = ordered[b - 1]
                    b -= 1
                ordered[b] = value
            middle = ordered[(s - 1) // 2]
            for a in range(s):
                cost += (ordered[a] - middle) ** 2
        else:
            node = _mode(values, j, records, s, count) if release == MODE else _ancestor(variables, j, records, s)
            for a in range(s):
                cost += variables.squares[variables.table[j], np.int64(values[records[a], j]), node]
    return cost


@kernel
def _mode(values: Floats, j: int, records: Ints, s: int, count: Ints) -> int:
    """Return the most frequent code, or the lowest one in case of a tie."""
    best = int(values[records[0], j])
    for a in range(s):
        code = int(values[records[a], j])
        count[code] += 1
        if count[code] > count[best] or (count[code] == count[best] and code < best):
            best = code
    for a in range(s):
        count[np.int64(values[records[a], j])] = 0
    return best


@kernel
def _ancestor(variables: Variables, j: int, records: Ints, s: int) -> int:
    """Return the lowest common ancestor of the codes in column j."""
    ancestors, level, a = variables.ancestors[variables.table[j]], 0, 1
    first = np.int64(variables.values[records[0], j])
    while a < s:
        code = np.int64(variables.values[records[a], j])
        if ancestors[code, level] == ancestors[first, level]:
            a += 1
        else:
            level += 1
    return int(ancestors[first, level])


@kernel
def _anneal(
    variables: Variables, k: int, near: Ints, members: Ints, label: Ints, steps: int, state: State, rng: Word
) -> float:
    """Run the steps until a stop is requested; update `label` in place and return the change of the cost."""
    n, largest = len(label), 2 * k - 1
    rows, room = members.shape
    size, place, cost = np.zeros(rows, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty(rows)
    ordered, count = np.empty(room), np.zeros(variables.squares.shape[1] + 1, dtype=np.int64)
    for i in range(n):
        g = label[i]
        members[g, size[g]] = i
        place[i] = size[g]
        size[g] += 1
    total = 0.0
    for g in range(rows):
        cost[g] = group_cost(variables, members[g], size[g], ordered, count)
        total += cost[g]
    hot, change = HOT * total / n, 0.0
    for step in range(steps):
        if state[STOP]:
            break
        i = below(rng, n)
        g, h = label[i], label[near[i, below(rng, near.shape[1])]]
        if g == h:
            continue
        moves = size[g] > k and size[h] < largest and uniform(rng) < 0.5
        partner = members[h, below(rng, size[h])]
        # Make the change, and undo it if it is rejected.
        if moves:
            _take(members, size, place, g, i)
            _put(members, size, place, h, i)
        else:
            _exchange(members, place, g, h, i, partner)
        cost_g = group_cost(variables, members[g], size[g], ordered, count)
        cost_h = group_cost(variables, members[h], size[h], ordered, count)
        delta = cost_g + cost_h - cost[g] - cost[h]
        temperature = hot * max(0.0, 1.0 - step / (COLD * steps)) ** 2
        if delta < 0 or (temperature > 0 and uniform(rng) < np.exp(-delta / temperature)):
            cost[g], cost[h] = cost_g, cost_h
            change += delta
            label[i] = h
            if not moves:
                label[partner] = g
        elif moves:
            _take(members, size, place, h, i)
            _put(members, size, place, g, i)
        else:
            _exchange(members, place, g, h, partner, i)
    return change


@kernel
def _take(members: Ints, size: Ints, place: Ints, g: int, i: int) -> None:
    """Remove a record from a group and move the last member to its position."""
    size[g] -= 1
    last = members[g, size[g]]
    members[g, place[i]] = last
    place[last] = place[i]


@kernel
def _put(members: Ints, size: Ints, place: Ints, g: int, i: int) -> None:
    """Append a record to a group."""
    members[g, size[g]] = i
    place[i] = size[g]
    size[g] += 1


@kernel
def _exchange(members: Ints, place: Ints, g: int, h: int, i: int, partner: int) -> None:
    """Exchange record i of group g with a record of group h."""
    record_place, partner_place = place[i], place[partner]
    members[g, record_place], members[h, partner_place] = partner, i
    place[i], place[partner] = partner_place, record_place
