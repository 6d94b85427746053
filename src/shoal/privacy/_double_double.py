"""Sums, squares and quotients without rounding error: the float64 result and what it leaves over.

T. J. Dekker, A floating-point technique for extending the available precision (1971). A result and its rest together
have about 32 digits; kernels use them where a difference of two long sums decides.
"""

from __future__ import annotations

from typing import Any

from numba import types

from shoal.core.compiler import intrinsic, kernel

__all__ = ["exact_quotient", "exact_square", "exact_sum"]


def _fused(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """Multiply and add with one rounding."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


# numba's annotations take an intrinsic for the function that types it.
_fma: Any = intrinsic(_fused)


@kernel(error_model="numpy")
def exact_sum(a: float, b: float) -> tuple[float, float]:
    """Return a + b and what rounding took off."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@kernel(error_model="numpy")
def exact_square(a: float) -> tuple[float, float]:
    """Return a² and what rounding took off."""
    square = a * a
    return square, _fma(a, a, -square)


@kernel(error_model="numpy")
def exact_quotient(a: float, b: float) -> tuple[float, float]:
    """Return a / b and what it leaves over of a."""
    quotient = a / b
    return quotient, _fma(-quotient, b, a)
