"""Regional set partitioning: the best choice among groups that are known, region by region.

The records are divided into regions of whole groups (`optimize.regions`), and in each region an integer programme
chooses among the groups that lie in it and rank first (`optimize.set_partitioning`): those of small reduced cost, as a
partition better than the one at hand has no others (`optimize.proof`), or of small mean squared error where there are
no multipliers. Regions lie elsewhere in every turn, so that groups across a border are chosen from later. What is
chosen is counted again, and kept if it loses less. O(n) but for the integer programmes, which are limited in time or,
without a clock, in nodes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from shoal.algorithms.optimize.group_columns import GroupColumns
from shoal.algorithms.optimize.regions import split_groups
from shoal.algorithms.optimize.set_partitioning import improve
from shoal.core.measures import canonical_labels, number_through
from shoal.core.progress import STOP
from shoal.core.types import Floats, Ints, State

__all__ = ["Regions", "recombine_regions"]


@dataclass(frozen=True)
class Regions:
    """The size of regions and the limits of their integer programmes.

    Parameters
    ----------
    records
        The most records of a region.
    choices
        Groups for each of them that the programme may choose from, besides those of the partition.
    nodes
        Branching ends after so many, if there is no clock.
    seconds
        Branching ends after so many, if there is a clock.
    """

    records: int
    choices: int
    nodes: int
    seconds: float = np.inf


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
    """Return a partition that loses no more.

    Parameters
    ----------
    X, labels
        The records and their groups.
    columns, rank
        Groups to choose from; those of least rank come first.
    regions
        The size of regions and the limits of each programme.
    seed
        Decides where regions lie.
    until
        The `time.monotonic` at which to stop; None limits the nodes of each programme instead.
    state
        Shared progress; a stop is obeyed at the solver's next step.

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
