"""Tell LLVM that the arrays of one compiled kernel have no bytes in common.

A generated kernel calls `lw_separate()`. The call becomes no instruction: it marks the data pointer
of every array argument of the machine function that it stands in as "noalias". Without it LLVM
compares the ends of all arrays before a loop, and gives up on vectorising one that touches the 19
populations of a site (it allows 128 comparisons). Two arguments may interleave in memory, as the
leaves of structures do; no byte may be reached through two of them and written.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

# an array is seven arguments of the machine function, its data pointer the fifth: arg.name.4
DATA = ".4"


def _separate(typing_context: Any) -> Any:
    def mark(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del signature, arguments
        for argument in builder.function.args:
            if (
                isinstance(argument.type, ir.PointerType)
                and argument.name.startswith("arg.")
                and argument.name.endswith(DATA)
            ):
                argument.add_attribute("noalias")
        return context.get_dummy_value()

    del typing_context
    return types.void(), mark


lw_separate = intrinsic(_separate)
