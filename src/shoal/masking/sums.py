"""Sum rules, such as ``total = wages + capital``, and totals of columns of whole numbers, kept in the release.

Means satisfy sum rules, but rounded means do not, so each total is computed again from its released parts. Whole
numbers are rounded up or down so that parts and totals together change as little as possible.

To keep the total of a column, each group g of n_g records with mean m_g gets a whole number v_g within the range of its
records. Σ n_g·v_g is then as near as possible to the total, with the least Σ n_g·(v_g − m_g)². For each group size, the
cost is convex in the number of steps, each of which changes a v_g by 1. Dynamic programming over the remaining
difference combines the sizes. Cost: O(H²·Σ 1/n) over the distinct sizes n, where H bounds the intermediate differences
from the total.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shoal.core.errors import InputError
from shoal.core.measures import group_sizes
from shoal.core.messages import listed, parameter
from shoal.core.types import Bools, Floats, Ints
from shoal.kinds.column import Column, is_whole
from shoal.tables.columns import Name

__all__ = [
    "LARGEST",
    "Broken",
    "Rule",
    "add_up",
    "count_broken",
    "in_order",
    "keep_total",
    "keep_totals",
    "read_rule",
    "round_together",
    "rounding_of",
    "whole_total",
]

TOKEN = re.compile(r"""\s*(?:`([^`]+)`|"([^"]+)"|'([^']+)'|([^\s=+\-−`"']+)|([=+\-−]))\s*""")
TOLERANCE, TOLERANCE_32 = 1e-12, 1e-6  # rounding error of a sum, relative to the sum of absolute values
EXACT, EXACT_32 = 2.0**53, 2.0**24  # sums of whole numbers up to this value are exact
WORK = 2.5e7  # limit on the steps of dynamic programming per total
LARGEST = 2.0**62  # upper limit of totals


@dataclass(frozen=True)
class Rule:
    """A sum rule: a total and its signed parts, which are columns by name or by index."""

    total: Name
    parts: tuple[tuple[int, Name], ...]  # signs and columns
    text: str = ""

    @property
    def columns(self) -> list[Name]:
        """All columns of the rule, the total first."""
        return [self.total, *(name for _, name in self.parts)]

    def renamed(self, names: Mapping[Name, Name]) -> Rule:
        """Return the rule with other column names."""
        return Rule(names[self.total], tuple((sign, names[name]) for sign, name in self.parts), self.text)


def read_rule(text: str) -> Rule:
    """Parse a sum rule; column names with spaces or signs must be in backticks or quotes.

    Examples
    --------
    >>> read_rule("`net income` = income - cost").parts
    ((1, 'income'), (-1, 'cost'))
    """
    words: list[tuple[bool, str]] = []  # True for a sign, and the token
    at = 0
    while isinstance(text, str) and (match := TOKEN.match(text, at)):
        *quoted, sign = match.groups()
        words.append((sign is not None, sign or next(filter(None, quoted), "")))
        at = match.end()
    shape = "".join(word if sign else "x" for sign, word in words).replace("−", "-")
    if not isinstance(text, str) or at < len(text) or not re.fullmatch(r"x=[+-]?x([+-]x)*", shape):
        raise InputError(
            f"{parameter('sums')} must contain rules such as 'total = wages + capital', got {text!r}. Put names "
            "with spaces or operators in backticks: '`net income` = income - cost'."
        )
    names = [word for sign, word in words if not sign]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{parameter('sums')} names column {name!r} twice in {text!r}. Name it once.")
    signs = re.findall(r"[+-]", shape) if re.search(r"=[+-]", shape) else ["+", *re.findall(r"[+-]", shape)]
    parts = tuple((1 if sign == "+" else -1, name) for sign, name in zip(signs, names[1:], strict=True))
    return Rule(names[0], parts, text)


def in_order(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """Sort rules so that every total is computed before it is used as a part; refuse circular rules.

    Examples
    --------
    >>> [rule.total for rule in in_order([read_rule("all = total + tax"), read_rule("total = a + b")])]
    ['total', 'all']
    """
    totals = [rule.total for rule in rules]
    for name in totals:
        if totals.count(name) > 1:
            raise InputError(
                f"{parameter('sums')} has two rules for column {name!r}, which needs a single one. Rewrite one of them "
                "so that it computes another of its columns."
            )
    ordered: list[Rule] = []
    remaining = list(rules)
    while remaining:
        open_totals = {rule.total for rule in remaining}
        ready = [rule for rule in remaining if not open_totals.intersection(rule.columns[1:])]
        if not ready:
            texts = listed([repr(rule.text) for rule in remaining])
            raise InputError(f"The rules of {parameter('sums')} are circular: {texts}. Leave one of them out.")
        ordered += ready
        remaining = [rule for rule in remaining if rule not in ready]
    return tuple(ordered)


class Broken(NamedTuple):
    """The records of a part that break a sum rule: their number, and the figures of the first record."""

    records: int = 0
    first: int = 0  # number of the first record in the whole table, from 1
    difference: float = 0.0  # between the total of the first record and the sum of its parts
    tolerance: float = 0.0  # largest difference explained by rounding


def rounding_of(rule: Rule, decimals: Mapping[Name, int | None]) -> float:
    """Return the largest difference between a total and the sum of its parts that rounding of the columns explains.

    Every column adds half a unit of its last decimal. Whole numbers and numbers with all digits (None) are exact.

    Examples
    --------
    >>> rounding_of(read_rule("t = a + b"), {"t": 1, "a": 1, "b": 0})
    0.1
    """
    return sum(0.5 * 10.0**-places for name in rule.columns if (places := decimals[name]))


def count_broken(rule: Rule, columns: Mapping[Name, Column], before: int = 0, rounding: float = 0.0) -> Broken:
    """Count the records of a part whose total differs from the sum by more than `rounding`.

    `before` is the number of earlier records. Sums of floats may also differ in their last digits; sums of whole
    numbers may not. A record with a missing value in a column of the rule does not break it.

    Examples
    --------
    >>> rule = read_rule("t = a + b")
    >>> cells = {"t": [0.3, 3.0, 3.0], "a": [0.1, 1.0, 1.0], "b": [0.2, 2.0, 3.0]}
    >>> count_broken(rule, {name: Column(name, np.array(values)) for name, values in cells.items()})
    Broken(records=1, first=3, difference=1.0, tolerance=0.0)
    """
    single = any(columns[name].type == "float32" for name in rule.columns)
    values = [columns[name].values for name in rule.columns]
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.sum(np.abs(values), axis=0)
        off = np.abs(_sum(rule, {name: columns[name].values for name in rule.columns[1:]}) - values[0])
    whole = np.all([np.rint(column) == column for column in values], axis=0)
    exact = whole & (size <= (EXACT_32 if single else EXACT))
    tolerance = np.where(exact, 0.0, size * (TOLERANCE_32 if single else TOLERANCE)) + rounding
    broken = off > tolerance
    if not broken.any():
        return Broken()
    first = int(np.argmax(broken))
    return Broken(int(np.count_nonzero(broken)), before + first + 1, float(off[first]), float(tolerance[first]))


def _sum(rule: Rule, values: Mapping[Name, Floats]) -> Floats:
    """Return the sum of the parts, added from left to right."""
    (sign, first), *others = rule.parts
    total = sign * values[first]
    for sign, name in others:
        total = total + sign * values[name]
    return total


def add_up(values: Floats, rules: Sequence[Rule], single: Bools) -> Floats:
    """Return the released values with every total computed from its parts, in the order of the rules.

    The values have one row per group. A total is unchanged if it or a part is missing. A total of 0 stays 0 if the sum
    of its parts differs from 0 only by rounding error.
    """
    values = values.copy()
    for rule in rules:
        parts = {place: values[:, place] for place in rule.columns[1:]}
        old, new = values[:, rule.total], _sum(rule, parts)
        scale = np.sum(np.abs(list(parts.values())), axis=0)
        new = np.where((old == 0) & (np.abs(new) <= TOLERANCE / 10 * scale), 0.0, new)
        new = new.astype(np.float32) if single[rule.total] else new
        values[:, rule.total] = np.where(np.isnan(old) | np.isnan(new), old, new)
    return values


def round_together(values: Floats, low: Floats, high: Floats, start: Floats, rules: Sequence[Rule]) -> Floats:
    """Round parts to whole numbers with the least sum of squared changes over parts and totals.

    From `start`, take the best single step between `low` and `high` until no step improves the sum. For a single rule
    this is optimal, because steps of different parts change the total equally and differ only in cost.
    """
    rounded = start.copy()
    holes = np.isnan(values)
    patterns, pattern_of = np.unique(holes, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        active = [rule for rule in rules if not pattern[rule.columns].any()]
        rows = np.flatnonzero(pattern_of.reshape(-1) == number)
        if active:
            totals = [rule.total for rule in active]
            free = np.array([j for j in range(len(pattern)) if j not in totals and not pattern[j]])
            at = np.ix_(rows, free)
            rounded[at] = _step(values[at], low[at], high[at], start[at], _effects(active, len(pattern))[:, free])
    return rounded


def _effects(rules: Sequence[Rule], columns: int) -> Floats:
    """Return the change of each total when one column increases by 1, for every column."""
    effects = np.eye(columns)
    for rule in rules:
        effects[rule.total] = sum(sign * effects[place] for sign, place in rule.parts)
    return effects[[rule.total for rule in rules]]


def _step(values: Floats, low: Floats, high: Floats, start: Floats, effects: Floats) -> Floats:
    """Change each group by its best single step within the bounds, until the sum of squares stops falling."""
    rounded, rows = start.copy(), np.arange(len(values))
    own = 1.0 + np.square(effects).sum(axis=0)
    while len(rows):
        off = rounded[rows] - values[rows]
        slope = 2 * (off + off @ effects.T @ effects)
        gains = np.stack([own + slope, own - slope])  # change of the sum by a step up, and by a step down
        gains[0][rounded[rows] >= high[rows]] = np.inf
        gains[1][rounded[rows] <= low[rows]] = np.inf
        best = gains.transpose(1, 0, 2).reshape(len(rows), -1).argmin(axis=1)
        up, column = best < values.shape[1], best % values.shape[1]
        helps = gains[np.where(up, 0, 1), np.arange(len(rows)), column] < -1e-9
        rows, up, column = rows[helps], up[helps], column[helps]
        rounded[rows, column] += np.where(up, 1.0, -1.0)
    return rounded


def whole_total(values: Floats) -> int:
    """Return the total of the non-missing values; 0 if the values are too large or not whole.

    Examples
    --------
    >>> whole_total(np.array([2.0, np.nan, 3.0])), whole_total(np.array([0.5]))
    (5, 0)
    """
    seen = values[~np.isnan(values)]
    if not is_whole(seen) or np.abs(seen).max() * len(seen) >= LARGEST:
        return 0
    return int(seen.astype(np.int64).sum())


def keep_totals(means: Floats, column: Floats, labels: Ints, block: Ints, *, nonzero: bool) -> Floats:
    """Round the group means of a column of whole numbers so that every block keeps its total.

    Means are NaN where values are missing; with `nonzero`, only a mean of zero may become zero.
    """
    order = np.argsort(labels, kind="stable")
    sizes = group_sizes(labels)
    starts = np.cumsum(sizes) - sizes
    sums, low, high = (function.reduceat(column[order], starts) for function in (np.add, np.minimum, np.maximum))
    if nonzero:
        low = np.where(means > 0, np.maximum(low, 1), low)
        high = np.where(means < 0, np.minimum(high, -1), high)
    rounded = np.rint(means)
    blocks = np.where(np.isnan(means), -1, block[order][starts])
    for number in np.unique(blocks[blocks >= 0]):
        here = np.flatnonzero(blocks == number)
        least, most, added = (values[here].astype(np.int64) for values in (low, high, sums))
        rounded[here] = keep_total(means[here], sizes[here], least, most, int(added.sum()))
    return rounded


def keep_total(means: Floats, sizes: Ints, low: Ints, high: Ints, total: int) -> Ints:
    """Round group means within `low` and `high` so that the sum over all records is as near as possible to a total.

    Examples
    --------
    >>> keep_total(np.array([0.4, 0.4, 0.5]), np.array([5, 5, 4]), np.zeros(3), np.full(3, 3), 6).tolist()
    [1, 0, 0]
    """
    values = np.clip(np.rint(means), low, high).astype(np.int64)
    different = np.unique(sizes)
    most = int(np.sqrt(WORK / np.sum(1 / different)))
    values = _approach(values, means, sizes, low, high, total, most // 2)
    short = int(total - sizes @ values)
    reach = min(most, abs(short) + int(different[-1]) ** 2)
    goal = int(np.clip(short, -reach, reach))
    costs = np.full(2 * reach + 1, np.inf)
    costs[reach] = 0.0
    taken: list[tuple[Ints, Ints, Ints, Ints]] = []
    for size in different[different <= reach].tolist():
        groups = np.flatnonzero(sizes == size)
        up, gain = _steps(values[groups], means[groups], high[groups], 1, reach // size)
        down, loss = _steps(values[groups], means[groups], low[groups], -1, reach // size)
        ways = np.arange(-len(down), len(up) + 1)
        prices = size * np.concatenate([np.cumsum(loss)[::-1], [0.0], np.cumsum(gain)])
        costs, chosen = _combine(costs, ways, prices, size)
        taken.append((np.array(size), groups[up], groups[down], chosen))
    off = np.abs(np.arange(-reach, reach + 1) - goal)
    off = np.where(np.isfinite(costs), off, 2 * reach + 1)
    nearest = np.flatnonzero(off == off.min())
    at = int(nearest[np.argmin(costs[nearest])])
    for size, up, down, chosen in reversed(taken):
        steps = int(chosen[at])
        np.add.at(values, up[:steps] if steps > 0 else down[:-steps], np.sign(steps))
        at -= int(size) * steps
    return values


def _approach(values: Ints, means: Floats, sizes: Ints, low: Ints, high: Ints, total: int, near: int) -> Ints:
    """Change groups by 1 towards the total, the cheapest first, until the difference is at most `near`."""
    while abs(short := int(total - sizes @ values)) > near:
        sign = 1 if short > 0 else -1
        able = np.flatnonzero(values != (high if sign > 0 else low))
        order = able[np.argsort(sign * (values[able] - means[able]), kind="stable")]
        order = order[np.cumsum(sizes[order]) <= abs(short)]
        if not len(order):
            break
        values = values.copy()
        values[order] += sign
    return values


def _steps(values: Ints, means: Floats, limit: Ints, sign: int, most: int) -> tuple[Ints, Floats]:
    """Return the group of each of the cheapest steps in one direction, and the squared error per record that it adds.

    A group may take several steps, each at a higher cost than the previous step.
    """
    who, costs = np.empty(0, dtype=np.int64), np.empty(0)
    for step in range(most):
        able = np.flatnonzero(sign * (limit - values) > step)
        new = 2 * (sign * (values[able] - means[able]) + step) + 1
        if not len(able) or (len(costs) == most and new.min() >= costs[-1]):
            break
        who, costs = np.concatenate([who, able]), np.concatenate([costs, new])
        order = np.argsort(costs, kind="stable")[:most]
        who, costs = who[order], costs[order]
    return who, costs


def _combine(costs: Floats, ways: Ints, prices: Floats, size: int) -> tuple[Floats, Ints]:
    """Add steps of groups of one more size; return the least cost of each sum, and the number of these steps."""
    best, chosen = np.full_like(costs, np.inf), np.zeros(len(costs), dtype=np.int64)
    for steps, price in zip(ways.tolist(), prices.tolist(), strict=True):
        shift = steps * size
        here = slice(max(0, shift), len(costs) + min(0, shift))
        there = costs[max(0, -shift) : len(costs) - max(0, shift)] + price
        better = there < best[here]
        best[here][better] = there[better]
        chosen[here][better] = steps
    return best, chosen
