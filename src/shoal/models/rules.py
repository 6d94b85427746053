"""How far a group is from being allowed: every model as one rule on the codes of a column.

A group is given by the sorted codes of its members; a rule costs O(s) for a group of s. To add a model: a number, a
line in `measure` and one in `shortfall`, and a class in `shoal.models.model` that names it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.core.compiling import kernel
from shoal.core.types import Floats, Ints

__all__ = [
    "DISTINCT",
    "ENTROPY",
    "NOMINAL",
    "ORDERED",
    "RECURSIVE",
    "Rules",
    "group_shortfall",
    "measure",
    "shortfall",
    "with_masses",
]

DISTINCT, ENTROPY, RECURSIVE, ORDERED, NOMINAL = range(5)
ROUNDING = 1e-12  # of distances and entropies
TABLED = 128  # sizes of groups


class Rules(NamedTuple):
    """Rules that groups must keep, as arrays; values of column c are numbered 0 … m−1 in their order."""

    kinds: Ints
    bounds: Floats  # l or t
    factors: Floats  # c of recursive diversity
    codes: Ints  # (rules, n): the code of each record
    first: Ints  # (rules + 1,): where the values of each rule begin in the next four
    shares: Floats  # of each value in the whole table
    below: Floats  # of this value and those before it
    guide: Ints  # for value i of m: the first value with at least the share i / m below, where a level is looked for
    areas: Floats  # sums of `below` before this value; one more for each rule
    masses: Floats  # (rules, sizes, levels): `_mass` of j / s, where it was asked for (`with_masses`)


@kernel(counted=False)
def _run_end(codes: Ints, begin: int, size: int) -> int:
    end = begin + 1
    while end < size and codes[end] == codes[begin]:
        end += 1
    return end


@kernel(counted=False)
def _distinct(codes: Ints, size: int) -> int:
    count = 1
    for j in range(1, size):
        if codes[j] != codes[j - 1]:
            count += 1
    return count


@kernel(counted=False)
def _entropy(codes: Ints, size: int) -> float:
    entropy, begin = 0.0, 0
    while begin < size:
        end = _run_end(codes, begin, size)
        share = (end - begin) / size
        entropy -= share * np.log(share)
        begin = end
    return entropy


@kernel(counted=False)
def _recursive(codes: Ints, size: int, rare: int) -> float:
    """Return r_1 / (r_l + … + r_m) for counts r in descending order; infinite if there are fewer than l values.

    The most frequent values are found one after the other, of equal ones the lowest first: no memory is asked for.
    """
    largest, frequent, before, place = 0, 0, size + 1, -1
    for value in range(rare):
        count, found, begin = 0, -1, 0
        while begin < size:
            end = _run_end(codes, begin, size)
            later = end - begin < before or (end - begin == before and begin > place)
            if later and end - begin > count:
                count, found = end - begin, begin
            begin = end
        if found < 0:
            return np.inf
        if value == 0:
            largest = count
        if value < rare - 1:
            frequent += count
        before, place = count, found
    return largest / (size - frequent)


@kernel(counted=False)
def _mass(level: float, below: Floats, guide: Ints, areas: Floats) -> float:
    """Return the integral of the table's quantiles (numbers of values) from 0 to a level.

    The value at this level the guide tells within a few steps (the cutpoint method, Chen and Asau 1974).
    """
    m = len(below)
    value = guide[min(int(level * m), m - 1)]
    while value < m - 1 and below[value] < level:  # rounded, a level may be above 1
        value += 1
    mass: float = value * level - areas[value]
    return mass


@kernel(counted=False, error_model="numpy")
def _ordered(codes: Ints, size: int, below: Floats, guide: Ints, areas: Floats, masses: Floats) -> float:
    """Return the earth mover's distance Σ_i |Σ_{j≤i} (p_j − q_j)| / (m−1) from the table's distribution q.

    It is the mean distance of quantiles: the j-th of s members is compared with the quantiles from (j−1)/s to j/s, of
    which those up to `below` of its own value are not above it.
    """
    m = len(below)
    if m < 2:
        return 0.0
    total, low, low_mass, share, tabled = 0.0, 0.0, 0.0, 1.0 / size, size < len(masses)
    for j in range(size):
        code, high = codes[j], (j + 1) * share
        mass = masses[size, j + 1] if tabled else _mass(high, below, guide, areas)
        # All three are computed: to choose among them is faster than to branch.
        above, own = mass - low_mass - code * share, mass + low_mass - code * (high + low) + 2 * areas[code]
        added = -above if below[code] >= high else own
        total += above if below[code] <= low else added
        low, low_mass = high, mass
    return total / (m - 1)


@kernel(counted=False)
def _nominal(codes: Ints, size: int, shares: Floats) -> float:
    """Return the total variation distance from the table's distribution."""
    apart, seen, begin = 0.0, 0.0, 0
    while begin < size:
        end = _run_end(codes, begin, size)
        share = shares[codes[begin]]
        apart += abs((end - begin) / size - share)
        seen += share
        begin = end
    return (apart + 1.0 - seen) / 2


@kernel(counted=False)
def measure(rules: Rules, rule: int, codes: Ints, size: int) -> float:
    """Return what a group reaches: a number of values, an entropy, a ratio or a distance."""
    kind, first, last = rules.kinds[rule], rules.first[rule], rules.first[rule + 1]
    if kind == DISTINCT:
        return float(_distinct(codes, size))
    if kind == ENTROPY:
        return _entropy(codes, size)
    if kind == RECURSIVE:
        return _recursive(codes, size, int(rules.bounds[rule]))
    if kind == ORDERED:
        areas = rules.areas[first + rule : last + rule + 1]
        return _ordered(codes, size, rules.below[first:last], rules.guide[first:last], areas, rules.masses[rule])
    return _nominal(codes, size, rules.shares[first:last])


@kernel(counted=False)
def shortfall(rules: Rules, rule: int, codes: Ints, size: int) -> float:
    """Return how far a group is from being allowed; 0 if it is. The codes of its members are sorted."""
    kind = rules.kinds[rule]
    bound: float = rules.bounds[rule]
    factor: float = rules.factors[rule]
    found = measure(rules, rule, codes, size)
    if kind == DISTINCT:
        return max(0.0, 1.0 - found / bound)
    if kind == ENTROPY:
        lacking: float = np.log(bound) - found
        return lacking if lacking > ROUNDING else 0.0
    if kind == RECURSIVE:
        if found < factor:
            return 0.0
        # Infinite if there are too few values: then each that is missing counts.
        return 1.0 + bound - _distinct(codes, size) if found == np.inf else 1.0 - factor / (found + 1.0)
    return max(0.0, found - bound) if found - bound > ROUNDING else 0.0


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
    """Return the rules with a table that makes distances of small groups faster to compute."""
    return rules._replace(masses=_masses(rules, TABLED)) if ORDERED in rules.kinds else rules


@kernel
def group_shortfall(rules: Rules, rule: int, rows: Ints, labels: Ints, groups: int) -> tuple[Floats, Floats]:
    """Return of each group how far it is from being allowed, and what it reaches.

    Parameters
    ----------
    rules, rule
        The rules and the one that is looked at.
    rows, labels, groups
        Records, the group of each, and how many groups there are.
    """
    starts = np.zeros(groups + 1, dtype=np.int64)
    for label in labels:
        starts[label + 1] += 1
    for group in range(groups):
        starts[group + 1] += starts[group]
    place, codes = starts[:-1].copy(), np.empty(len(rows), dtype=np.int64)
    for i in range(len(rows)):
        codes[place[labels[i]]] = rules.codes[rule, rows[i]]
        place[labels[i]] += 1
    lacks, found = np.zeros(groups), np.zeros(groups)
    for group in range(groups):
        members = np.sort(codes[starts[group] : starts[group + 1]])
        lacks[group] = shortfall(rules, rule, members, len(members))
        found[group] = measure(rules, rule, members, len(members))
    return lacks, found
