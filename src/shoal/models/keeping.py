"""From the groups of any method to groups that keep rules, with little more loss.

Groups that break a rule are merged with the nearest; that alone is one answer. Searches that respect the rules start
from groups as large as the rules will need: about 1.5 k′ + 3 records for closeness, where k′ is the least size of
Soria-Comas et al. (2015), 1.7 l or 1.7 k for diversity. How large is best depends on the table: for one of
up to 2,500 records, short searches start cold from the merged groups, and hot from MDAV's groups of that size and of
two thirds of it; a long one starts where the best of them did. A larger one has fewer steps a record and is
searched once: from the groups of `path`, or from the merged ones where merging lost little. The best answer is taken.
The cost is that of the steps of `anneal_with_rules`, whatever the method.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from typing import NamedTuple

import numpy as np

from shoal.algorithms.auto import auto
from shoal.algorithms.mdav import mdav
from shoal.algorithms.optimize.neighbours import nearest
from shoal.algorithms.optimize.random import seeded
from shoal.algorithms.path import path
from shoal.core.measures import canonical_labels, number_through, sse
from shoal.core.progress import STOP, fresh_state
from shoal.core.threads import spread
from shoal.core.types import Bools, Floats, Ints, State
from shoal.models.annealing import anneal_with_rules, room_of
from shoal.models.merging import merge_groups
from shoal.models.rules import DISTINCT, ENTROPY, RECURSIVE, Rules, group_shortfall, with_masses

__all__ = [
    "Search",
    "broken",
    "keep_rules",
    "least_size",
    "reached_by",
    "rehearse_rules",
    "repair",
    "rules_of",
    "size_for",
]

NEIGHBOURS = 30
STEPS = 200, 2000  # a record: of a large table, and of one with fewer steps than LEAST_STEPS
LEAST_STEPS, MOST_STEPS = 2_000_000, 20_000_000
SMALL = 2_500  # records
SHARES = 2 / 3, 1.0  # of the size that groups should have: what they start with
SHORT, LONG = 0.2, 2.4  # of the steps, for a small table: from every start, and from the best
LITTLE = 1.25  # times the SSE of `path`: merging that loses no more is a good start
HOT, WARM, COLD = 2.0, 0.1, 0.02  # the first temperature, of the variance of a record
MOST_ROOM = 1 << 25  # places for members in all groups together


class Search(NamedTuple):
    """What decides a search."""

    seed: int | None
    steps: float  # how many are taken, relative to what is usual
    state: State  # see `shoal.core.progress`
    effort: str | None = None  # of method `auto`, if it may improve the groups where they keep the rules


def least_size(n: int, k: int, t: float) -> int:
    """Return k′ = max(k, ⌈n / (2 (n−1) t + 1)⌉), enlarged so that groups of k′ leave few records over.

    Examples
    --------
    >>> least_size(1080, 2, 0.05)
    10
    """
    size = max(k, ceil(n / (2 * (n - 1) * t + 1) - 1e-12))
    return size + (n % size) // (n // size)


def size_for(rules: Sequence[tuple[int, float, float]], n: int, k: int) -> float:
    """Return how large groups of n records should be to keep rules of these kinds, bounds and factors."""
    sizes = [
        1.7 * max(k, bound) if kind in (DISTINCT, ENTROPY, RECURSIVE) else 1.5 * least_size(n, k, bound) + 3
        for kind, bound, _ in rules
    ]
    return max(k, *sizes)


def reached_by(rules: Rules, rule: int, labels: Ints) -> tuple[Floats, Floats]:
    """Return of each group of all records how far it is from keeping a rule, and what it reaches."""
    return group_shortfall(rules, rule, np.arange(len(labels)), labels, int(labels.max()) + 1)


def broken(rules: Rules, rows: Ints, labels: Ints) -> Bools:
    """Say which groups of some records break a rule."""
    groups = int(labels.max()) + 1
    lacks = [group_shortfall(rules, rule, rows, labels, groups)[0] for rule in range(len(rules.kinds))]
    found: Bools = np.any(np.stack(lacks) > 0, axis=0)
    return found


def keep_rules(
    Z: Floats,
    labels: Ints,
    cells: Sequence[tuple[Ints, Ints]],
    k: int,
    rules: Rules,
    search: Search,
    *,
    threads: int = 1,
) -> Ints:
    """Return groups that keep the rules wherever a whole cell does; those of the method if they do already.

    Parameters
    ----------
    Z
        Standardised records.
    labels
        The groups of a method.
    cells
        Of each cell: its records, and the columns that they do not miss.
    k, rules
        The least group size, and what groups must keep.
    search
        What decides the search.
    threads
        That work on cells; their number does not change the groups.
    """

    def kept(cell: tuple[Ints, Ints]) -> Ints:
        rows, present = cell
        records = np.ascontiguousarray(Z[np.ix_(rows, present)])
        # One cell is searched from several starts at a time.
        own = threads if len(cells) == 1 else 1
        return _keep(records, canonical_labels(labels[rows]), k, rules_of(rules, rows), search, own)

    return canonical_labels(number_through(len(Z), (rows for rows, _ in cells), spread(kept, cells, threads)))


def rules_of(rules: Rules, rows: Ints) -> Rules:
    """Return the rules for some of the records."""
    return rules._replace(codes=np.ascontiguousarray(rules.codes[:, rows]))


def _keep(records: Floats, labels: Ints, k: int, rules: Rules, search: Search, threads: int) -> Ints:
    """Return the best answer for the records of a cell."""
    n, all_rows, state = len(records), np.arange(len(records)), search.state
    if not broken(rules, all_rows, labels).any():
        if search.effort is None or records.shape[1] == 0:
            return labels
        labels = canonical_labels(auto(records, k, state=state, seed=search.seed, effort=search.effort).labels)
        if not broken(rules, all_rows, labels).any():
            return labels
    repaired = repair(records, labels, rules)
    if records.shape[1] == 0 or n < 2 * k or state[STOP]:
        return repaired
    records = np.ascontiguousarray(records - records.mean(axis=0))
    near = nearest(records, NEIGHBOURS, slack=0.0 if n <= SMALL else 1.0)
    deviation = float(np.square(records).sum()) / n
    rules = with_masses(rules)
    steps = search.steps * min(max(STEPS[0] * n, min(STEPS[1] * n, LEAST_STEPS)), MOST_STEPS)
    starts = [(start, heat) for start, heat in _starts(records, k, rules, repaired, state) if _fits(start)]

    def anneal(place: int, share: float = SHORT) -> Ints:
        (start, heat), word = starts[place], seeded(search.seed or 0, place)
        taken = int(share * steps)
        moved = anneal_with_rules(records, k, start, near, rules, taken, heat * deviation, state, word).label
        return repair(records, canonical_labels(moved), rules)

    answers = [repaired]
    if len(starts) > 1:
        answers += spread(anneal, range(len(starts)), threads)
        answers.append(anneal(int(np.argmin([sse(records, answer) for answer in answers[1:]])), LONG))
    elif starts:
        answers.append(anneal(0, 1.0))
    # Merging cannot help where the whole cell breaks a rule.
    allowed = [answer for answer in answers if not broken(rules, all_rows, answer).any()]
    return min(allowed or answers[:1], key=lambda answer: sse(records, answer))


def _fits(labels: Ints) -> bool:
    """Whether there is something to move, and room for it."""
    return bool(labels.max()) and (int(labels.max()) + 1) * room_of(labels) <= MOST_ROOM


def _starts(records: Floats, k: int, rules: Rules, repaired: Ints, state: State) -> Iterator[tuple[Ints, float]]:
    """Yield what searches start from, each with its heat."""
    n = len(records)
    needed = size_for(list(zip(rules.kinds.tolist(), rules.bounds.tolist(), rules.factors.tolist(), strict=True)), n, k)
    sizes = dict.fromkeys(max(k, min(round(share * needed), n // 2)) for share in SHARES)
    if n <= SMALL:
        yield repaired, COLD
        yield from ((canonical_labels(mdav(records, size, state=state)), HOT) for size in sizes)
        return
    found = canonical_labels(path(records, max(k, min(round(needed), n // 2)), state=state).labels)
    yield (repaired, COLD) if sse(records, repaired) <= LITTLE * sse(records, found) else (found, WARM)


def repair(records: Floats, labels: Ints, rules: Rules) -> Ints:
    """Merge groups that break a rule with the nearest, while there are others."""
    cell = np.arange(len(records)), np.arange(records.shape[1])
    return merge_groups(records, labels, [cell], lambda rows, now: ~broken(rules, rows, now))


def rehearse_rules() -> None:
    """Load the kernels on a small table."""
    rows = np.arange(16)
    one, none = np.array([DISTINCT], dtype=np.int64), np.zeros(1)
    codes = np.ascontiguousarray((rows // 2 % 2)[None])
    shares = np.array([0.5, 0.5])
    rules = Rules(
        one,
        np.array([2.0]),
        none,
        codes,
        np.array([0, 2]),
        shares,
        shares,
        np.zeros(2, np.int64),
        np.zeros(3),
        np.empty((1, 0, 0)),
    )
    records = np.column_stack([rows, rows**2]).astype(np.float64)
    keep_rules(records, rows // 2, [(rows, np.arange(2))], 2, rules, Search(0, 1.0, fresh_state()))
