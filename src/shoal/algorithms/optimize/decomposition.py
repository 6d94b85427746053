"""Decomposition heuristic: divide groups among subsets, solve each subset by column generation, then swap records.

J. Castro, C. Gentile and E. Spagnolo-Arrizabalaga, An optimization-based decomposition heuristic for the
microaggregation problem, PSD 2022, Section 2, with HiGHS instead of CPLEX and pricing by enumeration instead of an
integer programme. The heuristics cost O(d n²). Each of the s subsets of about n/s records then takes exponential time
in the worst case, within a time limit. One time limit covers all steps: the swaps and the subsets share the time that
the heuristics of Step 2 leave. The paper returns the groups of Step 7; this module returns those of Step 3 if they are
better.
"""

from __future__ import annotations

import time
from functools import cache

import numpy as np

from shoal.algorithms.mdav import mdav
from shoal.algorithms.optimize.group_columns import GroupColumns
from shoal.algorithms.optimize.proof import PROVABLE, Incumbent, prove
from shoal.algorithms.optimize.relaxation_rounding import round_groups
from shoal.algorithms.registry import Outcome
from shoal.algorithms.two_swap import improve, start_labels
from shoal.core.measures import canonical_labels, group_sizes, information_loss, number_through, partition_of, sse
from shoal.core.progress import DONE, STOP, fresh_state, within
from shoal.core.types import Floats, Ints, State

__all__ = ["decomposition", "divide"]


def decomposition(
    X: Floats,
    k: int,
    *,
    state: State,
    subsets: int,
    first_swap: bool,
    subset_limit: float,
    time_limit: float | None,
) -> Outcome:
    """Group the records in the seven steps of the paper; the registry describes the options."""
    n = len(X)
    if time_limit is not None:
        _compile()
    clock = time.monotonic()
    until = np.inf if time_limit is None else clock + time_limit
    facts: dict[str, object] = {}

    def note(step: str, labels: Ints) -> None:
        nonlocal clock
        facts[f"{step} loss"] = information_loss(X, canonical_labels(labels))
        facts[f"{step} seconds"] = time.monotonic() - clock
        clock = time.monotonic()

    # The caller standardises (Step 1). Step 2 uses the better of MDAV and V-MDAV, and ignores the time limit.
    with within(state, None, 0) as uncounted:
        labels, facts["step 2"] = start_labels(X, k, "best", uncounted)
    note("step 2", labels)
    with within(state, until - clock, n) as limited:
        if first_swap:
            labels = _swap(X, labels, limited, (until - clock) / 3)  # Step 3
            note("step 3", labels)
        # A proof stores all pairs of a subset's records, so subsets of large tables must stay well below PROVABLE.
        parts = divide(labels, max(subsets, -(-2 * n // PROVABLE) if n > PROVABLE else 1))  # Step 4
        facts["subsets"] = len(parts)
        solved = _solve_all(X, k, labels, parts, until, subset_limit, limited)  # Steps 5 and 6
        note("step 5", solved)
        solved = _swap(X, canonical_labels(solved), limited, None)  # Step 7
        note("step 7", solved)
    worse = sse(X, canonical_labels(labels)) < sse(X, canonical_labels(solved))
    facts["returned"] = ("step 3" if first_swap else "step 2") if worse else "step 7"
    return Outcome(labels if worse else solved, facts=facts)


@cache
def _compile() -> None:
    """Group a tiny table to compile the kernels outside the time limit."""
    tiny = np.random.default_rng(0).normal(size=(30, 2))
    decomposition(tiny, 3, state=fresh_state(), subsets=1, first_swap=False, subset_limit=60.0, time_limit=None)


def _swap(X: Floats, labels: Ints, state: State, seconds: float | None) -> Ints:
    # Progress counts only the records of solved subsets.
    with within(state, seconds, 0) as uncounted:
        return improve(X, labels, state=uncounted)


def divide(labels: Ints, subsets: int) -> list[Ints]:
    """Divide the groups, in order, among at most `subsets` subsets (Step 4); return the records of each subset.

    A subset is full once it has p̄ = round(n / s) records, where s is `subsets`. The last subset gets the remaining
    groups, with more or fewer records than p̄.

    Examples
    --------
    >>> [part.tolist() for part in divide(np.array([0, 1, 0, 1, 2, 2]), 2)]
    [[0, 1, 2, 3], [4, 5]]
    """
    n = len(labels)
    target_size = max(1, int(n / subsets + 0.5))
    sizes = group_sizes(labels)
    of_group = np.empty(len(sizes), dtype=np.int64)
    part = filled = 0
    for g, size in enumerate(sizes):
        if filled >= target_size and part < subsets - 1:
            part, filled = part + 1, 0
        of_group[g] = part
        filled += size
    of_record = of_group[labels]
    return [np.flatnonzero(of_record == p) for p in range(part + 1)]


def _solve_all(
    X: Floats, k: int, labels: Ints, parts: list[Ints], until: float, subset_limit: float, state: State
) -> Ints:
    """Solve the subsets one after the other while time remains, and return the labels of all records."""
    results = []
    for number, part in enumerate(parts):
        # The remaining subsets and Step 7 share the remaining time.
        share = (until - time.monotonic()) / (len(parts) - number + 1)
        # A subset consists of whole groups of Step 3, which are its fallback result.
        better = canonical_labels(labels[part])
        if share > 0 and not state[STOP]:
            records = np.ascontiguousarray(X[part])
            solved = _solve(records, k, state, min(subset_limit, share))
            # As in the paper, accept even a worse result, unless there is a time limit, which may cut a subset short.
            if until == np.inf or sse(records, solved) < sse(records, better):
                better = solved
        results.append(better)
        state[DONE] += len(part)
    return number_through(len(X), parts, results)


def _solve(X: Floats, k: int, state: State, seconds: float) -> Ints:
    """Solve one subset from MDAV groups; as in the paper, the groups of Step 3 are not used."""
    start = partition_of(X, mdav(X, k, state=fresh_state()))
    if len(X) < 2 * k:
        return start.labels
    with within(state, seconds, 0) as limited:

        def polish(columns: GroupColumns, x: Floats) -> Ints | None:
            return round_groups(X, k, columns, x, state=limited, threads=1)

        proof = prove(Incumbent(X, k, start, limited), [], time.monotonic() + seconds, polish)
    return canonical_labels(proof.labels)
