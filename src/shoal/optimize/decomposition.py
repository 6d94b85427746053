"""Decomposition: divide the groups of a heuristic among subsets, solve each by column generation, then swap.

J. Castro, C. Gentile and E. Spagnolo-Arrizabalaga, An optimization-based decomposition heuristic for the
microaggregation problem, PSD 2022, Section 2, with HiGHS in the place of CPLEX and pricing by enumeration in the place
of an integer programme. O(d n²) for the heuristics, then s subsets of about n/s records, each exponential in the worst
case and limited in time.
"""

from __future__ import annotations

import time

import numpy as np

from shoal.algorithms.mdav import mdav
from shoal.algorithms.registry import Outcome
from shoal.algorithms.two_swap import improve, start_labels
from shoal.measures import canonical_labels, group_sizes, information_loss
from shoal.optimize.proof import PROVABLE, Attempt, prove
from shoal.progress import DONE, STOP, fresh_state
from shoal.types import Floats, Ints, State

__all__ = ["decomposition", "divide"]


def decomposition(X: Floats, k: int, *, state: State, subsets: int, first_swap: bool, time_limit: float) -> Outcome:
    """Group the records by the paper's seven steps; see the options in the registry."""
    n = len(X)
    clock = time.monotonic()
    facts: dict[str, object] = {}

    def note(step: str, labels: Ints) -> None:
        nonlocal clock
        facts[f"{step} loss"] = information_loss(X, canonical_labels(labels))
        facts[f"{step} seconds"] = time.monotonic() - clock
        clock = time.monotonic()

    # Step 1, standardising, is the caller's. Step 2: the better of MDAV and V-MDAV.
    labels, facts["step 2"] = start_labels(X, k, "best", state)
    note("step 2", labels)
    if first_swap:
        labels = improve(X, labels, state=state)  # Step 3
        note("step 3", labels)
    parts = divide(labels, max(subsets, -(-n // PROVABLE)))  # Step 4
    found = np.empty(n, dtype=np.int64)
    count = 0
    state[DONE] = 0
    for part in parts:  # Steps 5 and 6
        if state[STOP]:
            # The groups of Step 3 are whole in every subset.
            better = canonical_labels(labels[part])
        else:
            better = _solve(np.ascontiguousarray(X[part]), k, state, time_limit)
        found[part] = better + count
        count += len(group_sizes(better))
        state[DONE] += len(part)
    note("step 5", found)
    found = improve(X, canonical_labels(found), state=state)  # Step 7
    note("step 7", found)
    return Outcome(found, facts=facts)


def divide(labels: Ints, subsets: int) -> list[Ints]:
    """Return Step 4's subsets: whole groups in order, until each has round(n / s) records.

    Examples
    --------
    >>> [part.tolist() for part in divide(np.array([0, 1, 0, 1, 2, 2]), 3)]
    [[0, 2], [1, 3], [4, 5]]
    """
    n = len(labels)
    enough = max(1, round(n / subsets))
    of_group = np.empty(len(group_sizes(labels)), dtype=np.int64)
    part = held = 0
    for g, size in enumerate(group_sizes(labels)):
        of_group[g] = part
        held += size
        if held >= enough:
            part, held = part + 1, 0
    of_record = of_group[labels]
    return [np.flatnonzero(of_record == p) for p in range(int(of_record.max()) + 1)]


def _solve(X: Floats, k: int, state: State, seconds: float) -> Ints:
    """Solve one subset. As in the paper, the groups of Step 3 are not used: other groups may do better."""
    start = canonical_labels(mdav(X, k, state=fresh_state()))
    if len(X) < 2 * k:
        return start
    return canonical_labels(prove(Attempt(X, k, start, state), [], time.monotonic() + seconds).labels)
