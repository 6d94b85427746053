"""Rules of sums, such as ``total = wages + capital``: read, held against records, and kept when values are rounded.

Means keep sums, rounded means do not: the total is added up again from its released parts. Where these are whole
numbers each may be rounded up or down, so that parts and totals together move as little as possible.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from shoal.core.errors import InputError
from shoal.core.messages import listed, parameter
from shoal.core.types import Bools, Floats
from shoal.kinds.column import Column
from shoal.tables.columns import Name

__all__ = ["Rule", "add_up", "breaks", "count_broken", "in_order", "read_rule", "round_together"]

TOKEN = re.compile(r"""\s*(?:`([^`]+)`|"([^"]+)"|'([^']+)'|([^\s=+\-−`"']+)|([=+\-−]))\s*""")
TOLERANCE, TOLERANCE_32 = 1e-12, 1e-6  # of rounding, relative to all that is added up
EXACT, EXACT_32 = 2.0**53, 2.0**24  # whole numbers up to here are added without rounding


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


def breaks(rule: Rule, columns: Mapping[Name, Column]) -> Bools:
    """Say which records break a rule: exactly for whole numbers, but for rounding for others.

    A record that misses one of the columns breaks nothing.

    Examples
    --------
    >>> rule = read_rule("t = a + b")
    >>> cells = {"t": [0.3, 3.0, 3.0], "a": [0.1, 1.0, 1.0], "b": [0.2, 2.0, 3.0]}
    >>> breaks(rule, {name: Column(name, np.array(values)) for name, values in cells.items()}).tolist()
    [False, False, True]
    """
    single = any(columns[name].type == "float32" for name in rule.columns)
    values = [columns[name].values for name in rule.columns]
    with np.errstate(over="ignore", invalid="ignore"):
        scale = np.sum(np.abs(values), axis=0)
        off = np.abs(_sum(rule, {name: columns[name].values for name in rule.columns[1:]}) - values[0])
    whole = np.all([np.rint(column) == column for column in values], axis=0)
    exact = whole & (scale <= (EXACT_32 if single else EXACT))
    broken: Bools = off > np.where(exact, 0.0, scale * (TOLERANCE_32 if single else TOLERANCE))
    return broken


def count_broken(rule: Rule, columns: Mapping[Name, Column], before: int = 0) -> tuple[int, int]:
    """Count the records of a part that break a rule, and return the number of the first, from 1 in the whole table."""
    broken = breaks(rule, columns)
    return int(np.count_nonzero(broken)), before + int(np.argmax(broken)) + 1 if broken.any() else 0


def _sum(rule: Rule, values: Mapping[Name, Floats]) -> Floats:
    """Add up the parts from the left, as a reader would."""
    (sign, first), *others = rule.parts
    total = sign * values[first]
    for sign, name in others:
        total = total + sign * values[name]
    return total


def add_up(values: Floats, rules: Sequence[Rule], single: Bools) -> Floats:
    """Return released values with all totals added up from their parts, in the order of the rules.

    A total stays as it is where it or a part is missing, and 0 where no more than rounding would be left of it.

    Parameters
    ----------
    values
        One row a group.
    rules
        Their columns are places; in order.
    single
        Whether each column holds numbers of 32 bits.
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

    From the nearest whole numbers, one number after the other goes to its other side as long as that helps, the best
    first. That finds the optimum of a single rule: parts that are left differ in what a step costs them, not in what it
    does for the total.

    Parameters
    ----------
    values
        The means of each group, one row a group.
    low, high, start
        The whole numbers that each may become, and where it starts; equal where nothing is rounded.
    rules
        Their columns are places; in order.
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
