"""The width of SIMD registers of one compiled kernel, whatever the compiler prefers on this CPU.

A generated kernel calls `lw_prefer_256()` or `lw_prefer_512()`. The call becomes no instruction: it
marks the machine function that it stands in with LLVM's attribute "prefer-vector-width", which
LLVM's vectoriser obeys for this function alone. Numba's own setting, CPU_FEATURES, holds for a
whole process and is read once.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.extending import intrinsic


def _attribute(bits: int) -> str:
    return f'"prefer-vector-width"="{bits}"'


def width_of(function: Any) -> int:
    """Bits of the registers of a machine function: those that it is marked with, else 256 is
    assumed.
    """
    return 512 if _attribute(512) in function.attributes else 256


def _marked(bits: int) -> Any:
    def lw_prefer(typing_context: Any) -> Any:
        def mark(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            del signature, arguments
            # llvmlite knows attributes without values only; its set of them prints what it holds.
            set.add(builder.function.attributes, _attribute(bits))
            return context.get_dummy_value()

        del typing_context
        return types.void(), mark

    return intrinsic(lw_prefer)


lw_prefer_256 = _marked(256)
lw_prefer_512 = _marked(512)
