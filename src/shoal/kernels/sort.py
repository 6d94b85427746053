"""A radix argsort of a column that orders equal values by record number.

The bits of a float64, read as an integer after mapping the sign, sort like the float. Three counting passes sort words
that contain the record number and the 32 leading bits in which the column's values differ; insertion sorts the
remaining ties. This takes O(n) time and two words per record, and about half the time of ``np.argsort`` on a long
column. If more than a few different values share their 32 bits, numpy's stable sort is used instead.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.core.compiler import kernel
from shoal.core.types import Floats, Ints

__all__ = ["sort_values"]

Words = NDArray[np.uint64]
DIGITS, SIZE = 3, 2048  # number of counting passes, and of values of an 11-bit digit
DIGIT = np.uint64(SIZE - 1)
SIGN = np.uint64(1 << 63)
LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
ONE = np.uint64(1)
FEW = 32  # runs up to this length are sorted by insertion


def sort_values(column: Floats) -> tuple[Floats, Ints]:
    """Return the values in ascending order and their records, equal values by record number.

    Examples
    --------
    >>> sort_values(np.array([2.0, 1.0, 2.0, -3.0]))
    (array([-3.,  1.,  2.,  2.]), array([3, 1, 0, 2]))
    """
    column = np.ascontiguousarray(column)
    values, order = np.empty_like(column), np.empty(len(column), dtype=np.int64)
    # Allocate with numpy, which requests huge pages from the system; numba does not.
    words = np.empty((2, len(column)), dtype=np.uint64)
    if len(column) > LOW or not _radix_sort(column, column.view(np.uint64), words[0], words[1], values, order):
        order = np.argsort(column, kind="stable")
        values = column[order]
    return values, order


@kernel
def _key(bits: np.uint64) -> np.uint64:
    """Convert the bits of a float to an integer of the same order; −0 becomes 0."""
    if bits & SIGN:
        return SIGN if bits == SIGN else ~bits
    return bits | SIGN


@kernel
def _radix_sort(column: Floats, bits: Words, words: Words, spare: Words, values: Floats, order: Ints) -> bool:
    n = len(bits)
    if n == 0:
        return True
    low = high = _key(bits[0])
    for i in range(n):
        key = _key(bits[i])
        low, high = min(low, key), max(high, key)
    shift = np.uint64(0)
    while (high - low) >> shift > LOW:
        shift += ONE
    counts = np.zeros((DIGITS, SIZE), dtype=np.int64)
    for i in range(n):
        word = ((_key(bits[i]) - low) >> shift) << HALF | np.uint64(i)
        words[i] = word
        for digit in range(DIGITS):
            counts[digit, (word >> np.uint64(32 + 11 * digit)) & DIGIT] += 1
    for digit in range(DIGITS):
        if _starts(counts[digit], n):
            _scatter(words, spare, counts[digit], np.uint64(32 + 11 * digit))
            words, spare = spare, words
    for i in range(n):
        order[i] = np.int64(words[i] & LOW)
        values[i] = column[order[i]]
    return shift == 0 or _settle(words, values, order)


@kernel
def _starts(counts: Ints, n: int) -> bool:
    """Convert counts to start positions; return False if all records share a digit, so the pass can be skipped."""
    total = 0
    for value in range(SIZE):
        count = counts[value]
        if count == n:
            return False
        counts[value] = total
        total += count
    return True


@kernel
def _scatter(words: Words, target: Words, places: Ints, shift: np.uint64) -> None:
    for i in range(len(words)):
        digit = (words[i] >> shift) & DIGIT
        target[places[digit]] = words[i]
        places[digit] += 1


@kernel
def _settle(words: Words, values: Floats, order: Ints) -> bool:
    """Sort the runs with equal leading bits; return False if a long run has different values."""
    n = len(words)
    start = 0
    for stop in range(1, n + 1):
        if stop < n and words[stop] >> HALF == words[start] >> HALF:
            if stop - start >= FEW and values[stop] != values[start]:
                return False
            continue
        for i in range(start + 1, stop):
            value, record, t = values[i], order[i], i
            while t > start and values[t - 1] > value:
                values[t], order[t] = values[t - 1], order[t - 1]
                t -= 1
            values[t], order[t] = value, record
        start = stop
    return True
