"""Merging of each group that breaks a rule into its nearest group, until all groups satisfy the rules.

In a round, every group that breaks a rule finds the group in its cell with the nearest centroid. Pairs are merged in
order of distance, and each group at most once. A round costs one kd-tree search per such group. Another group always
exists, because a cell with a single group keeps the rules or cannot keep them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import starmap

import numpy as np

from shoal.core.compiler import kernel
from shoal.core.measures import canonical_labels, centroids, number_through
from shoal.core.types import Bools, Floats, Ints
from shoal.kernels.pool import Pool, pool_new
from shoal.kernels.pool_queries import pool_nearest

__all__ = ["merge_groups"]


def merge_groups(
    Z: Floats, labels: Ints, cells: Sequence[tuple[Ints, Ints]], allowed: Callable[[Ints, Ints], Bools]
) -> Ints:
    """Return the group of each record after merging.

    Z is standardised. `cells` lists, for each cell, its records and their non-missing columns; groups never cross
    cells. ``allowed(records, labels)`` returns a mask of the groups that keep the rules.

    Examples
    --------
    >>> Z, units = np.array([[0.0], [0.1], [1.0], [1.1], [9.0], [9.1]]), np.array([1, 1, 2, 3, 4, 5])
    >>> def two_units(rows, labels):
    ...     return np.array([len(set(units[rows][labels == g])) >= 2 for g in range(labels.max() + 1)])
    >>> merge_groups(Z, np.array([0, 0, 1, 1, 2, 2]), [(np.arange(6), np.array([0]))], two_units).tolist()
    [0, 0, 0, 0, 1, 1]
    """

    def merged(rows: Ints, present: Ints) -> Ints:
        groups = canonical_labels(labels[rows])
        records = np.ascontiguousarray(Z[np.ix_(rows, present)])
        while groups.max() and not (fine := allowed(rows, groups)).all():
            groups = _merge_pairs(records, groups, fine)
        return groups

    return canonical_labels(number_through(len(Z), (rows for rows, _ in cells), starmap(merged, cells)))


def _merge_pairs(records: Floats, labels: Ints, fine: Bools) -> Ints:
    """Merge groups that break a rule with their nearest groups, nearest pairs first and each group at most once."""
    short = np.flatnonzero(~fine)
    group = np.arange(len(fine))
    if records.shape[1] == 0:
        group[short[0]] = 1 if short[0] == 0 else 0
        return canonical_labels(group[labels])
    centre = centroids(records, labels)
    distance, nearest = np.empty(len(short)), np.empty(len(short), dtype=np.int64)
    _nearest_groups(pool_new(centre), centre, short, np.empty(2), np.empty(2, dtype=np.int64), distance, nearest)
    merged = np.zeros(len(fine), dtype=np.bool_)
    for place in np.argsort(distance, kind="stable"):
        one, two = short[place], nearest[place]
        if not merged[one] and not merged[two]:
            merged[[one, two]] = True
            group[one] = two
    return canonical_labels(group[labels])


@kernel(counted=False)
def _nearest_groups(
    pool: Pool, centre: Floats, short: Ints, near: Floats, near_ids: Ints, distance: Floats, nearest: Ints
) -> None:
    for i in range(len(short)):
        pool_nearest(pool, centre[short[i]], near, near_ids)
        second = 1 if near_ids[0] == short[i] else 0
        distance[i] = near[second]
        nearest[i] = near_ids[second]
