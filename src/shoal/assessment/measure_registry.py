"""Registry of optional measures, the only list of these measures.

The measures that `assess` always takes cost about as much as sorting the columns; the measures listed here take longer
or need more input.
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
    """A measure taken on request; its result is the field of the same name in `Risk` or `Utility`, if there is one."""

    help: str  # a short description
    # The module whose function `measure` takes the measure, or such a function; it turns a pair of tables into a
    # finding.
    home: str | Callable[[TablePair], Any]
    paired: bool = True  # True if the measure needs every record paired with its original
    numeric: bool = False  # True if the measure needs numeric columns
    uses: tuple[str, ...] = ()  # the parameters of `shoal.assess` that the measure uses
    utility: bool = False  # True for a measure of utility, False for a measure of risk

    def take(self, tables: TablePair) -> Any:
        """Compute the measure for a pair of tables."""
        function = import_module(self.home).measure if isinstance(self.home, str) else self.home
        return function(tables)


MEASURES: dict[str, Measure] = {
    "record-intervals": Measure(
        "share of records whose originals are all close to their masked numbers",
        "shoal.assessment.intervals",
        numeric=True,
    ),
    "robust-intervals": Measure(
        "the same, with wider intervals for outliers by robust distance", "shoal.assessment.robust", numeric=True
    ),
    "one-to-one": Measure("record linkage by an optimal assignment of all records", "shoal.assessment.one_to_one"),
    "population-risk": Measure(
        "individual, global and household risk of being found in the population by the keys",
        "shoal.assessment.population",
        uses=("keys", "weights", "unit"),
    ),
    "special-uniques": Measure(
        "records that are unique by few of the keys, with their scores (SUDA2)",
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
    """Refuse names of unknown measures."""
    for name in names:
        if name != ALL and name not in MEASURES:
            choices = ", ".join(map(repr, [*MEASURES, ALL]))
            raise InputError(f"{parameter('measures')} must be among {choices}, got {name!r}.{closest(name, MEASURES)}")


def choose_measures(
    request: Sequence[str] | str | None, *, paired: bool, numeric: bool, **parameters: Any
) -> list[str]:
    """Return the names of the requested measures; refuse unknown measures and unused parameters.

    Examples
    --------
    >>> choose_measures(["eigenvalues"], paired=False, numeric=True)
    ['eigenvalues']
    """
    names = as_names(request)
    check_measures(names)
    every = ALL in names
    # "all" selects the measures that the tables allow.
    selected = [n for n, m in MEASURES.items() if n in names or (every and paired >= m.paired and numeric >= m.numeric)]
    for name in selected:
        measure = MEASURES[name]
        if measure.paired and not paired:
            raise InputError(
                f"{parameter('measures')} includes {name!r}, which needs the original of every masked record, but "
                f"their order is unknown. Set the original record of each masked record in {parameter('kept')}, or "
                "leave it out."
            )
        if measure.numeric and not numeric:
            raise InputError(
                f"{parameter('measures')} includes {name!r}, which needs a masked numeric column. Leave it out."
            )
    for name, value in parameters.items():
        users = [user for user, measure in MEASURES.items() if name in measure.uses]
        if value is not None and not set(users) & set(selected):
            raise InputError(
                f"{parameter(name)} requires one of the measures {' and '.join(map(repr, users))}. Add one of them to "
                f"{parameter('measures')}."
            )
    return selected


@dataclass(frozen=True)
class TablePair:
    """An original and a masked table of the same records, as the input of a measure."""

    # The masked columns, before and after.
    numbers: CodedRecords
    Y: Floats
    # The released stratum of each record, and a number common to identical released records.
    strata: Ints
    groups: Ints
    names: tuple[Name, ...]  # the keys
    keys: tuple[Ints, Ints]  # the codes of the keys before and after, ``(records, keys)`` each
    # The number of people that each record represents, and the number of its household; None if unknown.
    weights: Floats | None = None
    households: Ints | None = None
    seed: int = 0  # the random seed for samples

    @cached_property
    def columns(self) -> tuple[Floats, Floats]:
        """The numeric columns, before and after."""
        numbers = self.numbers.embedding.numbers
        return self.numbers.X[:, numbers], self.Y[:, numbers]


def take_measures(names: Sequence[str], tables: TablePair) -> tuple[dict[str, Any], dict[str, Any]]:
    """Take measures; return their results keyed by field of `Risk` and of `Utility`.

    Results without a field of their own are in `others`.
    """
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
