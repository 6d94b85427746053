"""Search for groups of small SSE that keep rules: annealing of SSE + λ · shortfall for a fixed number of groups.

A step draws a random record and the group of one of its nearest neighbours (70 %) or of a random record. It moves the
record there, or swaps it with a random member or a member of nearest code. Groups have at least k records. The
temperature falls and λ grows, so that few violations remain at the end; the caller merges those groups.

For each group the sum of its records S and |S|² are stored, so that a change of the SSE costs two dot products; rules
are evaluated only if the SSE allows the step. For each rule, the members of a group are sorted by their codes, with
code and record in one integer, so that binary search finds the nearest code. A step costs O(d + log s) for groups of s
records, and O(s) if the SSE allows it; memory is O(n d + groups · s).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.algorithms.optimize.random import Word, below, uniform
from shoal.core.compiler import kernel
from shoal.core.progress import STOP
from shoal.core.types import Floats, Ints, State
from shoal.promises.promise import Rules
from shoal.promises.rules import changed, measure, write_codes

__all__ = ["anneal_with_rules", "room_of"]

# Probabilities of a neighbour's group, of a relocation, and of a relocation or a swap of similar codes.
NEAR, RELOCATE, ALIKE = 0.7, 0.3, 0.75
TEMPERATURES = 1.0, 1e-3  # relative to the heat, at the start and at the end
PENALTIES = 50.0, 1e6  # also relative to the heat; the final penalty applies from share FINAL of the steps
FINAL = 0.8
RECORD = (1 << 32) - 1  # the low bits of a member are its record; the high bits are its code
MOST_MEMBERS = 512  # room per group, unless the initial groups need more


class RuledGroups(NamedTuple):
    """The state of a partition during annealing."""

    label: Ints  # group of each record
    size: Ints
    members: Ints  # (rules, groups, room): code << 32 | record, sorted
    sums: Floats  # (groups, d)
    squares: Floats  # |S|² of each group
    reached: Floats  # (rules, groups): the measure of each group
    lacks: Floats  # (rules, groups): the shortfall of each group


class Draft(NamedTuple):
    """The measures of two groups after a proposed step."""

    codes: Ints  # (room,): the codes of one of the groups, for one rule
    reached: Floats  # (2, rules)
    lacks: Floats  # (2, rules)


@kernel
def room_of(labels: Ints) -> int:
    """Return the maximum number of members per group during annealing."""
    largest: int = np.bincount(labels).max()
    return min(len(labels), max(MOST_MEMBERS, 2 * largest))


@kernel
def _open(Z: Floats, labels: Ints, groups: int, room: int, rules: Rules) -> RuledGroups:
    n, d = Z.shape
    many = len(rules.kinds)
    grouping = RuledGroups(
        labels.copy(),
        np.zeros(groups, dtype=np.int64),
        np.zeros((many, groups, room), dtype=np.int64),
        np.zeros((groups, d)),
        np.zeros(groups),
        np.zeros((many, groups)),
        np.zeros((many, groups)),
    )
    for i in range(n):
        g = labels[i]
        for r in range(many):
            grouping.members[r, g, grouping.size[g]] = rules.codes[r, i] << 32 | i
        grouping.size[g] += 1
        for j in range(d):
            grouping.sums[g, j] += Z[i, j]
    codes = np.empty(room, dtype=np.int64)
    for g in range(groups):
        grouping.squares[g] = np.square(grouping.sums[g]).sum()
        for r in range(many):
            grouping.members[r, g, : grouping.size[g]].sort()
            size = write_codes(grouping.members[r, g], grouping.size[g], -1, -1, codes)
            grouping.reached[r, g], grouping.lacks[r, g] = measure(rules, r, codes, size)
    return grouping


@kernel(counted=False)
def _first_from(members: Ints, size: int, member: int) -> int:
    """Return the position of the first member that is at least `member`."""
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        if members[middle] < member:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(inline=True)
def _partner(groups: RuledGroups, rules: Rules, i: int, group: int, alike: bool, rng: Word) -> int:
    """Return a member of another group for a swap: a random member, or one of nearest code in a random rule."""
    size = groups.size[group]
    if not alike:
        drawn: int = groups.members[0, group, below(rng, size)] & RECORD
        return drawn
    r = below(rng, len(rules.kinds)) if len(rules.kinds) > 1 else 0
    members, code = groups.members[r, group], rules.codes[r, i]
    # Start from a random record number, so that all members with the same code can be drawn.
    record = below(rng, len(groups.label))
    place = _first_from(members, size, code << 32 | record)
    if place == size or (place > 0 and code - (members[place - 1] >> 32) < (members[place] >> 32) - code):
        place -= 1
    nearest = members[place] >> 32
    if nearest != code:
        place = _first_from(members, size, nearest << 32 | record)
        if place == size or members[place] >> 32 != nearest:
            place -= 1
    partner: int = members[place] & RECORD
    return partner


@kernel(counted=False)
def _replace(members: Ints, size: int, out: int, into: int) -> None:
    """Replace a member in a sorted list; −1 means no member, so that the list grows or shrinks."""
    if out < 0:
        place = size
    else:
        place = _first_from(members, size, out)
        size -= 1
    while place < size and (into < 0 or members[place + 1] < into):
        members[place] = members[place + 1]
        place += 1
    if into >= 0:
        while place > 0 and members[place - 1] > into:
            members[place] = members[place - 1]
            place -= 1
        members[place] = into


@kernel(inline=True)
def _move(groups: RuledGroups, Z: Floats, i: int, to: int) -> None:
    """Move a record to another group; the caller updates the lists of members."""
    g = groups.label[i]
    groups.size[g] -= 1
    groups.size[to] += 1
    groups.label[i] = to
    for j in range(Z.shape[1]):
        groups.sums[g, j] -= Z[i, j]
        groups.sums[to, j] += Z[i, j]


@kernel(counted=False)
def _dot(a: Floats, b: Floats) -> float:
    total = 0.0
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@kernel(inline=True)
def _relocated(groups: RuledGroups, Z: Floats, i: int, two: int) -> tuple[float, float, float]:
    """Return the SSE added by moving a record, and |S|² of both groups after the move."""
    one, norm = groups.label[i], _dot(Z[i], Z[i])
    square_one = groups.squares[one] - 2 * _dot(groups.sums[one], Z[i]) + norm
    square_two = groups.squares[two] + 2 * _dot(groups.sums[two], Z[i]) + norm
    added = groups.squares[one] / groups.size[one] - square_one / (groups.size[one] - 1)
    added += groups.squares[two] / groups.size[two] - square_two / (groups.size[two] + 1)
    return added, square_one, square_two


@kernel(inline=True)
def _swapped(groups: RuledGroups, Z: Floats, i: int, y: int) -> tuple[float, float, float]:
    """Return the SSE added by swapping two records, and |S|² of both groups after the swap."""
    one, two = groups.label[i], groups.label[y]
    shift_one, shift_two, distance = 0.0, 0.0, 0.0
    for j in range(Z.shape[1]):
        step = Z[y, j] - Z[i, j]
        shift_one += groups.sums[one, j] * step
        shift_two -= groups.sums[two, j] * step
        distance += step * step
    square_one = groups.squares[one] + 2 * shift_one + distance
    square_two = groups.squares[two] + 2 * shift_two + distance
    added = (groups.squares[one] - square_one) / groups.size[one]
    added += (groups.squares[two] - square_two) / groups.size[two]
    return added, square_one, square_two


@kernel(inline=True)
def _member(rules: Rules, rule: int, i: int) -> int:
    """Return a record as a member of a group, encoded with its code; −1 for no record."""
    return rules.codes[rule, i] << 32 | i if i >= 0 else -1


@kernel(inline=True)
def _is_accepted(
    groups: RuledGroups,
    rules: Rules,
    i: int,
    y: int,
    two: int,
    added: float,
    penalty: float,
    limit: float,
    draft: Draft,
) -> bool:
    """Return True if a step that adds `added` to the SSE is accepted; write both groups' measures into the draft."""
    one, many = groups.label[i], len(rules.kinds)
    for r in range(many):
        added -= penalty * (groups.lacks[r, one] + groups.lacks[r, two])
    for r in range(many):
        out, into = _member(rules, r, i), _member(rules, r, y)
        for side in range(2):
            if added > limit:
                return False
            g = two if side else one
            reached, lacks = groups.reached[r, g], groups.lacks[r, g]
            if y < 0 or out >> 32 != into >> 32:
                leaves, enters = (into, out) if side else (out, into)
                reached, lacks = changed(
                    rules, r, groups.members[r, g], groups.size[g], leaves, enters, reached, draft.codes
                )
            draft.reached[side, r], draft.lacks[side, r] = reached, lacks
            added += penalty * lacks
    return added <= limit


@kernel(inline=True)
def _step(
    groups: RuledGroups, Z: Floats, k: int, near: Ints, rules: Rules, temperature: float, penalty: float, draft: Draft,
    rng: Word,
) -> None:  # fmt: skip
    n, room = len(Z), groups.members.shape[2]
    i = below(rng, n)
    one = groups.label[i]
    target = near[i, below(rng, near.shape[1])] if uniform(rng) < NEAR else below(rng, n)
    two = groups.label[target]
    if one == two:
        return
    draw, y = uniform(rng), -1
    if draw < RELOCATE:
        if groups.size[one] <= k or groups.size[two] >= room - 1:
            return
        added, square_one, square_two = _relocated(groups, Z, i, two)
    else:
        y = _partner(groups, rules, i, two, draw < ALIKE, rng)
        added, square_one, square_two = _swapped(groups, Z, i, y)
    limit = -temperature * np.log(1.0 - uniform(rng))
    if not _is_accepted(groups, rules, i, y, two, added, penalty, limit, draft):
        return
    for r in range(len(rules.kinds)):
        out, into = _member(rules, r, i), _member(rules, r, y)
        _replace(groups.members[r, one], groups.size[one], out, into)
        _replace(groups.members[r, two], groups.size[two], into, out)
        groups.reached[r, one], groups.reached[r, two] = draft.reached[0, r], draft.reached[1, r]
        groups.lacks[r, one], groups.lacks[r, two] = draft.lacks[0, r], draft.lacks[1, r]
    _move(groups, Z, i, two)
    if y >= 0:
        _move(groups, Z, y, one)
    groups.squares[one], groups.squares[two] = square_one, square_two


@kernel(counted=False)
def _anneal(  # noqa: PLR0913 - `draft` is preallocated: kernels without counted references allocate no memory
    groups: RuledGroups, Z: Floats, k: int, near: Ints, rules: Rules, steps: int, heat: float, draft: Draft,
    state: State, rng: Word,
) -> None:  # fmt: skip
    """Run the annealing steps. The code of a step is inlined, because passing the arrays takes longer than a step."""
    temperature, penalty = 0.0, 0.0
    for step in range(steps):
        if step % 1024 == 0:
            if state[STOP]:
                break
            done = step / steps
            temperature = heat * TEMPERATURES[0] * (TEMPERATURES[1] / TEMPERATURES[0]) ** done
            penalty = heat * PENALTIES[0] * (PENALTIES[1] / PENALTIES[0]) ** min(1.0, done / FINAL)
        _step(groups, Z, k, near, rules, temperature, penalty, draft, rng)


@kernel
def anneal_with_rules(
    Z: Floats, k: int, labels: Ints, near: Ints, rules: Rules, steps: int, heat: float, state: State, rng: Word
) -> RuledGroups:
    """Return improved groups, as many as in `labels`; some groups may still break a rule.

    Z has a mean near 0; `near` lists the nearest records of each record. `heat` is the initial temperature; if the
    initial groups do not matter, use about the mean squared deviation of a record. λ is proportional to `heat`. A small
    initial penalty lets records move alone that would otherwise have to be swapped.
    """
    many, room = len(rules.kinds), room_of(labels) + 1
    groups = _open(Z, labels, labels.max() + 1, room, rules)
    draft = Draft(np.empty(room, dtype=np.int64), np.empty((2, many)), np.empty((2, many)))
    _anneal(groups, Z, k, near, rules, steps, heat, draft, state, rng)
    return groups
