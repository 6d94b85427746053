"""Privacy unit: a single record, or a person, household or firm with up to m records.

Definition 3 of the paper compares tables that "differ in one individual", who may have several records. Here, these are
two tables with the same number of records that differ in at most m records, all of one unit. The noise is drawn for
ε/m, which covers the unit with ε:

- Definition 1 (group privacy). Change the records of the unit one at a time. Each of the at most m steps changes one
  record, which changes the probability of any release by a factor of at most e^(ε/m). All steps together change it by
  a factor of at most (e^(ε/m))^m = e^ε.
- Definition 3, groups as given. Let m_g records of the unit be in group g, with Σ_g m_g ≤ m. In column i, the sum of
  group g changes by at most m_g Δ_i, and the noise on this sum has the scale m Δ_i/ε_i. The draws are independent, so
  the probability of the released values of column i changes by a factor of at most exp(Σ_g m_g Δ_i · ε_i/(m Δ_i)) ≤
  e^ε_i for any distribution of the records over groups. For all columns together, the factor is at most e^Σε_i ≤ e^ε.
  Less noise would not suffice, because all m records may be in one group, whose mean then changes by m Δ_i/size.

Like the bounds, m is public knowledge. The greatest number of records per unit in the table would reveal something
about the table, so shoal never derives m from it. Values outside the bounds are clipped, but surplus records are not
suppressed. Otherwise, the number of released rows, which counts as public, would depend on the records of single units.
Therefore, a table in which a unit has more than m records is refused before anything is recorded or drawn. The refusal
depends only on the unit column, and the release only on the published values. Two tables with the same units and
different values are therefore either both refused or both accepted. The refusal is a message to the data holder, and
its text depends on neither the unit nor the number of its records. Anyone else who sees the message learns that m was
wrong. A released table reveals that no unit has more than m records, which the published m states anyway.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from shoal.core.errors import InputError
from shoal.core.messages import count, parameter
from shoal.core.types import Floats
from shoal.masking.steps import unit_words
from shoal.tables.columns import Name
from shoal.tables.table import Table, check_name

__all__ = ["Unit", "budgets_of_records", "check_unit", "read_unit"]


@dataclass(frozen=True)
class Unit:
    """The privacy unit: its column, and the greatest number of records per unit."""

    column: Name
    contributions: int

    def __str__(self) -> str:
        return f"{self.column}, at most {count(self.contributions, 'record')} each"


def read_unit(unit: Name | None, contributions: object) -> Unit | None:
    """Check and return the privacy unit; return None if ε protects single records.

    Examples
    --------
    >>> print(read_unit("person", 3))
    person, at most 3 records each
    """
    if unit is None:
        if contributions is not None:
            raise InputError(
                f"{parameter('contributions')} requires a unit column, got {contributions!r}. Name it in "
                f"{parameter('unit')}."
            )
        return None
    if contributions is None:
        raise InputError(
            f"{parameter('unit')} requires {parameter('contributions')}, the greatest number of records that one unit "
            f"of column {unit!r} can have, from public knowledge. shoal does not read it from the table, because that "
            "number would reveal something about the table."
        )
    if isinstance(contributions, bool) or not isinstance(contributions, (int, np.integer)) or contributions < 1:
        raise InputError(f"{parameter('contributions')} must be a whole number of at least 1, got {contributions!r}.")
    return Unit(unit, int(contributions))


def check_unit(unit: Unit, table: Table, published: Sequence[Name]) -> None:
    """Refuse a unit column that is to be published, and a table in which a unit has more records than allowed.

    The message names neither the unit nor its number of records.
    """
    check_name(unit.column, table.names, "unit")
    if unit.column in published:
        raise InputError(
            f"{parameter('unit')} names column {unit.column!r}, which is to be published. A unit column stays out of "
            f"the release: leave it out of {parameter('columns')} and {parameter('bounds')}."
        )
    # If two units had the same hash, they would count as one unit with more records: protection would not decrease.
    _, records = np.unique(unit_words(table, unit.column, None), return_counts=True)
    if records.max() > unit.contributions:
        raise InputError(
            f"{parameter('contributions')} must be a number of records that no {unit.column} exceeds, but one has more "
            f"than {unit.contributions}. Nothing was released or spent; this message is for the data holder alone. "
            f"Leave out records by a rule that uses each {unit.column} alone, or use the publicly known number: a "
            "number found by trial reveals something about the table."
        )


def budgets_of_records(budgets: Floats, unit: Unit | None) -> Floats:
    """Return the budgets per record, rounded down so that the records of a unit never exceed the unit's budget.

    Examples
    --------
    >>> budgets_of_records(np.array([1.0, 0.5]), Unit("person", 4)).tolist()
    [0.25, 0.125]
    """
    if unit is None:
        return budgets
    return np.array([_at_most(Fraction(budget) / unit.contributions) for budget in budgets.tolist()])


def _at_most(share: Fraction) -> float:
    near = float(share)
    return near if near <= share else math.nextafter(near, 0.0)
