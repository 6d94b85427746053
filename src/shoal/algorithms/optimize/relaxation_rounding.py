"""Rounding of fractional solutions of the linear relaxation to partitions.

The values of the groups that contain a given record sum to one. Groups with values above one half therefore do not
overlap, except through solver errors. Groups with values near one are kept, and the records of all other groups are
regrouped (`auto`). For small groups, the relaxation of a large table is mostly integral: of 20,000 records with k = 3,
at most a third are regrouped. The result may lose more than the best partition so far, but it is close to better
partitions, which annealing from a low temperature finds (`optimize.search`). The cost is O(n k) plus the regrouping.

`improve_near` is relaxation-induced neighbourhood search (E. Danna, E. Rothberg and C. Le Pape, Exploring relaxation
induced neighborhoods to improve MIP solutions, Mathematical Programming 102, 2005). Groups of the best partition with
values near one are kept. The records of all other groups form a set-partitioning problem over the known groups that
hold only such records. The best partition is one solution; an integer programme, which is small if the relaxation is
almost integral, may find a better one.
"""

from __future__ import annotations

import numpy as np

from shoal.algorithms.auto import auto
from shoal.algorithms.optimize.group_columns import GroupColumns, groups_in
from shoal.algorithms.optimize.set_partitioning import improve
from shoal.algorithms.optimize.sparse.near_generation import NearGeneration
from shoal.algorithms.optimize.sparse.near_table import make_near
from shoal.algorithms.optimize.sparse.repair import Effort
from shoal.core.measures import canonical_labels
from shoal.core.progress import STOP, within
from shoal.core.types import Floats, Ints, State

__all__ = ["improve_near", "round_generation", "round_groups", "round_relaxation"]

# Groups with values above KEPT are kept. If they hold less than the share ENOUGH of the records, rounding gives up.
KEPT, ENOUGH = 0.7, 0.2
# Maximum number of rounds that guess groups, and first-order iterations per round.
ROUNDS, STEPS = 30, 150


def round_groups(X: Floats, k: int, columns: GroupColumns, x: Floats, *, state: State, threads: int) -> Ints | None:
    """Return a partition that contains the groups with values near one, or None if there are too few such groups.

    `x` holds the values of the groups `columns` in a fractional solution. The number of threads that regroup the
    remaining records does not affect the result.
    """
    fixed = columns.take(np.flatnonzero(x > KEPT))
    # If the solver's errors let two groups overlap, discard both.
    shared = np.bincount(fixed.member, minlength=len(X)) > 1
    fixed = fixed.take(np.flatnonzero(np.bincount(fixed.owner, shared[fixed.member], len(fixed)) == 0))
    if len(X) - len(fixed.member) < k:
        # The remaining records are too few for a group: also regroup the records of the last kept group.
        fixed = fixed.take(np.arange(len(fixed) - 1))
    if len(fixed.member) < ENOUGH * len(X):
        return None
    labels = np.full(len(X), -1, dtype=np.int64)
    labels[fixed.member] = fixed.owner
    rest = np.flatnonzero(labels < 0)
    with within(state, None, 0) as part:
        labels[rest] = len(fixed) + auto(np.ascontiguousarray(X[rest]), k, state=part, threads=threads).labels
    return labels


def round_generation(generation: NearGeneration, n: int, state: State) -> Ints | None:
    """Round the latest solution of the master problem to a partition of n records; return None if rounding fails."""
    table, columns = generation.table, generation.columns
    if not len(columns) or len(table) < n:
        return None  # the table omits some copies of records, so its groups cannot form a partition
    labels = round_groups(
        table.rows, generation.k, columns, generation.x, state=state, threads=generation.effort.threads
    )
    return None if labels is None else labels[np.argsort(table.ids)]


def round_relaxation(
    X: Floats, k: int, labels: Ints, *, state: State, seconds: float | None, threads: int
) -> Ints | None:
    """Solve the linear relaxation over guessed groups and round it; return None if time is up or rounding fails.

    `labels` is a partition that sets the initial sizes of the duals; `seconds=None` means no limit.
    """
    with within(state, seconds, 0) as limited:
        table = make_near(X, k, limited)
        if table is None or len(table) < len(X):
            return None
        generation = NearGeneration(table, k, labels[table.ids], Effort(limited, threads=threads))
        generation.relax(ROUNDS, STEPS, lambda: bool(limited[STOP]))
        if limited[STOP]:
            return None
    return round_generation(generation, len(X), state)


def improve_near(
    X: Floats,
    labels: Ints,
    columns: GroupColumns,
    x: Floats,
    *,
    largest: int,
    nodes: int,
    time_limit: float | None,
    state: State,
) -> Ints | None:
    """Round a solution of the relaxation to a partition; return it if it loses less than `labels`, else None.

    `x` holds the values of the groups `columns` in that solution; all other groups have the value 0. If more than
    `largest` records would be regrouped, return None. The integer programme gives up after `nodes` nodes or
    `time_limit` seconds, or if a stop is requested.
    """
    current = {group.tobytes() for group in groups_in(labels)}
    fixed = [j for j in np.flatnonzero(x > KEPT) if columns[j].tobytes() in current]
    free = np.ones(len(X), dtype=bool)
    free[columns.take(np.array(fixed, dtype=np.int64)).member] = False
    rest = np.flatnonzero(free)
    if not 0 < len(rest) <= largest:
        return None
    place = np.cumsum(free) - 1
    inside = columns.take(np.flatnonzero(np.bincount(columns.owner, ~free[columns.member], len(columns)) == 0))
    choice = improve(
        np.ascontiguousarray(X[rest]),
        canonical_labels(labels[rest]),
        GroupColumns(inside.start, place[inside.member], inside.cost),
        time_limit=time_limit,
        nodes=nodes,
        state=state,
    )
    if choice.labels is None:
        return None
    improved = labels.copy()
    improved[rest] = labels.max() + 1 + choice.labels
    return canonical_labels(improved)
