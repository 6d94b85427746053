"""Large-neighbourhood search with annealing: regroup a few neighbouring groups, then accept or undo the change.

One step takes the group of a random record, and one to five neighbouring groups from nearest-neighbour lists. It shakes
these groups by a few random moves, or rebuilds them as one group fewer, the same number or one more. The step then
descends by relocations and swaps (`optimize.patch`), and accepts a change Δ in the SSE with probability
min(1, exp(−Δ/t)). With m = O(k) records in a patch, a step costs O(m² d + m² · moves), independent of n. Memory is
O(n k) for the neighbour lists and the members of the groups.

Groups keep k to 2k−1 records because a larger group can be split in two without increasing the SSE (Domingo-Ferrer and
Mateo-Sanz 2002).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.algorithms.optimize.group_columns import ColumnPool, add_column
from shoal.algorithms.optimize.patch import (
    Patch,
    patch_assign,
    patch_cost,
    patch_descend,
    patch_new,
    patch_open,
    patch_rebuild,
    patch_shake,
)
from shoal.algorithms.optimize.random import Word, below, uniform
from shoal.core.compiler import kernel
from shoal.core.progress import STOP
from shoal.core.types import Floats, Ints, State

__all__ = ["MemberRows", "anneal", "groups_of"]

MOST_GROUPS = 6


class MemberRows(NamedTuple):
    """A partition with one row of members per group; the first ``used[0]`` rows are in use."""

    members: Ints  # (n // k + 1, 2k − 1)
    size: Ints
    label: Ints  # the row of each record
    used: Ints  # (1,): the number of rows in use


@kernel
def groups_of(labels: Ints, k: int) -> MemberRows:
    """Convert labels 0 … q−1 into rows of members; every group must have fewer than 2k records."""
    n = len(labels)
    rows = n // k + 1
    groups = MemberRows(
        np.zeros((rows, 2 * k - 1), dtype=np.int64),
        np.zeros(rows, dtype=np.int64),
        labels.copy(),
        np.zeros(1, dtype=np.int64),
    )
    for i in range(n):
        g = labels[i]
        groups.members[g, groups.size[g]] = i
        groups.size[g] += 1
        groups.used[0] = max(groups.used[0], g + 1)
    return groups


@kernel
def _gather(
    groups: MemberRows, near: Ints, want: int, room: int, patch: Patch, rows: Ints, rng: Word
) -> tuple[int, int]:
    """Fill the patch with the group of a random record and its neighbours; return the record and group counts."""
    n, width = near.shape
    rows[0] = groups.label[below(rng, n)]
    q, m = 1, groups.size[rows[0]]
    for _ in range(4 * want):
        if q == want:
            break
        row = rows[below(rng, q)]
        record = groups.members[row, below(rng, groups.size[row])]
        # Squaring the random number favours the nearest neighbours without excluding the others.
        draw = uniform(rng)
        neighbour = near[record, np.int64(draw * draw * width)]
        if neighbour < 0:
            continue
        row = groups.label[neighbour]
        is_new = m + groups.size[row] <= room
        for g in range(q):
            is_new = is_new and rows[g] != row
        if is_new:
            rows[q] = row
            m += groups.size[row]
            q += 1
    place = 0
    for g in range(q):
        for i in range(groups.size[rows[g]]):
            patch.records[place] = groups.members[rows[g], i]
            patch.group[place] = g
            place += 1
    return m, q


@kernel
def _write_back(groups: MemberRows, patch: Patch, m: int, q: int, p: int, rows: Ints, column_pool: ColumnPool) -> None:
    """Replace the groups in the first q of `rows` by the p groups of the patch, and add these to the column pool."""
    for g in range(q, p):
        rows[g] = groups.used[0]
        groups.used[0] += 1
    for g in range(p):
        groups.size[rows[g]] = 0
    for i in range(m):
        row = rows[patch.group[i]]
        groups.members[row, groups.size[row]] = patch.records[i]
        groups.size[row] += 1
        groups.label[patch.records[i]] = row
    if len(column_pool.size) > 0:
        for g in range(p):
            add_column(column_pool, groups.members[rows[g]], groups.size[rows[g]])
    for g in range(p, q):
        last = groups.used[0] - 1
        _fill_row(groups, rows[g], last)
        for later in range(g + 1, q):
            if rows[later] == last:
                rows[later] = rows[g]


@kernel
def _fill_row(groups: MemberRows, row: int, last: int) -> None:
    """Move the group in row `last` to the free row `row`, and remove the last row."""
    if row != last:
        groups.size[row] = groups.size[last]
        for i in range(groups.size[last]):
            groups.members[row, i] = groups.members[last, i]
            groups.label[groups.members[last, i]] = row
    groups.size[last] = 0
    groups.used[0] = last


@kernel
def _equal(a: Ints, b: Ints, m: int) -> bool:
    """Return True if both arrays have the same first m numbers."""
    i = 0
    while i < m and a[i] == b[i]:
        i += 1
    return i == m


@kernel
def anneal(
    X: Floats,
    k: int,
    near: Ints,
    groups: MemberRows,
    column_pool: ColumnPool,
    steps: int,
    temperature: float,
    state: State,
    rng: Word,
) -> float:
    """Run `steps` steps unless a stop is requested; return the total change in the SSE."""
    largest = 2 * k - 1
    room = max(2 * largest, min(MOST_GROUPS * largest, 72))
    patch = patch_new(room, MOST_GROUPS + 1)
    rows = np.empty(MOST_GROUPS + 1, dtype=np.int64)
    before = np.empty(room, dtype=np.int64)
    change = 0.0
    for _ in range(steps):
        if state[STOP]:
            break
        want = 2 + below(rng, MOST_GROUPS - 1)
        m, q = _gather(groups, near, want, room, patch, rows, rng)
        patch_open(patch, X, m)
        patch_assign(patch, m, q)
        cost = patch_cost(patch, q)
        for i in range(m):
            before[i] = patch.group[i]
        p = q
        if uniform(rng) < 0.5:
            p = q - 1 + below(rng, 3)
            if p * k > m or p * largest < m:
                p = q
            patch_rebuild(patch, m, p, k, largest, rng)
        elif q > 1:
            patch_shake(patch, m, k, largest, 1 + below(rng, 4), rng)
        patch_descend(patch, m, p, k, largest, state)
        delta = patch_cost(patch, p) - cost
        if p == q and _equal(before, patch.group, m):
            continue
        if delta <= 0 or (temperature > 0 and uniform(rng) < np.exp(-delta / temperature)):
            change += delta
            _write_back(groups, patch, m, q, p, rows, column_pool)
    return change
