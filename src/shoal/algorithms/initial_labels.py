"""Labels that a method is given to start from: checked here, for all methods that take them."""

from __future__ import annotations

import numpy as np

from shoal.core.errors import InputError
from shoal.core.measures import canonical_labels
from shoal.core.messages import option
from shoal.core.types import Ints

__all__ = ["initial_labels"]


def initial_labels(start: object, n: int, k: int, method: str) -> Ints:
    """Return the labels that a method starts from, numbered 0, 1, …, or say what is wrong with them.

    Parameters
    ----------
    start
        The group of each record, as the caller gave it.
    n, k
        The number of records, and the least size of a group.
    method
        The method that takes them, for the error.

    Examples
    --------
    >>> initial_labels([7, 3, 7, 3], 4, 2, "two-swap").tolist()
    [0, 1, 0, 1]
    """
    try:
        labels = np.asarray(start)
    except (TypeError, ValueError):  # rows of several lengths
        raise _error(method, "integers, one for each record", f"a {type(start).__name__}") from None
    if labels.shape != (n,):
        raise _error(
            method,
            f"one label for each of the {n} records that are grouped together (blocks and strata are grouped apart)",
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
        f"{option('start')} of method {method!r}, if it is labels, must be {rule}, got {got}. shoal.partition returns "
        "such labels."
    )
