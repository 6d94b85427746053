"""k first: MDAV's groups, each of which swaps records with those farther off until it is within t.

Algorithm 2 of J. Soria-Comas, J. Domingo-Ferrer, D. Sánchez and S. Martínez, t-closeness through microaggregation:
strict privacy with enhanced utility preservation, IEEE TKDE 27(11), 2015, followed by their Algorithm 1: a group that
no swap brings within t is merged with the nearest. The records that have no group yet are tried from the nearest on;
one takes the place of the member that brings the group nearest to the table, if that helps. O(n² (d/k + k log k)) time
at worst, O(n d) memory.
"""

from __future__ import annotations

import numpy as np

from shoal.core.compiling import kernel
from shoal.core.progress import STOP
from shoal.core.types import Floats, Ints, State
from shoal.kernels.distances import squared_distance
from shoal.models.closeness_first import next_start
from shoal.models.keeping import repair
from shoal.models.rules import Rules, shortfall

__all__ = ["k_first"]


def k_first(records: Floats, k: int, rules: Rules, *, state: State) -> Ints:
    """Return the group of each record.

    Parameters
    ----------
    records, k
        Standardised records, and the least group size.
    rules
        What groups must keep: closeness in the paper, any rule here.
    state
        See `shoal.core.progress`.

    Examples
    --------
    >>> from shoal.core.progress import fresh_state
    >>> from shoal.models.model import Confidential, Diversity, make_rules
    >>> records = np.array([[0.0], [0.1], [9.0], [9.1]])
    >>> column = Confidential(np.array([0, 0, 1, 1]), np.array([2, 2]), ordered=False)
    >>> k_first(records, 2, make_rules([column], [(0, Diversity(2))], 4), state=fresh_state()).tolist()
    [0, 1, 1, 0]
    """
    return repair(records, _groups(records, k, rules, state), rules)


@kernel
def _lacking(rules: Rules, members: Ints, codes: Ints) -> float:
    """Return how far a group is from being allowed, over all rules."""
    lacking = 0.0
    for rule in range(len(rules.kinds)):
        for j in range(len(members)):
            codes[j] = rules.codes[rule, members[j]]
        codes[: len(members)].sort()
        lacking += shortfall(rules, rule, codes, len(members))
    return lacking


@kernel
def _swap(rules: Rules, members: Ints, others: Ints, codes: Ints) -> None:
    """Put others in the place of members, the nearest first, while that brings the group nearer to being allowed."""
    lacking = _lacking(rules, members, codes)
    for candidate in others:
        if lacking <= 0:
            break
        least, swapped = lacking, -1
        for place in range(len(members)):
            member = members[place]
            members[place] = candidate
            found = _lacking(rules, members, codes)
            members[place] = member
            if found < least:
                least, swapped = found, place
        if swapped >= 0:
            lacking, members[swapped] = least, candidate


@kernel
def _groups(records: Floats, k: int, rules: Rules, state: State) -> Ints:
    n, d = records.shape
    labels = np.full(n, -1)
    left = np.arange(n)
    centre, codes = np.empty(d), np.empty(k, dtype=np.int64)
    group = 0
    while len(left) >= 2 * k and not state[STOP]:
        next_start(records, left, group, centre)
        distance = np.empty(len(left))
        for place in range(len(left)):
            distance[place] = squared_distance(records[left[place]], centre)
        order = left[np.argsort(distance, kind="mergesort")]
        members = order[:k].copy()
        _swap(rules, members, order[k:], codes)
        labels[members] = group
        group += 1
        left = left[labels[left] < 0]
    labels[left] = group
    return labels
