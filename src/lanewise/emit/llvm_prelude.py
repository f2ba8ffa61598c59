"""Functions of lanewise's own in LLVM's language: a text gets those that it calls."""

from __future__ import annotations

from lanewise.emit.llvm_instructions import TYPES
from lanewise.language import exact_sums
from lanewise.language.exact_sums import ABOVE, BELOW, NAN, FloatFormat
from lanewise.language.types import F32, F64, I32, I64, U32, Scalar

Parts = tuple[str, ...]  # declarations and functions
_LIMITS = {F32: ("i32", "2143289344"), F64: ("i64", "9221120237041090560")}  # the bits of NaN


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

_WORDS: Parts = (
    """\
define linkonce_odr void @lw_scatter_piece(ptr %words, i64 %count, i64 %each, i64 %element, i64 %at, i64 %added) {
; planes of words, and behind them which planes are used
entry:
  br label %test
test:
  %word = phi i64 [ %at, %entry ], [ %next_word, %more ]
  %piece = phi i64 [ %added, %entry ], [ %carry, %more ]
  %left = icmp ne i64 %piece, 0
  br i1 %left, label %some, label %end
some:
  %flags = mul i64 %count, %each
  %flag_at = add i64 %flags, %word
  %flag = getelementptr i64, ptr %words, i64 %flag_at
  %used = load i64, ptr %flag
  %unused = icmp eq i64 %used, 0
  br i1 %unused, label %use, label %add
use:
  store i64 1, ptr %flag
  br label %add
add:
  %plane = mul i64 %count, %word
  %place = add i64 %plane, %element
  %target = getelementptr i64, ptr %words, i64 %place
  %before = atomicrmw add ptr %target, i64 %piece monotonic
  %after = add i64 %before, %piece
  %changed = xor i64 %before, %after
  %against = xor i64 %piece, %after
  %wrapped = and i64 %changed, %against
  %fits = icmp sge i64 %wrapped, 0
  br i1 %fits, label %end, label %more
more:
  ; what leaves a word that wraps goes two words higher
  %negative = icmp slt i64 %piece, 0
  %carry = select i1 %negative, i64 -1, i64 1
  %next_word = add i64 %word, 2
  br label %test
end:
  ret void
}
""",
    """\
define linkonce_odr void @lw_scatter_special(ptr %words, i64 %count, i64 %each, i64 %element, i64 %bit) {
  %last = sub i64 %each, 1
  %flags = mul i64 %count, %each
  %flag_at = add i64 %flags, %last
  %flag = getelementptr i64, ptr %words, i64 %flag_at
  store i64 1, ptr %flag
  %plane = mul i64 %count, %last
  %place = add i64 %plane, %element
  %target = getelementptr i64, ptr %words, i64 %place
  %before = atomicrmw or ptr %target, i64 %bit monotonic
  ret void
}
""",
)


def _scatter_sum(kind: Scalar, form: FloatFormat) -> Parts:
    """A float as an integer, in words, one for every 2^32."""
    t, letter = TYPES[kind], "f32" if kind == F32 else "f64"
    word, fraction = ("i32", 23) if kind == F32 else ("i64", 52)
    special = (1 << (8 if kind == F32 else 11)) - 1
    widened = (
        "%wide_exponent = zext i32 %exponent to i64\n  %wide_rest = zext i32 %rest to i64"
        if kind == F32
        else "%wide_exponent = add i64 %exponent, 0\n  %wide_rest = add i64 %rest, 0"
    )
    one = f"""\
  %piece = shl i64 %number, %shift
  %minus = sub i64 0, %piece
  %signed = select i1 %below, i64 %minus, i64 %piece
  call void @lw_scatter_piece(ptr %words, i64 %count, i64 {form.words}, i64 %element, i64 %word, i64 %signed)
"""
    two = f"""\
  %moved = shl i64 %number, %shift
  %low = and i64 %moved, 4294967295
  %back = sub i64 32, %shift
  %high = ashr i64 %number, %back
  %minus_low = sub i64 0, %low
  %minus_high = sub i64 0, %high
  %signed_low = select i1 %below, i64 %minus_low, i64 %low
  %signed_high = select i1 %below, i64 %minus_high, i64 %high
  %next = add i64 %word, 1
  call void @lw_scatter_piece(ptr %words, i64 %count, i64 {form.words}, i64 %element, i64 %word, i64 %signed_low)
  call void @lw_scatter_piece(ptr %words, i64 %count, i64 {form.words}, i64 %element, i64 %next, i64 %signed_high)
"""
    return (
        *_WORDS,
        f"""\
define linkonce_odr void @lw_scatter_sum_{letter}(ptr %words, i64 %size, i64 %element, {t} %value) {{
  %planes = udiv i64 %size, {form.words}
  %count = sub i64 %planes, 1
  %bits = bitcast {t} %value to {word}
  %below = icmp slt {word} %bits, 0
  %shifted = lshr {word} %bits, {fraction}
  %exponent = and {word} %shifted, {special}
  %rest = and {word} %bits, {(1 << fraction) - 1}
  {widened}
  %is_special = icmp eq {word} %exponent, {special}
  br i1 %is_special, label %special, label %finite
special:
  %is_nan = icmp ne {word} %rest, 0
  %end = select i1 %below, i64 {BELOW}, i64 {ABOVE}
  %bit = select i1 %is_nan, i64 {NAN}, i64 %end
  call void @lw_scatter_special(ptr %words, i64 %count, i64 {form.words}, i64 %element, i64 %bit)
  ret void
finite:
  %subnormal = icmp eq {word} %exponent, 0
  %place = select i1 %subnormal, i64 1, i64 %wide_exponent
  %leading = or i64 %wide_rest, {1 << fraction}
  %number = select i1 %subnormal, i64 %wide_rest, i64 %leading
  %shift = and i64 %place, 31
  %word = lshr i64 %place, 5
{one if not form.several else two}  ret void
}}
""",
    )


def _scatter_extreme(operation: str, kind: Scalar) -> Parts:
    """Replace an element by a float until it no longer has to, or does."""
    t, letter = TYPES[kind], "f32" if kind == F32 else "f64"
    word, nan = _LIMITS[kind]
    size, smaller = kind.size, operation == "min"
    low, high = ("%new", "%now") if smaller else ("%now", "%new")
    return (
        f"""\
define linkonce_odr void @lw_scatter_{operation}_{letter}(ptr %place, {t} %value) {{
entry:
  %number = fcmp ord {t} %value, %value
  %as_bits = bitcast {t} %value to {word}
  %new = select i1 %number, {word} %as_bits, {word} {nan}
  %no_number = xor i1 %number, true
  %first = load atomic {word}, ptr %place monotonic, align {size}
  br label %test
test:
  %now = phi {word} [ %first, %entry ], [ %found, %swap ]
  %element = bitcast {word} %now to {t}
  %better = fcmp {"olt" if smaller else "ogt"} {t} %value, %element
  %low_below = icmp slt {word} {low}, 0
  %high_above = icmp sge {word} {high}, 0
  %signs = and i1 %low_below, %high_above
  %same = fcmp oeq {t} %value, %element
  %equal = and i1 %same, %signs
  %stays = fcmp uno {t} %element, %element
  %either = or i1 %better, %equal
  %takes = or i1 %either, %no_number
  %goes = xor i1 %stays, true
  %changes = and i1 %takes, %goes
  br i1 %changes, label %swap, label %end
swap:
  %pair = cmpxchg ptr %place, {word} %now, {word} %new monotonic monotonic, align {size}
  %found = extractvalue {{ {word}, i1 }} %pair, 0
  %done = extractvalue {{ {word}, i1 }} %pair, 1
  br i1 %done, label %end, label %test
end:
  ret void
}}
""",
    )


DEFINITIONS = {
    **{f"lw_divided_{'f32' if k == F32 else 'f64'}": _divided(k) for k in (F32, F64)},
    **{f"lw_cbrt_{'f32' if k == F32 else 'f64'}": _cbrt(k) for k in (F32, F64)},
    "lw_to_i32_f64": _TO_I32,
    "lw_rounds": _ROUNDS,
    "lw_scatter_sum_f32": _scatter_sum(F32, exact_sums.F32),
    "lw_scatter_sum_f64": _scatter_sum(F64, exact_sums.F64),
    **{
        f"lw_scatter_{o}_{'f32' if k == F32 else 'f64'}": _scatter_extreme(o, k)
        for o in ("min", "max")
        for k in (F32, F64)
    },
}
WHOLE_SCATTERS = {
    ("add", k): "add" for k in (I32, U32, I64)
} | {
    (o, k): ("u" if k == U32 else "") + o for o in ("min", "max") for k in (I32, U32, I64)
}  # fmt: skip


def prelude(needs: set[str], *, fast: bool) -> str:
    """The declarations and functions of these names, each once."""
    flags = "fast " if fast else "contract "
    parts = dict.fromkeys(n for n in sorted(needs) if n.startswith(("declare ", "define ", "!")))
    for name in sorted(needs - parts.keys()):
        parts |= dict.fromkeys(part.replace("FLAGS", flags) for part in DEFINITIONS[name])
    declared = [p for p in parts if p.startswith("declare ")]
    return "\n".join([*declared, "", *(p for p in parts if not p.startswith("declare "))])
