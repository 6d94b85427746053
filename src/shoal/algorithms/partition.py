"""The function `partition`, which validates records and groups them by a method of the registry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shoal.algorithms.registry import Outcome, choose, options_for
from shoal.core.checks import as_records, check_k
from shoal.core.errors import InputError
from shoal.core.measures import canonical_labels
from shoal.core.progress import watch
from shoal.core.types import Ints

__all__ = ["find_groups", "partition"]

LARGEST_EXPONENT = 400  # exponent of two; tables with larger numbers are scaled down


def partition(
    X: ArrayLike,
    k: int,
    method: str | Callable[..., Any] = "auto",
    *,
    seed: int | None = None,
    progress: bool = False,
    **options: object,
) -> Ints:
    """Group the records of an array into groups of at least k.

    Distances are Euclidean and use the columns unscaled; `shoal.mask` standardises the columns first.

    Parameters
    ----------
    X
        Array ``(n, d)`` of finite numbers; a vector is one column.
    k
        The minimum number of records in a group.
    method
        A name listed by `shoal.methods`, or a function ``f(X, k)`` that returns one integer label per record.
        ``"auto"`` computes the optimum for one column; for several columns it runs MDAV and then annealing, with an
        ``effort`` of ``"fast"``, ``"good"`` or ``"best"``. A function receives the options as keyword arguments, and
        its labels are checked.
    seed
        Random seed for methods that use random numbers; ``"auto"`` uses 0 by default.
    progress
        Show a progress bar on a terminal.
    **options
        Options of the method.

    Returns
    -------
    labels
        The group of each record: 0, 1, … in order of first appearance. ``(n, d)`` for a method that groups every column
        separately.

    Examples
    --------
    >>> partition([[1.0], [9.0], [1.2], [9.3]], k=2).tolist()
    [0, 1, 0, 1]
    """
    return find_groups(X, k, method, seed=seed, progress=progress, **options).labels


def find_groups(
    X: ArrayLike,
    k: int,
    method: str | Callable[..., Any] = "auto",
    *,
    seed: int | None = None,
    progress: bool = False,
    **options: object,
) -> Outcome:
    """Group records as `partition` does and return the full `Outcome`: labels, bound, status and facts."""
    array = as_records(X)
    entry = choose(method, array.shape[1])
    settings = entry.read_options(options_for(entry, method, options))
    k = check_k(k, len(array))
    if entry.univariate and array.shape[1] != 1:
        raise InputError(
            f"Method {entry.name!r} groups one column, got {array.shape[1]}. Use 'individual-ranking' to group "
            "each column separately, or a multivariate method."
        )
    # Squares of very large numbers overflow; scaling by a power of two does not change the groups.
    exponent = int(np.frexp(max(array.max(), -array.min()))[1])
    scaled = exponent > LARGEST_EXPONENT
    if scaled:
        array = np.ldexp(array, -exponent)
    outcome = watch(
        lambda state: entry.run(array, k, settings, seed=seed, state=state),
        len(array),
        title=entry.name,
        show=progress,
    )
    if scaled:
        # The bound applies to the scaled numbers only.
        outcome = replace(outcome, bound=None, status="heuristic", certificate=None)
    return replace(outcome, labels=canonical_labels(outcome.labels))
