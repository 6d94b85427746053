"""Rows sorted by the target they go to, and put back: counting sort and scatter, O(n)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.core.compiling import kernel
from shoal.core.types import Ints

__all__ = ["put_rows", "sort_by_target"]


@kernel
def put_rows(found: NDArray[Any], order: NDArray[Any], rows: NDArray[Any]) -> None:
    """Write row i of some to row order[i] of others."""
    for i in range(len(order)):
        for j in range(rows.shape[1]):
            found[order[i], j] = rows[i, j]


@kernel
def sort_by_target(target: Ints, targets: int) -> tuple[Ints, Ints]:
    """Return the records in the order of their targets, as they were within one, and where each target begins."""
    begins = np.zeros(targets + 1, dtype=np.int64)
    for t in target:
        begins[t + 1] += 1
    for t in range(targets):
        begins[t + 1] += begins[t]
    free = begins[:-1].copy()
    order = np.empty(len(target), dtype=np.int64)
    for i in range(len(target)):
        order[free[target[i]]] = i
        free[target[i]] += 1
    return order, begins
