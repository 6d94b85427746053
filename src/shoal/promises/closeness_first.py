"""Closeness first: groups with one record from every run of the sorted sensitive column.

Algorithm 3 of J. Soria-Comas, J. Domingo-Ferrer, D. Sánchez and S. Martínez, t-closeness through microaggregation:
strict privacy with enhanced utility preservation, IEEE TKDE 27(11), 2015. The records are sorted by the sensitive
column and cut into k′ runs. As in MDAV, a group starts from the record farthest from the centroid, and the next group
from the record farthest from that start. Each group takes the nearest record of every run. k′ is chosen so that groups
are within t if no value repeats. With ties they may exceed t, so their distances must be measured. O(d n²/k′) time,
O(n d) memory.
"""

from __future__ import annotations

import numpy as np

from shoal.core.compiler import kernel
from shoal.core.progress import STOP
from shoal.core.types import Floats, Ints, State
from shoal.kernels.distances import squared_distance
from shoal.promises.closeness import least_size

__all__ = ["closeness_first", "next_start"]


def closeness_first(records: Floats, codes: Ints, k: int, t: float, *, state: State) -> Ints:
    """Return the group of each record.

    `records` are standardised; `codes` are the ranks of the sensitive values; `t` is the largest distance of a group
    from the table.

    Examples
    --------
    >>> from shoal.core.progress import fresh_state
    >>> records = np.array([[0.0], [0.1], [9.0], [9.1]])
    >>> closeness_first(records, np.array([0, 1, 2, 3]), 2, 0.4, state=fresh_state()).tolist()
    [0, 1, 0, 1]
    """
    n = len(records)
    runs = min(least_size(n, k, t), n)
    sizes = np.full(runs, n // runs)
    # The middle runs take the remaining records, which increase the distance least there.
    middle = [runs // 2] if runs % 2 else [runs // 2 - 1, runs // 2]
    for extra in range(n % runs):
        sizes[middle[extra % len(middle)]] += 1
    run = np.empty(n, dtype=np.int64)
    run[np.argsort(codes, kind="stable")] = np.repeat(np.arange(runs), sizes)
    return _deal(records, run, sizes, state)


@kernel
def _farthest(records: Floats, remaining: Ints, point: Floats) -> int:
    """Return the remaining record that is farthest from a point."""
    far, reach = -1, -1.0
    for i in remaining:
        distance = squared_distance(records[i], point)
        if distance > reach:
            far, reach = i, distance
    return far


@kernel
def next_start(records: Floats, remaining: Ints, group: int, start: Floats) -> None:
    """Write the start of a group, as in MDAV: the record farthest from the centroid, then from that start.

    On entry, `start` holds the start of the previous group.
    """
    if group % 2 == 0:
        for j in range(records.shape[1]):
            start[j] = 0.0
            for i in remaining:
                start[j] += records[i, j]
            start[j] /= len(remaining)
    start[:] = records[_farthest(records, remaining, start)]


@kernel
def _nearest_of_runs(records: Floats, remaining: Ints, run: Ints, point: Floats, runs: int) -> Ints:
    nearest, distance = np.full(runs, -1), np.full(runs, np.inf)
    for i in remaining:
        separation = squared_distance(records[i], point)
        if separation < distance[run[i]]:
            nearest[run[i]], distance[run[i]] = i, separation
    return nearest


@kernel
def _deal(records: Floats, run: Ints, sizes: Ints, state: State) -> Ints:
    n, d = records.shape
    groups, runs = n // len(sizes), len(sizes)
    labels, remaining = np.full(n, groups - 1), np.arange(n)  # on STOP, the last group takes the remaining records
    free = np.ones(n, dtype=np.bool_)
    centre = np.empty(d)
    for group in range(groups - 1):
        if state[STOP]:
            break
        next_start(records, remaining, group, centre)
        # The second round takes one more record if a run has more records than there are remaining groups.
        for extra in range(2):
            nearest = _nearest_of_runs(records, remaining, run, centre, runs)
            for r in range(runs):
                if not extra or sizes[r] > groups - group - 1:
                    labels[nearest[r]], free[nearest[r]] = group, False
                    sizes[r] -= 1
                    if extra:
                        break
            remaining = remaining[free[remaining]]
    return labels
