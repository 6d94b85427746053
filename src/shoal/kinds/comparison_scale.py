"""Scales on which columns of numbers are compared: as they are, by their logarithm, or by their rank.

A scale decides which records are similar; what is released and measured stays in the units of the column. It is an
increasing function that all parts of a table share:

- log: asinh(x / u), where u is the 1 % quantile of the absolute values that are not zero. Beyond u this is the
  logarithm, with the sign of x. Zeros and negative numbers are ordinary values, and the unit of measurement changes
  nothing.
- rank: the share of records below x, and half of those equal to it.

Both need the values of all records in order. `ValueCounts` counts them in at most `MOST` intervals, the same for any
division into parts: values fall together if their floats agree in the leading bits, as many as `MOST` allows. Up to
`MOST` different values all is exact; beyond, ranks are interpolated within intervals. Cost: O(n log n) time in a part.
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
LOW = 0.01  # the quantile of absolute values from which on logarithms are taken


class ValueCounts(NamedTuple):
    """The number of records in intervals of values: floats that agree but for their last bits."""

    bits: int  # that floats of an interval may differ in
    low: Floats  # the least value in each interval, ascending
    high: Floats  # the greatest
    counts: Ints


def count_values(x: Floats) -> ValueCounts:
    """Count the values of a part; missing ones do not count.

    Examples
    --------
    >>> count_values(np.array([3.0, np.nan, 0.0, 3.0]))
    ValueCounts(bits=0, low=array([0., 3.]), high=array([0., 3.]), counts=array([1, 2]))
    """
    values, counts = np.unique(x[~np.isnan(x)] + 0.0, return_counts=True)  # one zero
    return _coarsened(0, values, values, counts.astype(np.int64))


def merge_counts(parts: Sequence[ValueCounts]) -> ValueCounts:
    """Return the counts of all parts together: those of the whole table, in whatever parts it came."""
    low, high, counts = (np.concatenate([part[field] for part in parts]) for field in (1, 2, 3))
    order = np.argsort(low, kind="stable")
    # The whole table has no fewer intervals than a part, and so no finer ones: none has to be divided.
    return _coarsened(max(part.bits for part in parts), low[order], high[order], counts[order])


def _coarsened(bits: int, low: Floats, high: Floats, counts: Ints) -> ValueCounts:
    """Return the intervals of the fewest bits, at least `bits`, that are no more than `MOST`."""
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
    """Numbers that are compared by their logarithm; those below a unit nearly as they are."""

    rescales: ClassVar[bool] = True
    unit: float

    @classmethod
    def of(cls, counts: ValueCounts) -> LogCoding:
        """Return the coding of absolute values that are not zero."""
        below = np.cumsum(counts.counts)
        unit = counts.low[np.searchsorted(below, LOW * below[-1])] if len(below) else 1.0
        return cls(max(float(unit), 1 / FARTHEST))

    def rescale(self, x: Floats) -> Floats:
        """Return logarithms, with the sign of the number; 0 of 0."""
        logarithms: Floats = np.arcsinh(x / self.unit)
        return logarithms


@dataclass(frozen=True)
class RankCoding(Coding):
    """Numbers that are compared by their rank: the share of records below, interpolated between the points."""

    rescales: ClassVar[bool] = True
    points: Floats
    shares: Floats

    @classmethod
    def of(cls, counts: ValueCounts) -> RankCoding:
        """Return the coding of values: each has the middle of the ranks of its records."""
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
    """A scale: what is observed in each part, and the coding that follows from all of them."""

    observe: Callable[[Floats], ValueCounts]
    coding: Callable[[ValueCounts], Coding]


CODINGS = {  # by the words of `kind_registry.SCALES`
    "log": ComparisonScale(_count_sizes, LogCoding.of),
    "rank": ComparisonScale(count_values, RankCoding.of),
}
