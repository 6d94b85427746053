"""Cheap float32 scores, which select the records whose distances are computed in float64.

With x and p relative to a common origin, |x − p|² = |p|² + 2 (|x|²/2 − x·p). The score in brackets takes a few vector
instructions for several records at once. Scores are rounded, so they serve only to rule records out; the remaining
distances are computed in float64 (`shoal.kernels.distances`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.core.compiler import kernel
from shoal.core.types import Floats
from shoal.kernels.vector import lesser

__all__ = [
    "APPROXIMATE",
    "FLOAT32_LARGEST",
    "FLOAT32_ROUNDOFF",
    "FLOAT32_SMALLEST",
    "Floats32",
    "score_bound",
    "score_records",
    "to_float32",
]

Floats32 = NDArray[np.float32]

APPROXIMATE = {"contract", "reassoc", "nnan", "ninf", "nsz"}  # fastmath flags for results that are rounded anyway
FLOAT32_ROUNDOFF = 2.0**-24
FLOAT32_LARGEST = 1e15  # squares of greater distances overflow float32
FLOAT32_SMALLEST = 1e-35  # smaller products underflow in float32


@kernel(counted=False, inner=True)
def to_float32(origin: Floats, point: Floats, point32: Floats32) -> float:
    """Write a point relative to the origin in float32; return its distance from the origin, or inf on overflow."""
    square = 0.0
    for j in range(len(point)):
        delta = point[j] - origin[j]
        point32[j] = delta
        square += delta * delta
    offset = np.sqrt(square)
    return float(offset if offset < FLOAT32_LARGEST else np.inf)


@kernel(counted=False, inner=True, fastmath=APPROXIMATE)
def score_records(columns32: Floats32, point: Floats32, scores: Floats32) -> None:
    """Write the score |x|²/2 − x·p of each record, four columns at a time to save stores.

    `columns32` holds half the squared norm of the records, then their columns; `point` has an even number of columns.
    """
    size = len(scores)
    norms, a, b = columns32[0, :size], columns32[1, :size], columns32[2, :size]
    p, q = point[0], point[1]
    for i in range(size):
        scores[i] = norms[i] - (a[i] * p + b[i] * q)
    j = 2
    if len(point) % 4 == 0:
        a, b = columns32[3, :size], columns32[4, :size]
        p, q = point[2], point[3]
        for i in range(size):
            scores[i] -= a[i] * p + b[i] * q
        j = 4
    while j < len(point):
        a, b, c, d = columns32[1 + j, :size], columns32[2 + j, :size], columns32[3 + j, :size], columns32[4 + j, :size]
        p, q, r, s = point[j], point[j + 1], point[j + 2], point[j + 3]
        for i in range(size):
            scores[i] -= (a[i] * p + b[i] * q) + (c[i] * r + d[i] * s)
        j += 4


@kernel(counted=False, inner=True, fastmath=APPROXIMATE)
def score_bound(scores: Floats32, d: int, sign: float, offset: float, norm: float) -> float:
    """Return a lower bound on `sign` times the scored squared distances.

    `offset` is the distance of the point from the origin, and `norm` is the maximum distance of the records from it.
    The rounding errors of the numbers and of each sum of d + 1 products are at most (d + 4) · FLOAT32_ROUNDOFF · (|x| +
    |p|)² in total, for any order of summation.
    """
    sign32 = np.float32(sign)
    lowest = sign32 * scores[0]
    for i in range(len(scores)):
        lowest = lesser(lowest, sign32 * scores[i])
    width = offset + norm
    slack = (d + 8) * FLOAT32_ROUNDOFF * width * width + FLOAT32_SMALLEST
    bound: float = sign * offset * offset + 2.0 * lowest - slack
    return bound
