"""The last check before anything is released: every group counted again, from the released values alone.

What is counted is what a reader of the release gets: of a file the cells as they were written, text where it is text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.compiling import kernel
from shoal.core.errors import VerificationError
from shoal.core.measures import group_sizes
from shoal.core.types import Floats, Ints

__all__ = [
    "Words",
    "cell_words",
    "check_sizes",
    "count_unique",
    "hash_words",
    "identical_records",
    "number_words",
    "recount",
    "row_hashes",
    "verify",
    "words_of",
]

Words = NDArray[np.uint64]
ABSENT = np.uint64(0xFFF8000000000001)  # of a cell that is null: a NaN that no number becomes
MIX = np.uint64(0x9E3779B97F4A7C15)
FOLD = np.uint64(29)


def verify(values: Sequence[NDArray[Any]] | NDArray[Any], k: int, strata: NDArray[Any] | None = None) -> None:
    """Count the records that share all their values, within their stratum, and refuse any count below k.

    Nothing but the values is believed: no labels, no sizes.

    Parameters
    ----------
    values
        The released columns: a sequence of vectors, or an array ``(n, d)``.
    k
        The least count.
    strata
        The stratum of each record, if any.

    Examples
    --------
    >>> verify(np.array([[1.5], [1.5], [4.0]]), k=2)
    Traceback (most recent call last):
    ...
    shoal.core.errors.VerificationError: 1 of 2 groups of identical records has fewer than k=2 records...
    """
    check_sizes(group_sizes(identical_records(values, strata)), k)


def recount(released: pl.DataFrame, columns: Sequence[str], by: Sequence[str], k: int, *, whole_records: bool) -> None:
    """Count the released records that share their cells in the masked columns and strata; refuse any count below k.

    Parameters
    ----------
    released
        The table as it is released. A missing cell is a value: NaN is another one than null.
    columns, by
        The masked columns and those of the strata.
    k
        The least count.
    whole_records
        Whether records share all masked columns; if not, every column is counted on its own.

    Examples
    --------
    >>> recount(pl.DataFrame({"x": ["NA", ""]}), ["x"], [], k=2, whole_records=True)
    Traceback (most recent call last):
    ...
    shoal.core.errors.VerificationError: 2 of 2 groups of identical records have fewer than k=2 records...
    """
    for names in [list(columns)] if whole_records else [[name] for name in columns]:
        check_sizes(released.group_by(*names, *by).len()["len"].to_numpy(), k)


def row_hashes(table: pl.DataFrame) -> Words:
    """Return a number for each record that is the same for equal records and differs for others."""
    # Categories are numbered by each table on its own.
    hashes: Words = table.with_columns(pl.col(pl.Categorical).cast(pl.String)).hash_rows(seed=0).to_numpy()
    return hashes


def count_unique(hashes: Words) -> int:
    """Count the records that no other equals.

    Examples
    --------
    >>> count_unique(np.array([7, 3, 7], dtype=np.uint64))
    1
    """
    return int((np.unique(hashes, return_counts=True)[1] == 1).sum())


def check_sizes(counts: Ints, k: int) -> None:
    """Refuse any count below k."""
    small = int((counts < k).sum())
    if small:
        raise VerificationError(
            f"{small} of {len(counts)} groups of identical records ha{'s' if small == 1 else 've'} fewer than "
            f"k={k} records; the smallest has {counts.min()}. Nothing was released."
        )


def identical_records(values: Sequence[NDArray[Any]] | NDArray[Any], strata: NDArray[Any] | None = None) -> Ints:
    """Number the records 0, 1, … so that those that share all their values, within their stratum, share the number.

    Examples
    --------
    >>> identical_records(np.array([[1.5], [4.0], [1.5]])).tolist()
    [0, 1, 0]
    """
    if isinstance(values, np.ndarray) and values.dtype == np.float64:
        words = words_of(np.ascontiguousarray(values))
    else:
        columns = values.T if isinstance(values, np.ndarray) else values
        words = np.column_stack([_column_words(np.asarray(column)) for column in columns])
    if strata is not None:
        words = np.column_stack([words, _column_words(np.asarray(strata))])
    labels: Ints = number_words(words)
    return labels


def _column_words(column: NDArray[Any]) -> Words:
    if column.dtype.kind == "f":
        return words_of(column.astype(np.float64))
    if column.dtype.kind not in "iub":
        column = np.unique(column, return_inverse=True)[1]
    return column.astype(np.int64).view(np.uint64)


def words_of(X: Floats) -> Words:
    """Return the bits of all values: equal words for equal values, −0 and 0 too, and one word for all that is NaN."""
    # Adding 0 makes −0 equal 0.
    numbers = X + 0.0
    numbers[np.isnan(numbers)] = np.nan
    return numbers.view(np.uint64)


def cell_words(series: pl.Series) -> Words:
    """Return the bits of a released column, with a word of its own for null."""
    if series.dtype.is_integer():
        words: Words = series.fill_null(0).cast(pl.Int64, wrap_numerical=True).to_numpy().view(np.uint64).copy()
    else:
        words = words_of(series.cast(pl.Float64).fill_null(np.nan).to_numpy())
    words[series.is_null().to_numpy()] = ABSENT
    return words


@kernel
def hash_words(words: Words) -> np.uint64:
    """Return a number that is the same for equal records and differs for most others."""
    key = np.uint64(0)
    for j in range(len(words)):
        key = (key ^ words[j]) * MIX
        key ^= key >> FOLD
    return key


@kernel
def number_words(words: Words) -> Ints:
    """Number equal records alike, in order of first appearance: a hash table of open addresses, compared in full."""
    n, d = words.shape
    room = 16
    while room < 2 * n:
        room *= 2
    slots = np.empty(room, dtype=np.int64)
    for empty in range(room):
        slots[empty] = -1
    first = np.empty(n, dtype=np.int64)
    labels = np.empty(n, dtype=np.int64)
    groups = 0
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
    return labels
