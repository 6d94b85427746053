"""How safe a release is: what an intruder with the original values, or with the released file alone, could find out.

Arrays in, small results out; nothing here validates. Every result says in a sentence what it means and in another
what it does not mean, because a figure of risk is easily taken for a promise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.assessment.disclosure import Attribute
from shoal.assessment.linkage import Linkage
from shoal.core.measures import group_sizes
from shoal.core.types import Floats, Ints

__all__ = [
    "Anonymity",
    "Intervals",
    "Risk",
    "Uniqueness",
    "anonymity",
    "intervals",
    "uniqueness",
]

WIDTHS = (1, 5, 10)


@dataclass(frozen=True)
class Anonymity:
    """The groups of identical records, counted again on the released file.

    Parameters
    ----------
    k
        The records of the smallest group.
    groups
        The number of groups.
    mean_size
        The mean number of records in a group.
    asked
        The k that was promised, or None.
    below
        The records in groups smaller than that.
    """

    k: int
    groups: int
    mean_size: float
    asked: int | None = None
    below: int = 0

    name: ClassVar[str] = "k-anonymity, recounted"
    means: ClassVar[str] = (
        "Whoever looks for a person by the masked columns finds at least this many records that look exactly alike."
    )
    limits: ClassVar[str] = (
        "It does not protect columns that were not masked, nor a value that all records of a group share."
    )

    @property
    def figure(self) -> str:
        """The result in words."""
        text = f"smallest group {self.k}; {self.groups:,} groups of {self.mean_size:.1f} records on average"
        return f"{text}; {self.below:,} records in groups below k = {self.asked}" if self.below else text


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
        by_sd = ", ".join(f"±{w} %: {100 * share:.0f} %" for w, share in zip(self.widths, self.sd, strict=True))
        by_rank = ", ".join(f"±{w} %: {100 * share:.0f} %" for w, share in zip(self.widths, self.rank, strict=True))
        return f"by standard deviation {by_sd}; by rank {by_rank}"


@dataclass(frozen=True)
class Uniqueness:
    """Records that no other equals in the masked columns (and strata).

    Parameters
    ----------
    before, after
        The share of unique records in each table.
    """

    before: float
    after: float

    name: ClassVar[str] = "unique records"
    means: ClassVar[str] = "So many records could be told from all others by the masked columns, before and after."
    limits: ClassVar[str] = "It does not count records that other, unmasked columns make unique."

    @property
    def figure(self) -> str:
        """The result in words."""
        return f"{100 * self.before:.1f} % before, {100 * self.after:.1f} % after"


Finding = Anonymity | Linkage | Intervals | Attribute | Uniqueness


@dataclass(frozen=True)
class Risk:
    """All that was measured about safety; iterate to read each with its sentences."""

    anonymity: Anonymity
    uniqueness: Uniqueness
    linkage: Linkage | None  # None where records are not beside their originals
    intervals: Intervals | None  # so too, and of numbers only
    attributes: tuple[Attribute, ...] = ()

    def __iter__(self) -> Iterator[Finding]:
        findings = (self.anonymity, self.uniqueness, self.linkage, self.intervals, *self.attributes)
        return (finding for finding in findings if finding is not None)


def anonymity(groups: Ints, asked: int | None = None) -> Anonymity:
    """Describe the groups of identical released records.

    Examples
    --------
    >>> anonymity(np.array([0, 0, 0, 1, 1]), asked=3).figure
    'smallest group 2; 2 groups of 2.5 records on average; 2 records in groups below k = 3'
    """
    sizes = group_sizes(groups)
    below = int(sizes[sizes < asked].sum()) if asked is not None else 0
    return Anonymity(int(sizes.min()), len(sizes), float(sizes.mean()), asked, below)


def uniqueness(before: Ints, after: Ints) -> Uniqueness:
    """Count the records that no other equals; those that are identical share a number.

    Examples
    --------
    >>> uniqueness(np.array([0, 1, 2, 2]), np.array([0, 0, 1, 1])).figure
    '50.0 % before, 0.0 % after'
    """
    return Uniqueness(_unique(before), _unique(after))


def intervals(X: Floats, Y: Floats) -> Intervals:
    """Count the originals that lie close around their released value, by standard deviation and by rank.

    Examples
    --------
    >>> X = np.array([[0.0], [2.0]])
    >>> intervals(X, X).sd
    (1.0, 1.0, 1.0)
    """
    sd, rank = np.zeros(len(WIDTHS)), np.zeros(len(WIDTHS))
    cells = 0
    for x, y in zip(X.T, Y.T, strict=True):
        seen = ~np.isnan(x)
        before, after = x[seen], y[seen]
        if not len(before):
            continue
        cells += len(before)
        unit = np.std(before - before[0], ddof=1) if len(before) > 1 else 0.0
        ordered = np.sort(after)
        # The rank of a released value is the middle of its ties.
        place = (np.searchsorted(ordered, after) + np.searchsorted(ordered, after, side="right") - 1) / 2
        for i, width in enumerate(WIDTHS):
            sd[i] += (np.abs(before - after) <= width / 100 * unit).sum()
            reach = width / 100 * len(after)
            low = np.maximum(np.ceil(place - reach), 0).astype(np.int64)
            high = np.minimum(np.floor(place + reach), len(after) - 1).astype(np.int64)
            # A reach below one rank leaves the released value alone.
            rank[i] += ((before >= ordered[np.minimum(low, high)]) & (before <= ordered[np.maximum(low, high)])).sum()
    cells = max(cells, 1)
    return Intervals(WIDTHS, tuple((sd / cells).tolist()), tuple((rank / cells).tolist()))


def _unique(groups: Ints) -> float:
    return float((group_sizes(groups) == 1).sum() / len(groups))
