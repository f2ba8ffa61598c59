"""What generated Python text is built of: imports, the spelling of types and literals, functions that it gets when it uses them."""

from __future__ import annotations

import math

from lanewise.types import BOOL, F32, F64, I32, I64, U32, Scalar

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
    "lw_min": ("", """def lw_min(a, b):  # not a number when a or b is not
    return a if a < b or a != a else b
"""),
    "lw_max": ("", """def lw_max(a, b):  # not a number when a or b is not
    return a if a > b or a != a else b
"""),
    "lw_mix": ('{"contract"}', """def lw_mix(a, b, weight):
    return a + (b - a) * weight
"""),
}  # fmt: skip

WIDTHS = (256, 512)


def prefer_width(bits: int) -> str:
    """The call that makes LLVM use SIMD registers of so many bits in the function that it stands in."""
    return f"lw_prefer_{bits}"


def width_import(bits: int) -> str:
    """The line that brings this call, for kernels that prefer a width."""
    return f"from lanewise.runtime.vector_width import {prefer_width(bits)}\n\n" if bits else ""


SEPARATE_IMPORT = "from lanewise.runtime.separate_arrays import lw_separate\n\n"


def prelude(body: str, fast_math: bool) -> str:
    """The definitions that a text uses."""
    return "".join(
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
