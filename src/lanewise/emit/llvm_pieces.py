"""Functions on SIMD registers in LLVM's language, for one number of lanes each: stores past the
caches in pieces, and e to the power of x.
"""

from __future__ import annotations

from functools import cache

from lanewise.emit.llvm_expressions import literal
from lanewise.emit.llvm_instructions import LETTERS, TYPES, FunctionLines
from lanewise.language.types import F32, Scalar
from lanewise.runtime.llvm import has_scaling

EVEN = 16  # bytes that a store past the caches needs to begin at a multiple of
NONTEMPORAL = ", !nontemporal !{i32 1}"
MIN_LANES = 4  # of an instruction of AVX-512
CURRENT_ROUNDING = 4  # an operand of such instructions: round as the processor is set to
_NORMAL = 87.0  # up to which neither the result nor its inverse is subnormal
_LEAST, _MOST = -104.0, 89.0  # beyond which the result is 0 or infinite
_SHIFT = 12582912.0  # 1.5 * 2^23: a sum with it is a whole number in its last bits
_LOG2_E, _LN2_HIGH, _LN2_LOW = 1.44269504088896341, 0.693359375, -2.12194440e-4
_TERMS = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 0.5)


@cache
def pieces_of(count: int, kind: Scalar) -> str:
    """Stores some lanes past the caches; the place begins at a multiple of `EVEN` bytes.

    A function of its own, or LLVM makes all of a kernel's loops for the sake of this.
    """
    code, t, piece = FunctionLines(), TYPES[kind], EVEN // kind.size
    bits, element = f"i{count}", f"i{8 * kind.size}"
    letter = f"v{count}{LETTERS.get(kind) or t}"
    register = code.give(f"load <{count} x {t}>, ptr %kept")
    for first in range(0, count, piece):
        every = ((1 << piece) - 1) << first
        order = ", ".join(f"i32 {n}" for n in range(first, first + piece))
        values = code.give(
            f"shufflevector <{count} x {t}> {register}, <{count} x {t}> poison, "
            f"<{piece} x i32> <{order}>"
        )
        here = code.give(f"and {bits} %lanes, {every}")
        whole, some, behind = (code.label(n) for n in ("whole", "some", "behind"))
        code.branch(code.give(f"icmp eq {bits} {here}, {every}"), whole, some)
        code.begin(whole)
        place = code.give(f"getelementptr {t}, ptr %place, i64 {first}")
        code.do(f"store <{piece} x {t}> {values}, ptr {place}, align {EVEN}{NONTEMPORAL}")
        code.jump(behind)
        code.begin(some)
        for n in range(piece):
            then, after = code.label("then"), code.label("after")
            moved = code.give(f"lshr {bits} %lanes, {first + n}")
            code.branch(code.give(f"trunc {bits} {moved} to i1"), then, after)
            code.begin(then)
            one = code.give(f"extractelement <{piece} x {t}> {values}, i64 {n}")
            word = one if t == element else code.give(f"bitcast {t} {one} to {element}")
            place = code.give(f"getelementptr {t}, ptr %place, i64 {first + n}")
            code.do(f"store {element} {word}, ptr {place}, align {kind.size}{NONTEMPORAL}")
            code.jump(after)
            code.begin(after)
        code.jump(behind)
        code.begin(behind)
    code.end("ret void")
    head = (
        f"define internal void @lw_pieces_{letter}(ptr %kept, {bits} %lanes, ptr %place) noinline"
    )
    return f"{head} {{\n{code.text()}\n}}\n"


def exponential_of(count: int, bits: int) -> tuple[str, ...]:
    """E to the power of x in float32, within one unit in the last place; infinite and zero where
    float32 ends, and NaN for NaN.

    bits: of registers that the kernel prefers.
    """
    lanes = min(count, (512 if bits == 512 else 256) // 32)
    scales = has_scaling() and lanes >= MIN_LANES
    return _exponential(count, lanes if scales else 0)


@cache
def _exponential(count: int, lanes: int) -> tuple[str, ...]:
    code = FunctionLines()
    v, whole, give = f"<{count} x float>", f"<{count} x i32>", code.give

    def every(value: float) -> str:
        return f"splat (float {literal(value, F32)})"

    def fused(a: str, b: str, c: str) -> str:
        return give(f"call {v} @llvm.fma.v{count}f32({v} {a}, {v} {b}, {v} {c})")

    def parts(of: str) -> tuple[str, str, str]:
        """n, as a float and as the last bits of one, and e to the power of r."""
        last = fused(of, every(_LOG2_E), every(_SHIFT))
        n = give(f"fsub {v} {last}, {every(_SHIFT)}")
        r = fused(n, every(-_LN2_LOW), fused(n, every(-_LN2_HIGH), of))
        p = every(_TERMS[0])
        for term in _TERMS[1:]:
            p = fused(p, r, every(term))
        square = give(f"fmul {v} {r}, {r}")
        p = give(f"fadd {v} {fused(p, square, r)}, {every(1.0)}")
        return n, give(f"bitcast {v} {last} to {whole}"), p

    def within() -> str:
        """x, or where the result ends; NaN stays NaN."""
        below = give(f"fcmp olt {v} %x, {every(_LEAST)}")
        low = give(f"select <{count} x i1> {below}, {v} {every(_LEAST)}, {v} %x")
        above = give(f"fcmp ogt {v} {low}, {every(_MOST)}")
        return give(f"select <{count} x i1> {above}, {v} {every(_MOST)}, {v} {low}")

    declared = [f"declare {v} @llvm.fma.v{count}f32({v}, {v}, {v})"]
    if lanes:
        n, _, p = parts(within())
        result, scaling = _scaled(code, count, lanes, p, n)
        declared.append(scaling)
    else:
        declared.append(f"declare {v} @llvm.fabs.v{count}f32({v})")
        size = give(f"call {v} @llvm.fabs.v{count}f32({v} %x)")
        inside = give(f"fcmp ole {v} {size}, {every(_NORMAL)}")
        mask = give(f"bitcast <{count} x i1> {inside} to i{count}")
        room = code.room("%power", v)
        normal, other, behind = (code.label(n) for n in ("normal", "other", "behind"))
        code.branch(give(f"icmp eq i{count} {mask}, -1"), normal, other)
        code.begin(normal)
        _, last, p = parts("%x")
        moved = give(f"shl {whole} {last}, splat (i32 23)")
        number = give(f"bitcast {v} {p} to {whole}")
        total = give(f"add {whole} {number}, {moved}")
        code.do(f"store {v} {give(f'bitcast {whole} {total} to {v}')}, ptr {room}")
        code.jump(behind)
        code.begin(other)
        _, last, p = parts(within())
        shift = give(f"bitcast {v} {every(_SHIFT)} to {whole}")
        exponent = give(f"sub {whole} {last}, {shift}")
        half = give(f"ashr {whole} {exponent}, splat (i32 1)")
        rest = give(f"sub {whole} {exponent}, {half}")
        for power in (half, rest):  # in two steps: results may be subnormal
            biased = give(f"add {whole} {power}, splat (i32 127)")
            scale = give(f"shl {whole} {biased}, splat (i32 23)")
            p = give(f"fmul {v} {p}, {give(f'bitcast {whole} {scale} to {v}')}")
        none = give(f"fcmp uno {v} %x, %x")
        code.do(f"store {v} {give(f'select <{count} x i1> {none}, {v} %x, {v} {p}')}, ptr {room}")
        code.jump(behind)
        code.begin(behind)
        result = give(f"load {v}, ptr {room}")
    code.end(f"ret {v} {result}")
    head = f"define internal {v} @lw_exp_v{count}({v} %x) alwaysinline"
    return *declared, f"{head} {{\n{code.text()}\n}}\n"


def _scaled(code: FunctionLines, count: int, lanes: int, p: str, n: str) -> tuple[str, str]:
    """`p` times 2 to the power of `n` by instructions of so many lanes, and their declaration.

    Rounded once where the result is subnormal; infinite beyond float32.
    """
    give, v, part, mask = code.give, f"<{count} x float>", f"<{lanes} x float>", max(8, lanes)
    rounding = ", i32" if 32 * lanes == 512 else ""
    name = f"@llvm.x86.avx512.mask.scalef.ps.{32 * lanes}"

    def some(a: str, b: str, kind: str, which: range) -> str:
        order = ", ".join(f"i32 {k}" for k in which)
        return give(f"shufflevector {kind} {a}, {kind} {b}, <{len(which)} x i32> <{order}>")

    made = list[str]()
    for first in range(0, count, lanes):
        value, power = (some(x, x, v, range(first, first + lanes)) for x in (p, n))
        current = f", i32 {CURRENT_ROUNDING}" if rounding else ""
        made.append(
            give(
                f"call {part} {name}({part} {value}, {part} {power}, {part} {value}, "
                f"i{mask} -1{current})"
            )
        )
    width = lanes
    while len(made) > 1:
        pairs = zip(made[::2], made[1::2], strict=True)
        made = [some(a, b, f"<{width} x float>", range(2 * width)) for a, b in pairs]
        width *= 2
    return made[0], f"declare {part} {name}({part}, {part}, {part}, i{mask}{rounding})"
