"""k first: MDAV groups whose records are swapped for more distant records until the groups are within t.

Algorithm 2 of J. Soria-Comas, J. Domingo-Ferrer, D. Sánchez and S. Martínez, t-closeness through microaggregation:
strict privacy with enhanced utility preservation, IEEE TKDE 27(11), 2015. The ungrouped records are tried in order of
distance. A record replaces the member whose replacement brings the group nearest to the table, if that helps. Their
Algorithm 1 follows: while some group is not within t, the group that exceeds t most is merged with the group of nearest
centroid. O(n² (d/k + k log k)) time at worst, O(n d) memory.

Ties of distances go to the lowest record number. If values repeat, as in the Census data, another order of ties yields
other groups and a loss that differs by a few percent.
"""

from __future__ import annotations

import numpy as np

from shoal.core.compiler import kernel
from shoal.core.measures import canonical_labels
from shoal.core.progress import STOP
from shoal.core.types import Floats, Ints, State
from shoal.kernels.distances import squared_distance
from shoal.promises.closeness_first import next_start
from shoal.promises.promise import Rules
from shoal.promises.rules import measure

__all__ = ["k_first"]


def k_first(records: Floats, k: int, rules: Rules, *, state: State) -> Ints:
    """Return the group of each record.

    `records` are standardised. The rules may belong to any promise; the paper covers only closeness.

    Examples
    --------
    >>> from shoal.core.progress import fresh_state
    >>> from shoal.promises.diversity import Diversity
    >>> from shoal.promises.promise import ConfidentialColumn
    >>> from shoal.promises.rules import make_rules
    >>> records = np.array([[0.0], [0.1], [9.0], [9.1]])
    >>> column = ConfidentialColumn(np.array([0, 0, 1, 1]), np.array([2, 2]), ordered=False)
    >>> k_first(records, 2, make_rules([column], [(0, Diversity(2))], 4), state=fresh_state()).tolist()
    [0, 1, 1, 0]
    """
    return canonical_labels(_merge_worst(records, _groups(records, k, rules, state), rules, state))


@kernel
def _lacking(rules: Rules, members: Ints, codes: Ints) -> float:
    """Return the total shortfall of a group, over all rules."""
    lacking = 0.0
    for rule in range(len(rules.kinds)):
        for j in range(len(members)):
            codes[j] = rules.codes[rule, members[j]]
        codes[: len(members)].sort()
        lacking += measure(rules, rule, codes, len(members))[1]
    return lacking


@kernel
def _swap(rules: Rules, members: Ints, candidates: Ints, codes: Ints) -> None:
    """Replace members by candidates, nearest first, while that reduces the shortfall of the group."""
    lacking = _lacking(rules, members, codes)
    for candidate in candidates:
        if lacking <= 0:
            break
        smallest, swapped = lacking, -1
        for place in range(len(members)):
            member = members[place]
            members[place] = candidate
            shortfall = _lacking(rules, members, codes)
            members[place] = member
            if shortfall < smallest:
                smallest, swapped = shortfall, place
        if swapped >= 0:
            lacking, members[swapped] = smallest, candidate


@kernel
def _groups(records: Floats, k: int, rules: Rules, state: State) -> Ints:
    n, d = records.shape
    labels = np.full(n, -1)
    remaining = np.arange(n)
    centre, codes = np.empty(d), np.empty(k, dtype=np.int64)
    group = 0
    while len(remaining) >= 2 * k and not state[STOP]:
        next_start(records, remaining, group, centre)
        distance = np.empty(len(remaining))
        for place in range(len(remaining)):
            distance[place] = squared_distance(records[remaining[place]], centre)
        order = remaining[np.argsort(distance, kind="mergesort")]
        members = order[:k].copy()
        _swap(rules, members, order[k:], codes)
        labels[members] = group
        group += 1
        remaining = remaining[labels[remaining] < 0]
    labels[remaining] = group
    return labels


@kernel
def _merge_worst(records: Floats, labels: Ints, rules: Rules, state: State) -> Ints:
    """Run Algorithm 1: merge the group of largest shortfall with its nearest group until no shortfall remains."""
    n, d = records.shape
    groups = labels.max() + 1
    sizes, centres, lacking = np.zeros(groups), np.zeros((groups, d)), np.zeros(groups)
    for i in range(n):
        sizes[labels[i]] += 1
        centres[labels[i]] += records[i]
    codes = np.empty(n, dtype=np.int64)
    for group in range(groups):
        centres[group] /= sizes[group]
        lacking[group] = _lacking(rules, np.flatnonzero(labels == group), codes)
    for _ in range(groups - 1):
        worst = np.argmax(lacking)
        if lacking[worst] <= 0 or state[STOP]:
            break
        nearest, shortest = -1, np.inf
        for group in range(groups):
            distance = squared_distance(centres[group], centres[worst])
            if group != worst and sizes[group] > 0 and distance < shortest:
                nearest, shortest = group, distance
        share = sizes[nearest] / (sizes[worst] + sizes[nearest])
        for j in range(d):
            centres[worst, j] += share * (centres[nearest, j] - centres[worst, j])
        sizes[worst] += sizes[nearest]
        sizes[nearest], lacking[nearest] = 0.0, 0.0
        labels[labels == nearest] = worst
        lacking[worst] = _lacking(rules, np.flatnonzero(labels == worst), codes)
    return labels
