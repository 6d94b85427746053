"""The rule of k units: each group contains records of at least k different persons, households or firms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.core.types import Ints
from shoal.kernels.words import MIX, Words

__all__ = ["COUNTERS", "count_units", "fingerprints", "least_units", "record_counters", "units_in_cells"]

SHIFTS = np.array([31, 29, 32], dtype=np.uint64)
COUNTERS = 1 << 20  # number of counters; limits the memory for counting the records per unit


def count_units(labels: Ints, units: Words) -> Ints:
    """Return the number of different units in each group, in O(n log n).

    Labels are 0, 1, …; `units` contains one number per record, equal for records of the same unit.

    Examples
    --------
    >>> count_units(np.array([0, 0, 0, 1]), np.array([7, 7, 8, 8], dtype=np.uint64)).tolist()
    [2, 1]
    """
    order = np.lexsort((units, labels))
    group, unit = labels[order], units[order]
    first = np.ones(len(group), dtype=np.bool_)
    first[1:] = (group[1:] != group[:-1]) | (unit[1:] != unit[:-1])
    return np.bincount(group[first])


def least_units(labels: Ints, units: Words, k: int) -> list[Words]:
    """Return the k smallest unit hashes of each group, or all hashes if the group has fewer units.

    The k smallest hashes of a table are among the k smallest hashes of its parts, so a table can be counted in parts.

    Examples
    --------
    >>> [words.tolist() for words in least_units(np.array([0, 0, 1]), np.array([9, 7, 8], dtype=np.uint64), 1)]
    [[7], [8]]
    """
    order = np.lexsort((units, labels))
    group, unit = labels[order], units[order]
    borders = np.flatnonzero(np.diff(group)) + 1
    return [np.unique(members)[:k] for members in np.split(unit, borders)] if len(group) else []


def units_in_cells(part_units: Sequence[Sequence[Words]], roots: Sequence[Ints], cells: int, k: int) -> list[Words]:
    """Return the k smallest unit hashes of each cell (all if fewer), combined from `least_units` of all parts."""
    together: list[Words] = [np.empty(0, dtype=np.uint64)] * cells
    for part, numbers in zip(part_units, roots, strict=True):
        for hashes, cell in zip(part, numbers.tolist(), strict=True):
            together[cell] = np.unique(np.concatenate([together[cell], hashes]))[:k]
    return together


def fingerprints(units: Words, records: Words) -> Words:
    """Return one fingerprint per unit, equal for units with the same records in any order.

    `records` contains one hash per record, equal for identical records. The hashes are mixed before they are added up
    per unit, so that different sets of records have different sums (up to collisions).

    Examples
    --------
    >>> words = fingerprints(np.array([7, 8, 7, 8, 9], dtype=np.uint64), np.array([1, 2, 2, 1, 3], dtype=np.uint64))
    >>> len(words), len(np.unique(words))
    (3, 2)
    """
    mixed = records.copy()
    for shift in SHIFTS:
        mixed ^= mixed >> shift
        mixed *= MIX
    different, unit = np.unique(units, return_inverse=True)
    sums = np.zeros(len(different), dtype=np.uint64)
    np.add.at(sums, unit, mixed)
    return sums


def record_counters(units: Words) -> Ints:
    """Count the records per unit in a fixed number of counters; no unit has more records than the largest count.

    The counters of parts can be added, even if the parts share units.

    Examples
    --------
    >>> int(record_counters(np.array([7, 7, 8], dtype=np.uint64)).max())
    2
    """
    return np.bincount((units % np.uint64(COUNTERS)).astype(np.int64), minlength=COUNTERS)
