"""Scales on which numeric columns are compared: unchanged, by logarithm, or by rank.

A scale determines which records are similar; released values and measures stay in the units of the column. A scale is
an increasing function that is the same for all parts of a table:

- log: asinh(x / u), where u is the 1 % quantile of the non-zero absolute values. Beyond u, this is essentially the
  logarithm, with the sign of x. Zeros and negative numbers are ordinary values, and the unit of measurement has no
  effect.
- rank: the share of records below x, plus half the share of records equal to x.

Both scales need the sorted values of all records. `ValueCounts` counts values in at most `MOST` intervals, which do not
depend on the division into parts. Values share an interval if their floats agree in the leading bits; the number of
these bits is the largest that `MOST` allows. Up to `MOST` different values, the scales are exact; with more values,
ranks are interpolated within intervals. Counting takes O(n log n) time per part.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from shoal.core.checks import FARTHEST
from shoal.core.types import Floats, Ints
from shoal.kinds.kind import Coding

__all__ = ["CODINGS", "ComparisonScale", "LogCoding", "RankCoding", "ValueCounts", "count_values", "merge_counts"]

MOST = 2**16  # intervals
LOW = 0.01  # quantile of the absolute values above which the scale is logarithmic


class ValueCounts(NamedTuple):
    """The number of records in each interval, whose values are floats that differ only in their last bits."""

    bits: int  # number of last bits in which floats of an interval may differ
    low: Floats  # the least value in each interval, ascending
    high: Floats  # the greatest value in each interval
    counts: Ints


def count_values(x: Floats) -> ValueCounts:
    """Count the values in a part; missing values are ignored.

    Examples
    --------
    >>> count_values(np.array([3.0, np.nan, 0.0, 3.0]))
    ValueCounts(bits=0, low=array([0., 3.]), high=array([0., 3.]), counts=array([1, 2]))
    """
    values, counts = np.unique(x[~np.isnan(x)] + 0.0, return_counts=True)  # turns -0.0 into 0.0
    return _coarsened(0, values, values, counts.astype(np.int64))


def merge_counts(parts: Sequence[ValueCounts]) -> ValueCounts:
    """Return the counts of the whole table from the counts of its parts, however the table is divided."""
    low, high, counts = (np.concatenate([part[field] for part in parts]) for field in (1, 2, 3))
    order = np.argsort(low, kind="stable")
    # Intervals of the whole table are never finer than those of a part, so no interval has to be divided.
    return _coarsened(max(part.bits for part in parts), low[order], high[order], counts[order])


def _coarsened(bits: int, low: Floats, high: Floats, counts: Ints) -> ValueCounts:
    """Merge intervals until at most `MOST` remain, ignoring as few last bits as possible but at least `bits`."""
    keys = low.view(np.int64)
    keys = np.where(keys < 0, keys ^ np.int64(2**63 - 1), keys)  # in the order of the floats

    def begins(bits: int) -> Ints:
        leading = keys >> bits
        return np.flatnonzero(np.r_[len(keys) > 0, leading[1:] != leading[:-1]])

    bits += bisect_left(range(bits, 63), True, key=lambda bits: len(begins(bits)) <= MOST)
    starts = begins(bits)
    if len(starts) == len(low):
        return ValueCounts(bits, low, high, counts)
    return ValueCounts(bits, low[starts], np.maximum.reduceat(high, starts), np.add.reduceat(counts, starts))


@dataclass(frozen=True)
class LogCoding(Coding):
    """The coding of numbers that are compared by logarithm; numbers below `unit` are compared almost linearly."""

    rescales: ClassVar[bool] = True
    unit: float

    @classmethod
    def of(cls, counts: ValueCounts) -> LogCoding:
        """Return the coding for the counts of non-zero absolute values."""
        below = np.cumsum(counts.counts)
        unit = counts.low[np.searchsorted(below, LOW * below[-1])] if len(below) else 1.0
        return cls(max(float(unit), 1 / FARTHEST))

    def rescale(self, x: Floats) -> Floats:
        """Return the logarithms of numbers, with the sign of each number; 0 stays 0."""
        logarithms: Floats = np.arcsinh(x / self.unit)
        return logarithms


@dataclass(frozen=True)
class RankCoding(Coding):
    """The coding of numbers that are compared by rank, which is interpolated between points."""

    rescales: ClassVar[bool] = True
    points: Floats
    shares: Floats

    @classmethod
    def of(cls, counts: ValueCounts) -> RankCoding:
        """Return the coding for counts of values; each value has the middle rank of its records."""
        records, single = counts.counts, counts.low == counts.high
        total = np.cumsum(records)
        first = np.where(single, total - records / 2, total - records + 0.5)
        points = np.concatenate([counts.low, counts.high[~single]])
        ranks = np.concatenate([first, (total - 0.5)[~single]])
        order = np.argsort(points)
        return cls(points[order], ranks[order] / total[-1]) if len(points) else cls(np.zeros(1), np.zeros(1))

    def rescale(self, x: Floats) -> Floats:
        """Return the ranks of numbers, as shares of the records."""
        ranks: Floats = np.where(np.isnan(x), np.nan, np.interp(x, self.points, self.shares))
        return ranks


def _count_sizes(x: Floats) -> ValueCounts:
    """Count the absolute values that are not zero."""
    return count_values(np.abs(x[x != 0]))


class ComparisonScale(NamedTuple):
    """A comparison scale, with the function that observes a part and the function that returns the coding."""

    observe: Callable[[Floats], ValueCounts]
    coding: Callable[[ValueCounts], Coding]


CODINGS = {  # keyed by the words of `kind_registry.SCALES`
    "log": ComparisonScale(_count_sizes, LogCoding.of),
    "rank": ComparisonScale(count_values, RankCoding.of),
}
