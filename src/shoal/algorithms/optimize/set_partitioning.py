"""Set partitioning: choose among given groups those that hold every record once, at the least SSE. Solved by HiGHS.

An integer programme: exponential in the worst case, seconds where reduced costs have thinned out the columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.algorithms.optimize.cuts import Cuts, no_cuts
from shoal.algorithms.optimize.group_columns import GroupColumns, groups_in
from shoal.algorithms.optimize.master import matrix
from shoal.core.progress import STOP
from shoal.core.types import Floats, Ints, State

__all__ = ["Choice", "choose", "improve"]


@dataclass(frozen=True)
class Choice:
    """The best choice found.

    Parameters
    ----------
    labels
        The group of each record, or None if nothing better than the incumbent was found.
    proven
        Whether no choice among the columns is better than this one, or than the incumbent.
    """

    labels: Ints | None
    proven: bool


def choose(
    columns: GroupColumns,
    n: int,
    upper: float,
    *,
    cuts: Cuts | None = None,
    incumbent: Ints | None = None,
    time_limit: float | None = None,
    nodes: int | None = None,
    state: State,
) -> Choice:
    """Choose groups of total SSE below `upper`.

    Parameters
    ----------
    columns
        The groups to choose from.
    n
        The number of records.
    upper
        The SSE to beat.
    cuts
        Inequalities that tighten the solver's own relaxation; every partition fulfils them.
    incumbent
        Numbers of the columns of a known solution, to start from.
    time_limit, nodes
        Seconds and nodes of the branching after which to give up proving.
    state
        Shared progress; a stop is obeyed at the solver's next step.

    Examples
    --------
    >>> from shoal.core.progress import fresh_state
    >>> X = np.array([[0.0], [1.0], [5.0], [5.0]])
    >>> pairs = [np.array([a, b]) for a in range(4) for b in range(a + 1, 4)]
    >>> choose(GroupColumns.of(X, pairs), 4, 99.0, state=fresh_state()).labels.tolist()
    [0, 0, 1, 1]
    """
    import highspy

    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, value in {
        "output_flag": False,
        "threads": 1,
        "mip_rel_gap": 0.0,
        "mip_abs_gap": 1e-9 * n,
        "mip_feasibility_tolerance": 1e-9,
        "primal_feasibility_tolerance": 1e-9,
        "dual_feasibility_tolerance": 1e-9,
        "time_limit": None if time_limit is None else float(time_limit),
        "mip_max_nodes": nodes,
    }.items():
        if value is not None:
            solver.setOptionValue(name, value)
    solver.passModel(_programme(columns, n, no_cuts() if cuts is None else cuts, unit=upper / n or 1.0))
    if incumbent is not None:
        solution = highspy.HighsSolution()
        values = np.zeros(len(columns))
        values[incumbent] = 1.0
        solution.col_value = list(values)
        solver.setSolution(solution)

    def stop(event: object) -> None:
        if state[STOP]:
            event.interrupt()  # type: ignore[attr-defined]

    solver.cbMipInterrupt += stop
    solver.run()
    status = solver.getModelStatus()
    proven = status in (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kInfeasible)
    x = np.array(solver.getSolution().col_value)
    return Choice(_checked(columns, n, upper, x), proven)


def improve(
    X: Floats,
    labels: Ints,
    columns: GroupColumns,
    *,
    cuts: Cuts | None = None,
    time_limit: float | None = None,
    nodes: int | None = None,
    state: State,
) -> Choice:
    """Choose among the groups of a partition and others a partition of lower SSE; see `choose`.

    Examples
    --------
    >>> from shoal.core.progress import fresh_state
    >>> X = np.array([[0.0], [5.0], [1.0], [5.0]])
    >>> others = GroupColumns.of(X, [np.array([0, 2]), np.array([1, 3])])
    >>> improve(X, np.array([0, 0, 1, 1]), others, state=fresh_state()).labels.tolist()
    [0, 1, 0, 1]
    """
    current = GroupColumns.of(X, groups_in(labels))
    place = {key: j for j, key in enumerate(current.keys())}
    additional = columns.take(np.array([j for j, key in enumerate(columns.keys()) if key not in place], dtype=np.int64))
    if not len(additional):
        return Choice(None, proven=True)
    return choose(
        current.join(additional),
        len(X),
        float(current.cost.sum()) * (1 - 1e-12),
        cuts=cuts,
        incumbent=np.arange(len(current)),
        time_limit=time_limit,
        nodes=nodes,
        state=state,
    )


def _programme(columns: GroupColumns, n: int, cuts: Cuts, unit: float) -> Any:
    """Return the integer programme: every record once, at the least SSE in some unit."""
    import highspy

    count = len(columns)
    start, row, entry = matrix(columns, n, cuts)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = count, n + len(cuts)
    lp.col_cost_ = columns.cost / unit
    lp.col_lower_, lp.col_upper_ = np.zeros(count), np.ones(count)
    lp.row_lower_ = np.concatenate([np.ones(n), np.full(len(cuts), -np.inf)])
    lp.row_upper_ = np.concatenate([np.ones(n), cuts.right_sides])
    lp.integrality_ = [highspy.HighsVarType.kInteger] * count
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = start.astype(np.int32), row.astype(np.int32)
    lp.a_matrix_.value_ = entry
    return lp


def _checked(columns: GroupColumns, n: int, upper: float, x: Floats) -> Ints | None:
    """Return the labels of the solver's choice if it is a partition and better: everything is counted again."""
    if len(x) != len(columns):
        return None
    selected = np.flatnonzero(x > 0.5)
    labels = np.full(n, -1, dtype=np.int64)
    for g, j in enumerate(selected):
        labels[columns[j]] = g
    if columns.sizes[selected].sum() != n or (labels < 0).any() or columns.cost[selected].sum() >= upper:
        return None
    return labels
