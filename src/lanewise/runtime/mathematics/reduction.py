"""Large arguments of sine, cosine and tangent without their quarters of a circle (Payne and Hanek).

x = M 2^e with a whole M: of 2^e 2 / pi only digits below 4 count, of which 192 bits are enough. One
number after the other: such arguments are rare.
"""

from __future__ import annotations

from lanewise.runtime.mathematics.coefficients import CONSTANTS, TWO_OVER_PI
from lanewise.runtime.mathematics.registers import Code, Kind

_WORDS = [0, *(int(TWO_OVER_PI[n : n + 16], 16) for n in range(0, len(TWO_OVER_PI), 16))]
_TABLE = ", ".join(f"i64 {w}" for w in _WORDS)


def _pieces() -> str:
    """Five pieces of 32 bits as floats, and their sum in two parts."""
    words = (("ashr", "top"), ("and", "top"), ("lshr", "mid"), ("and", "mid"), ("lshr", "low"))
    lines, sum_, rests = list[str](), "%d.0", list[str]()
    for n, (operation, word) in enumerate(words):
        by = 4294967295 if operation == "and" else 32
        convert = "sitofp" if n == 0 else "uitofp"
        lines += [
            f"%w.{n} = {operation} i64 %s.{word}, {by}",
            f"%f.{n} = {convert} i64 %w.{n} to double",
            f"%d.{n} = fmul double %f.{n}, {_power(-32 * (n + 1))}",
        ]
        if n:
            a, b, s = sum_, f"%d.{n}", f"%sum.{n}"
            lines += [
                f"{s} = fadd double {a}, {b}",
                f"%part.{n} = fsub double {s}, {a}",
                f"%other.{n} = fsub double {s}, %part.{n}",
                f"%lost.{n} = fsub double {a}, %other.{n}",
                f"%lost.b.{n} = fsub double {b}, %part.{n}",
                f"%rest.{n} = fadd double %lost.{n}, %lost.b.{n}",
            ]
            if rests:
                lines.append(f"%rests.{n} = fadd double {rests[-1]}, %rest.{n}")
            rests.append(f"%rests.{n}" if rests else f"%rest.{n}")
            sum_ = s
    return "\n".join(f"  {line}" for line in lines)


def _power(n: int) -> str:
    return f"0x{1023 + n << 52:016X}"


_NUMBER = f"""\
@lw.two_over_pi = internal constant [{len(_WORDS)} x i64] [{_TABLE}]
declare i64 @llvm.fshl.i64(i64, i64, i64)
declare double @llvm.fma.f64(double, double, double)
define internal {{ double, double, i64 }} @lw.reduced.f64(double %x) noinline cold {{
  %bits = bitcast double %x to i64
  %shifted = lshr i64 %bits, 52
  %exponent = and i64 %shifted, 2047
  %fraction = and i64 %bits, 4503599627370495
  %m = or i64 %fraction, 4503599627370496
  ; nothing is read for what is not large
  %large = icmp uge i64 %exponent, 1037
  %finite = icmp ult i64 %exponent, 2047
  %reads = and i1 %large, %finite
  %counted = select i1 %reads, i64 %exponent, i64 1037
  %at = sub i64 %counted, 1013
  %word = lshr i64 %at, 6
  %by = and i64 %at, 63
  %place.0 = getelementptr i64, ptr @lw.two_over_pi, i64 %word
  %place.1 = getelementptr i64, ptr %place.0, i64 1
  %place.2 = getelementptr i64, ptr %place.0, i64 2
  %place.3 = getelementptr i64, ptr %place.0, i64 3
  %t.0 = load i64, ptr %place.0
  %t.1 = load i64, ptr %place.1
  %t.2 = load i64, ptr %place.2
  %t.3 = load i64, ptr %place.3
  %v.0 = call i64 @llvm.fshl.i64(i64 %t.0, i64 %t.1, i64 %by)
  %v.1 = call i64 @llvm.fshl.i64(i64 %t.1, i64 %t.2, i64 %by)
  %v.2 = call i64 @llvm.fshl.i64(i64 %t.2, i64 %t.3, i64 %by)
  %wide.m = zext i64 %m to i128
  %wide.1 = zext i64 %v.1 to i128
  %wide.2 = zext i64 %v.2 to i128
  %p.2 = mul i128 %wide.2, %wide.m
  %over.2 = lshr i128 %p.2, 64
  %m.1 = mul i128 %wide.1, %wide.m
  %p.1 = add i128 %m.1, %over.2
  %over.1 = lshr i128 %p.1, 64
  %low = trunc i128 %p.2 to i64
  %mid = trunc i128 %p.1 to i64
  %carried = trunc i128 %over.1 to i64
  %m.0 = mul i64 %v.0, %m
  %top = add i64 %m.0, %carried
  %down = lshr i64 %top, 62
  %next = lshr i64 %top, 61
  %up = and i64 %next, 1
  %quarter = add i64 %down, %up
  %s.top = call i64 @llvm.fshl.i64(i64 %top, i64 %mid, i64 2)
  %s.mid = call i64 @llvm.fshl.i64(i64 %mid, i64 %low, i64 2)
  %s.low = shl i64 %low, 2
{_pieces()}
  %r = fmul double %sum.4, P0
  %negative.r = fneg double %r
  %exact = call double @llvm.fma.f64(double %sum.4, double P0, double %negative.r)
  %second = call double @llvm.fma.f64(double %sum.4, double P1, double %exact)
  %c = call double @llvm.fma.f64(double %rests.4, double P0, double %second)
  %total = fadd double %r, %c
  %apart = fsub double %total, %r
  %c.rest = fsub double %c, %apart
  %below = icmp slt i64 %bits, 0
  %minus.total = fneg double %total
  %minus.c = fneg double %c.rest
  %minus.quarter = sub i64 0, %quarter
  %signed = select i1 %below, double %minus.total, double %total
  %signed.c = select i1 %below, double %minus.c, double %c.rest
  %signed.quarter = select i1 %below, i64 %minus.quarter, i64 %quarter
  %result = select i1 %finite, double %signed, double 0x7FF8000000000000
  %made.0 = insertvalue {{ double, double, i64 }} poison, double %result, 0
  %made.1 = insertvalue {{ double, double, i64 }} %made.0, double %signed.c, 1
  %made.2 = insertvalue {{ double, double, i64 }} %made.1, i64 %signed.quarter, 2
  ret {{ double, double, i64 }} %made.2
}}
"""
_SINGLE = """\
define internal { float, float, i32 } @lw.reduced.f32(float %x) noinline cold {
  %wide = fpext float %x to double
  %parts = call { double, double, i64 } @lw.reduced.f64(double %wide)
  %r = extractvalue { double, double, i64 } %parts, 0
  %c = extractvalue { double, double, i64 } %parts, 1
  %quarter = extractvalue { double, double, i64 } %parts, 2
  %first = fptrunc double %r to float
  %again = fpext float %first to double
  %apart = fsub double %r, %again
  %rest = fadd double %apart, %c
  %second = fptrunc double %rest to float
  %turns = trunc i64 %quarter to i32
  %made.0 = insertvalue { float, float, i32 } poison, float %first, 0
  %made.1 = insertvalue { float, float, i32 } %made.0, float %second, 1
  %made.2 = insertvalue { float, float, i32 } %made.1, i32 %turns, 2
  ret { float, float, i32 } %made.2
}
"""


def _registers(count: int, kind: Kind) -> str:
    """Lane after lane."""
    code, whole = Code(count), "i32" if kind == "float" else "i64"
    v, w = code.type(kind), code.type(whole)
    one, many = f"{{ {kind}, {kind}, {whole} }}", f"{{ {v}, {v}, {w} }}"
    letter = "f32" if kind == "float" else "f64"
    lines, made = list[str](), ["poison", "poison", "poison"]
    for n in range(count):
        lines.append(f"%x.{n} = extractelement {v} %x, i64 {n}")
        lines.append(f"%one.{n} = call {one} @lw.reduced.{letter}({kind} %x.{n})")
        for k, (t, vector) in enumerate(((kind, v), (kind, v), (whole, w))):
            lines.append(f"%part.{k}.{n} = extractvalue {one} %one.{n}, {k}")
            put = f"%put.{k}.{n}"
            lines.append(f"{put} = insertelement {vector} {made[k]}, {t} %part.{k}.{n}, i64 {n}")
            made[k] = put
    result = "poison"
    for k, vector in enumerate((v, v, w)):
        lines.append(f"%made.{k} = insertvalue {many} {result}, {vector} {made[k]}, {k}")
        result = f"%made.{k}"
    body = "\n".join(f"  {line}" for line in [*lines, f"ret {many} {result}"])
    name = f"@lw.reduced.{code.letter(kind)}"
    return f"define internal {many} {name}({v} %x) noinline cold {{\n{body}\n}}\n"


def reduction(count: int, kind: Kind) -> tuple[str, ...]:
    """The functions that `argument` of trigonometry calls."""
    parts = CONSTANTS["double"]
    number = _NUMBER
    for name in ("P0", "P1"):
        bits = int.from_bytes(_double(parts[name]), "little")
        number = number.replace(f"double {name}", f"double 0x{bits:016X}").replace(
            f", {name}\n", f", 0x{bits:016X}\n"
        )
    single = (_SINGLE,) if kind == "float" else ()
    return (number, *single, *((_registers(count, kind),) if count else ()))


def _double(number: float) -> bytes:
    import struct

    return struct.pack("<d", number)
