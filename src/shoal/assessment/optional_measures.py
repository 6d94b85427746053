"""Taking the measures of the registry: two tables of the same records, and what each measure wants of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from shoal.assessment.eigenvalues import eigenvalues
from shoal.assessment.intervals import record_intervals
from shoal.assessment.linkage import cells_of
from shoal.assessment.measure_registry import MEASURES
from shoal.assessment.one_to_one import OneToOne, one_to_one
from shoal.assessment.ordered import order_columns
from shoal.assessment.population import PopulationRisk, population_risk
from shoal.assessment.robust import robust_intervals
from shoal.assessment.special_uniques import MOST_COLUMNS, SpecialUniques, special_uniques
from shoal.core.errors import InputError
from shoal.core.types import Floats, Ints
from shoal.masking.numbers import Numbers
from shoal.masking.verification import identical_records
from shoal.tables.columns import Name

__all__ = ["FUNCTIONS", "TablePair", "take_measures"]


@dataclass(frozen=True)
class TablePair:
    """Two tables of the same records, as measures take them.

    Parameters
    ----------
    numbers, Y
        The masked columns before and after.
    strata, groups
        The released stratum of each record, and a number that identical released records share.
    names
        The keys.
    keys
        Their codes before and after, ``(records, keys)`` each.
    weights, households
        How many people each record stands for, and the number of its household; None if they are not known.
    seed
        Decides samples.
    """

    numbers: Numbers
    Y: Floats
    strata: Ints
    groups: Ints
    names: tuple[Name, ...]
    keys: tuple[Ints, Ints]
    weights: Floats | None = None
    households: Ints | None = None
    seed: int = 0

    @cached_property
    def columns(self) -> tuple[Floats, Floats]:
        """The columns of numbers, before and after."""
        numbers = self.numbers.embedding.numbers
        return self.numbers.X[:, numbers], self.Y[:, numbers]


def _population_risk(tables: TablePair) -> PopulationRisk:
    before, after = (identical_records(list(codes.T)) for codes in tables.keys)
    return population_risk(before, after, tables.weights, tables.households)


def _one_to_one(tables: TablePair) -> OneToOne:
    numbers = tables.numbers
    cells = cells_of(numbers.X, tables.strata)
    return one_to_one(numbers.coordinates, numbers.place(tables.Y), tables.groups, cells, seed=tables.seed)


def _special_uniques(tables: TablePair) -> SpecialUniques:
    if len(tables.names) > MOST_COLUMNS:
        raise InputError(
            f"Parameter 'measures' names 'special-uniques', which looks at all sets of at most {MOST_COLUMNS} "
            f"keys; got {len(tables.names)}. Name those that an intruder is likeliest to know in 'keys'."
        )
    return special_uniques(*tables.keys, tables.names, tables.weights)


FUNCTIONS: Mapping[str, Callable[[TablePair], Any]] = {
    "record-intervals": lambda tables: record_intervals(order_columns(*tables.columns), len(tables.Y)),
    "robust-intervals": lambda tables: robust_intervals(*tables.columns, seed=tables.seed),
    "one-to-one": _one_to_one,
    "population-risk": _population_risk,
    "special-uniques": _special_uniques,
    "eigenvalues": lambda tables: eigenvalues(*tables.columns, seed=tables.seed),
}


def take_measures(names: Sequence[str], tables: TablePair) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what was measured, by the names of the fields of `Risk` and of `Utility`."""
    results = {name: FUNCTIONS[name](tables) for name in names}
    risk, utility = (
        {name.replace("-", "_"): result for name, result in results.items() if MEASURES[name].utility is useful}
        for useful in (False, True)
    )
    return risk, utility
