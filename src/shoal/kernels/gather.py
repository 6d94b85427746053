"""What the fixed-size methods D and C share: gathering a group, and placing the records that are left over.

M. Laszlo and S. Mukherjee, Minimum spanning tree partitioning algorithm for microaggregation, IEEE Transactions
on Knowledge and Data Engineering 17 (2005), Section 4.2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.core.compiling import kernel
from shoal.core.types import Floats, Ints
from shoal.kernels.pool import Pool, pool_nearest, pool_remove, squared_distance

__all__ = ["Lot", "gather", "lot_new", "place_leftovers"]


class Lot(NamedTuple):
    """The group that is gathered, and what gathering writes to."""

    members: Ints  # (k,)
    total: Floats  # (d,)
    centre: Floats  # (d,)
    near: Floats  # (1,)
    near_ids: Ints  # (1,)


def lot_new(d: int, k: int) -> Lot:
    """Return room for a group."""
    return Lot(np.empty(k, dtype=np.int64), np.empty(d), np.empty(d), np.empty(1), np.empty(1, dtype=np.int64))


@kernel(inline=True)
def gather(X: Floats, pool: Pool, lot: Lot, seed_record: int, group: int, labels: Ints) -> None:
    """Grow a group from one record, k−1 times by the record nearest to the group's centroid."""
    members, total, centre, near, near_ids = lot
    d = X.shape[1]
    for j in range(d):
        total[j], centre[j] = 0.0, X[seed_record, j]
    record = seed_record
    for size in range(len(members)):
        # Where another group took the seed (duplicates): start from what is left beside it.
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
    """Add each record left in a pool (`place`) to the group whose centroid (before any such addition) is nearest."""
    d = X.shape[1]
    centres = np.zeros((groups, d))
    sizes = np.zeros(groups)
    for i in range(len(X)):
        if place[i] < 0:
            sizes[labels[i]] += 1
            for j in range(d):
                centres[labels[i], j] += X[i, j]
    for g in range(groups):
        for j in range(d):
            centres[g, j] /= sizes[g]
    for record in range(len(X)):
        if place[record] < 0:
            continue
        best, reach = 0, np.inf
        for g in range(groups):
            distance = squared_distance(X[record], centres[g])
            if distance < reach:
                best, reach = g, distance
        labels[record] = best
