"""Conversions of floats to whole numbers with one meaning: the nearest limit beyond the type, 0 for NaN.

LLVM leaves its plain conversion open where the number does not fit; this one is as fast where processors saturate, and takes a
comparison and a choice or two on those that do not. Generated kernels call `lw_to_i32(x)` and its kin.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic


def _saturating(number: Any, operation: str) -> Any:
    def lw_to(typing_context: Any, x: Any) -> Any:
        def convert(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            wanted, given = (context.get_value_type(k) for k in (signature.return_type, signature.args[0]))
            function = builder.module.declare_intrinsic(
                f"llvm.{operation}.sat", (wanted, given), ir.FunctionType(wanted, (given,))
            )
            return builder.call(function, arguments)

        del typing_context
        return number(x), convert

    return intrinsic(lw_to)


lw_to_i32 = _saturating(types.int32, "fptosi")
lw_to_u32 = _saturating(types.uint32, "fptoui")
lw_to_i64 = _saturating(types.int64, "fptosi")
