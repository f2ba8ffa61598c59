"""What elements of arrays are combined with, in LLVM's language.

A thread has for itself what it scatters to, but for minima and maxima of floats, which threads
share (`launch.scattering`). Sums of floats are exact: an addition whose result is no float, within
two float64 of each element, goes to words (`language.exact_sums`).
"""

from __future__ import annotations

from lanewise.emit.llvm_instructions import TYPES
from lanewise.ir import nodes as ir
from lanewise.language import exact_sums
from lanewise.language.exact_sums import ABOVE, BELOW, NAN, FloatFormat
from lanewise.language.types import F32, F64, U32, Scalar
from lanewise.runtime.llvm_lines import FunctionLines

Parts = tuple[str, ...]  # declarations and functions
_LIMITS = {F32: ("i32", "2143289344"), F64: ("i64", "9221120237041090560")}  # the bits of NaN

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
  %before = load i64, ptr %target
  %after = add i64 %before, %piece
  store i64 %after, ptr %target
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
  %before = load i64, ptr %target
  %after = or i64 %before, %bit
  store i64 %after, ptr %target
  ret void
}
""",
)


def _in_words(kind: Scalar, form: FloatFormat) -> Parts:
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
define linkonce_odr void @lw_scatter_words_{letter}(ptr %words, i64 %size, i64 %element, {t} %value) cold noinline {{
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


def combined(code: FunctionLines, flags: str, s: ir.Scatter, a: str, b: str) -> str:
    """What two integers give, or the sum of two floats."""
    kind = s.value.type
    t, sign = TYPES[kind], "u" if kind == U32 else "s"
    if s.operation == "add":
        return code.give(f"fadd {flags}{t} {a}, {b}" if kind.is_float else f"add {t} {a}, {b}")
    better = "lt" if s.operation == "min" else "gt"
    replaces = code.give(f"icmp {sign}{better} {t} {b}, {a}")
    return code.give(f"select i1 {replaces}, {t} {b}, {t} {a}")


_TWO_SUMS = """\
  ; what the first addition loses is a float and goes to the second; what that one loses has no room
  %total = fadd double %one, %x
  %back = fsub double %total, %one
  %forth = fsub double %total, %back
  %lost_one = fsub double %one, %forth
  %lost_x = fsub double %x, %back
  %rest = fadd double %lost_one, %lost_x
  %small = fadd double %other, %rest
  %small_back = fsub double %small, %other
  %small_forth = fsub double %small, %rest
  %same_rest = fcmp oeq double %small_back, %rest
  %same_other = fcmp oeq double %small_forth, %other
  %fits = and i1 %same_rest, %same_other
  br i1 %fits, label %both, label %in_words
both:
  store double %total, ptr %first, align 8
  store double %small, ptr %second, align 8
  br label %end
"""


def _elements(form: FloatFormat) -> str:
    """How many there are, by the size of the memory."""
    return f"""\
  %own_size = sub i64 %size, {form.words}
  %count = udiv i64 %own_size, {form.words + 2}
"""


def _else_in_words(kind: Scalar, value: str) -> str:
    """The end of a function that adds: words begin behind two numbers for each element."""
    t, letter = TYPES[kind], "f32" if kind == F32 else "f64"
    return f"""\
in_words:
  %sums = mul i64 %count, 2
  %planes = getelementptr i64, ptr %words, i64 %sums
  %places = sub i64 %size, %sums
  call void @lw_scatter_words_{letter}(ptr %planes, i64 %places, i64 %element, {t} {value})
  br label %end
end:
  ret void
}}
"""


def _sum_single() -> Parts:
    """A float32 into a float64 where that loses nothing, else into two of them."""
    head = "(ptr %words, i64 %size, i64 %element, float %value)"
    return (
        *_in_words(F32, exact_sums.F32),
        f"""\
define linkonce_odr void @lw_scatter_rest_f32{head} noinline {{
{_elements(exact_sums.F32)}\
  %x = fpext float %value to double
  %first = getelementptr double, ptr %words, i64 %element
  %second = getelementptr double, ptr %first, i64 %count
  %one = load double, ptr %first, align 8
  %other = load double, ptr %second, align 8
{_TWO_SUMS}{_else_in_words(F32, "%value")}""",
        f"""\
define linkonce_odr void @lw_scatter_sum_f32{head} alwaysinline {{
  %x = fpext float %value to double
  %first = getelementptr double, ptr %words, i64 %element
  %one = load double, ptr %first, align 8
  %total = fadd double %one, %x
  %back = fsub double %total, %one
  %forth = fsub double %total, %x
  %same_x = fcmp oeq double %back, %x
  %same_one = fcmp oeq double %forth, %one
  %exact = and i1 %same_x, %same_one
  br i1 %exact, label %keep, label %rest, !prof !{{!"branch_weights", i32 1000, i32 1}}
keep:
  store double %total, ptr %first, align 8
  br label %end
rest:
  call void @lw_scatter_rest_f32(ptr %words, i64 %size, i64 %element, float %value)
  br label %end
end:
  ret void
}}
""",
    )


def _sum_double() -> Parts:
    """A float64 into two of them."""
    head = "(ptr %words, i64 %size, i64 %element, double %x)"
    return (
        *_in_words(F64, exact_sums.F64),
        f"""\
define linkonce_odr void @lw_scatter_sum_f64{head} alwaysinline {{
{_elements(exact_sums.F64)}\
  %pair = mul i64 %element, 2
  %first = getelementptr double, ptr %words, i64 %pair
  %second = getelementptr double, ptr %first, i64 1
  %one = load double, ptr %first, align 8
  %other = load double, ptr %second, align 8
{_TWO_SUMS}{_else_in_words(F64, "%x")}""",
    )


def _extreme(operation: str, kind: Scalar) -> Parts:
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


SCATTERS = {
    "lw_scatter_sum_f32": _sum_single(),
    "lw_scatter_sum_f64": _sum_double(),
    **{
        f"lw_scatter_{o}_{'f32' if k == F32 else 'f64'}": _extreme(o, k)
        for o in ("min", "max")
        for k in (F32, F64)
    },
}
