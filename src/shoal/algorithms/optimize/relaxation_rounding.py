"""Rounding: from a fractional solution of the linear relaxation to a partition.

The values of the groups of a record sum to one, so groups whose value is above one half do not overlap, but for the
solver's errors. Those near one are kept, and the records of all others are grouped anew (`auto`). The relaxation of a
large table is integral in most places if groups are small: of 20,000 records and k = 3 a third or fewer are left. What
comes out may lose more than a partition that is known, but it is near to better ones: annealing from there, warm, finds
them (`optimize.search`). O(n k) but for grouping the rest.
"""

from __future__ import annotations

import numpy as np

from shoal.algorithms.auto import auto
from shoal.algorithms.optimize.group_columns import GroupColumns
from shoal.algorithms.optimize.sparse.generation import Generation
from shoal.algorithms.optimize.sparse.near_table import make_near
from shoal.algorithms.optimize.sparse.repair import Effort
from shoal.core.progress import STOP, within
from shoal.core.types import Floats, Ints, State

__all__ = ["round_generation", "round_groups", "round_relaxation"]

# Groups of a greater value are kept; with fewer than this share of the records in them the solution says too little.
KEPT, ENOUGH = 0.7, 0.2
# Rounds in which groups are guessed, and the steps of the first-order method in each.
ROUNDS, STEPS = 30, 150


def round_groups(X: Floats, k: int, columns: GroupColumns, x: Floats, *, state: State, threads: int) -> Ints | None:
    """Return a partition that has the groups whose value is near one, or None if these are few.

    Parameters
    ----------
    X, k
        The records and the least size of a group.
    columns, x
        Groups, and the value of each in a fractional solution.
    state
        Shared progress; a stop is obeyed.
    threads
        For grouping the rest; the result does not depend on them.

    Examples
    --------
    >>> from shoal.core.progress import fresh_state
    >>> X = np.array([[0.0], [1.0], [5.0], [5.0], [8.0], [9.0]])
    >>> pairs = GroupColumns.of_rows(X, np.array([[0, 1], [2, 3], [3, 4]]))
    >>> round_groups(X, 2, pairs, np.array([1.0, 0.5, 0.5]), state=fresh_state(), threads=1).tolist()
    [0, 0, 2, 2, 1, 1]
    """
    fixed = columns.take(np.flatnonzero(x > KEPT))
    # Where the solver's errors let two overlap, neither is kept.
    shared = np.bincount(fixed.member, minlength=len(X)) > 1
    fixed = fixed.take(np.flatnonzero(np.bincount(fixed.owner, shared[fixed.member], len(fixed)) == 0))
    if len(X) - len(fixed.member) < k:
        # Few or none are left: with the records of one more they are a group.
        fixed = fixed.take(np.arange(len(fixed) - 1))
    if len(fixed.member) < ENOUGH * len(X):
        return None
    labels = np.full(len(X), -1, dtype=np.int64)
    labels[fixed.member] = fixed.owner
    rest = np.flatnonzero(labels < 0)
    with within(state, None, 0) as part:
        labels[rest] = len(fixed) + auto(np.ascontiguousarray(X[rest]), k, state=part, threads=threads).labels
    return labels


def round_generation(generation: Generation, n: int, state: State) -> Ints | None:
    """Round the latest solution of a master problem of a table of n records; None if it says too little."""
    table, columns = generation.table, generation.columns
    if not len(columns) or len(table) < n:
        return None  # not all copies are in the table: its groups are not those of a partition
    labels = round_groups(
        table.rows, generation.k, columns, generation.x, state=state, threads=generation.effort.threads
    )
    return None if labels is None else labels[np.argsort(table.ids)]


def round_relaxation(
    X: Floats, k: int, labels: Ints, *, state: State, seconds: float | None, threads: int
) -> Ints | None:
    """Solve the linear relaxation over groups that are guessed, and round it; None if it takes longer or gives little.

    Parameters
    ----------
    X, k
        The records and the least size of a group.
    labels
        A partition, for the sizes of duals.
    state
        Shared progress; a stop is obeyed.
    seconds
        How long it may take; None does not limit it.
    threads
        The result does not depend on them.
    """
    with within(state, seconds, 0) as limited:
        table = make_near(X, k, limited)
        if table is None or len(table) < len(X):
            return None
        generation = Generation(table, k, labels[table.ids], Effort(limited, threads=threads))
        generation.relax(ROUNDS, STEPS, lambda: bool(limited[STOP]))
        if limited[STOP]:
            return None
    return round_generation(generation, len(X), state)
