"""Functions of lanewise's own in LLVM's language: a text gets those that it calls."""

from __future__ import annotations

from lanewise.emit.llvm_instructions import TYPES
from lanewise.emit.llvm_scatters import SCATTERS, Parts
from lanewise.language.types import F32, F64, Scalar


def _divided(kind: Scalar) -> Parts:
    """Python's division of floats that rounds down; the remainder, which has the sign of the
    divisor, is stored: stores stay behind branches, which cost less here than choices of values.
    """
    t, letter = TYPES[kind], "f32" if kind == F32 else "f64"
    floor = f"declare {t} @llvm.floor.{letter}({t})"
    return (
        floor,
        f"""\
define linkonce_odr {t} @lw_divided_{letter}({t} %x, {t} %y, ptr %remainder) {{
  %rest = frem FLAGS{t} %x, %y
  %whole = fsub FLAGS{t} %x, %rest
  %div = fdiv FLAGS{t} %whole, %y
  store {t} %rest, ptr %remainder
  %uneven = fcmp FLAGSune {t} %rest, 0.0
  %y_below = fcmp FLAGSolt {t} %y, 0.0
  %rest_below = fcmp FLAGSolt {t} %rest, 0.0
  br i1 %uneven, label %left, label %nothing_left, !prof !{{!"branch_weights", i32 99, i32 1}}
left:
  %signs = icmp ne i1 %y_below, %rest_below
  br i1 %signs, label %other_sign, label %divided
other_sign:
  %lower = fsub FLAGS{t} %div, 1.0
  %moved = fadd FLAGS{t} %rest, %y
  store {t} %moved, ptr %remainder
  br label %divided
nothing_left:
  %zero = select i1 %y_below, {t} -0.0, {t} 0.0
  store {t} %zero, ptr %remainder
  br label %divided
divided:
  %ratio = phi {t} [ %div, %left ], [ %lower, %other_sign ], [ %div, %nothing_left ]
  %is_some = fcmp FLAGSone {t} %ratio, 0.0
  br i1 %is_some, label %nonzero, label %vanishing
nonzero:
  %down = call FLAGS{t} @llvm.floor.{letter}({t} %ratio)
  %apart = fsub FLAGS{t} %ratio, %down
  %up = fadd FLAGS{t} %down, 1.0
  %nearer = fcmp FLAGSogt {t} %apart, 0.5
  %snapped = select i1 %nearer, {t} %up, {t} %down
  br label %end
vanishing:
  %square = fmul FLAGS{t} %ratio, %ratio
  %signed = fmul FLAGS{t} %square, %x
  %none_left = fdiv FLAGS{t} %signed, %y
  br label %end
end:
  %quotient = phi {t} [ %snapped, %nonzero ], [ %none_left, %vanishing ]
  ret {t} %quotient
}}
""",
    )


def _cbrt(kind: Scalar) -> Parts:
    """By the library's function for float64, of the number without its sign."""
    t, letter = TYPES[kind], "f32" if kind == F32 else "f64"
    wide = "%wide = fpext float %x to double" if kind == F32 else "%wide = fadd double %x, -0.0"
    narrow = "%result = fptrunc double %signed to float" if kind == F32 else ""
    result = "%result" if kind == F32 else "%signed"
    root = "declare double @cbrt(double) nounwind memory(read)"
    size = f"declare {t} @llvm.fabs.{letter}({t})"
    return (
        root,
        size,
        f"""\
define linkonce_odr {t} @lw_cbrt_{letter}({t} %x) {{
  %none = fcmp uno {t} %x, %x
  br i1 %none, label %not_a_number, label %number
not_a_number:
  ret {t} 0x7FF8000000000000
number:
  %size = call {t} @llvm.fabs.{letter}({t} %x)
  %infinite = fcmp oeq {t} %size, 0x7FF0000000000000
  br i1 %infinite, label %same, label %finite
same:
  ret {t} %x
finite:
  {wide}
  %below = fcmp olt {t} %x, 0.0
  %minus = fneg double %wide
  %base = select i1 %below, double %minus, double %wide
  %root = call double @cbrt(double %base)
  %other = fneg double %root
  %signed = select i1 %below, double %other, double %root
  {narrow}
  ret {t} {result}
}}
""",
    )


_TO_I32: Parts = (
    """\
define linkonce_odr i32 @lw_to_i32_f64(double %x) alwaysinline {
  %above = fcmp ogt double %x, -2147483648.0
  %number = fcmp ord double %x, %x
  %least = select i1 %number, double -2147483648.0, double 0.0
  %low = select i1 %above, double %x, double %least
  %below = fcmp olt double %low, 2147483647.0
  %between = select i1 %below, double %low, double 2147483647.0
  %whole = fptosi double %between to i32
  ret i32 %whole
}
""",
)

_ROUNDS: Parts = (
    """\
define linkonce_odr i64 @lw_rounds(i64 %start, i64 %stop, i64 %step) alwaysinline {
  %up = icmp sgt i64 %step, 0
  %forth = sub i64 %stop, %start
  %back = sub i64 %start, %stop
  %way = select i1 %up, i64 %forth, i64 %back
  %negative = sub i64 0, %step
  %by = select i1 %up, i64 %step, i64 %negative
  %still = icmp eq i64 %by, 0
  %stride = select i1 %still, i64 1, i64 %by
  %rest = sub i64 %way, 1
  %full = udiv i64 %rest, %stride
  %one_more = add i64 %full, 1
  %many = icmp ugt i64 %one_more, 9223372036854775807
  %count = select i1 %many, i64 9223372036854775807, i64 %one_more
  %rises = icmp slt i64 %start, %stop
  %falls = icmp sgt i64 %start, %stop
  %runs = select i1 %up, i1 %rises, i1 %falls
  %rounds = select i1 %runs, i64 %count, i64 0
  ret i64 %rounds
}
""",
)

DEFINITIONS = {
    **{f"lw_divided_{'f32' if k == F32 else 'f64'}": _divided(k) for k in (F32, F64)},
    **{f"lw_cbrt_{'f32' if k == F32 else 'f64'}": _cbrt(k) for k in (F32, F64)},
    "lw_to_i32_f64": _TO_I32,
    "lw_rounds": _ROUNDS,
    **SCATTERS,
}


def prelude(needs: set[str], *, fast: bool) -> str:
    """The declarations and functions of these names, each once."""
    flags = "fast " if fast else "contract "
    parts = dict.fromkeys(n for n in sorted(needs) if n.startswith(("declare ", "define ", "!")))
    for name in sorted(needs - parts.keys()):
        parts |= dict.fromkeys(part.replace("FLAGS", flags) for part in DEFINITIONS[name])
    declared = [p for p in parts if p.startswith("declare ")]
    return "\n".join([*declared, "", *(p for p in parts if not p.startswith("declare "))])
