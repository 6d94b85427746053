"""The last check before anything is released: every group counted again, from the released values alone.

What is counted is what a reader of the release gets: of a file the cells as they were written, text where it is text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.core.errors import VerificationError
from shoal.core.measures import group_sizes
from shoal.core.messages import agreeing, count
from shoal.core.types import Ints
from shoal.kernels.words import Words, number_bits, number_words, words_of

__all__ = ["check_sizes", "count_unique", "identical_records", "row_hashes", "verify"]


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


def check_sizes(counts: Ints, k: int, what: str = "records") -> None:
    """Refuse any count below k."""
    small = int((counts < k).sum())
    if small:
        raise VerificationError(
            f"{small} of {count(len(counts), 'group')} of identical records {agreeing(small, 'has', 'have')} fewer "
            f"than k={k} {what}; the smallest has {counts.min()}. Nothing was released."
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
    return number_bits(column if column.dtype.kind in "fiub" else np.unique(column, return_inverse=True)[1])
