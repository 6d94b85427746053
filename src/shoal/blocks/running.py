"""Running a method on every block, and what its groups are."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np

from shoal.algorithms.registry import Method
from shoal.progress import STOP
from shoal.types import Floats, Ints, State

__all__ = ["group_blocks", "share_time"]


def share_time(options: Mapping[str, Any], share: float) -> dict[str, Any]:
    """Return the options with the given share of a time limit, if there is one.

    Examples
    --------
    >>> share_time({"time_limit": 60.0}, 0.5)
    {'time_limit': 30.0}
    """
    limit = options.get("time_limit")
    return dict(options) if limit is None else {**options, "time_limit": limit * share}


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
        All records that share a time limit.
    state
        See `shoal.progress`.
    workers
        Threads that take blocks; they never change the groups.
    """
    order = np.argsort(block, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(block[order]) > 0, True])
    labels = np.empty(len(Z), dtype=np.int64)

    def run(members: Ints) -> Ints:
        present = np.flatnonzero(~np.isnan(Z[members[0]]))
        if state[STOP] or not len(present):
            return np.zeros(len(members), dtype=np.int64)
        share = share_time(options, workers * len(members) / records)
        X = np.ascontiguousarray(Z[np.ix_(members, present)])
        found: Ints = entry.run(X, k, share, seed=seed, state=state).labels
        return found

    members = [order[a:b] for a, b in pairwise(starts)]
    offset = 0
    with ThreadPoolExecutor(workers) as pool:
        for rows, found in zip(members, pool.map(run, members), strict=True):
            labels[rows] = found + offset
            offset += int(found.max()) + 1
    return labels
