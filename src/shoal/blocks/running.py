"""Running a method on every block, and numbering the groups of all blocks."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import pairwise
from typing import Any

import numpy as np

from shoal.algorithms.registry import SEARCH_SECONDS, Method
from shoal.core.progress import STOP
from shoal.core.types import Floats, Ints, State

__all__ = ["group_blocks", "share_options"]


def share_options(entry: Method, options: Mapping[str, Any], share: float, parallel: int = 1) -> dict[str, Any]:
    """Return the options for a part of the records: its share of the time or the steps that are allowed for all.

    Parameters
    ----------
    entry, options
        The method and its options.
    share
        The part's share of all records.
    parallel
        How many parts are searched at a time. Each of them may take the whole time meanwhile; steps are shared
        regardless, so that the result does not depend on it.

    Examples
    --------
    >>> from shoal.algorithms.registry import find
    >>> share_options(find("search"), {"time_limit": 60.0, "steps": None}, 0.5)
    {'time_limit': 30.0, 'steps': None}
    """
    seconds, steps = options.get("time_limit"), options.get("steps")
    if entry.anytime and seconds is None and steps is None:
        seconds = SEARCH_SECONDS
    shared = dict(options)
    if seconds is not None:
        shared["time_limit"] = seconds * share * parallel
    if steps is not None:
        shared["steps"] = max(1, int(steps * share))
    return shared


def group_blocks(
    Z: Floats,
    block: Ints,
    entry: Method,
    k: int,
    options: Mapping[str, Any],
    *,
    records: int,
    seed: int | None,
    state: State,
    workers: int = 1,
    parallel: int | None = None,
) -> Ints:
    """Let a method group the records of each block separately; return the group of each record.

    Parameters
    ----------
    Z
        Standardised records; those of a block miss the same columns (NaN).
    block
        The block of each record.
    entry, k, options, seed
        The method, k, its options, and the seed, the same in every block.
    records
        How many records share the time limit or the number of steps.
    state
        See `shoal.core.progress`.
    workers
        Threads that work on blocks; their number does not change the groups.
    parallel
        How many blocks are searched at a time, here and elsewhere; `workers` if not given.
    """
    order = np.argsort(block, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(block[order]) > 0, True])
    labels = np.empty(len(Z), dtype=np.int64)

    def run(members: Ints) -> Ints:
        missing = np.isnan(Z[members[0]])
        if state[STOP] or missing.all():
            return np.zeros(len(members), dtype=np.int64)
        share = share_options(entry, options, len(members) / records, parallel or workers)
        X = np.take(Z, members, axis=0)
        if missing.any():
            X = np.ascontiguousarray(X[:, ~missing])
        found: Ints = entry.run(X, k, share, seed=seed, state=state).labels
        return found

    members = [order[a:b] for a, b in pairwise(starts)]
    offset = 0
    # A single thread needs no executor: handing over a small block takes as long as grouping it.
    with nullcontext() if workers == 1 else ThreadPoolExecutor(workers) as executor:
        for rows, found in zip(
            members, map(run, members) if executor is None else executor.map(run, members), strict=True
        ):
            labels[rows] = found + offset
            offset += int(found.max()) + 1
    return labels
