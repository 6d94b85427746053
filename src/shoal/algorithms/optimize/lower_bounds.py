r"""A lower bound on the SSE of every partition, from any multipliers: valid regardless of the solver.

For duals π of any sign and cut prices μ ≥ 0, let r(G) be the reduced cost (`optimize.pricing`). Let f_i ≥ 0 be numbers,
one per record, with r(G) + Σ_{i∈G} f_i ≥ 0 for every group G of the sizes that matter. Summed over the groups of a
partition, where every record counts once and each cut is satisfied (`optimize.cuts`),

    SSE = Σ c_G ≥ Σ_i (π_i − f_i) − Σ_R μ_R ⌊p(R)/q⌋.

**The sizes that matter.** Some best partition has only groups of k … 2k−1 records, since splitting a larger group never
increases the SSE (Domingo-Ferrer and Mateo-Sanz 2002). Without cuts, size k suffices: for a group G of s > k records
give every k-subset H the weight 1/C(s−1, k−1). Each record is then covered once, each pair with weight (k−1)/(s−1), and
Σ_H c_H/C(s−1,k−1) = T_G (k−1)/(k(s−1)) ≤ T_G/s = c_G because s(k−1) ≤ k(s−1). So if c_H ≥ Σ_H (π−f) for all k-subsets,
then c_G ≥ Σ_G (π−f).

**The repair.** All groups with r(G) < 0 are enumerated; f_i is the largest −r(G)/|G| over those that contain i, which
suffices for each of them. Multipliers that are slightly infeasible, by a solver's tolerance or because column
generation was stopped, therefore cost little, and only where they are infeasible.

**Rounding.** The enumeration is exact on weights rounded down. For the groups that it finds, r(G) is computed in
float64 with at most d + s² + 8 roundings of each term and one per cut; this error is subtracted. The final sum is
correctly rounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum

import numpy as np

from shoal.algorithms.optimize.cuts import Cuts, reduced_costs
from shoal.algorithms.optimize.group_columns import GroupColumns
from shoal.algorithms.optimize.pricing import enumerate_groups
from shoal.core.types import Floats, Ints, State

__all__ = ["Bound", "lower_bound", "sizes_that_matter"]


@dataclass(frozen=True)
class Bound:
    """A proven lower bound on the SSE."""

    value: float  # the bound
    # The multipliers, repaired: no group that matters has a negative reduced cost.
    duals: Floats
    cuts: Cuts
    tolerance: float  # the amount subtracted for rounding
    columns: GroupColumns  # the groups whose reduced cost was negative before the repair
    visited: int  # number of prefixes that the enumeration visited


def sizes_that_matter(n: int, k: int, cuts: Cuts) -> range:
    """Return the group sizes that a proof has to price.

    Examples
    --------
    >>> from shoal.algorithms.optimize.cuts import no_cuts
    >>> sizes_that_matter(100, 3, no_cuts())
    range(3, 4)
    """
    return range(k, min(2 * k - 1, n) + 1) if len(cuts) else range(k, k + 1)


def lower_bound(
    X: Floats, D: Floats, k: int, duals: Floats, cuts: Cuts, *, room: int, max_visits: int, state: State
) -> Bound | None:
    """Return the bound that the multipliers prove; None if too many groups violate them or a stop is requested.

    The duals may be any numbers; prices of cuts must not be negative. `room` and `max_visits` limit the enumeration of
    each size: groups found and prefixes visited.
    """
    n, d = X.shape
    fix = np.zeros(n)
    tolerance = 0.0
    visited = 0
    work = np.empty_like(D)
    violating: list[Ints] = []
    for size in sizes_that_matter(n, k, cuts):
        enumerated = enumerate_groups(
            D, d, duals, cuts, size, 0.0, room=room, max_visits=max_visits, state=state, work=work
        )
        visited += enumerated.visited
        if not enumerated.complete:
            return None
        if not len(enumerated.groups):
            continue
        columns = GroupColumns.of(X, list(enumerated.groups))
        rest = reduced_costs(columns, duals, cuts)
        weight = columns.cost + np.add.reduceat(np.abs(duals)[columns.member], columns.start[:-1]) + cuts.magnitude
        slack = weight * (d + size * size + 8 + len(cuts)) * 2.0**-52
        short = np.maximum(slack - rest, 0.0) / size
        before = fix.copy()
        np.maximum.at(fix, columns.member, np.repeat(short, size))
        exact = before.copy()
        np.maximum.at(exact, columns.member, np.repeat(np.maximum(-rest, 0.0) / size, size))
        tolerance += float((fix - exact).sum())
        violating.extend(enumerated.groups[rest < 0])
    value = fsum([*duals, *(-fix), *(-cuts.worth)])
    # Storing the repaired dual π − f rounds it by one unit in the last place per record.
    value -= abs(value) * 2.0**-50
    return Bound(value, duals - fix, cuts, tolerance, GroupColumns.of(X, violating), visited)
