"""Counting sort of rows by target, and a scatter that restores their order; O(n)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.core.compiler import kernel
from shoal.core.types import Ints

__all__ = ["put_rows", "sort_by_target"]


@kernel
def put_rows(target: NDArray[Any], order: NDArray[Any], rows: NDArray[Any]) -> None:
    """Write row i of `rows` to row order[i] of `target`."""
    for i in range(len(order)):
        for j in range(rows.shape[1]):
            target[order[i], j] = rows[i, j]


def sort_by_target(target: Ints, targets: int) -> tuple[Ints, Ints]:
    """Return the records sorted stably by target, and the start of each target.

    Examples
    --------
    >>> [part.tolist() for part in sort_by_target(np.array([1, 0, 1]), 2)]
    [[1, 0, 2], [0, 1, 3]]
    """
    order, ends = np.empty(len(target), dtype=np.int64), np.zeros(targets + 1, dtype=np.int64)
    _sort_by_target(target, order, ends)
    return order, np.concatenate(([0], ends[:-1]))


@kernel(counted=False)
def _sort_by_target(target: Ints, order: Ints, ends: Ints) -> None:
    """Write the order and the end of each target; the last entry of `ends` is unused."""
    for t in target:
        ends[t + 1] += 1
    for t in range(len(ends) - 1):
        ends[t + 1] += ends[t]
    # Every record advances the start of its target, which finally becomes the end.
    for i in range(len(target)):
        order[ends[target[i]]] = i
        ends[target[i]] += 1
