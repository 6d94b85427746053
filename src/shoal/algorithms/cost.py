"""Prediction of a method's run time from two short runs, which measure its speed and its growth with n.

The growth exponent is limited to the range from 1 to the worst case in the registry.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shoal.algorithms.registry import Method
from shoal.core.types import Floats

__all__ = ["PROBE", "predicted_seconds"]

# For blocks of up to this number of records, a prediction takes longer than it saves.
PROBE = 4000
WARM_UP = 200


def predicted_seconds(
    method: Method,
    blocks: Sequence[Floats],
    k: int,
    options: Mapping[str, Any],
    *,
    seed: int | None = 0,
) -> float:
    """Predict the total time in seconds for partitioning several blocks of records separately."""
    largest = max(blocks, key=len)
    # Warm up, because the first run may compile kernels and compile time must not count.
    method.run(np.ascontiguousarray(largest[: max(WARM_UP, k)]), k, options, seed=seed)
    if len(largest) <= PROBE:
        return 0.0
    order = np.random.default_rng(0).permutation(len(largest))
    seconds = []
    for size in (PROBE // 2, PROBE):
        sample = np.ascontiguousarray(largest[np.sort(order[:size])])
        start = time.perf_counter()
        method.run(sample, k, options, seed=seed)
        seconds.append(max(time.perf_counter() - start, 1e-9))
    growth = np.clip(np.log2(seconds[1] / seconds[0]), 1, method.growth)
    return float(seconds[1] * sum((len(block) / PROBE) ** growth for block in blocks))
