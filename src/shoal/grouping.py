"""partition(): validate, then let a method of the registry group the records of an array."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from shoal.algorithms.registry import Outcome, choose, find
from shoal.errors import InputError
from shoal.measures import canonical_labels
from shoal.progress import watch
from shoal.types import Floats, Ints

__all__ = ["as_records", "check_k", "find_groups", "partition"]

GREAT = 400  # powers of two


def partition(
    X: ArrayLike,
    k: int,
    method: str = "auto",
    *,
    seed: int | None = None,
    progress: bool = False,
    **options: object,
) -> Ints:
    """Group the records of an array, at least k to a group.

    Distances are Euclidean on the columns as given; `shoal.mask` standardises them first.

    Parameters
    ----------
    X
        Array ``(n, d)`` of finite numbers; a vector is one column.
    k
        The least number of records in a group.
    method
        A name listed by `shoal.methods`; ``"auto"`` takes the optimum for one column and MDAV for several.
    seed
        Decides the result of a random method.
    progress
        Show a progress bar on a terminal.
    **options
        Options of the method.

    Returns
    -------
    labels
        The group of each record: 0, 1, … in order of first appearance. ``(n, d)`` for a method that groups
        every column on its own.

    Examples
    --------
    >>> partition([[1.0], [9.0], [1.2], [9.3]], k=2).tolist()
    [0, 1, 0, 1]
    """
    return find_groups(X, k, method, seed=seed, progress=progress, **options).labels


def find_groups(
    X: ArrayLike,
    k: int,
    method: str = "auto",
    *,
    seed: int | None = None,
    progress: bool = False,
    **options: object,
) -> Outcome:
    """Do what `partition` does, and return the whole `Outcome`: labels, bound, status, facts."""
    array = as_records(X)
    method = choose(method, array.shape[1])
    entry = find(method)
    chosen = entry.read_options(options)
    k = check_k(k, len(array))
    if entry.univariate and array.shape[1] != 1:
        raise InputError(
            f"Method {method!r} groups one column, got {array.shape[1]}. "
            "Take 'individual-ranking' for each column on its own, or a multivariate method."
        )
    # Squares of very large numbers are not finite; the same groups are found for all of them times a power of two.
    exponent = int(np.frexp(np.abs(array).max())[1])
    great = exponent > GREAT
    if great:
        array = np.ldexp(array, -exponent)
    outcome = watch(
        lambda state: entry.run(array, k, chosen, seed=seed, state=state),
        len(array),
        title=method,
        show=progress,
    )
    if great:
        # Nothing can be said of their squares.
        outcome = replace(outcome, bound=None, status="heuristic", certificate=None)
    return replace(outcome, labels=canonical_labels(outcome.labels))


def as_records(X: ArrayLike) -> Floats:
    """Return the records as a contiguous array ``(n, d)`` of finite float64, or say what is wrong with them.

    Examples
    --------
    >>> as_records([1, 2]).shape
    (2, 1)
    """
    try:
        array = np.ascontiguousarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("Parameter 'X' must be an array of numbers; encode or leave out columns of text.") from None
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] == 0:
        raise InputError(f"Parameter 'X' must have records in rows and at least one column, got shape {array.shape}.")
    if not np.isfinite(array).all():
        row, column = np.argwhere(~np.isfinite(array))[0]
        raise InputError(
            f"Parameter 'X' must be finite, got {array[row, column]} in record {row}, column {column}. "
            "Leave such records out, or use shoal.mask(..., missing=...)."
        )
    return array


def check_k(k: object, n: int, where: str = "") -> int:
    """Return k if it can be kept for n records, else refuse it.

    Examples
    --------
    >>> check_k(3, 10)
    3
    """
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)):
        raise InputError(f"Parameter 'k' must be a whole number of at least 2, got {k!r}.")
    if k < 2:
        raise InputError(f"Parameter 'k' must be at least 2, got {k}: a group of one record hides nobody.")
    if n < k:
        records = f"{n} record{'' if n == 1 else 's'}"
        raise InputError(
            f"Parameter 'k' must not exceed the number of records: k={k}, but {where or 'the table'} has {records}. "
            "Take a smaller k" + (", or join small strata before masking." if where else ".")
        )
    return int(k)
