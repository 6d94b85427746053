"""The start of a search: MDAV's groups, in regions of a large table, or the user's labels with large groups split.

A group of 2k records or more is split by MDAV, which never adds to the SSE (Domingo-Ferrer and Mateo-Sanz 2002).
"""

from __future__ import annotations

import numpy as np

from shoal.algorithms.initial_labels import initial_labels
from shoal.algorithms.mdav import mdav
from shoal.algorithms.optimize.regions import split_groups
from shoal.core.measures import canonical_labels, group_sizes, number_through
from shoal.core.progress import fresh_state
from shoal.core.types import Floats, Ints, State

__all__ = ["mdav_start", "split_large", "start_from_labels"]

# MDAV groups a region of this number of records in a moment or two: larger tables start from regions.
START_REGION = 100_000


def mdav_start(X: Floats, k: int, seed: int, state: State) -> Ints:
    """Return MDAV's groups, numbered 0, 1, …; those of regions if the table is large."""
    regions = split_groups(X, np.arange(len(X)), START_REGION, np.random.default_rng(seed))
    parts = [mdav(np.ascontiguousarray(X[region]), k, state=state) for region in regions]
    return canonical_labels(number_through(len(X), regions, parts))


def split_large(X: Floats, labels: Ints, k: int) -> Ints:
    """Return the groups, numbered 0, 1, …, after those of 2k records and more were split.

    Examples
    --------
    >>> split_large(np.array([[0.0], [9.0], [1.0], [8.0]]), np.array([5, 5, 5, 5]), 2).tolist()
    [0, 1, 0, 1]
    """
    numbered = canonical_labels(labels)
    sizes = group_sizes(numbered)
    order = np.argsort(numbered, kind="stable")
    ends, count = np.cumsum(sizes), len(sizes)
    for group in np.flatnonzero(sizes >= 2 * k):
        members = order[ends[group] - sizes[group] : ends[group]]
        parts = mdav(np.ascontiguousarray(X[members]), k, state=fresh_state())
        numbered[members] = count + parts
        count += int(parts.max()) + 1
    return canonical_labels(numbered)


def start_from_labels(X: Floats, k: int, labels: object, method: str) -> Ints:
    """Return labels that were given as a start, checked, with groups of 2k and more split.

    Examples
    --------
    >>> start_from_labels(np.array([[0.0], [9.0], [1.0], [8.0]]), 2, [5, 5, 5, 5], "search").tolist()
    [0, 1, 0, 1]
    """
    return split_large(X, initial_labels(labels, len(X), k, method), k)
