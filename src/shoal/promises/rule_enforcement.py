"""Enforcement of rules: the groups of any method are changed to keep the rules, with little additional loss.

One candidate comes from merging the groups that break a rule with their nearest groups. The other candidates come from
searches that respect the rules. They start from groups as large as the rules require: about 1.5 k′ + 3 records for
closeness, where k′ is the least size of Soria-Comas et al. (2015), and 1.7 l or 1.7 k for diversity.

The best size depends on the table. For a table of up to 2,500 records, short searches start cold from the merged
groups, and hot from MDAV's groups of 0.5 to 1.4 times that size. Longer searches use the two best of these starts, and
one long search uses the best start. A larger table gets fewer steps per record and a single search: from the groups of
`path`, or from the merged groups if merging lost little. The best candidate is returned. The cost is that of the steps
of `anneal_with_rules`, for any method, or the time limit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from shoal.algorithms.mdav import mdav
from shoal.algorithms.optimize.random import seeded
from shoal.algorithms.path import path
from shoal.core.measures import canonical_labels, number_through, sse
from shoal.core.progress import STOP, fresh_state, spread, within
from shoal.core.types import Floats, Ints, State
from shoal.kernels.neighbours import nearest
from shoal.promises.closeness import Closeness, with_masses
from shoal.promises.constrained_search import anneal_with_rules, room_of
from shoal.promises.diversity import Diversity
from shoal.promises.group_merge import merge_groups
from shoal.promises.promise import ConfidentialColumn, Rules
from shoal.promises.rules import KINDS, broken, make_rules, size_for

__all__ = ["Search", "keep_rules", "rehearse_rules", "repair", "rules_of"]

NEIGHBOURS = 30
STEPS = 300, 2000  # per record: at least the former; up to the latter while the total is below LEAST_STEPS
LEAST_STEPS, MOST_STEPS = 2_000_000, 20_000_000
SMALL = 2_500  # records; up to this size, a table is small
SHARES = 0.5, 2 / 3, 1.0, 1.4  # initial group sizes, as shares of the size that groups should have
# Shares of the steps for a small table: from every start, from each of the two best starts, and from the best.
SHORT, MIDDLE, LONG = 0.12, 0.5, 2.9
LITTLE = 1.25  # merged groups are a good start if their SSE is at most this many times the SSE of `path`
SEARCHED = 0.95  # share of the time limit for searching
HOT, WARM, COLD = 2.0, 0.1, 0.02  # initial temperatures, relative to the variance of a record
MOST_ROOM = 1 << 25  # limit on the number of member slots in all groups together


class Search(NamedTuple):
    """The parameters of a search for groups that keep rules."""

    seed: int | None
    steps: float  # number of steps, relative to the default
    state: State  # see `shoal.core.progress`
    improve: Callable[[Floats], Ints] | None = (
        None  # regroups records whose groups already keep the rules, in half the time limit
    )
    seconds: float | None = None  # time limit for all records; it replaces the number of steps


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
    """Return groups that keep the rules in every cell where that is possible; unchanged if they keep them already.

    `labels` are the groups of a method; `cells` lists, for each cell, its records and their non-missing columns. The
    number of threads does not change the groups.
    """

    def enforce(cell: tuple[Ints, Ints]) -> Ints:
        rows, present = cell
        records = np.ascontiguousarray(Z[np.ix_(rows, present)])
        # With one cell, the threads run searches from several starts.
        cell_threads = threads if len(cells) == 1 else 1
        limited = search._replace(
            seconds=search.seconds and search.seconds * len(rows) / len(Z) * (threads // cell_threads)
        )
        return _keep(records, canonical_labels(labels[rows]), k, rules_of(rules, rows), limited, cell_threads)

    return canonical_labels(number_through(len(Z), (rows for rows, _ in cells), spread(enforce, cells, threads)))


def rules_of(rules: Rules, rows: Ints) -> Rules:
    """Return the rules restricted to the records `rows`."""
    return rules._replace(codes=np.ascontiguousarray(rules.codes[:, rows]))


def _keep(records: Floats, labels: Ints, k: int, rules: Rules, search: Search, threads: int) -> Ints:
    """Return the best candidate for the records of a cell."""
    n, all_rows, state = len(records), np.arange(len(records)), search.state
    if not broken(rules, all_rows, labels).any():
        if search.improve is None or records.shape[1] == 0:
            return labels
        labels = canonical_labels(search.improve(records))
        if not broken(rules, all_rows, labels).any():
            return labels
        search = search._replace(seconds=search.seconds and search.seconds / 2)
    repaired = repair(records, labels, rules)
    if records.shape[1] == 0 or n < 2 * k or state[STOP]:
        return repaired
    with within(state, search.seconds, 0) as limited:
        answers = [repaired, *_searched(records, k, rules, repaired, search._replace(state=limited), threads)]
    # Merging cannot help if the whole cell breaks a rule.
    allowed = [answer for answer in answers if not broken(rules, all_rows, answer).any()]
    return min(allowed or answers[:1], key=lambda answer: sse(records, answer))


def _searched(records: Floats, k: int, rules: Rules, repaired: Ints, search: Search, threads: int) -> Iterator[Ints]:
    """Yield the results of searches: short ones from every start, then longer ones from the best starts."""
    began, n = time.monotonic(), len(records)
    rules = with_masses(rules) if KINDS.index(Closeness.kinds["ordered"]) in rules.kinds else rules
    records = np.ascontiguousarray(records - records.mean(axis=0))
    near = nearest(records, NEIGHBOURS, slack=0.0 if n <= SMALL else 1.0)
    deviation = float(np.square(records).sum()) / n
    steps = search.steps * min(max(STEPS[0] * n, min(STEPS[1] * n, LEAST_STEPS)), MOST_STEPS)
    starts = [(start, heat) for start, heat in _starts(records, k, rules, repaired, search.state) if _fits(start)]

    def anneal(place: int, budget: int) -> tuple[Ints, float]:
        """Return groups, and the seconds per step."""
        (start, heat), word, since = starts[place], seeded(search.seed or 0, place), time.monotonic()
        moved = anneal_with_rules(records, k, start, near, rules, budget, heat * deviation, search.state, word).label
        pace = (time.monotonic() - since) / max(budget, 1)
        return repair(records, canonical_labels(moved), rules), pace

    if len(starts) == 1 and search.seconds is None:
        yield anneal(0, int(steps))[0]
    elif starts:
        pace, places = 0.0, list(range(len(starts)))
        for share in (SHORT, MIDDLE):
            results = list(spread(partial(anneal, budget=int(share * steps)), places, threads))
            yield from (labels for labels, _ in results)
            if search.state[STOP]:
                return
            ranks = np.argsort([sse(records, labels) for labels, _ in results], kind="stable")
            places, pace = [places[rank] for rank in ranks[:2]], max(pace for _, pace in results)
        final_steps = LONG * steps
        if search.seconds is not None:
            # Leave part of the remaining time for repairs.
            final_steps = max(0.0, SEARCHED * (search.seconds - (time.monotonic() - began))) / pace
        yield anneal(places[0], int(final_steps))[0]


def _fits(labels: Ints) -> bool:
    """Return True if there are at least two groups and memory for their members."""
    return bool(labels.max()) and (int(labels.max()) + 1) * room_of(labels) <= MOST_ROOM


def _starts(records: Floats, k: int, rules: Rules, repaired: Ints, state: State) -> Iterator[tuple[Ints, float]]:
    """Yield initial groups for searches, each with an initial temperature."""
    n = len(records)
    kinds = [KINDS[kind] for kind in rules.kinds]
    needed = size_for(list(zip(kinds, rules.bounds.tolist(), strict=True)), n, k)
    sizes = dict.fromkeys(max(k, min(round(share * needed), n // 2)) for share in SHARES)
    if n <= SMALL:
        yield repaired, COLD
        yield from ((canonical_labels(mdav(records, size, state=state)), HOT) for size in sizes)
        return
    grouped = canonical_labels(path(records, max(k, min(round(needed), n // 2)), state=state).labels)
    yield (repaired, COLD) if sse(records, repaired) <= LITTLE * sse(records, grouped) else (grouped, WARM)


def repair(records: Floats, labels: Ints, rules: Rules) -> Ints:
    """Merge groups that break a rule with their nearest groups, as long as other groups remain."""
    cell = np.arange(len(records)), np.arange(records.shape[1])
    return merge_groups(records, labels, [cell], lambda rows, now: ~broken(rules, rows, now))


def rehearse_rules() -> None:
    """Compile or load the kernels by enforcing rules on a small table."""
    rows = np.arange(16)
    column = ConfidentialColumn(rows // 2 % 2, np.array([8, 8]), ordered=False)
    rules = make_rules([column], [(0, Diversity(2))], 16)
    records = np.column_stack([rows, rows**2]).astype(np.float64)
    keep_rules(records, rows // 2, [(rows, np.arange(2))], 2, rules, Search(0, 1.0, fresh_state()))
