"""What the operations of `simd.py` are made of: constants in all lanes, and functions of LLVM and
of processors on registers.
"""

from __future__ import annotations

from typing import Any, cast

from llvmlite import ir
from numba.core.registry import cpu_target

from lanewise.runtime.vector_width import width_of

INT32 = ir.IntType(32)
MIN_LANES = 4  # of an instruction of AVX-512
CURRENT_ROUNDING = 4  # an operand of such instructions: round as the processor is set to


def constant(vector: Any, value: float) -> Any:
    """One number in all lanes of a type of registers."""
    return ir.Constant(vector, [ir.Constant(vector.element, value)] * vector.count)


def called(
    builder: Any, name: str, result: Any, arguments: list[Any], flags: tuple[str, ...] = ()
) -> Any:
    """An intrinsic function of LLVM that is named after the type of its first argument."""
    vector: Any = arguments[0].type
    letter = {"float": "f32", "double": "f64"}.get(str(vector.element)) or str(vector.element)
    function = ir.FunctionType(result, [a.type for a in arguments])
    text = f"llvm.{name}.v{vector.count}{letter}"
    callee = builder.module.globals.get(text) or ir.Function(builder.module, function, text)
    return builder.call(callee, arguments, fastmath=flags)


def scaling_lanes(builder: Any, count: int) -> int:
    """How many lanes the instruction of AVX-512 takes that multiplies by powers of two; 0 where
    there is none for registers of `count`.
    """
    codegen = cast("Any", cpu_target.target_context).codegen()
    # that code is compiled for, possibly fewer than the CPU has
    _, _, features = codegen.magic_tuple()
    if not {"+avx512f", "+avx512vl"} <= set(features.split(",")):
        return 0
    lanes = min(count, width_of(builder.function) // 32)
    return lanes if lanes >= MIN_LANES else 0


def scaled(builder: Any, values: Any, powers: Any, lanes: int) -> Any:
    """`values` times 2 to the power of `powers`, which are whole, all of float32, by instructions
    of so many lanes.

    Rounded once where the result is subnormal; infinite beyond float32.
    """
    part, mask = ir.VectorType(ir.FloatType(), lanes), ir.IntType(max(8, lanes))
    rounding = [ir.Constant(INT32, CURRENT_ROUNDING)] if 32 * lanes == 512 else []
    name = f"llvm.x86.avx512.mask.scalef.ps.{32 * lanes}"
    kind = ir.FunctionType(part, [part, part, part, mask, *(r.type for r in rounding)])
    callee = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    parts = list[Any]()
    for first in range(0, values.type.count, lanes):
        value, power = (
            _lanes(builder, v, v, range(first, first + lanes)) for v in (values, powers)
        )
        parts.append(builder.call(callee, [value, power, value, ir.Constant(mask, -1), *rounding]))
    while len(parts) > 1:
        both = range(2 * parts[0].type.count)
        parts = [_lanes(builder, a, b, both) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def _lanes(builder: Any, a: Any, b: Any, which: range) -> Any:
    """Lanes of two registers, of which those of the second are numbered on."""
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(INT32, len(which)), list(which)))
