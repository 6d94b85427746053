"""t-closeness: the distribution of each group is within a distance t of the whole table (Li et al. 2007).

A group of s records is measured in O(s); after a swap, only the members between the two codes are measured again. A
table of quantiles speeds up small groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any, ClassVar

import numpy as np

from shoal.core.compiler import kernel
from shoal.core.errors import InputError
from shoal.core.messages import parameter
from shoal.core.types import Floats, Ints
from shoal.promises.promise import ROUNDING, GroupPromise, RuleKind, Rules, is_number, run_end

__all__ = ["Closeness", "least_size", "with_masses"]

TABLED = 128  # group sizes in the table of quantiles


@kernel(counted=False)
def _mass(level: float, below: Floats, guide: Ints, areas: Floats) -> float:
    """Return the integral of the table's quantiles (as value numbers) from 0 to a level.

    The guide finds the value at this level within a few steps (the cutpoint method, Chen and Asau 1974).
    """
    m = len(below)
    value = guide[min(int(level * m), m - 1)]
    while value < m - 1 and below[value] < level:  # a rounded level may exceed 1
        value += 1
    mass: float = value * level - areas[value]
    return mass


@kernel(inline=True)
def _moved(code: int, low: float, high: float, low_mass: float, mass: float, below: Floats, areas: Floats) -> float:
    """Return the total distance of a member with this code from the quantiles between the levels `low` and `high`."""
    # Compute all three: selecting among them is faster than branching.
    above, crossing = mass - low_mass - code * (high - low), mass + low_mass - code * (high + low) + 2 * areas[code]
    added = -above if below[code] >= high else crossing
    return above if below[code] <= low else added


@kernel(counted=False, error_model="numpy")
def _distance(codes: Ints, size: int, below: Floats, guide: Ints, areas: Floats, masses: Floats) -> float:
    """Return the earth mover's distance Σ_i |Σ_{j≤i} (p_j − q_j)| / (m−1) from the table's distribution q.

    This is the mean distance of quantiles: the j-th of s members is compared with the quantiles from (j−1)/s to j/s, of
    which those up to `below` of its own value do not exceed it.
    """
    m = len(below)
    if m < 2:
        return 0.0
    total, low, low_mass, share, tabled = 0.0, 0.0, 0.0, 1.0 / size, size < len(masses)
    for j in range(size):
        high = (j + 1) * share
        mass = masses[size, j + 1] if tabled else _mass(high, below, guide, areas)
        total += _moved(codes[j], low, high, low_mass, mass, below, areas)
        low, low_mass = high, mass
    return total / (m - 1)


@kernel(counted=False, error_model="numpy")
def _change(
    members: Ints, size: int, out: int, into: int, below: Floats, guide: Ints, areas: Floats, masses: Floats
) -> float:
    """Return the change of `_distance` after a swap of members; the members between them move by one position."""
    m, up = len(below), into > out
    if m < 2:
        return 0.0
    begin = np.searchsorted(members[:size], out if up else into)
    end = np.searchsorted(members[:size], into) if up else np.searchsorted(members[:size], out) + 1
    total, share, tabled = 0.0, 1.0 / size, size < len(masses)
    low: float = begin * share
    low_mass = masses[size, begin] if tabled else _mass(low, below, guide, areas)
    for j in range(begin, end):
        high = (j + 1) * share
        mass = masses[size, j + 1] if tabled else _mass(high, below, guide, areas)
        neighbour = j + 1 if up else j - 1
        new = (members[neighbour] if begin <= neighbour < end else into) >> 32
        total += _moved(new, low, high, low_mass, mass, below, areas)
        total -= _moved(members[j] >> 32, low, high, low_mass, mass, below, areas)
        low, low_mass = high, mass
    return total / (m - 1)


@kernel(counted=False)
def _ordered(rules: Rules, rule: int, codes: Ints, size: int) -> tuple[float, float]:
    first, last = rules.first[rule], rules.first[rule + 1]
    areas = rules.areas[first + rule : last + rule + 1]
    reached = _distance(codes, size, rules.below[first:last], rules.guide[first:last], areas, rules.masses[rule])
    return reached, reached - rules.bounds[rule] if reached - rules.bounds[rule] > ROUNDING else 0.0


@kernel(counted=False)
def _swapped(
    rules: Rules, rule: int, members: Ints, size: int, out: int, into: int, reached: float
) -> tuple[float, float]:
    first, last = rules.first[rule], rules.first[rule + 1]
    areas, guide = rules.areas[first + rule : last + rule + 1], rules.guide[first:last]
    reached += _change(members, size, out, into, rules.below[first:last], guide, areas, rules.masses[rule])
    return reached, reached - rules.bounds[rule] if reached - rules.bounds[rule] > ROUNDING else 0.0


@kernel(counted=False)
def _nominal(rules: Rules, rule: int, codes: Ints, size: int) -> tuple[float, float]:
    """Return the total variation distance from the table's distribution, and its excess over the bound."""
    distance, covered, begin = 0.0, 0.0, 0
    while begin < size:
        end = run_end(codes, begin, size)
        share = rules.shares[rules.first[rule] + codes[begin]]
        distance += abs((end - begin) / size - share)
        covered += share
        begin = end
    reached = (distance + 1.0 - covered) / 2
    return reached, reached - rules.bounds[rule] if reached - rules.bounds[rule] > ROUNDING else 0.0


@kernel
def _masses(rules: Rules, sizes: int) -> Floats:
    masses = np.zeros((len(rules.kinds), sizes, sizes))
    for rule in range(len(rules.kinds)):
        first, last = rules.first[rule], rules.first[rule + 1]
        areas = rules.areas[first + rule : last + rule + 1]
        for size in range(1, sizes):
            for j in range(1, size + 1):
                masses[rule, size, j] = _mass(j / size, rules.below[first:last], rules.guide[first:last], areas)
    return masses


def with_masses(rules: Rules) -> Rules:
    """Return the rules with a table that speeds up the distances of small groups."""
    return rules._replace(masses=_masses(rules, TABLED))


def least_size(n: int, k: int, t: float) -> int:
    """Return k′ = max(k, ⌈n / (2 (n−1) t + 1)⌉), enlarged so that groups of k′ leave few remaining records.

    Soria-Comas, Domingo-Ferrer, Sánchez and Martínez (2015).

    Examples
    --------
    >>> least_size(1080, 2, 0.05)
    10
    """
    size = max(k, ceil(n / (2 * (n - 1) * t + 1) - 1e-12))
    return size + (n % size) // (n // size)


def _size(bound: float, n: int, k: int) -> float:
    return 1.5 * least_size(n, k, bound) + 3


@dataclass(frozen=True)
class Closeness(GroupPromise):
    """t-closeness: the distribution of values in every group is within a distance t of the whole table.

    The distance is the earth mover's distance: for ordered values Σ_i |Σ_{j≤i} (p_j − q_j)| / (m−1) over the m values,
    for others the total variation (Li, Li and Venkatasubramanian 2007).

    Examples
    --------
    >>> Closeness(0.2)
    Closeness(t=0.2)
    """

    t: float
    parameter: ClassVar = "closeness"
    kinds: ClassVar = {"ordered": RuleKind(_ordered, _size, _swapped), "nominal": RuleKind(_nominal, _size)}

    def __post_init__(self) -> None:
        if self.t != 0 and not is_number(self.t, 0, 1):
            raise InputError(f"{parameter('closeness')} must be at least 0 and less than 1, got {self.t!r}.")

    @classmethod
    def read(cls, value: Any) -> Closeness:
        """Return the promise from an instance, a number or text.

        Examples
        --------
        >>> Closeness.read("0.2")
        Closeness(t=0.2)
        """
        if isinstance(value, str):
            try:
                return cls(float(value))
            except ValueError:
                raise InputError(
                    f"{parameter('closeness')} must be at least 0 and less than 1, got {value!r}."
                ) from None
        return value if isinstance(value, Closeness) else cls(value)

    @property
    def text(self) -> str:
        """The promise as written on the command line."""
        return f"{self.t!r}"

    @property
    def says(self) -> str:
        """The promise in words."""
        return f"a distribution at most {self.t:g} from that of the table"

    def rule(self, ordered: bool) -> tuple[RuleKind, float, float]:
        """Return the kind of the rule, its bound t and its factor, which is 0."""
        return self.kinds["ordered" if ordered else "nominal"], float(self.t), 0.0

    def reached_text(self, reached: float) -> str:
        """Return the distance of a group in words."""
        return f"a distance of {reached:.4g}"

    def possible(self, reached: float) -> str:
        """Return the smallest t that the groups of a table at this distance can keep."""
        return f"closeness {ceil(1e4 * reached) / 1e4:g}"

    def scaled(self, factor: float) -> Closeness | None:
        """Return a promise with a scaled t; None if t is unchanged or outside (0, 1)."""
        t = float(f"{factor * self.t:.2g}")
        return Closeness(t) if 0 < t < 1 and t != self.t else None
