"""A patch: a few neighbouring groups of a partition, regrouped with costs that are computed from pair distances.

For a group g of c_g records, let T_g be the sum of the squared distances over its pairs, and L_ig the sum of the
squared distances from record i to the members of g. Then SSE_g = T_g / c_g (Castro, Gentile and
Spagnolo-Arrizabalaga 2022, equation 4), and a move changes the SSE by a few terms:

* moving record i from group a to b: (T_a − L_ia)/(c_a − 1) + (T_b + L_ib)/(c_b + 1) − T_a/c_a − T_b/c_b;
* swapping record i of a and j of b: (L_ja − L_ia − D_ij)/c_a + (L_ib − L_jb − D_ij)/c_b.

For m records, opening a patch costs O(m² d). A move costs O(1) to evaluate and O(m) to apply.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.algorithms.optimize.random import Word, below
from shoal.core.compiler import kernel
from shoal.core.progress import STOP
from shoal.core.types import Floats, Ints, State

__all__ = [
    "Patch",
    "patch_assign",
    "patch_cost",
    "patch_descend",
    "patch_move",
    "patch_new",
    "patch_open",
    "patch_rebuild",
    "patch_relocation",
    "patch_shake",
]

# Gains below this share of the patch's cost may be rounding errors, which could make the descent cycle.
_NOISE = 1e-11
# Gains below this share of the sum of a record's distances to all others may be rounding errors too. Even at cost 0,
# links contain the rounding errors of the distances that were added and subtracted.
_RESIDUE = 1e-14
# Maximum number of rounds over all records in a descent; a few are common.
_ROUNDS = 100


class Patch(NamedTuple):
    """The working arrays of a patch, for up to ``len(records)`` records in up to ``len(size)`` groups."""

    records: Ints  # the record number at each position
    group: Ints  # the group of the record at each position, −1 if it has none
    distance: Floats  # (m, m) squared distances
    link: Floats  # (m, groups): L_ig
    pairs: Floats  # T_g
    size: Ints  # c_g


@kernel
def patch_new(places: int, groups: int) -> Patch:
    """Return an empty patch with room for `places` records and `groups` groups."""
    return Patch(
        np.empty(places, dtype=np.int64),
        np.empty(places, dtype=np.int64),
        np.empty((places, places)),
        np.empty((places, groups)),
        np.empty(groups),
        np.empty(groups, dtype=np.int64),
    )


@kernel
def patch_open(patch: Patch, X: Floats, m: int) -> None:
    """Compute the squared distances between the first m records."""
    d = X.shape[1]
    for a in range(m):
        patch.distance[a, a] = 0.0
        x = X[patch.records[a]]
        for b in range(a):
            y = X[patch.records[b]]
            total = 0.0
            for j in range(d):
                delta = x[j] - y[j]
                total += delta * delta
            patch.distance[a, b] = total
            patch.distance[b, a] = total


@kernel
def patch_assign(patch: Patch, m: int, q: int) -> None:
    """Recompute sizes, links and pair sums from `group`; ignore records without a group."""
    for g in range(q):
        patch.pairs[g] = 0.0
        patch.size[g] = 0
    for a in range(m):
        for g in range(q):
            patch.link[a, g] = 0.0
        for b in range(m):
            if patch.group[b] >= 0:
                patch.link[a, patch.group[b]] += patch.distance[a, b]
        if patch.group[a] >= 0:
            patch.size[patch.group[a]] += 1
            patch.pairs[patch.group[a]] += 0.5 * patch.link[a, patch.group[a]]


@kernel
def patch_cost(patch: Patch, q: int) -> float:
    """Return the SSE of the first q groups."""
    total = 0.0
    for g in range(q):
        if patch.size[g] > 0:
            total += patch.pairs[g] / patch.size[g]
    return total


@kernel
def patch_relocation(patch: Patch, i: int, b: int) -> float:
    """Return the change in cost if record i of the patch moves to group b."""
    a = patch.group[i]
    ca, cb = patch.size[a], patch.size[b]
    reduced = (patch.pairs[a] - patch.link[i, a]) / (ca - 1) if ca > 1 else 0.0
    current = patch.pairs[b] / cb if cb > 0 else 0.0
    change: float = reduced + (patch.pairs[b] + patch.link[i, b]) / (cb + 1) - patch.pairs[a] / ca - current
    return change


@kernel
def patch_move(patch: Patch, m: int, i: int, b: int) -> None:
    """Move record i of the patch to group b, from its current group if it has one."""
    a = patch.group[i]
    if a >= 0:
        patch.pairs[a] -= patch.link[i, a]
        patch.size[a] -= 1
        for x in range(m):
            patch.link[x, a] -= patch.distance[x, i]
    patch.pairs[b] += patch.link[i, b]
    patch.size[b] += 1
    for x in range(m):
        patch.link[x, b] += patch.distance[x, i]
    patch.group[i] = b


@kernel
def patch_descend(  # noqa: C901, PLR0912 - the search spends most time here; splitting the function slows it down
    patch: Patch, m: int, q: int, k: int, largest: int, state: State
) -> None:
    """Apply the best relocation or swap of each record in turn until none reduces the cost or a stop is requested."""
    unchanged = 0
    i = 0
    noise = _NOISE * patch_cost(patch, q)
    for _ in range(_ROUNDS * m):
        if unchanged == m or state[STOP]:
            break
        a = patch.group[i]
        best, into, partner = -noise, -1, -1
        if patch.size[a] > k:
            for b in range(q):
                if b != a and patch.size[b] < largest:
                    change = patch_relocation(patch, i, b)
                    if change < best:
                        best, into, partner = change, b, -1
        ca = 1.0 / patch.size[a]
        home_link = patch.link[i, a]
        for j in range(m):
            b = patch.group[j]
            if b != a:
                distance = patch.distance[i, j]
                change = (patch.link[j, a] - home_link - distance) * ca + (
                    patch.link[i, b] - patch.link[j, b] - distance
                ) / patch.size[b]
                if change < best:
                    best, into, partner = change, b, j
        if into >= 0 and best < -_RESIDUE * _linked(patch, i, q):
            patch_move(patch, m, i, into)
            if partner >= 0:
                patch_move(patch, m, partner, a)
            unchanged = 0
        else:
            unchanged += 1
        i += 1
        if i == m:
            i = 0


@kernel
def _linked(patch: Patch, i: int, q: int) -> float:
    """Return the sum of the squared distances from record i of the patch to all others."""
    total = 0.0
    for g in range(q):
        total += patch.link[i, g]
    return total


@kernel
def patch_shake(patch: Patch, m: int, k: int, largest: int, moves: int, rng: Word) -> None:
    """Make up to `moves` random moves or swaps that keep every group between k and `largest` records."""
    for _ in range(moves):
        i, j = below(rng, m), below(rng, m)
        a, b = patch.group[i], patch.group[j]
        if a == b:
            continue
        patch_move(patch, m, i, b)
        if patch.size[a] < k or patch.size[b] > largest:
            patch_move(patch, m, j, a)


@kernel
def patch_rebuild(patch: Patch, m: int, q: int, k: int, largest: int, rng: Word) -> None:
    """Regroup all records into q new groups.

    Each group starts with a random record and adds the k−1 nearest free records. The remaining records then join the
    groups whose costs increase least.
    """
    for a in range(m):
        patch.group[a] = -1
    for g in range(q):
        patch.pairs[g] = 0.0
        patch.size[g] = 0
        for a in range(m):
            patch.link[a, g] = 0.0
    for g in range(q):
        patch_move(patch, m, _free_place(patch, below(rng, m - g * k)), g)
        for _ in range(k - 1):
            patch_move(patch, m, _nearest_free(patch, m, g), g)
    for a in range(m):
        if patch.group[a] < 0:
            patch_move(patch, m, a, _cheapest_group(patch, a, q, largest))


@kernel
def _free_place(patch: Patch, skip: int) -> int:
    """Return the position of a record without a group, after skipping `skip` such records."""
    i = 0
    while patch.group[i] >= 0 or skip > 0:
        skip -= patch.group[i] < 0
        i += 1
    return i


@kernel
def _nearest_free(patch: Patch, m: int, g: int) -> int:
    """Return the record without a group that has the smallest sum of squared distances to group g."""
    near, reach = -1, np.inf
    for a in range(m):
        if patch.group[a] < 0 and patch.link[a, g] < reach:
            near, reach = a, patch.link[a, g]
    return near


@kernel
def _cheapest_group(patch: Patch, a: int, q: int, largest: int) -> int:
    """Return the group of fewer than `largest` records whose cost increases least if record a joins."""
    into, cheapest = -1, np.inf
    for g in range(q):
        c = patch.size[g]
        if c < largest:
            cost = (patch.pairs[g] + patch.link[a, g]) / (c + 1) - patch.pairs[g] / c
            if cost < cheapest:
                into, cheapest = g, cost
    return into
