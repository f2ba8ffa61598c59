"""Conversions of floats to whole numbers with one meaning: the nearest limit beyond the type, 0 for
NaN.

LLVM leaves its plain conversion open where the number does not fit. Where a float holds both
limits, the number is brought between them before; LLVM's own saturating conversion does the same
one number after the other, where a loop could take a register of them. Generated kernels call
`lw_to_i32(x)` and its kin.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic


def _saturating(number: Any, operation: str) -> Any:
    def lw_to(typing_context: Any, x: Any) -> Any:
        def convert(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            target, source = (
                context.get_value_type(k) for k in (signature.return_type, signature.args[0])
            )
            if number is types.int32 and signature.args[0] is types.float64:
                return _between(builder, arguments[0], target)
            function = builder.module.declare_intrinsic(
                f"llvm.{operation}.sat", (target, source), ir.FunctionType(target, (source,))
            )
            return builder.call(function, arguments)

        del typing_context
        return number(x), convert

    return intrinsic(lw_to)


def _between(builder: Any, x: Any, target: Any) -> Any:
    """A float64 between the limits of a signed type of 32 bits, and converted; comparisons with NaN
    are false.
    """
    low, high = (ir.Constant(x.type, float(limit)) for limit in (-(2**31), 2**31 - 1))
    x = builder.select(
        builder.fcmp_ordered(">", x, low),
        x,
        builder.select(builder.fcmp_ordered("ord", x, x), low, ir.Constant(x.type, 0.0)),
    )
    return builder.fptosi(builder.select(builder.fcmp_ordered("<", x, high), x, high), target)


lw_to_i32 = _saturating(types.int32, "fptosi")
lw_to_u32 = _saturating(types.uint32, "fptoui")
lw_to_i64 = _saturating(types.int64, "fptosi")
