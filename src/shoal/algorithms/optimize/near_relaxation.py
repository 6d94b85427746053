"""Relaxation-induced neighbourhood search: keep what a partition and a fractional solution agree on, solve the rest.

E. Danna, E. Rothberg and C. Le Pape, Exploring relaxation induced neighborhoods to improve MIP solutions, Mathematical
Programming 102 (2005). Groups of the best partition whose value in the solution of the relaxation is near one are kept.
The records of all others are a set-partitioning problem over the groups known among them, of which the partition is one
solution: an integer programme, small where the relaxation is almost integral, gives a better one.
"""

from __future__ import annotations

import numpy as np

from shoal.algorithms.optimize.group_columns import GroupColumns, groups_in
from shoal.algorithms.optimize.relaxation_rounding import KEPT
from shoal.algorithms.optimize.set_partitioning import improve
from shoal.core.measures import canonical_labels
from shoal.core.types import Floats, Ints, State

__all__ = ["improve_near"]


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
    """Return a partition that loses less, or None.

    Parameters
    ----------
    X, labels
        The records, and the best partition known.
    columns, x
        Groups, and the value of each in a solution of the relaxation; those without one count as 0.
    largest
        With more records to be grouped anew it is not tried.
    nodes, time_limit
        Nodes and seconds after which the integer programme gives up.
    state
        Shared progress; a stop is obeyed at the solver's next step.

    Examples
    --------
    >>> from shoal.core.progress import fresh_state
    >>> X = np.array([[0.0], [0.0], [1.0], [5.0], [1.0], [5.0]])
    >>> columns = GroupColumns.of_rows(X, np.array([[0, 1], [2, 4], [3, 5], [4, 5]]))
    >>> limits = {"largest": 4, "nodes": 1, "time_limit": None, "state": fresh_state()}
    >>> improve_near(X, np.array([0, 0, 1, 1, 2, 2]), columns, np.array([1.0, 0.5, 0.5, 0.5]), **limits).tolist()
    [0, 0, 1, 2, 1, 2]
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
