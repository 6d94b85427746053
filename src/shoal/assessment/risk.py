"""Risk of a release: attacks by an intruder with the original values, or with the released file alone.

Functions take arrays, return small results and do not validate. Every result states its meaning in one sentence and its
limits in another, because a risk figure is easily mistaken for a promise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from shoal.assessment.disclosure import Attribute
from shoal.assessment.intervals import Intervals, RecordIntervals
from shoal.assessment.linkage import Linkage
from shoal.assessment.one_to_one import OneToOne
from shoal.assessment.population import PopulationRisk
from shoal.assessment.robust import RobustIntervals
from shoal.assessment.special_uniques import SpecialUniques
from shoal.core.measures import group_sizes
from shoal.core.messages import agreeing, count
from shoal.core.types import Ints, Name

__all__ = [
    "Anonymity",
    "Finding",
    "Risk",
    "Uniqueness",
    "UnitUniqueness",
    "anonymity",
    "uniqueness",
]


@dataclass(frozen=True)
class Anonymity:
    """The groups of identical records, recounted in the released file.

    Parameters
    ----------
    k
        The number of records in the smallest group.
    groups
        The number of groups.
    mean_size
        The mean number of records in a group.
    asked
        The promised k, or None.
    below
        The number of records in groups of fewer than `asked` records.
    """

    k: int
    groups: int
    mean_size: float
    asked: int | None = None
    below: int = 0

    name: ClassVar[str] = "k-anonymity, recounted"
    means: ClassVar[str] = "A search for a person by the masked columns finds at least this many identical records."
    limits: ClassVar[str] = (
        "It does not protect columns that were not masked, nor a value that all records of a group share."
    )

    @property
    def figure(self) -> str:
        """The result in words."""
        text = f"smallest group {self.k}; {count(self.groups, 'group')} of {self.mean_size:.1f} records on average"
        return f"{text}; {count(self.below, 'record')} in groups below k = {self.asked}" if self.below else text


@dataclass(frozen=True)
class Uniqueness:
    """The share of records that are unique by the columns an outsider can know, before and after masking.

    These columns are the masked columns, the strata and the unchanged columns, but not sensitive columns, weights and
    units.

    Parameters
    ----------
    before, after
        The share of unique records in each table.
    """

    before: float
    after: float

    name: ClassVar[str] = "singled out"
    means: ClassVar[str] = (
        "This share of records is unique by what an outsider can know (masked columns, strata, unchanged columns), "
        "before and after."
    )
    limits: ClassVar[str] = "It does not count records that are unique by sensitive columns, weights or units."

    @property
    def figure(self) -> str:
        """The result in words."""
        return f"{100 * self.before:.1f} % before, {100 * self.after:.1f} % after"


@dataclass(frozen=True)
class UnitUniqueness:
    """The number of units (persons, households, firms) that are unique by all their masked records together.

    Parameters
    ----------
    units
        The number of unique units.
    of
        The number of units.
    column
        The unit column.
    """

    units: int
    of: int
    column: Name

    name: ClassVar[str] = "units"
    means: ClassVar[str] = "Anyone who knows all records of these units, but no sensitive column, can single them out."
    limits: ClassVar[str] = "It does not count units that are unique by some of their records and other facts."

    @property
    def figure(self) -> str:
        """The result in words."""
        are = agreeing(self.units, "is", "are")
        return f"{self.units:,} of {self.of:,} ({self.column}) {are} unique by their records taken together"


class Finding(Protocol):
    """The result of a measure of risk: a figure, its meaning and its limits."""

    @property
    def name(self) -> str:
        """The name of the measure."""

    @property
    def figure(self) -> str:
        """The result in words."""

    @property
    def means(self) -> str:
        """The meaning of the figure, in a sentence."""

    @property
    def limits(self) -> str:
        """The limits of the figure, in a sentence."""


@dataclass(frozen=True)
class Risk:
    """All measures of the risk of a release; iterate over the object for each measure with its sentences."""

    anonymity: Anonymity
    uniqueness: Uniqueness
    # None if the masked table has no unit column.
    units: UnitUniqueness | None = field(default=None, kw_only=True)
    linkage: Linkage | None  # None if records are not paired with their originals
    intervals: Intervals | None  # None in the same case, and without numeric columns
    attributes: tuple[Attribute, ...] = ()
    # Measures taken on request (`shoal.assessment.measure_registry`).
    one_to_one: OneToOne | None = None
    record_intervals: RecordIntervals | None = None
    robust_intervals: RobustIntervals | None = None
    population_risk: PopulationRisk | None = None
    special_uniques: SpecialUniques | None = None
    others: tuple[Finding, ...] = ()

    def __iter__(self) -> Iterator[Finding]:
        findings = (
            self.anonymity, self.uniqueness, self.units, self.linkage, self.one_to_one, self.intervals,
            self.record_intervals, self.robust_intervals, self.population_risk, self.special_uniques, *self.others,
            *self.attributes,
        )  # fmt: skip
        return (finding for finding in findings if finding is not None)


def anonymity(groups: Ints, promised: int | None = None) -> Anonymity:
    """Summarise the groups of identical released records.

    Examples
    --------
    >>> import numpy as np
    >>> anonymity(np.array([0, 0, 0, 1, 1]), promised=3).figure
    'smallest group 2; 2 groups of 2.5 records on average; 2 records in groups below k = 3'
    """
    sizes = group_sizes(groups)
    below = int(sizes[sizes < promised].sum()) if promised is not None else 0
    return Anonymity(int(sizes.min()), len(sizes), float(sizes.mean()), promised, below)


def uniqueness(before: Ints, after: Ints) -> Uniqueness:
    """Return the share of unique records in both tables; identical records have the same number.

    Examples
    --------
    >>> import numpy as np
    >>> uniqueness(np.array([0, 1, 2, 2]), np.array([0, 0, 1, 1])).figure
    '50.0 % before, 0.0 % after'
    """
    return Uniqueness(_unique(before), _unique(after))


def _unique(groups: Ints) -> float:
    return float((group_sizes(groups) == 1).sum() / len(groups))
