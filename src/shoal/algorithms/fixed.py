"""Method fixed, for one column: groups of k neighbours in sorted order; the middle group takes the remainder.

The classical method in the comparison of S. L. Hansen and S. Mukherjee (2003, Section 4). The middle group takes the
remainder because values are dense there and a larger group costs least. O(n log n).
"""

from __future__ import annotations

import numpy as np

from shoal.core.types import Floats, Ints, State

__all__ = ["fixed"]


def fixed(X: Floats, k: int, *, state: State) -> Ints:
    """Group the values of one column, k at a time in sorted order."""
    n = len(X)
    groups = n // k
    sizes = np.full(groups, k)
    sizes[groups // 2] += n - k * groups
    labels = np.empty(n, dtype=np.int64)
    labels[np.argsort(X[:, 0], kind="stable")] = np.repeat(np.arange(groups), sizes)
    return labels
