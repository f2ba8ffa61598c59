"""Memory of a CPU that is about to be written is fetched ahead of it.

Generated kernels call `lw_prefetch(array, place)`. Stores of a processor end one after the other: one that waits for its line of a cache
holds up those behind it. Nothing is read or written, so the place may also lie outside of the array.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

WRITE, NEAR, DATA = 1, 3, 1  # what LLVM's `prefetch` is told: for a store, into the first cache, of data


@intrinsic
def lw_prefetch(typing_context: Any, array: Any, place: Any) -> Any:
    """The line of the cache that holds an element of an array, at a place of uint64, is fetched to be written."""

    def fetch(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        word, whole = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [word, whole, whole, whole])
        function = builder.module.declare_intrinsic("llvm.prefetch", [word], kind)
        address = builder.bitcast(builder.gep(data, [arguments[1]]), word)
        builder.call(function, [address, *(ir.Constant(whole, n) for n in (WRITE, NEAR, DATA))])
        return context.get_dummy_value()

    del typing_context, place
    return types.void(array, types.uint64), fetch
