"""Minimum and maximum of two numbers, each as one machine instruction, unlike `min` and `max`.

Loops over these functions become vector instructions, which quickly compute the minimum and maximum of an array.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from shoal.core.compiler import intrinsic

__all__ = ["greater", "lesser"]


def _instruction(name: str) -> Any:
    def typed(_context: Any, a: Any, b: Any) -> Any:
        if a != b or not isinstance(a, types.Float):
            return None

        def generate(_context: Any, builder: ir.IRBuilder, _signature: Any, values: Any) -> Any:
            kind = values[0].type
            function = builder.module.declare_intrinsic(name, [kind], ir.FunctionType(kind, [kind, kind]))
            # Without NaN, and with −0 equal to 0, the order of a loop does not matter.
            return builder.call(function, values, fastmath=("nnan", "nsz"))

        return a(a, b), generate

    return intrinsic(typed)


lesser = _instruction("llvm.minnum")
greater = _instruction("llvm.maxnum")
