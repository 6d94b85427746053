"""The registry of measures taken on request: the one list that all others read.

What `assess` always measures takes about as long as sorting the columns; these take longer, or need to know more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

from shoal.core.checks import as_names
from shoal.core.errors import InputError, closest
from shoal.core.messages import parameter

if TYPE_CHECKING:
    from shoal.assessment.coded_records import CodedRecords
    from shoal.core.types import Floats, Ints
    from shoal.tables.columns import Name

__all__ = ["ALL", "MEASURES", "Measure", "TablePair", "check_measures", "choose_measures", "take_measures"]

ALL = "all"


@dataclass(frozen=True)
class Measure:
    """A measure that is taken on request; the result is the field of the same name of `Risk` or `Utility`, if any."""

    help: str  # what it measures, in a few words
    # The module whose function `measure` takes it, or such a function: two tables in, a finding out.
    home: str | Callable[[TablePair], Any]
    paired: bool = True  # whether it needs every record beside its original
    numeric: bool = False  # whether it is about columns of numbers
    uses: tuple[str, ...] = ()  # the parameters of `shoal.assess` that are meant for it
    utility: bool = False  # whether it is a measure of utility, not of risk

    def take(self, tables: TablePair) -> Any:
        """Measure two tables."""
        function = import_module(self.home).measure if isinstance(self.home, str) else self.home
        return function(tables)


MEASURES: dict[str, Measure] = {
    "record-intervals": Measure(
        "share of records whose originals all lie close around their masked numbers",
        "shoal.assessment.intervals",
        numeric=True,
    ),
    "robust-intervals": Measure(
        "the same with wider intervals for outliers, by robust distance", "shoal.assessment.robust", numeric=True
    ),
    "one-to-one": Measure(
        "record linkage by the best assignment of all records at once", "shoal.assessment.one_to_one"
    ),
    "population-risk": Measure(
        "individual, global and household risk of being found in the population by the keys",
        "shoal.assessment.population",
        uses=("keys", "weights", "unit"),
    ),
    "special-uniques": Measure(
        "records that few of the keys make unique, with their scores (SUDA2)",
        "shoal.assessment.special_uniques",
        paired=False,
        uses=("keys", "weights"),
    ),
    "eigenvalues": Measure(
        "change of the eigenvalues of the correlations and of the robust covariance",
        "shoal.assessment.eigenvalues",
        paired=False,
        numeric=True,
        utility=True,
    ),
}


def check_measures(names: Sequence[str]) -> None:
    """Refuse names of no measure."""
    for name in names:
        if name != ALL and name not in MEASURES:
            known = ", ".join(map(repr, [*MEASURES, ALL]))
            raise InputError(f"{parameter('measures')} must be some of {known}, got {name!r}.{closest(name, MEASURES)}")


def choose_measures(
    request: Sequence[str] | str | None, *, paired: bool, numeric: bool, **parameters: Any
) -> list[str]:
    """Return the names of the requested measures; refuse unknown ones and parameters that none of them uses.

    Examples
    --------
    >>> choose_measures(["eigenvalues"], paired=False, numeric=True)
    ['eigenvalues']
    """
    names = as_names(request)
    check_measures(names)
    every = ALL in names
    # Of all measures, those that the tables allow.
    selected = [n for n, m in MEASURES.items() if n in names or (every and paired >= m.paired and numeric >= m.numeric)]
    for name in selected:
        measure = MEASURES[name]
        if measure.paired and not paired:
            raise InputError(
                f"{parameter('measures')} names {name!r}, which needs the original of every masked record, but their "
                f"order is not known. Name the original record of each one in {parameter('kept')}, or leave it out."
            )
        if measure.numeric and not numeric:
            raise InputError(
                f"{parameter('measures')} names {name!r}, which needs a masked column of numbers. Leave it out."
            )
    for name, value in parameters.items():
        users = [user for user, measure in MEASURES.items() if name in measure.uses]
        if value is not None and not set(users) & set(selected):
            raise InputError(
                f"{parameter(name)} requires one of the measures {' and '.join(map(repr, users))}. Name one of them in "
                f"{parameter('measures')}."
            )
    return selected


@dataclass(frozen=True)
class TablePair:
    """Two tables of the same records, as measures take them."""

    # The masked columns before and after.
    numbers: CodedRecords
    Y: Floats
    # The released stratum of each record, and a number that identical released records share.
    strata: Ints
    groups: Ints
    names: tuple[Name, ...]  # the keys
    keys: tuple[Ints, Ints]  # their codes before and after, ``(records, keys)`` each
    # How many people each record stands for, and the number of its household; None if they are not known.
    weights: Floats | None = None
    households: Ints | None = None
    seed: int = 0  # decides samples

    @cached_property
    def columns(self) -> tuple[Floats, Floats]:
        """The columns of numbers, before and after."""
        numbers = self.numbers.embedding.numbers
        return self.numbers.X[:, numbers], self.Y[:, numbers]


def take_measures(names: Sequence[str], tables: TablePair) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the results by the names of the fields of `Risk` and of `Utility`; those without a field are `others`."""
    from shoal.assessment.risk import Risk

    risk: dict[str, Any] = {"others": ()}
    utility: dict[str, Any] = {}
    for name in names:
        measure, field = MEASURES[name], name.replace("-", "_")
        result = measure.take(tables)
        if measure.utility:
            utility[field] = result
        elif field in Risk.__dataclass_fields__:
            risk[field] = result
        else:
            risk["others"] += (result,)
    return risk, utility
