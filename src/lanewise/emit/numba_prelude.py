"""What generated Python text is built of: imports, the spelling of types and literals, functions
that it gets when it uses them.
"""

from __future__ import annotations

import math

from lanewise.language import exact_sums
from lanewise.language.exact_sums import ABOVE, BELOW, NAN
from lanewise.language.types import BOOL, F32, F64, I32, I64, U32, Scalar

TYPES = {BOOL: "bool_", I32: "i32", U32: "u32", I64: "i64", F32: "f32", F64: "f64"}

IMPORTS = """import math

import numpy as np
from numba import bool_, njit
from numba import float32 as f32
from numba import float64 as f64
from numba import int32 as i32
from numba import int64 as i64
from numba import uint32 as u32
from numba import uint64 as u64

"""

_APPROXIMATE = '{"arcp", "afn", "reassoc", "contract", "nsz"}'
_RSQRT = """def lw_rsqrt_{0}(x):  # approximate by definition: an estimate, refined
    return {0}(1.0) / math.sqrt(x)
"""
DEFINITIONS = {
    "lw_rsqrt_f32": (_APPROXIMATE, _RSQRT.format("f32")),
    "lw_rsqrt_f64": (_APPROXIMATE, _RSQRT.format("f64")),
    "lw_min": (
        "",
        """def lw_min(a, b):  # not a number when a or b is not
    return a if a < b or a != a else b
""",
    ),
    "lw_max": (
        "",
        """def lw_max(a, b):  # not a number when a or b is not
    return a if a > b or a != a else b
""",
    ),
    "lw_free_sum": (
        '{"reassoc", "contract", "nsz"}',
        """def lw_free_sum(a, b):  # in any order with other such sums
    return a + b
""",
    ),
    "lw_free_product": (
        '{"reassoc", "contract", "nsz"}',
        """def lw_free_product(a, b):  # in any order with other such products
    return a * b
""",
    ),
    "lw_cbrt": (
        "",
        """def lw_cbrt(x):  # Numba's own promises LLVM that nothing is infinite
    return x if math.isinf(x) else np.cbrt(x)
""",
    ),
    "lw_mix": (
        '{"contract"}',
        """def lw_mix(a, b, weight):
    return a + (b - a) * weight
""",
    ),
    "lw_rounds": (
        "",
        """def lw_rounds(start, stop, step):  # of a loop, at most as many as i64 counts
    way, stride = (u64(stop) - u64(start), u64(step)) if step > 0 else (u64(start) - u64(stop), u64(0) - u64(step))
    runs = start < stop if step > 0 else start > stop
    return i64(min((way - u64(1)) // stride + u64(1), u64(9223372036854775807))) if runs else i64(0)
""",
    ),
    "lw_shift_left": (
        "",
        """def lw_shift_left(a, n):  # nothing is left after 64 places or more; negative n count as such
    return u64(a) << n if u64(n) < u64(64) else u64(0)
""",
    ),
    "lw_shift_right": (
        "",
        """def lw_shift_right(a, n):  # the sign is left after 64 places or more; negative n count as such
    return a >> (n if u64(n) < u64(64) else 63)
""",
    ),
    "lw_floor_divide": (
        "",
        """def lw_floor_divide(a, b):  # wraps: Numba takes the smallest number by -1 for 0
    return i64(u64(0) - u64(a)) if b == i64(-1) else a // b
""",
    ),
    "lw_scatter_sum_f32": (
        "",
        f"""def lw_scatter_sum_f32(words, element, value):  # as a whole number, in words, one for every 2^32
    bits = f32(value).view(np.int32)
    exponent, rest = bits >> i32(23) & i32(255), i64(bits & i32(0x7fffff))
    if exponent == 255:
        lw_scatter_special(words, u64({exact_sums.F32.words}), element, i64({NAN}) if rest else i64({BELOW}) if bits < 0 else i64({ABOVE}))
        return
    place = u64(exponent if exponent else 1)
    number = (rest | i64(0x800000) if exponent else rest) << i64(place & u64(31))
    lw_scatter_piece(words, u64({exact_sums.F32.words}), element, place >> u64(5), -number if bits < 0 else number)
""",
    ),
    "lw_scatter_sum_f64": (
        "",
        f"""def lw_scatter_sum_f64(words, element, value):  # as a whole number, in words, one for every 2^32
    bits = f64(value).view(np.int64)
    exponent, rest = bits >> i64(52) & i64(2047), bits & i64(0xfffffffffffff)
    if exponent == 2047:
        lw_scatter_special(words, u64({exact_sums.F64.words}), element, i64({NAN}) if rest else i64({BELOW}) if bits < 0 else i64({ABOVE}))
        return
    place = u64(exponent if exponent else 1)
    number, shift = rest | i64(0x10000000000000) if exponent else rest, i64(place & u64(31))
    low, high = i64(u64(number) << u64(shift) & u64(0xffffffff)), number >> (i64(32) - shift)
    lw_scatter_piece(words, u64({exact_sums.F64.words}), element, place >> u64(5), -low if bits < 0 else low)
    lw_scatter_piece(words, u64({exact_sums.F64.words}), element, (place >> u64(5)) + u64(1), -high if bits < 0 else high)
""",
    ),
}

_PIECE = """def lw_scatter_piece(words, each, element, word, piece):  # planes of words, and behind them which planes are used
    count = u64(len(words)) // each - u64(1)
    while piece:
        if not words[count * each + word]:
            words[count * each + word] = 1
        before = lw_fetch_add(words, count * word + element, piece)
        after = i64(u64(before) + u64(piece))
        if (before ^ after) & (piece ^ after) >= 0:
            return
        piece = i64(-1) if piece < 0 else i64(1)  # what leaves a word that wraps goes two words higher
        word += u64(2)
"""
_SPECIAL = """def lw_scatter_special(words, each, element, bit):
    count = u64(len(words)) // each - u64(1)
    words[count * each + each - u64(1)] = 1
    lw_fetch_or(words, count * (each - u64(1)) + element, bit)
"""

_SUM = "lw_scatter_sum_"

SIMD = "lw_v_"  # how the names of operations on SIMD registers begin

WIDTHS = (256, 512)


def prefer_width(bits: int) -> str:
    """The call that makes LLVM use SIMD registers of that many bits in the function that it stands
    in.
    """
    return f"lw_prefer_{bits}"


def width_import(bits: int) -> str:
    """The line that brings this call, for kernels that prefer a width."""
    return f"from lanewise.runtime.vector_width import {prefer_width(bits)}\n\n" if bits else ""


CONVERSIONS = {I32: "lw_to_i32", U32: "lw_to_u32", I64: "lw_to_i64"}


def conversions_import(body: str) -> str:
    """The line that brings the conversions of floats to whole numbers that a text uses."""
    used = sorted(name for name in CONVERSIONS.values() if f"{name}(" in body)
    return f"from lanewise.runtime.saturation import {', '.join(used)}\n\n" if used else ""


def scatters_import(body: str) -> str:
    """The line that brings the atomic operations that a text uses."""
    used = [name for n in ("add", "max", "min") if f"{(name := f'lw_scatter_{n}')}(" in body]
    used = ["lw_fetch_add", "lw_fetch_or", *used] if _SUM in body else used
    return f"from lanewise.runtime.atomics import {', '.join(used)}\n\n" if used else ""


SEPARATE_IMPORT = "from lanewise.runtime.separate_arrays import lw_separate\n\n"


def prelude(body: str, fast_math: bool) -> str:
    """The definitions that a text uses."""
    sums = (_PIECE, _SPECIAL) if _SUM in body else ()
    shared = "".join(f"\n{decorator('', fast_math)}\n{text}\n" for text in sums)
    return shared + "".join(
        f"\n{decorator(flags or '', fast_math)}\n{text}\n"
        for name, (flags, text) in DEFINITIONS.items()
        if f"{name}(" in body
    )


def decorator(flags: str, fast_math: bool, extra: str = "") -> str:
    """`@njit` with the fast-math flags of this function alone: LLVM keeps them when it inlines."""
    allowed = "fastmath=True, " if fast_math else f"fastmath={flags}, " if flags else ""
    return f'@njit({allowed}error_model="numpy"{extra})'


def literal(value: float | int | bool, scalar: Scalar) -> str:
    """A literal of exactly this type and value."""
    if scalar == BOOL:
        return "True" if value else "False"
    if scalar.is_float and (math.isnan(value) or math.isinf(value)):
        name = "math.nan" if math.isnan(value) else "math.inf" if value > 0 else "-math.inf"
        return f"{TYPES[scalar]}({name})"
    return f"{TYPES[scalar]}({value!r})"
