"""Distances between records, and sorted lists of the nearest records so far.

Every distance in this package adds its terms in the order of the columns. Equal distances are therefore identical to
the last bit wherever they are computed. Ties go to the lowest record number.
"""

from __future__ import annotations

import numpy as np

from shoal.core.compiler import kernel
from shoal.core.types import Floats, Ints

__all__ = ["NO_RECORD", "insert_nearest", "manhattan_distances", "squared_distance", "squared_distances"]

NO_RECORD = np.iinfo(np.int64).max  # higher than any record number, so every record wins a tie against it


@kernel(counted=False)
def squared_distance(a: Floats, b: Floats) -> float:
    """Return the squared distance between two records."""
    distance = 0.0
    for j in range(len(a)):
        delta = a[j] - b[j]
        distance += delta * delta
    return distance


@kernel(counted=False)
def squared_distances(columns: Floats, start: int, size: int, point: Floats, out: Floats) -> None:
    """Write the squared distances from a point to consecutive records stored by columns."""
    for i in range(size):
        out[i] = 0.0
    for j in range(len(point)):
        p = point[j]
        column = columns[j, start : start + size]
        for i in range(size):
            delta = column[i] - p
            out[i] += delta * delta


@kernel(counted=False)
def manhattan_distances(columns: Floats, start: int, size: int, point: Floats, out: Floats) -> None:
    """Write the Manhattan distances from a point to consecutive records stored by columns."""
    for i in range(size):
        out[i] = 0.0
    for j in range(len(point)):
        p = point[j]
        column = columns[j, start : start + size]
        for i in range(size):
            out[i] += abs(column[i] - p)


@kernel(counted=False, inner=True)
def insert_nearest(distance: float, record: int, near: Floats, near_ids: Ints) -> None:
    """Insert a record into the ascending list of nearest records and drop the last record."""
    t = len(near) - 1
    while t > 0 and (near[t - 1] > distance or (near[t - 1] == distance and near_ids[t - 1] > record)):
        near[t] = near[t - 1]
        near_ids[t] = near_ids[t - 1]
        t -= 1
    near[t] = distance
    near_ids[t] = record
