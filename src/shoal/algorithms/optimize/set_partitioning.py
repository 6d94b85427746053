"""Set partitioning by HiGHS: choose groups that cover every record once with the smallest total SSE.

This integer programme takes exponential time in the worst case, but seconds if only columns of small reduced cost are
left.

A large table is divided into regions of whole groups (`optimize.regions`). In each region, an integer programme chooses
among the first-ranked groups inside the region. Groups are ranked by reduced cost, since a better partition has only
groups of small reduced cost (`optimize.proof`), or by mean squared error if there are no multipliers. The regions
change every turn, so that groups across a border can be chosen later. The cost is O(n) plus the programmes, which have
a time limit or, without one, a node limit. The SSE of each choice is recomputed; only a better choice is accepted.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.algorithms.optimize.cuts import Cuts, no_cuts
from shoal.algorithms.optimize.group_columns import GroupColumns, groups_in
from shoal.algorithms.optimize.master import matrix
from shoal.algorithms.optimize.regions import split_groups
from shoal.core.measures import canonical_labels, number_through
from shoal.core.progress import STOP
from shoal.core.types import Floats, Ints, State

__all__ = ["Choice", "Regions", "choose", "improve", "recombine_regions"]


@dataclass(frozen=True)
class Choice:
    """The best choice of groups that the solver found."""

    labels: Ints | None  # the group of each record; None if the choice does not improve on the incumbent
    proven: bool  # true if no choice of columns is better than this choice or the incumbent


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
    """Choose groups that cover every record once, with a total SSE below `upper`.

    `cuts`, which every partition satisfies, tighten the solver's relaxation. `incumbent` holds the column numbers of a
    known solution, from which the solver starts. The solver gives up after `time_limit` seconds or `nodes` nodes, or if
    a stop is requested.

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
    """Choose a partition with a smaller SSE from the groups of a partition and other groups; see `choose`.

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
    """Return the integer programme that covers every record once with the smallest SSE, in units of `unit`."""
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
    """Return the labels of the solver's choice if it is verified to be a better partition, otherwise None."""
    if len(x) != len(columns):
        return None
    selected = np.flatnonzero(x > 0.5)
    labels = np.full(n, -1, dtype=np.int64)
    for g, j in enumerate(selected):
        labels[columns[j]] = g
    if columns.sizes[selected].sum() != n or (labels < 0).any() or columns.cost[selected].sum() >= upper:
        return None
    return labels


@dataclass(frozen=True)
class Regions:
    """The maximum size of regions and the limits of their integer programmes."""

    records: int  # maximum number of records per region
    choices: int  # maximum number of groups per record to choose from, in addition to the groups of the partition
    nodes: int  # node limit of a programme when there is no time limit
    seconds: float = np.inf  # time limit of a programme when the whole search has a time limit


def recombine_regions(
    X: Floats,
    labels: Ints,
    columns: GroupColumns,
    rank: Floats,
    regions: Regions,
    seed: tuple[int, int],
    *,
    until: float | None = None,
    state: State,
) -> Ints:
    """Recombine groups within regions, and return a partition that loses no more than `labels`.

    The programme of a region uses the groups of `columns` with the smallest `rank`; the seed determines the regions.
    The search ends at the `time.monotonic` value `until`; if `until` is None, each programme has a node limit instead.

    Examples
    --------
    >>> from shoal.core.progress import fresh_state
    >>> X = np.array([[0.0], [1.0], [5.0], [5.0]])
    >>> pairs, limits = GroupColumns.of_rows(X, np.array([[0, 1], [2, 3]])), Regions(4, 6, nodes=1)
    >>> labels = np.array([0, 1, 0, 1])
    >>> recombine_regions(X, labels, pairs, np.zeros(2), limits, (0, 0), state=fresh_state()).tolist()
    [0, 0, 1, 1]
    """
    labels = canonical_labels(labels)
    parts = split_groups(X, labels, regions.records, np.random.default_rng(seed))
    region, place = np.empty(len(X), dtype=np.int64), np.empty(len(X), dtype=np.int64)
    for number, part in enumerate(parts):
        region[part], place[part] = number, np.arange(len(part))
    of, at = region[columns.member], columns.start[:-1]
    inside = np.flatnonzero(np.minimum.reduceat(of, at) == np.maximum.reduceat(of, at))
    order = inside[np.lexsort((rank[inside], of[at][inside]))]
    first = np.searchsorted(of[at][order], np.arange(len(parts) + 1))
    results = []
    for number, part in enumerate(parts):
        part_labels = canonical_labels(labels[part])
        if not state[STOP] and (until is None or time.monotonic() < until):
            candidates = columns.take(np.sort(order[first[number] : first[number + 1]][: regions.choices * len(part)]))
            choice = improve(
                np.ascontiguousarray(X[part]),
                part_labels,
                GroupColumns(candidates.start, place[candidates.member], candidates.cost),
                time_limit=None if until is None else min(regions.seconds, max(0.1, until - time.monotonic())),
                nodes=regions.nodes if until is None else None,
                state=state,
            )
            part_labels = part_labels if choice.labels is None else choice.labels
        results.append(part_labels)
    return canonical_labels(number_through(len(X), parts, results))
