"""Taking the measures of the registry: two tables of the same records, and what each measure wants of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from shoal.assessment.eigenvalues import eigenvalues
from shoal.assessment.intervals import record_intervals
from shoal.assessment.linkage import cells_of
from shoal.assessment.measures import MEASURES
from shoal.assessment.one_to_one import OneToOne, one_to_one
from shoal.assessment.ordered import order_columns
from shoal.assessment.population import PopulationRisk, population_risk
from shoal.assessment.robust import robust_intervals
from shoal.assessment.special_uniques import MOST_COLUMNS, SpecialUniques, special_uniques
from shoal.core.errors import InputError
from shoal.core.messages import parameter
from shoal.core.types import Floats, Ints
from shoal.masking.numbers import Numbers
from shoal.masking.verification import identical_records
from shoal.tables.columns import Name

__all__ = ["TAKEN", "Beside", "take_measures"]


@dataclass(frozen=True)
class Beside:
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
        chosen = self.numbers.embedding.numbers
        return self.numbers.X[:, chosen], self.Y[:, chosen]


def _population_risk(both: Beside) -> PopulationRisk:
    before, after = (identical_records(list(codes.T)) for codes in both.keys)
    return population_risk(before, after, both.weights, both.households)


def _one_to_one(both: Beside) -> OneToOne:
    numbers = both.numbers
    cells = cells_of(numbers.X, both.strata)
    return one_to_one(numbers.coordinates, numbers.place(both.Y), both.groups, cells, seed=both.seed)


def _special_uniques(both: Beside) -> SpecialUniques:
    if len(both.names) > MOST_COLUMNS:
        raise InputError(
            f"{parameter('measures')} names 'special-uniques', which looks at all sets of at most {MOST_COLUMNS} keys; "
            f"got {len(both.names)}. Name those that an intruder is likeliest to know in {parameter('keys')}."
        )
    return special_uniques(*both.keys, both.names, both.weights)


TAKEN: Mapping[str, Callable[[Beside], Any]] = {
    "record-intervals": lambda both: record_intervals(order_columns(*both.columns), len(both.Y)),
    "robust-intervals": lambda both: robust_intervals(*both.columns, seed=both.seed),
    "one-to-one": _one_to_one,
    "population-risk": _population_risk,
    "special-uniques": _special_uniques,
    "eigenvalues": lambda both: eigenvalues(*both.columns, seed=both.seed),
}


def take_measures(chosen: Sequence[str], both: Beside) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what was measured, by the names of the fields of `Risk` and of `Utility`."""
    found = {name: TAKEN[name](both) for name in chosen}
    risk, utility = (
        {name.replace("-", "_"): result for name, result in found.items() if MEASURES[name].utility is useful}
        for useful in (False, True)
    )
    return risk, utility
