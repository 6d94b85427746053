"""The two largest amounts of each group. O(n)."""

from __future__ import annotations

from shoal.core.compiler import kernel
from shoal.core.types import Floats, Ints

__all__ = ["split_largest"]


@kernel(counted=False)
def split_largest(amounts: Floats, labels: Ints, largest: Floats, second: Floats, rest: Floats) -> None:
    """Find the two largest amounts of each group, and the sum of the others."""
    for i in range(len(labels)):
        amount, g = amounts[i], labels[i]
        if amount > largest[g]:
            rest[g] += second[g]
            second[g] = max(largest[g], 0.0)
            largest[g] = amount
        elif amount > second[g]:
            rest[g] += second[g]
            second[g] = amount
        else:
            rest[g] += amount
