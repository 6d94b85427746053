r"""Lower bounds on the SSE of every partition, from arbitrary multipliers and without trust in the solver.

For duals π of any sign and cut prices μ ≥ 0, let r(G) be the reduced cost of group G (`optimize.pricing`). For each
record i, let f_i ≥ 0 be a number, with r(G) + Σ_{i∈G} f_i ≥ 0 for every group G of a size that matters. A partition
contains every record once and satisfies each cut (`optimize.cuts`). Summing over its groups gives

    SSE = Σ c_G ≥ Σ_i (π_i − f_i) − Σ_R μ_R ⌊p(R)/q⌋.

**The sizes that matter.** Some best partition has only groups of k … 2k−1 records, since splitting a larger group never
increases the SSE (Domingo-Ferrer and Mateo-Sanz 2002). Without cuts, size k suffices. For a group G of s > k records,
give every k-subset H the weight 1/C(s−1, k−1). Each record is then covered with weight 1, each pair with weight
(k−1)/(s−1), and Σ_H c_H/C(s−1,k−1) = T_G (k−1)/(k(s−1)) ≤ T_G/s = c_G because s(k−1) ≤ k(s−1). So if
c_H ≥ Σ_H (π−f) for all k-subsets, then c_G ≥ Σ_G (π−f).

**The repair.** All groups with r(G) < 0 are enumerated, and f_i is the largest −r(G)/|G| of the enumerated groups that
contain i. These f_i suffice for every enumerated group. Multipliers may be slightly infeasible because of the solver's
tolerance or because column generation was stopped. The bound then loses little, and only where they are infeasible.

**Rounding.** The enumeration is exact for weights that are rounded down. For each enumerated group, r(G) is computed in
float64 with at most d + s² + 8 roundings per term and one per cut, and this error is subtracted. The final sum is
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
    """A proven lower bound on the SSE, with the multipliers that prove it."""

    value: float  # the bound
    # The repaired multipliers: no group of a size that matters has a negative reduced cost.
    duals: Floats
    cuts: Cuts
    tolerance: float  # the amount subtracted for rounding
    columns: GroupColumns  # the groups whose reduced cost was negative before the repair
    visited: int  # number of prefixes that the enumeration visited


def sizes_that_matter(n: int, k: int, cuts: Cuts) -> range:
    """Return the group sizes that a proof must price.

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
    """Return the bound that the multipliers prove, or None if too many groups violate them or a stop is requested.

    The duals may be any numbers; the prices of cuts must not be negative. For each group size, `room` limits the number
    of groups found, and `max_visits` the number of prefixes visited.
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
    # Storing each repaired dual π − f rounds it by up to one unit in the last place.
    value -= abs(value) * 2.0**-50
    return Bound(value, duals - fix, cuts, tolerance, GroupColumns.of(X, violating), visited)
