"""One-to-one linkage: an intruder assigns all released records to originals at once, one original per record.

J. Herranz, J. Nin, P. Rodríguez and T. Tassa (2015) and others solve the assignment problem of least total squared
distance, which is stronger than linking records separately. Records of a group are indistinguishable, so a record
assigned to its own group of m records counts as 1/m. The assignment takes O(m³) time for m records, so a large cell is
measured in neighbourhoods.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from shoal.assessment.linkage import cells_of
from shoal.core.measures import group_sizes
from shoal.core.types import Floats, Ints

if TYPE_CHECKING:
    from shoal.assessment.measure_registry import TablePair

__all__ = ["OneToOne", "measure", "one_to_one"]

# Upper limits on the records of one assignment and of all cells together; larger tables are measured in neighbourhoods.
ASSIGNED_AT_ONCE = 1000
ASSIGNED_RECORDS = 5000
NEIGHBOURHOODS = 20
MIDDLE = 50  # central records of a neighbourhood that count: records near its edge lack neighbours


@dataclass(frozen=True)
class OneToOne:
    """The result of record linkage by optimal assignment.

    Parameters
    ----------
    share
        The share of records assigned to their own originals.
    chance
        The success rate of a random choice within the right group, which is the mean of 1/size.
    records
        The number of measured records.
    interval
        The 95 % interval of the share if it was measured in neighbourhoods, which ignore records beyond their edge;
        None if all records were assigned.
    """

    share: float
    chance: float
    records: int
    interval: tuple[float, float] | None = None

    name: ClassVar[str] = "one-to-one linkage"
    means: ClassVar[str] = (
        "An intruder who has the original values of everybody and assigns each to one released record, with the least "
        "total distance, is right this often; random choice within a group is right as often as the chance figure "
        "shows."
    )
    limits: ClassVar[str] = (
        "It does not cover an intruder who knows more than the masked columns, and few intruders have the originals of "
        "everybody."
    )

    @property
    def figure(self) -> str:
        """The result in words."""
        text = f"{100 * self.share:.1f} % assigned correctly, chance {100 * self.chance:.1f} %"
        if self.interval is None:
            return text
        low, high = self.interval
        within = f"95 % interval {100 * low:.1f} to {100 * high:.1f} %"
        return (
            f"{text} (estimated from {NEIGHBOURHOODS} neighbourhoods of about {ASSIGNED_AT_ONCE:,} records; {within})"
        )


def one_to_one(Z: Floats, W: Floats, groups: Ints, cells: Sequence[tuple[Ints, Ints]], *, seed: int = 0) -> OneToOne:
    """Assign released records to originals within the cells that an intruder sees.

    Z and W are the coordinates before and after. Records that are identical in W and share their stratum have the same
    number in `groups`; `cells` comes from `shoal.assessment.linkage.cells_of`. The seed determines the neighbourhoods.

    Examples
    --------
    >>> Z, rows = np.array([[0.0], [1.0], [2.0]]), np.arange(3)
    >>> one_to_one(Z, np.array([[0.9], [1.1], [1.2]]), rows, [(rows, np.array([0]))]).share
    1.0
    """
    chance = 1 / group_sizes(groups)[groups]
    if len(Z) <= ASSIGNED_RECORDS and all(len(rows) <= ASSIGNED_AT_ONCE for rows, _ in cells):
        right = sum(float(_assign(Z, W, groups, rows).sum()) for rows, _ in cells)
        return OneToOne(right / len(Z), float(chance.mean()), len(Z))
    cell_of = np.empty(len(Z), dtype=np.int64)
    for number, (rows, _) in enumerate(cells):
        cell_of[rows] = number
    centres = np.random.default_rng(seed).choice(len(Z), NEIGHBOURHOODS, replace=False)
    shares, chances, measured = [], [], 0
    for centre in centres:
        rows, counted = _neighbourhood(W, groups, cells[cell_of[centre]][0], int(centre))
        shares.append(float(_assign(Z, W, groups, rows)[:counted].mean()))
        chances.append(float(chance[rows[:counted]].mean()))
        measured += counted
    share, error = float(np.mean(shares)), float(np.std(shares, ddof=1) / np.sqrt(NEIGHBOURHOODS))
    interval = max(0.0, share - 1.96 * error), min(1.0, share + 1.96 * error)
    return OneToOne(share, float(np.mean(chances)), measured, interval)


def measure(tables: TablePair) -> OneToOne:
    """Measure one-to-one linkage."""
    numbers = tables.numbers
    cells = cells_of(numbers.X, tables.strata)
    return one_to_one(numbers.coordinates, numbers.place(tables.Y), tables.groups, cells, seed=tables.seed)


def _assign(Z: Floats, W: Floats, groups: Ints, rows: Ints) -> Floats:
    """Return, for each original, the probability that the released record assigned to it is its own."""
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    present = np.flatnonzero(~np.isnan(Z[rows[0]]))
    where = np.ix_(rows, present)
    originals, released = linear_sum_assignment(cdist(Z[where], W[where], "sqeuclidean"))
    row_groups = groups[rows]
    sizes = np.unique(row_groups, return_inverse=True, return_counts=True)
    probability: Floats = (row_groups[originals] == row_groups[released]) / sizes[2][sizes[1]]
    return probability


def _neighbourhood(W: Floats, groups: Ints, rows: Ints, centre: int) -> tuple[Ints, int]:
    """Return the records of the groups nearest to a central record, and the number of these records that count."""
    if len(rows) <= ASSIGNED_AT_ONCE:
        return rows, len(rows)
    present = np.flatnonzero(~np.isnan(W[centre]))
    distance = np.square(W[np.ix_(rows, present)] - W[centre, present]).sum(axis=1)
    # Sort by distance, with the records of a group together.
    near = rows[np.lexsort((groups[rows], distance))]
    end = ASSIGNED_AT_ONCE
    while end < len(near) and groups[near[end]] == groups[near[end - 1]]:
        end += 1
    return near[:end], MIDDLE
