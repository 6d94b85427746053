"""Initial partitions for a search: MDAV's groups, region by region in large tables, or the user's labels.

Groups of 2k records or more are split, which never increases the SSE (Domingo-Ferrer and Mateo-Sanz 2002).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from shoal.algorithms.mdav import mdav
from shoal.algorithms.optimize.regions import split_groups
from shoal.core.errors import InputError
from shoal.core.measures import canonical_labels, group_sizes, number_through
from shoal.core.messages import option
from shoal.core.progress import DONE, STOP, fresh_state
from shoal.core.types import Floats, Ints, State

__all__ = ["initial_labels", "mdav_start", "split_large"]

# MDAV groups a region of this size within seconds; larger tables are divided into regions.
START_REGION = 100_000


def mdav_start(X: Floats, k: int, seed: int, state: State) -> Ints:
    """Return MDAV's groups as labels 0, 1, …; group a large table region by region."""
    regions = split_groups(X, np.arange(len(X)), START_REGION, np.random.default_rng(seed))
    parts = [mdav(np.ascontiguousarray(X[region]), k, state=state) for region in regions]
    return canonical_labels(number_through(len(X), regions, parts))


def split_large(X: Floats, labels: Ints, k: int, split: Callable[..., Ints] = mdav, state: State | None = None) -> Ints:
    """Split groups of 2k records or more by the method `split`; return all groups as labels 0, 1, ….

    The progress count is unchanged.

    Examples
    --------
    >>> split_large(np.array([[0.0], [9.0], [1.0], [8.0]]), np.array([5, 5, 5, 5]), 2).tolist()
    [0, 1, 0, 1]
    """
    numbered = canonical_labels(labels)
    sizes = group_sizes(numbered)
    order = np.argsort(numbered, kind="stable")
    ends, count = np.cumsum(sizes), len(sizes)
    state = fresh_state() if state is None else state
    done = state[DONE]
    for group in np.flatnonzero(sizes >= 2 * k):
        if state[STOP]:
            break
        members = order[ends[group] - sizes[group] : ends[group]]
        parts = split(np.ascontiguousarray(X[members]), k, state=state)
        state[DONE] = done
        numbered[members] = count + parts
        count += int(parts.max()) + 1
    return canonical_labels(numbered)


def initial_labels(start: object, n: int, k: int, method: str) -> Ints:
    """Check a user's labels and return them renumbered 0, 1, ….

    Examples
    --------
    >>> initial_labels([7, 3, 7, 3], 4, 2, "two-swap").tolist()
    [0, 1, 0, 1]
    """
    try:
        labels = np.asarray(start)
    except (TypeError, ValueError):  # rows of different lengths
        raise _error(method, "integers, one per record", f"a {type(start).__name__}") from None
    if labels.shape != (n,):
        raise _error(
            method,
            f"one label for each of the {n} records grouped together (blocks and strata are grouped separately)",
            f"shape {labels.shape}",
        )
    if labels.dtype.kind not in "iu":
        raise _error(method, "integers", f"labels of type {labels.dtype}")
    labels = canonical_labels(labels)
    sizes = np.bincount(labels)
    if sizes.min() < k:
        smallest = int(np.argmin(sizes))
        record = int(np.argmax(labels == smallest))
        raise _error(method, f"groups of at least k={k} records", f"{sizes[smallest]} in the group of record {record}")
    return labels


def _error(method: str, rule: str, got: str) -> InputError:
    return InputError(
        f"{option('start')} of method {method!r}, given as labels, must be {rule}, got {got}. shoal.partition returns "
        "such labels."
    )
