"""Method auto: the optimum for one column; for several columns, MDAV followed by annealing.

The annealing steps are those of `optimize.exchange`. `effort` sets the number of steps per record: 5 for ``fast`` and
20 for ``good``; ``best`` adds 100 steps of `search` per record and set partitioning. No step depends on the clock, so
the seed alone determines the result, on any machine and with any number of threads. The SSE never exceeds MDAV's.

A step consists of several moves. The number of moves grows with k up to k = 10, because larger groups offer more
choice, and falls for larger k. A step takes O(d min(k, 10)²) time; memory is O(n (d + min(k, 256))).
"""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np

from shoal.algorithms.initial_partition import mdav_start, split_large
from shoal.algorithms.mdav import mdav
from shoal.algorithms.optimize.exchange import REGION, anneal_by_exchange
from shoal.algorithms.registry import EFFORTS, Outcome
from shoal.core.progress import DONE, STOP, fresh_state, watched, within
from shoal.core.types import Floats, Ints, State

__all__ = ["auto", "facts_of"]


def auto(
    X: Floats,
    k: int,
    *,
    state: State,
    seed: int | None = 0,
    effort: str | None = None,
    bound: bool = False,
    threads: int | None = None,
) -> Outcome:
    """Group the records by method auto; the registry describes the options."""
    n, d = X.shape
    effort, seed, threads = effort or "good", seed or 0, threads or os.cpu_count() or 1
    if d == 1:
        from shoal.algorithms.univariate import univariate

        return Outcome(univariate(X, k, state=state), facts=facts_of(effort))
    if n < 2 * k:
        state[DONE] += n
        outcome = Outcome(np.zeros(n, dtype=np.int64), facts=facts_of(effort))
        if not bound:
            return outcome
        from shoal.algorithms.optimize.certificate import few_records

        proof = few_records(X, k)
        return replace(outcome, bound=proof.bound, status="optimal", certificate=proof)
    # Centre the records, because a large common offset would reduce the precision of the group sums.
    X = np.ascontiguousarray(X - X.mean(axis=0))
    if n <= REGION:
        start = mdav(X, k, state=fresh_state())
    else:
        with within(state, None, n // 4) as part:
            start = mdav_start(X, k, seed, part)
        if state[STOP]:
            # After a stop, the records not yet grouped form one group. Split this group only if progress is displayed;
            # otherwise the result is discarded.
            return Outcome(split_large(X, start, k) if watched() else start, facts=facts_of(effort))
    steps = EFFORTS[effort] if effort != "best" else EFFORTS["good"]
    labels = anneal_by_exchange(X, k, start, steps, seed, state, threads)
    if effort == "best" and not state[STOP]:
        from shoal.algorithms.optimize.search import search

        steps = EFFORTS[effort] * n
        outcome = search(
            X, k, state=state, seed=seed, time_limit=None, steps=steps, bound=False, threads=threads, start=labels
        )
        labels = outcome.labels
    if bound:
        return _with_bound(X, k, labels, effort, state, threads)
    return Outcome(labels, facts=facts_of(effort))


def _with_bound(X: Floats, k: int, labels: Ints, effort: str, state: State, threads: int) -> Outcome:
    """Prove a lower bound in a fixed number of rounds; better partitions found on the way are ignored."""
    from shoal.algorithms.optimize.sparse.prover import Rounds, bound_from

    proven = bound_from(X, k, labels, state=state, rounds=Rounds(turns=0), threads=threads)
    facts = {**facts_of(effort), **proven.facts}
    return Outcome(labels, bound=proven.bound, status=proven.status, facts=facts, certificate=proven.certificate)


def facts_of(effort: str | None) -> dict[str, object]:
    """Return the settings that the summary shows.

    Examples
    --------
    >>> facts_of(None)
    {'start': 'mdav', 'effort': 'good', 'steps per record': 20}
    """
    effort = effort or "good"
    return {"start": "mdav", "effort": effort, "steps per record": EFFORTS[effort]}
