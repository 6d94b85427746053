"""Rules of all promises, in the form that kernels use.

A kind of rule has a number, its index in `KINDS`; the kernels here combine the kernels of all kinds, so that a search
works with any rule.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from shoal.core.compiler import kernel
from shoal.core.errors import InputError
from shoal.core.kernel_cache import PACKAGE, stop_caching
from shoal.core.messages import parameter
from shoal.core.types import Bools, Floats, Ints
from shoal.promises.promise import ConfidentialColumn, GroupPromise, RuleKind, Rules
from shoal.promises.promise_registry import promise_types

__all__ = [
    "KINDS",
    "broken",
    "changed",
    "group_shortfall",
    "is_foreign",
    "kinds_of",
    "make_rules",
    "measure",
    "reached_by",
    "size_for",
    "write_codes",
]


def kinds_of(promises: Sequence[type[GroupPromise]]) -> list[RuleKind]:
    """Return the distinct kinds of rule of all promises, sorted by the location of their kernels.

    The number of a kind therefore changes only if the source of a kernel changes, which also renews the cached kernels.
    Kernels that include a promise of another package are not cached, because the cache does not track that source.
    """
    if any(is_foreign(promise) for promise in promises):
        stop_caching()
    kinds = dict.fromkeys(kind for promise in promises for kind in promise.kinds.values())
    return sorted(kinds, key=lambda kind: (kind.measure.__module__, kind.measure.__name__))


def is_foreign(promise: type[GroupPromise]) -> bool:
    """Return True if the source of a promise is outside this package."""
    file = getattr(sys.modules.get(promise.__module__), "__file__", None)
    return file is None or not Path(file).is_relative_to(PACKAGE)


KINDS = kinds_of(promise_types())


# --- kernels ---------------------------------------------------------------------------------------------------------


@kernel(inline=True)
def _nothing(rules: Rules, rule: int, codes: Ints, size: int) -> tuple[float, float]:
    return 0.0, 0.0


def _or_measured(rest: Any, numbered: tuple[int, RuleKind]) -> Any:
    number, kind_measure = numbered[0], numbered[1].measure

    @kernel(inline=True)
    def either(rules: Rules, rule: int, codes: Ints, size: int) -> tuple[float, float]:
        if rules.kinds[rule] == number:
            result: tuple[float, float] = kind_measure(rules, rule, codes, size)
        else:
            result = rest(rules, rule, codes, size)
        return result

    return either


_any = reduce(_or_measured, enumerate(KINDS), _nothing)


@kernel(counted=False)
def measure(rules: Rules, rule: int, codes: Ints, size: int) -> tuple[float, float]:
    """Return the measure of a group with these sorted codes, and its shortfall (0 if it keeps the rule)."""
    result: tuple[float, float] = _any(rules, rule, codes, size)
    return result


@kernel(counted=False)
def write_codes(members: Ints, size: int, out: int, into: int, codes: Ints) -> int:
    """Write the sorted codes of a group without member `out` and with member `into` (−1 for none); return their number.

    The high bits of a member are its code; the low 32 bits are its record.
    """
    count = 0
    for j in range(size):
        member = members[j]
        if member == out:
            continue
        if 0 <= into < member:
            codes[count] = into >> 32
            count += 1
            into = -1
        codes[count] = member >> 32
        count += 1
    if into >= 0:
        codes[count] = into >> 32
        count += 1
    return count


@kernel(inline=True)
def _measured_again(
    rules: Rules, rule: int, members: Ints, size: int, out: int, into: int, reached: float, codes: Ints
) -> tuple[float, float]:
    result: tuple[float, float] = measure(rules, rule, codes, write_codes(members, size, out, into, codes))
    return result


def _or_swapped(rest: Any, numbered: tuple[int, RuleKind]) -> Any:
    number, kind_swapped = numbered[0], numbered[1].swapped
    if kind_swapped is None:
        return rest

    @kernel(inline=True)
    def either(
        rules: Rules, rule: int, members: Ints, size: int, out: int, into: int, reached: float, codes: Ints
    ) -> tuple[float, float]:
        if rules.kinds[rule] == number and out >= 0 and into >= 0:
            result: tuple[float, float] = kind_swapped(rules, rule, members, size, out, into, reached)
        else:
            result = rest(rules, rule, members, size, out, into, reached, codes)
        return result

    return either


# changed(rules, rule, members, size, out, into, reached, codes): the result of `measure` for a group without member
# `out` and with member `into` (−1 for none); `reached` is its measure before, and `codes` has room for all codes.
changed: Any = reduce(_or_swapped, enumerate(KINDS), _measured_again)


@kernel
def group_shortfall(rules: Rules, rule: int, rows: Ints, labels: Ints, groups: int) -> tuple[Floats, Floats]:
    """Return the shortfall and the measure of each group of the records `rows`."""
    starts = np.zeros(groups + 1, dtype=np.int64)
    for label in labels:
        starts[label + 1] += 1
    for group in range(groups):
        starts[group + 1] += starts[group]
    place, codes = starts[:-1].copy(), np.empty(len(rows), dtype=np.int64)
    for i in range(len(rows)):
        codes[place[labels[i]]] = rules.codes[rule, rows[i]]
        place[labels[i]] += 1
    lacks, reached = np.zeros(groups), np.zeros(groups)
    for group in range(groups):
        members = np.sort(codes[starts[group] : starts[group + 1]])
        reached[group], lacks[group] = measure(rules, rule, members, len(members))
    return lacks, reached


# --- rules -----------------------------------------------------------------------------------------------------------


def make_rules(columns: Sequence[ConfidentialColumn], promises: Sequence[tuple[int, GroupPromise]], n: int) -> Rules:
    """Return the rules of promises about n records; each promise comes with the index of its column.

    Examples
    --------
    >>> from shoal.promises.closeness import Closeness
    >>> column = ConfidentialColumn(np.array([0, 1, 1]), np.array([1, 2]), ordered=True)
    >>> make_rules([column], [(0, Closeness(0.2))], 3).shares.round(3).tolist()
    [0.333, 0.667]
    """
    terms = [promise.rule(columns[place].ordered) for place, promise in promises]
    shares: list[Floats] = [columns[place].counts / columns[place].counts.sum() for place, _ in promises]
    below = [np.minimum(np.cumsum(share), 1.0) for share in shares]
    for level in below:
        level[-1:] = 1.0
    guides = [np.searchsorted(level, np.arange(len(level)) / len(level)) for level in below]
    codes = [columns[place].codes for place, _ in promises]
    return Rules(
        np.array(
            [_number_of(kind, promise) for (kind, _, _), (_, promise) in zip(terms, promises, strict=True)],
            dtype=np.int64,
        ),
        np.array([bound for _, bound, _ in terms]),
        np.array([factor for _, _, factor in terms]),
        np.ascontiguousarray(np.stack(codes), dtype=np.int64) if codes else np.empty((0, n), dtype=np.int64),
        np.cumsum([0, *map(len, shares)]),
        np.concatenate([*shares, np.empty(0)]),
        np.concatenate([*below, np.empty(0)]),
        np.concatenate([*guides, np.empty(0, dtype=np.int64)]).astype(np.int64),
        np.concatenate([*(np.r_[0.0, np.cumsum(level)] for level in below), np.empty(0)]),
        np.empty((len(promises), 0, 0)),
    )


def _number_of(kind: RuleKind, promise: GroupPromise) -> int:
    """Return the number of a kind of rule; refuse an unknown kind, because its rule would never appear to be broken."""
    if kind not in KINDS:
        raise InputError(
            f"{parameter(promise.parameter)} belongs to a promise that was registered after the first table was "
            "masked. Register it earlier."
        )
    return KINDS.index(kind)


def size_for(limits: Sequence[tuple[RuleKind, float]], n: int, k: int) -> float:
    """Return the size that groups of n records should have to keep rules with these kinds and bounds."""
    return max(k, *(kind.size(bound, n, k) for kind, bound in limits))


def reached_by(rules: Rules, rule: int, labels: Ints) -> tuple[Floats, Floats]:
    """Return the shortfall and the measure of each group for one rule; `labels` covers all records."""
    return group_shortfall(rules, rule, np.arange(len(labels)), labels, int(labels.max()) + 1)


def broken(rules: Rules, rows: Ints, labels: Ints) -> Bools:
    """Return a mask of the groups of the records `rows` that break a rule."""
    groups = int(labels.max()) + 1
    lacks = [group_shortfall(rules, rule, rows, labels, groups)[0] for rule in range(len(rules.kinds))]
    failing: Bools = np.any(np.stack(lacks) > 0, axis=0)
    return failing
