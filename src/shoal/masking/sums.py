"""Sums that are kept: rules such as ``total = wages + capital``, and the totals of columns of whole numbers.

Means keep sums, rounded means do not: the total is added up again from its released parts. Where these are whole
numbers each may be rounded up or down, so that parts and totals together move as little as possible.

Where columns keep their totals, groups g of n_g records with means m_g get whole numbers v_g within the range of their
records, so that Σ n_g·v_g comes as near as possible to a given total, with the least Σ n_g·(v_g − m_g)². Each size of
groups has a convex cost of the steps that its groups take together, and the sizes are combined by dynamic programming
over what the total lacks. Cost: O(H²·Σ 1/n) over the different sizes n, where H, how far sums may be from the total on
the way, is bounded.
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
TOLERANCE, TOLERANCE_32 = 1e-12, 1e-6  # of rounding, relative to all that is added up
EXACT, EXACT_32 = 2.0**53, 2.0**24  # whole numbers up to here are added without rounding
WORK = 2.5e7  # of dynamic programming for one total
LARGEST = 2.0**62  # no total may be larger


@dataclass(frozen=True)
class Rule:
    """A column that is the sum of others; columns by name, or by their place."""

    total: Name
    parts: tuple[tuple[int, Name], ...]  # signs and columns
    text: str = ""

    @property
    def columns(self) -> list[Name]:
        """All columns, the total first."""
        return [self.total, *(name for _, name in self.parts)]

    def renamed(self, names: Mapping[Name, Name]) -> Rule:
        """Return the rule with other names of its columns."""
        return Rule(names[self.total], tuple((sign, names[name]) for sign, name in self.parts), self.text)


def read_rule(text: str) -> Rule:
    """Read a rule; names with blanks or signs stand in backticks or quotes.

    Examples
    --------
    >>> read_rule("`net income` = income - cost").parts
    ((1, 'income'), (-1, 'cost'))
    """
    words: list[tuple[bool, str]] = []  # whether it is a sign, and the word
    at = 0
    while isinstance(text, str) and (found := TOKEN.match(text, at)):
        *quoted, sign = found.groups()
        words.append((sign is not None, sign or next(filter(None, quoted), "")))
        at = found.end()
    shape = "".join(word if sign else "x" for sign, word in words).replace("−", "-")
    if not isinstance(text, str) or at < len(text) or not re.fullmatch(r"x=[+-]?x([+-]x)*", shape):
        raise InputError(
            f"{parameter('sums')} must hold rules such as 'total = wages + capital', got {text!r}. Put names with "
            "blanks or signs in backticks: '`net income` = income - cost'."
        )
    names = [word for sign, word in words if not sign]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{parameter('sums')} names column {name!r} twice in {text!r}. Name it once.")
    signs = re.findall(r"[+-]", shape) if re.search(r"=[+-]", shape) else ["+", *re.findall(r"[+-]", shape)]
    parts = tuple((1 if sign == "+" else -1, name) for sign, name in zip(signs, names[1:], strict=True))
    return Rule(names[0], parts, text)


def in_order(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """Put rules in an order in which every total is added up before it is a part; refuse those that have none.

    Examples
    --------
    >>> [rule.total for rule in in_order([read_rule("all = total + tax"), read_rule("total = a + b")])]
    ['total', 'all']
    """
    totals = [rule.total for rule in rules]
    for name in totals:
        if totals.count(name) > 1:
            raise InputError(
                f"{parameter('sums')} has two rules for column {name!r}, which can be computed in one way only. "
                "Rewrite one of them, so that it computes another of its columns."
            )
    ordered: list[Rule] = []
    left = list(rules)
    while left:
        open_totals = {rule.total for rule in left}
        ready = [rule for rule in left if not open_totals.intersection(rule.columns[1:])]
        if not ready:
            texts = listed([repr(rule.text) for rule in left])
            raise InputError(f"The rules of {parameter('sums')} are circular: {texts}. Leave one of them out.")
        ordered += ready
        left = [rule for rule in left if rule not in ready]
    return tuple(ordered)


class Broken(NamedTuple):
    """The records of a part that break a rule."""

    records: int = 0
    first: int = 0  # the number of the first of them, from 1 in the whole table
    difference: float = 0.0  # of that record, between its total and the sum of its parts
    tolerance: float = 0.0  # what rounding explains of it


def rounding_of(rule: Rule, decimals: Mapping[Name, int | None]) -> float:
    """Return how far rounding to the decimals of their columns may take a total from the sum of its parts.

    That is half a unit of the last decimal for every column. Whole numbers are exact, and so are numbers with all
    digits (None).

    Examples
    --------
    >>> rounding_of(read_rule("t = a + b"), {"t": 1, "a": 1, "b": 0})
    0.1
    """
    return sum(0.5 * 10.0**-places for name in rule.columns if (places := decimals[name]))


def count_broken(rule: Rule, columns: Mapping[Name, Column], before: int = 0, rounding: float = 0.0) -> Broken:
    """Count the records of a part, after the `before` first, whose total differs from the sum by more than `rounding`.

    Sums of floats may also differ in their last digits, those of whole numbers may not. A record that misses one of
    the columns breaks nothing.

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
    """Add up the parts from the left, as a reader would."""
    (sign, first), *others = rule.parts
    total = sign * values[first]
    for sign, name in others:
        total = total + sign * values[name]
    return total


def add_up(values: Floats, rules: Sequence[Rule], single: Bools) -> Floats:
    """Return released values, one row per group, with all totals added up from their parts, in the order of the rules.

    A total stays as it is where it or a part is missing, and is 0 where no more than rounding would be left of it.
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
    """Round parts to whole numbers so that parts and totals move least: the sum of squares over all of them.

    From `start`, one number after the other goes to its other side, `low` or `high`, as long as that helps, the
    best first. That finds the optimum of a single rule: parts that are left differ in what a step costs them, not in
    what it does for the total.
    """
    rounded = start.copy()
    holes = np.isnan(values)
    patterns, which = np.unique(holes, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        active = [rule for rule in rules if not pattern[rule.columns].any()]
        rows = np.flatnonzero(which.reshape(-1) == number)
        if active:
            totals = [rule.total for rule in active]
            free = np.array([j for j in range(len(pattern)) if j not in totals and not pattern[j]])
            at = np.ix_(rows, free)
            rounded[at] = _step(values[at], low[at], high[at], start[at], _effects(active, len(pattern))[:, free])
    return rounded


def _effects(rules: Sequence[Rule], columns: int) -> Floats:
    """Return what one more of each column adds to each total."""
    effects = np.eye(columns)
    for rule in rules:
        effects[rule.total] = sum(sign * effects[place] for sign, place in rule.parts)
    return effects[[rule.total for rule in rules]]


def _step(values: Floats, low: Floats, high: Floats, start: Floats, effects: Floats) -> Floats:
    """Take single steps within bounds, the best of each group, as long as the sum of squares falls."""
    rounded, rows = start.copy(), np.arange(len(values))
    own = 1.0 + np.square(effects).sum(axis=0)
    while len(rows):
        off = rounded[rows] - values[rows]
        slope = 2 * (off + off @ effects.T @ effects)
        gains = np.stack([own + slope, own - slope])  # of a step up, of a step down
        gains[0][rounded[rows] >= high[rows]] = np.inf
        gains[1][rounded[rows] <= low[rows]] = np.inf
        best = gains.transpose(1, 0, 2).reshape(len(rows), -1).argmin(axis=1)
        up, column = best < values.shape[1], best % values.shape[1]
        helps = gains[np.where(up, 0, 1), np.arange(len(rows)), column] < -1e-9
        rows, up, column = rows[helps], up[helps], column[helps]
        rounded[rows, column] += np.where(up, 1.0, -1.0)
    return rounded


def whole_total(values: Floats) -> int:
    """Return the total of whole numbers that are not missing; 0 if they are not whole, or too large.

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
    """Round the means of the groups of a column of whole numbers so that the total of every block is kept.

    The means are NaN where cells are missing; with `nonzero` only zero itself may become zero.
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
        least, most, added = (found[here].astype(np.int64) for found in (low, high, sums))
        rounded[here] = keep_total(means[here], sizes[here], least, most, int(added.sum()))
    return rounded


def keep_total(means: Floats, sizes: Ints, low: Ints, high: Ints, total: int) -> Ints:
    """Round the means of groups, within `low` and `high`, so that their records add up to a total as nearly as can be.

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
    """Let groups take a step each, the cheapest first, until the total is near."""
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
    """Return the cheapest steps of some groups in one direction, and what each adds to the squared error of a record.

    A group may take several; a later one costs more.
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
    """Return the least cost of each sum once groups of another size have taken some steps, and how many."""
    best, chosen = np.full_like(costs, np.inf), np.zeros(len(costs), dtype=np.int64)
    for steps, price in zip(ways.tolist(), prices.tolist(), strict=True):
        shift = steps * size
        here = slice(max(0, shift), len(costs) + min(0, shift))
        there = costs[max(0, -shift) : len(costs) - max(0, shift)] + price
        better = there < best[here]
        best[here][better] = there[better]
        chosen[here][better] = steps
    return best, chosen
