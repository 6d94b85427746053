"""Taking the measures of the registry: two tables of the same records, and what each measure wants of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from shoal.assessment.coded_records import CodedRecords
from shoal.assessment.measure_registry import MEASURES
from shoal.assessment.risk import Risk
from shoal.core.types import Floats, Ints
from shoal.tables.columns import Name

__all__ = ["TablePair", "take_measures"]


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

    numbers: CodedRecords
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


def take_measures(names: Sequence[str], tables: TablePair) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the results by the names of the fields of `Risk` and of `Utility`; those without a field are `others`."""
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
