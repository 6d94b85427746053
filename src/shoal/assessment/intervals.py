"""Interval disclosure: the share of cells, and of whole records, whose originals are close to released values.

J. M. Mateo-Sanz, F. Sebé and J. Domingo-Ferrer, Outlier protection in continuous microdata masking (PSD 2004), define
intervals by standard deviation (SDID) or by rank. The measures take O(n) time per column after sorting.
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
    """Interval disclosure of cells: the share of originals that are close to their released values.

    Parameters
    ----------
    widths
        Half-widths in percent: of the standard deviation, and of the number of records.
    sd
        For each width, the share of values within that percentage of a standard deviation of the released value.
    rank
        For each width, the share of values within that percentage of the records above and below it in rank.
    """

    widths: tuple[int, ...]
    sd: tuple[float, ...]
    rank: tuple[float, ...]

    name: ClassVar[str] = "interval disclosure"
    means: ClassVar[str] = "This is how often the true value is within the given distance of the released value."
    limits: ClassVar[str] = (
        "It does not reveal whose value it is, and an intruder cannot know for which records this holds. A useful "
        "release has high figures here: they measure closeness, not identity."
    )

    @property
    def figure(self) -> str:
        """The result in words."""
        return f"by standard deviation {_listed(self.widths, self.sd)}; by rank {_listed(self.widths, self.rank)}"


@dataclass(frozen=True)
class RecordIntervals:
    """Interval disclosure of whole records: the share of records whose originals are all close to released values.

    Parameters
    ----------
    widths
        Half-widths in percent: of the standard deviation of the released column, and of the number of records.
    sd
        For each width, the share of records with all values within that percentage of a standard deviation.
    rank
        For each width, the share of records with all values within that percentage of the records above and below in
        rank.
    nearly
        Like `sd`, for records with at most one value outside, as counted by ``dRisk`` of sdcMicro.
    """

    widths: tuple[int, ...]
    sd: tuple[float, ...]
    rank: tuple[float, ...]
    nearly: tuple[float, ...]

    name: ClassVar[str] = "interval disclosure of records"
    means: ClassVar[str] = (
        "For this share of the records, all true numbers, or all but one, are within the given distance of the "
        "released numbers."
    )
    limits: ClassVar[str] = (
        "It does not reveal whose record it is, and an intruder cannot know for which records this holds: it measures "
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
    """Return the shares of originals close to their released values, by standard deviation and by rank.

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
    """Return the shares of records whose originals are all close to released values; missing cells do not count.

    By standard deviation, an original x is within the interval of its released value y if |x − y| ≤ w·S. S is the
    standard deviation (n − 1) of the released column, as in ``dRisk`` of sdcMicro (Templ, Kowarik and Meindl 2015). By
    rank, x must be between the released values that are w·n ranks below and above y.

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
    """Yield, for each width, a mask of the originals within that percentage of the unit."""
    distance = np.abs(column.x - column.y)
    for width in WIDTHS:
        yield distance <= width / 100 * unit


def _near_in_rank(column: RankedColumn) -> Iterator[Bools]:
    """Yield, for each width, a mask of the originals within that percentage of ranks; cells are in released order."""
    after, n = column.after, len(column.y)
    before = column.x[after.records]
    for width in WIDTHS:
        reach = width / 100 * n
        low = np.maximum(np.ceil(after.middles - reach), 0).astype(np.int64)
        high = np.minimum(np.floor(after.middles + reach), n - 1).astype(np.int64)
        # A reach below one rank includes only the released value itself.
        lowest, highest = after.values[np.minimum(low, high)], after.values[np.maximum(low, high)]
        yield (before >= np.repeat(lowest, after.counts)) & (before <= np.repeat(highest, after.counts))


def _listed(widths: Sequence[int], shares: Sequence[float]) -> str:
    return ", ".join(f"±{width} %: {100 * share:.0f} %" for width, share in zip(widths, shares, strict=True))
