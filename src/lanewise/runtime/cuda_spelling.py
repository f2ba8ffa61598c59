"""How CUDA C++ spells types and numbers."""

from __future__ import annotations

import math

import numpy as np

from lanewise.language.types import (
    BOOL,
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    Scalar,
)

TYPES = {
    BOOL: "bool",
    I32: "int",
    U32: "unsigned int",
    I64: "long long",
    I8: "signed char",
    U8: "unsigned char",
    I16: "short",
    U16: "unsigned short",
    F16: "unsigned short",
    F32: "float",
    F64: "double",
}


def literal(value: float | int | bool, scalar: Scalar) -> str:
    """A literal of exactly this type and value; in parentheses when it is more than one token."""
    if scalar == BOOL:
        return "true" if value else "false"
    if scalar == F16:  # its bits
        return f"{int(np.float16(value).view(np.uint16)):#06x}"
    if scalar.is_float:
        return _float(float(value), scalar)
    suffix = {I64: "LL", U32: "u"}.get(scalar, "")
    if value == -(2 ** (scalar.size * 8 - 1)):  # C++ has no literal for the smallest number
        return f"({int(value) + 1}{suffix} - 1)"
    return f"({int(value)}{suffix})" if value < 0 else f"{int(value)}{suffix}"


def _float(value: float, scalar: Scalar) -> str:
    if math.isnan(value) or math.isinf(value):
        bits = "0x7fc00000" if math.isnan(value) else "0xff800000" if value < 0 else "0x7f800000"
        return f"__int_as_float({bits})" if scalar == F32 else f"(double)__int_as_float({bits})"
    # Rounded here, since a compiler may keep the digits of a literal beyond its type; then the
    # shortest text that reads back the same.
    text = f"{_shortest(np.float32(abs(value)))}f" if scalar == F32 else repr(abs(value))
    return f"(-{text})" if math.copysign(1.0, value) < 0 else text


def _shortest(x: np.float32) -> str:
    """The shortest decimal that reads back the same.

    Where it gets an exponent differs between versions of NumPy, and texts must not.
    """
    if x == 0 or 1e-4 <= float(x) < 1e6:
        return np.format_float_positional(x, unique=True, trim="0")
    return np.format_float_scientific(x, unique=True, trim="-", exp_digits=2)
