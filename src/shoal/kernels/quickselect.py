"""Selection of the n-th row by one column in O(n) on average (C. A. R. Hoare, Algorithm 65: find, 1961)."""

from __future__ import annotations

from shoal.core.compiler import kernel
from shoal.core.types import Floats, Ints

__all__ = ["select_nth"]


@kernel
def select_nth(rows: Floats, ids: Ints, axis: int, low: int, high: int, nth: int) -> None:
    """Reorder rows so that on the axis, no row before `nth` is greater than row `nth` and no later row is less."""
    d = rows.shape[1]
    while low < high:
        a, b, c = rows[low, axis], rows[(low + high) // 2, axis], rows[high, axis]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = low, high
        while i <= j:
            while rows[i, axis] < pivot:
                i += 1
            while rows[j, axis] > pivot:
                j -= 1
            if i <= j:
                for t in range(d):
                    rows[i, t], rows[j, t] = rows[j, t], rows[i, t]
                ids[i], ids[j] = ids[j], ids[i]
                i += 1
                j -= 1
        if nth <= j:
            high = j
        elif nth >= i:
            low = i
        else:
            return
