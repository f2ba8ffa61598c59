"""Scatters of the threads of a CPU: an element of an array is combined with a value in one step
that no other thread interrupts.

Generated kernels call `lw_scatter_add(array, place, value)` and its kin; `language.scatter` says
what they compute. Whole numbers take one instruction of the processor. Minima and maxima of floats
look at the element first, which most values do not change, and exchange it if it is still the same.
No order is promised to other memory: the threads meet when the kernel ends.
"""

from __future__ import annotations

from typing import Any, Literal

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

NAN = {32: 0x7FC00000, 64: 0x7FF8000000000000}  # the bits of NumPy's nan
_ORDER = "monotonic"


def _scatter(operation: str) -> Any:
    def lw_scatter(typing_context: Any, array: Any, place: Any, value: Any) -> Any:
        def combine(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = signature.args[0].dtype
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            target = builder.gep(data, [arguments[1]])
            if isinstance(kind, types.Float):
                _exchange(builder, target, arguments[2], kind.bitwidth, smaller=operation == "min")
            else:
                sign = "" if operation == "add" or kind.signed else "u"
                builder.atomic_rmw(sign + operation, target, arguments[2], _ORDER)
            return context.get_dummy_value()

        del typing_context
        return types.void(array, types.uint64, array.dtype), combine

    return intrinsic(lw_scatter)


def _fetch(operation: Literal["add", "or"]) -> Any:
    """`lw_fetch_add(words, place, value)`: a whole number of 64 bits as it was before a value was
    added.
    """

    def lw_fetch(typing_context: Any, array: Any, place: Any, value: Any) -> Any:
        def combine(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            return builder.atomic_rmw(
                operation, builder.gep(data, [arguments[1]]), arguments[2], _ORDER
            )

        del typing_context
        return types.int64(array, types.uint64, types.int64), combine

    return intrinsic(lw_fetch)


def _exchange(builder: Any, target: Any, value: Any, bits: int, *, smaller: bool) -> None:
    """Put a float in place of an element until it no longer has to, or does."""
    word = ir.IntType(bits)
    place = builder.bitcast(target, word.as_pointer())
    nan = ir.Constant(word, NAN[bits])
    number = builder.fcmp_ordered("ord", value, value)
    bits_of_value = builder.select(number, builder.bitcast(value, word), nan)
    first = builder.load_atomic(place, _ORDER, bits // 8)
    start = builder.block
    test, swap, end = (
        builder.append_basic_block(n) for n in ("scatter.test", "scatter.swap", "scatter.end")
    )
    builder.branch(test)
    builder.position_at_end(test)
    now = builder.phi(word)
    now.add_incoming(first, start)
    element = builder.bitcast(now, value.type)
    better = builder.fcmp_ordered("<" if smaller else ">", value, element)
    low, high = (bits_of_value, now) if smaller else (now, bits_of_value)
    zero = ir.Constant(word, 0)
    signs = builder.and_(builder.icmp_signed("<", low, zero), builder.icmp_signed(">=", high, zero))
    equal = builder.and_(builder.fcmp_ordered("==", value, element), signs)
    stays = builder.fcmp_unordered("uno", element, element)
    takes = builder.or_(builder.or_(better, equal), builder.not_(number))
    builder.cbranch(builder.and_(takes, builder.not_(stays)), swap, end)
    builder.position_at_end(swap)
    pair = builder.cmpxchg(place, now, bits_of_value, _ORDER, _ORDER)
    now.add_incoming(builder.extract_value(pair, 0), swap)
    builder.cbranch(builder.extract_value(pair, 1), end, test)
    builder.position_at_end(end)


lw_fetch_add, lw_fetch_or = _fetch("add"), _fetch("or")
lw_scatter_add, lw_scatter_min, lw_scatter_max = _scatter("add"), _scatter("min"), _scatter("max")
