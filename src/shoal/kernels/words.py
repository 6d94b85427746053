"""Records as 64-bit words, equal for equal values, that are hashed, numbered and compared in full. O(n d)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.core.compiler import kernel
from shoal.core.types import Floats, Ints

__all__ = ["ABSENT", "MIX", "Words", "bucket_of_words", "hash_words", "number_bits", "number_words", "words_of"]

Words = NDArray[np.uint64]
ABSENT = np.uint64(0xFFF8000000000001)  # for null cells: a NaN that no number converts to
MIX = np.uint64(0x9E3779B97F4A7C15)
FOLD = np.uint64(29)
HIGH = np.uint64(32)  # hash tables use the lower half of a hash


def words_of(X: Floats) -> Words:
    """Return the bits of all values, identical for equal values (including −0 and 0) and for all NaNs."""
    # Adding 0 makes −0 equal to 0.
    numbers = X + 0.0
    numbers[np.isnan(numbers)] = np.nan
    return numbers.view(np.uint64)


def number_bits(numbers: NDArray[Any]) -> Words:
    """Return the bits of a column: integers unchanged, floats as in `words_of`."""
    if numbers.dtype.kind == "f":
        return words_of(numbers.astype(np.float64, copy=False))
    return numbers.astype(np.int64, copy=False).view(np.uint64)


@kernel(counted=False)
def hash_words(words: Words) -> np.uint64:
    """Return a hash that is equal for equal records and different for most others."""
    key = np.uint64(0)
    for j in range(len(words)):
        key = (key ^ words[j]) * MIX
        key ^= key >> FOLD
    return key


def number_words(words: Words) -> Ints:
    """Number the records in order of first appearance; equal records share a number.

    Examples
    --------
    >>> number_words(words_of(np.array([[0.5], [2.0], [0.5]]))).tolist()
    [0, 1, 0]
    """
    n = len(words)
    slots = np.full(1 << max(4, (2 * n - 1).bit_length()), -1)
    first, labels = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    _number_words(words, slots, first, labels)
    return labels


@kernel(counted=False)
def _number_words(words: Words, slots: Ints, first: Ints, labels: Ints) -> None:
    """Number records by a hash table with open addressing, whose size is a power of two; compare records in full."""
    n, d = words.shape
    room, groups = len(slots), 0
    for i in range(n):
        slot = np.int64(hash_words(words[i]) & np.uint64(room - 1))
        while True:
            label = slots[slot]
            if label < 0:
                slots[slot] = label = groups
                first[groups] = i
                groups += 1
                break
            same = True
            for j in range(d):
                if words[first[label], j] != words[i, j]:
                    same = False
                    break
            if same:
                break
            slot = (slot + 1) & (room - 1)
        labels[i] = label


def bucket_of_words(words: Words, targets: int) -> Ints:
    """Assign equal records to the same bucket; the choice of bucket is otherwise arbitrary.

    Examples
    --------
    >>> bucket_of_words(words_of(np.array([[0.5], [2.0]])), 1).tolist()
    [0, 0]
    """
    buckets = np.zeros(len(words), dtype=np.int64)
    if targets > 1:
        _bucket_of_words(words, targets, buckets)
    return buckets


@kernel(counted=False)
def _bucket_of_words(words: Words, targets: int, buckets: Ints) -> None:
    for i in range(len(words)):
        buckets[i] = np.int64(hash_words(words[i]) >> HIGH) % targets
