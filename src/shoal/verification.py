"""The last check before anything is released: every group counted again, from the released values alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.errors import VerificationError
from shoal.types import Ints

__all__ = ["identical_records", "verify"]

Words = NDArray[np.uint64]


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
    shoal.errors.VerificationError: 1 of 2 groups of identical records has fewer than k=2 records...
    """
    order, starts = _runs(_columns(values, strata))
    counts = np.diff(np.append(starts, len(order)))
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
    order, starts = _runs(_columns(values, strata))
    labels = np.empty(len(order), dtype=np.int64)
    if len(order):
        rank = np.empty(len(starts), dtype=np.int64)
        rank[np.argsort(np.minimum.reduceat(order, starts))] = np.arange(len(starts))
        labels[order] = np.repeat(rank, np.diff(np.append(starts, len(order))))
    return labels


def _columns(values: Sequence[NDArray[Any]] | NDArray[Any], strata: NDArray[Any] | None) -> list[Words]:
    columns = list(values.T) if isinstance(values, np.ndarray) else list(values)
    return [_words(column) for column in (columns if strata is None else [*columns, strata])]


def _words(column: NDArray[Any]) -> Words:
    """Return a word for every value, the same for equal values only; missing values are equal."""
    if column.dtype.kind == "f":
        # Adding 0 turns −0 into 0.
        numbers = column.astype(np.float64) + 0.0
        numbers[np.isnan(numbers)] = np.nan
        return numbers.view(np.uint64)
    if column.dtype.kind in "iub":
        return column.astype(np.int64 if column.dtype.kind != "u" else np.uint64).view(np.uint64)
    import polars as pl

    return pl.Series(column).rank("dense").fill_null(0).to_numpy().astype(np.uint64)


def _runs(columns: list[Words]) -> tuple[Ints, Ints]:
    """Return the records with equal ones side by side, and where each run of equal ones starts.

    Records are sorted by a code of all their words, and neighbours compared word by word. Different records with one
    code would be told apart, though not always be found equal to the others of their kind: then words are sorted.
    """
    codes = columns[0]
    if len(columns) > 1:
        codes = np.zeros(len(columns[0]), dtype=np.uint64)
        for column in columns:
            codes ^= column
            codes *= np.uint64(0x9E3779B97F4A7C15)
            codes ^= codes >> np.uint64(29)
    order = np.argsort(codes)
    codes = codes[order]
    new = np.ones(len(order), dtype=np.bool_)
    np.not_equal(codes[1:], codes[:-1], out=new[1:])
    if len(columns) > 1:
        different = np.zeros(max(len(order) - 1, 0), dtype=np.bool_)
        for column in columns:
            words = column[order]
            different |= words[1:] != words[:-1]
        if (different & ~new[1:]).any():
            order = np.lexsort(columns)
            new[1:] = False
            for column in columns:
                new[1:] |= np.diff(column[order]) != 0
    return order, np.flatnonzero(new)
