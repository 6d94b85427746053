"""From the groups of a method to those that are released: refined, and as promises and units want them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from shoal.algorithms.registry import AUTO, Method, Outcome, find
from shoal.core.measures import canonical_labels
from shoal.core.types import Ints, State
from shoal.kinds.coding import Embedding
from shoal.masking.confidential import Promise, half_time, keep_promise
from shoal.masking.gathering import Gathered, cells_of
from shoal.masking.request import MaskRequest

__all__ = ["finish_groups", "start_method", "with_bound"]


def start_method(request: MaskRequest, *, promised: bool, whole: bool = True) -> tuple[Method, int, Mapping[str, Any]]:
    """Return the method to begin with, k and its options.

    Where promises are searched for, `auto` leaves all to that search, and so does `search` where a table is not in
    blocks; to prove a bound for all groups it takes half of its time.
    """
    entry, options = request.entry, request.options
    if not promised or not (entry.name == AUTO or (entry.anytime and whole)):
        return entry, request.k, options
    if not options.get("bound"):
        return find("mdav"), request.k, find("mdav").read_options({})
    return entry, request.k, half_time(entry, options)


def finish_groups(
    outcome: Outcome,
    gathered: Gathered,
    request: MaskRequest,
    embedding: Embedding,
    promise: Promise,
    *,
    block: bool,
    state: State,
    threads: int = 1,
) -> Outcome:
    """Return the groups of a method after all else that was asked of them; what was proven of them stays true.

    Parameters
    ----------
    outcome, gathered
        What the method found, and for which records.
    request, embedding, promise
        What was asked, where records lie, and what is promised of confidential columns.
    block
        Whether the records are in blocks, not in whole cells.
    state, threads
        See `shoal.core.progress`; and how many threads work on blocks or cells.
    """
    if request.refine:
        outcome = replace(outcome, labels=_refined(outcome.labels, gathered, request, embedding, state))
    if not promise.models and gathered.units is None:
        return outcome
    labels = keep_promise(gathered, outcome.labels, promise, request, block=block, state=state, threads=threads)
    return _regrouped(outcome, labels)


def _refined(labels: Ints, gathered: Gathered, request: MaskRequest, embedding: Embedding, state: State) -> Ints:
    """Move records between the groups of a block, to lower the loss of what is released."""
    from shoal.masking.refining import refined

    X, steps = gathered.X, request.refine or 0
    cells = cells_of(X, gathered.block)
    return refined(X, labels, cells, request.k, embedding, gathered.scale, steps=steps, seed=request.seed, state=state)


def _regrouped(outcome: Outcome, labels: Ints) -> Outcome:
    """Return the outcome with other groups: what was proven of all partitions holds for them as a bound."""
    same = np.array_equal(labels, canonical_labels(outcome.labels))
    return replace(
        outcome, labels=labels, status="bounded" if outcome.status == "optimal" and not same else outcome.status
    )


def with_bound(outcome: Outcome, bound: float) -> Outcome:
    """Return the outcome with a bound on all groups that keep what is promised, if it is greater than that of all."""
    if outcome.status == "optimal" or bound <= (outcome.bound or 0.0):
        return outcome
    return replace(outcome, bound=bound, status="bounded", certificate=None)
