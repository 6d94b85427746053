"""Steps that the fixed-size methods D and C share: grow a group, and assign the leftover records.

M. Laszlo and S. Mukherjee, Minimum spanning tree partitioning algorithm for microaggregation, IEEE Transactions
on Knowledge and Data Engineering 17 (2005), Section 4.2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.core.compiler import kernel
from shoal.core.types import Floats, Ints
from shoal.kernels.distances import squared_distance
from shoal.kernels.pool import Pool, pool_remove
from shoal.kernels.pool_queries import pool_nearest

__all__ = ["GroupBuffers", "gather", "new_group_buffers", "place_leftovers"]


class GroupBuffers(NamedTuple):
    """The members of the current group, and scratch arrays."""

    members: Ints  # (k,)
    total: Floats  # (d,)
    centre: Floats  # (d,)
    near: Floats  # (1,)
    near_ids: Ints  # (1,)


def new_group_buffers(d: int, k: int) -> GroupBuffers:
    """Return buffers for a group of k records with d columns."""
    return GroupBuffers(
        members=np.empty(k, dtype=np.int64),
        total=np.empty(d),
        centre=np.empty(d),
        near=np.empty(1),
        near_ids=np.empty(1, dtype=np.int64),
    )


@kernel(inline=True)
def gather(X: Floats, pool: Pool, buffers: GroupBuffers, seed_record: int, group: int, labels: Ints) -> None:
    """Grow a group of k from one record by adding the record nearest to the group's centroid k−1 times."""
    members, total, centre, near, near_ids = buffers
    d = X.shape[1]
    for j in range(d):
        total[j], centre[j] = 0.0, X[seed_record, j]
    record = seed_record
    for size in range(len(members)):
        # If another group has taken the seed (a duplicate), start from the record nearest to the seed.
        if size > 0 or pool.place[record] < 0:
            pool_nearest(pool, centre, near, near_ids)
            record = near_ids[0]
        labels[record] = group
        members[size] = record
        pool_remove(pool, record)
        for j in range(d):
            total[j] += X[record, j]
            centre[j] = total[j] / (size + 1)


@kernel
def place_leftovers(X: Floats, place: Ints, groups: int, labels: Ints) -> None:
    """Assign each leftover record (`place` ≥ 0), in order, to the group with the nearest current centroid."""
    d = X.shape[1]
    total, centres, sizes = np.zeros((groups, d)), np.empty((groups, d)), np.zeros(groups)
    for i in range(len(X)):
        if place[i] < 0:
            _add(X[i], labels[i], total, sizes)
    for g in range(groups):
        _recentre(g, total, sizes, centres)
    for record in range(len(X)):
        if place[record] < 0:
            continue
        best, reach = 0, np.inf
        for g in range(groups):
            distance = squared_distance(X[record], centres[g])
            if distance < reach:
                best, reach = g, distance
        labels[record] = best
        _add(X[record], best, total, sizes)
        _recentre(best, total, sizes, centres)


@kernel(counted=False)
def _add(record: Floats, group: int, total: Floats, sizes: Floats) -> None:
    sizes[group] += 1
    for j in range(len(record)):
        total[group, j] += record[j]


@kernel(counted=False)
def _recentre(group: int, total: Floats, sizes: Floats, centres: Floats) -> None:
    for j in range(total.shape[1]):
        centres[group, j] = total[group, j] / sizes[group]
