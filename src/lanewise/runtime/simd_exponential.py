"""e to the power of x in float32, in the lanes of registers.

x = n ln 2 + r with |r| <= ln 2 / 2, and the polynomial of least error for e to the power of r
(J.-M. Muller, Elementary Functions, 3rd ed. 2016, chapters 3 and 11). ln 2 is subtracted in two
parts, of which the first has few digits. AVX-512 has an instruction that scales by 2 to the power
of n and overflows and underflows as it should. Elsewhere n is added to the exponent, and registers
with a lane near the ends of float32 take a slower path.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from lanewise.runtime.simd_instructions import called, constant, scaled, scaling_lanes

_NORMAL = 87.0  # up to which neither the result nor its inverse is subnormal
_LEAST, _MOST = -104.0, 89.0  # beyond which the result is 0 or infinite
_SHIFT = 12582912.0  # 1.5 * 2^23: a sum with it is a whole number in its last bits
_LOG2_E, _LN2_HIGH, _LN2_LOW = 1.44269504088896341, 0.693359375, -2.12194440e-4
_TERMS = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 0.5)


def exponential(builder: Any, values: list[Any], element: Any) -> Any:
    """Within one unit in the last place; infinite and zero where float32 ends, and NaN for NaN."""
    (x,) = values
    kind = x.type
    count = kind.count
    whole = ir.VectorType(ir.IntType(32), count)

    def every(value: float) -> Any:
        return constant(kind, value)

    def fused(a: Any, b: Any, c: Any) -> Any:
        return called(builder, "fma", kind, [a, b, c])

    def wholes(value: int) -> Any:
        return ir.Constant(whole, [value] * count)

    def parts(of: Any) -> tuple[Any, Any, Any]:
        """n, as a float and as the last bits of one, and e to the power of r."""
        bits = fused(of, every(_LOG2_E), every(_SHIFT))
        n = builder.fsub(bits, every(_SHIFT))
        r = fused(n, every(-_LN2_LOW), fused(n, every(-_LN2_HIGH), of))
        p = every(_TERMS[0])
        for term in _TERMS[1:]:
            p = fused(p, r, every(term))
        p = builder.fadd(fused(p, builder.fmul(r, r), r), every(1.0))
        return n, builder.bitcast(bits, whole), p

    def within() -> Any:
        """x, or where the result ends; NaN stays NaN."""
        low = builder.select(builder.fcmp_ordered("<", x, every(_LEAST)), every(_LEAST), x)
        return builder.select(builder.fcmp_ordered(">", low, every(_MOST)), every(_MOST), low)

    if lanes := scaling_lanes(builder, count):
        n, _, p = parts(within())
        return scaled(builder, p, n, lanes)
    inside = builder.fcmp_ordered("<=", called(builder, "fabs", kind, [x]), every(_NORMAL))
    mask = builder.bitcast(inside, ir.IntType(count))
    all_inside = builder.icmp_unsigned("==", mask, ir.Constant(ir.IntType(count), -1))
    with builder.if_else(all_inside, likely=True) as (normal, other):
        with normal:
            _, bits, p = parts(x)
            sum_ = builder.add(builder.bitcast(p, whole), builder.shl(bits, wholes(23)))
            fast = builder.bitcast(sum_, kind)
            first = builder.block
        with other:
            _, bits, p = parts(within())
            exponent = builder.sub(bits, builder.bitcast(every(_SHIFT), whole))
            half = builder.ashr(exponent, wholes(1))
            # in two steps: results may be subnormal
            for power in (half, builder.sub(exponent, half)):
                scale = builder.shl(builder.add(power, wholes(127)), wholes(23))
                p = builder.fmul(p, builder.bitcast(scale, kind))
            slow = builder.select(builder.fcmp_unordered("uno", x, x), x, p)
            second = builder.block
    result = builder.phi(kind)
    result.add_incoming(fast, first)
    result.add_incoming(slow, second)
    return result
