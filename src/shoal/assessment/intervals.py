"""Interval disclosure: how often originals lie close around released values, cell by cell and for whole records.

J. M. Mateo-Sanz, F. Sebé and J. Domingo-Ferrer, Outlier protection in continuous microdata masking (PSD 2004), build
the intervals by standard deviation (SDID) or by rank. O(n) a column once it is sorted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from shoal.assessment.statistics import RankedColumn, order_columns, spread
from shoal.core.types import Bools

if TYPE_CHECKING:
    from shoal.assessment.measure_registry import TablePair

__all__ = ["WIDTHS", "Intervals", "RecordIntervals", "intervals", "measure", "record_intervals"]

WIDTHS = (1, 5, 10)


@dataclass(frozen=True)
class Intervals:
    """Interval disclosure: how often the original lies close around the released value.

    Parameters
    ----------
    widths
        Half-widths in percent: of the standard deviation, and of the number of records.
    sd
        For each width, the share of values within so many percent of a standard deviation of the released value.
    rank
        For each width, the share of values within so many percent of the records above and below it in rank.
    """

    widths: tuple[int, ...]
    sd: tuple[float, ...]
    rank: tuple[float, ...]

    name: ClassVar[str] = "interval disclosure"
    means: ClassVar[str] = (
        "Someone who takes a released value for the true one, give or take this much, is right this often."
    )
    limits: ClassVar[str] = (
        "It does not say whose value it is, and they cannot tell for which records they are right. A useful release "
        "has high figures here: they measure closeness, not identity."
    )

    @property
    def figure(self) -> str:
        """The result in words."""
        return f"by standard deviation {_listed(self.widths, self.sd)}; by rank {_listed(self.widths, self.rank)}"


@dataclass(frozen=True)
class RecordIntervals:
    """Interval disclosure of whole records: how often all originals of a record lie close around its released values.

    Parameters
    ----------
    widths
        Half-widths in percent: of the standard deviation of the released column, and of the number of records.
    sd
        For each width, the share of records with all values within so many percent of a standard deviation.
    rank
        For each width, the share of records with all values within so many percent of the records in rank.
    nearly
        As `sd`, of records with at most one value outside, which is what ``dRisk`` of sdcMicro counts.
    """

    widths: tuple[int, ...]
    sd: tuple[float, ...]
    rank: tuple[float, ...]
    nearly: tuple[float, ...]

    name: ClassVar[str] = "interval disclosure of records"
    means: ClassVar[str] = (
        "Someone who takes all released numbers of a record for the true ones, give or take this much, is right in "
        "all of them, or in all but one, for this share of the records."
    )
    limits: ClassVar[str] = (
        "It does not say whose record it is, and they cannot tell for which records they are right: it measures "
        "closeness, not identity."
    )

    @property
    def figure(self) -> str:
        """The result in words."""
        return (
            f"by standard deviation {_listed(self.widths, self.sd)} (all but one value: "
            f"{_listed(self.widths, self.nearly)}); by rank {_listed(self.widths, self.rank)}"
        )


def intervals(columns: Sequence[RankedColumn]) -> Intervals:
    """Count the originals that lie close around their released value, by standard deviation and by rank.

    Examples
    --------
    >>> x = np.array([0.0, 2.0])
    >>> intervals([RankedColumn(x, x)]).sd
    (1.0, 1.0, 1.0)
    """
    sd, rank = np.zeros(len(WIDTHS)), np.zeros(len(WIDTHS))
    for column in columns:
        unit = spread(column.x) if len(column.x) else 0.0
        sd += [inside.sum() for inside in _near(column, unit)]
        rank += [inside.sum() for inside in _near_in_rank(column)]
    cells = max(1, sum(len(column.x) for column in columns))
    return Intervals(WIDTHS, tuple((sd / cells).tolist()), tuple((rank / cells).tolist()))


def record_intervals(columns: Sequence[RankedColumn], records: int) -> RecordIntervals:
    """Count the records whose originals all lie close around their released values; missing cells do not count.

    An original x lies within the interval of its released value y if |x − y| ≤ w·S, S the standard deviation (n − 1)
    of the released column, as ``dRisk`` of sdcMicro has it (Templ, Kowarik and Meindl 2015), or if it lies between
    the released values that are w·n ranks below and above y.

    Examples
    --------
    >>> x = np.array([0.0, 2.0])
    >>> record_intervals([RankedColumn(x, x), RankedColumn(x, x[::-1])], 2).nearly
    (1.0, 1.0, 1.0)
    """
    outside, beyond = (np.zeros((len(WIDTHS), records), dtype=np.int64) for _ in range(2))
    for column in columns:
        unit = spread(column.y) if len(column.y) else 0.0
        for i, inside in enumerate(_near(column, unit)):
            outside[i, column.records] += ~inside
        for i, inside in enumerate(_near_in_rank(column)):
            beyond[i, column.records[column.after.records]] += ~inside
    return RecordIntervals(
        WIDTHS,
        sd=tuple((outside == 0).mean(axis=1).tolist()),
        rank=tuple((beyond == 0).mean(axis=1).tolist()),
        nearly=tuple((outside <= 1).mean(axis=1).tolist()),
    )


def measure(tables: TablePair) -> RecordIntervals:
    """Measure the intervals of whole records."""
    return record_intervals(order_columns(*tables.columns), len(tables.Y))


def _near(column: RankedColumn, unit: float) -> Iterator[Bools]:
    """Return for each width which originals are within so many percent of the unit."""
    distance = np.abs(column.x - column.y)
    for width in WIDTHS:
        yield distance <= width / 100 * unit


def _near_in_rank(column: RankedColumn) -> Iterator[Bools]:
    """Return for each width which originals are within so many percent of the records in rank, in order of release."""
    after, n = column.after, len(column.y)
    before = column.x[after.records]
    for width in WIDTHS:
        reach = width / 100 * n
        low = np.maximum(np.ceil(after.middles - reach), 0).astype(np.int64)
        high = np.minimum(np.floor(after.middles + reach), n - 1).astype(np.int64)
        # A reach below one rank leaves the released value alone.
        lowest, highest = after.values[np.minimum(low, high)], after.values[np.maximum(low, high)]
        yield (before >= np.repeat(lowest, after.counts)) & (before <= np.repeat(highest, after.counts))


def _listed(widths: Sequence[int], shares: Sequence[float]) -> str:
    return ", ".join(f"±{width} %: {100 * share:.0f} %" for width, share in zip(widths, shares, strict=True))
