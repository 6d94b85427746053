"""Regional set partitioning: the best choice among groups of small reduced cost, region by region.

A partition better than the one at hand has groups of small reduced cost only: their sum is the distance to the bound
(`optimize.proof`). The records are divided into regions of whole groups (`optimize.regions`), and in each region an
integer programme chooses among the groups that lie in it, are cheap, and were generated (`optimize.set_partitioning`).
Regions lie elsewhere in every turn, so that groups across a border are chosen from later. What is chosen is counted
again, and kept if it loses less. O(n) but for the integer programmes, which are limited in time or, without a clock, in
nodes.
"""

from __future__ import annotations

import time

import numpy as np

from shoal.algorithms.optimize.columns import Columns
from shoal.algorithms.optimize.regions import split_groups
from shoal.algorithms.optimize.set_partitioning import choose
from shoal.core.measures import canonical_labels, group_sizes
from shoal.core.progress import STOP
from shoal.core.types import Floats, Ints, State

__all__ = ["polish"]

# Records of a region, and groups for each of them that the programme may choose from.
_REGION, _CHOICES = 600, 6
# Branching of one programme ends after this many nodes, or seconds if the clock is looked at.
_NODES, _SECONDS = 5, 3.0


def polish(
    rows: Floats, labels: Ints, columns: Columns, rest: Floats, *, turn: int, until: float | None, state: State
) -> Ints:
    """Return a partition that loses no more.

    Parameters
    ----------
    rows, labels
        The records and their groups, numbered 0, 1, ….
    columns, rest
        Groups to choose from, and their reduced costs.
    turn
        Decides where regions lie.
    until
        The `time.monotonic` at which to stop; None limits the nodes of each programme instead.
    state
        Shared progress; a stop is obeyed at the solver's next step.

    Examples
    --------
    >>> from shoal.core.progress import fresh_state
    >>> X = np.array([[0.0], [1.0], [5.0], [5.0]])
    >>> pairs = Columns.of_rows(X, np.array([[0, 1], [2, 3]]))
    >>> polish(X, np.array([0, 1, 0, 1]), pairs, np.zeros(2), turn=0, until=None, state=fresh_state()).tolist()
    [0, 0, 1, 1]
    """
    labels = canonical_labels(labels)
    regions = split_groups(rows, labels, _REGION, np.random.default_rng((9, turn)))
    region = np.empty(len(rows), dtype=np.int64)
    for number, part in enumerate(regions):
        region[part] = number
    of = region[columns.member]
    at = columns.start[:-1]
    inside = np.minimum.reduceat(of, at) == np.maximum.reduceat(of, at)
    order = np.flatnonzero(inside)[np.lexsort((rest[inside], of[at][inside]))]
    first = np.searchsorted(of[at][order], np.arange(len(regions) + 1))
    joined, count = np.empty(len(rows), dtype=np.int64), 0
    place = np.empty(len(rows), dtype=np.int64)
    for number, part in enumerate(regions):
        place[part] = np.arange(len(part))
        cheap = columns.take(np.sort(order[first[number] : first[number + 1]][: _CHOICES * len(part)]))
        cheap = Columns(cheap.start, place[cheap.member], cheap.cost)
        own = canonical_labels(labels[part])
        if not state[STOP] and (until is None or time.monotonic() < until):
            own = _chosen(np.ascontiguousarray(rows[part]), own, cheap, until, state)
        joined[part] = own + count
        count += len(group_sizes(own))
    return canonical_labels(joined)


def _chosen(rows: Floats, labels: Ints, cheap: Columns, until: float | None, state: State) -> Ints:
    """Return the best partition of a region that is found, its own if there is none better."""
    order = np.argsort(labels, kind="stable")
    own = Columns.of(rows, np.split(order, np.cumsum(group_sizes(labels))[:-1]))
    known = {key: j for j, key in enumerate(cheap.keys())}
    new = np.array([j for j, key in enumerate(own.keys()) if key not in known], dtype=np.int64)
    every = cheap.join(own.take(new))
    known |= {key: len(cheap) + j for j, key in enumerate(own.take(new).keys())}
    choice = choose(
        every,
        len(rows),
        float(own.cost.sum()) * (1 - 1e-12),
        incumbent=np.array([known[key] for key in own.keys()], dtype=np.int64),  # noqa: SIM118 - no mapping
        time_limit=None if until is None else min(_SECONDS, max(0.1, until - time.monotonic())),
        nodes=_NODES if until is None else None,
        state=state,
    )
    return labels if choice.labels is None else canonical_labels(choice.labels)
