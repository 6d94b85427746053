"""Sums and products kept in two float64, about 32 digits: a high part and what it leaves over.

T. J. Dekker, A floating-point technique for extending the available precision (1971). Kernels use it where a
difference of two long sums decides.
"""

from __future__ import annotations

from typing import Any

from numba import njit, types
from numba.extending import intrinsic

__all__ = ["dd_add", "dd_divide", "dd_square", "dd_subtract"]


def _fused(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """Multiply and add with one rounding."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


# numba's annotations take an intrinsic for the function that types it.
_fma: Any = intrinsic(_fused)


@njit(cache=True, nogil=True, inline="always")
def dd_add(high: float, low: float, more: float, rest: float) -> tuple[float, float]:
    """Return the sum of two numbers, each a high and a low part."""
    total = high + more
    part = total - high
    left = ((high - (total - part)) + (more - part)) + (low + rest)
    result = total + left
    return result, left - (result - total)


@njit(cache=True, nogil=True, inline="always")
def dd_subtract(high: float, low: float, less: float, rest: float) -> tuple[float, float]:
    """Return the difference of two numbers, each a high and a low part."""
    return dd_add(high, low, -less, -rest)


@njit(cache=True, nogil=True, inline="always")
def dd_square(high: float, low: float) -> tuple[float, float]:
    """Return the square of a number."""
    square = high * high
    return square, _fma(high, high, -square) + 2.0 * high * low


@njit(cache=True, nogil=True, inline="always")
def dd_divide(high: float, low: float, divisor: float) -> tuple[float, float]:
    """Return a number divided by a float."""
    quotient = high / divisor
    return quotient, (_fma(-quotient, divisor, high) + low) / divisor
