"""Running a method on every block, and what its groups are."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import pairwise
from typing import Any

import numpy as np

from shoal.algorithms.registry import Method
from shoal.core.progress import STOP
from shoal.core.types import Floats, Ints, State

__all__ = ["group_blocks", "share_options"]


def share_options(entry: Method, options: Mapping[str, Any], share: float, parallel: int = 1) -> dict[str, Any]:
    """Give a set of records its share of the time or the steps that a method may take for all of them.

    Parameters
    ----------
    entry, options
        The method and what it is told.
    share
        The set's share of all records.
    parallel
        How many sets are searched at a time: time counts for each of them, steps are shared all the same, so that the
        result does not depend on it.

    Examples
    --------
    >>> from shoal.algorithms.registry import find
    >>> share_options(find("search"), {"time_limit": 60.0, "steps": None}, 0.5)
    {'time_limit': 30.0, 'steps': None}
    """
    shared, seconds, steps = dict(options), entry.seconds(options), entry.steps(options)
    if entry.time_option is not None and seconds is not None:
        shared[entry.time_option] = seconds * share * parallel
    if entry.steps_option is not None and steps is not None:
        shared[entry.steps_option] = max(1, int(steps * share))
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
    """Let a method group the records of every block on its own; return the group of each record.

    Parameters
    ----------
    Z
        Standardised records; those of a block miss the same columns (NaN).
    block
        The block of each record.
    entry, k, options, seed
        The method and what it is told; the same seed in every block.
    records
        All records that share a time limit or a number of steps.
    state
        See `shoal.core.progress`.
    workers
        Threads that take blocks; they never change the groups.
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
    # One thread needs no pool: handing over a block takes as long as a small one.
    with nullcontext() if workers == 1 else ThreadPoolExecutor(workers) as pool:
        for rows, found in zip(members, map(run, members) if pool is None else pool.map(run, members), strict=True):
            labels[rows] = found + offset
            offset += int(found.max()) + 1
    return labels
