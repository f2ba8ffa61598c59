"""Cube roots and lengths."""

from __future__ import annotations

import math

from lanewise.runtime.mathematics.coefficients import CBRT
from lanewise.runtime.mathematics.formats import F32, as_number, format_of, is_unusual
from lanewise.runtime.mathematics.registers import (
    Register,
    fma,
    horner,
    product,
    select,
    size,
    sqrt,
)

_THIRD = {"float": float.fromhex("0x1.555556p-2"), "double": 1 / 3}


def cbrt(x: Register) -> Register:
    """The cube root of x. 0, subnormal, infinite and no numbers go another way, which is called."""
    a = size(x)
    usual = _of_normal(a).signed(x)
    return x.code.where_any(is_unusual(a), "cbrt_unusual", x, (usual,), (x.kind,), _of_any)[0]


def _of_any(x: Register) -> Register:
    form, a = format_of(x), size(x)
    low = a < form.least
    y = _of_normal(select(low, a * 2.0**form.raised, a))
    y = select(low, y * 2.0 ** -(form.raised // 3), y).signed(x)
    kept = x.equals(0.0) | a.equals(math.inf) | x.is_nan
    return select(kept, x, y)


def _of_normal(a: Register) -> Register:
    """By the root of the inverse, whose first guess is a third of the exponent."""
    form = format_of(a)
    third_of_one = _THIRD[form.kind]
    if form is F32:
        third = fma(as_number(a.bits), -third_of_one, float(0x54A1F600))
        g = third.code.give(f"fptosi {third} to {third.code.type('i32')}", "i32").as_float
    else:
        third = ((a.bits >> 32) * 0x55555556) >> 32
        g = ((0x553EF0FF - third) << 32).as_float
    e = _missing(a, g)
    g = fma(horner(e, CBRT[form.kind]), e * g, g)
    if form is not F32:
        g = fma(_missing(a, g), g * third_of_one, g)
    square = g * g
    y = a * square
    s, lost = product(y, y)
    residual = fma(lost, y, fma(s, y, -a))
    return fma(residual, square * -third_of_one, y)


def _missing(a: Register, g: Register) -> Register:
    """What a g^3 lacks to 1."""
    return fma(-(a * g), g * g, 1.0)


def hypot(x: Register, y: Register) -> Register:
    """The length of (x, y), infinite where either is."""
    infinite = size(x).equals(math.inf) | size(y).equals(math.inf)
    if format_of(x) is F32:
        a, b = x.to("double"), y.to("double")
        result = sqrt(fma(a, a, b * b)).to("float")
    else:
        result = _long(size(x), size(y))
    return select(infinite, math.inf, result)


def _long(a: Register, b: Register) -> Register:
    """Scaled where squares would leave the format, and corrected by what rounding lost."""
    swap = a < b
    larger, smaller = select(swap, b, a), select(swap, a, b)
    large, small = larger > 2.0**500, larger < 2.0**-450
    factor = select(large, a.of(2.0**-600), select(small, a.of(2.0**600), a.of(1.0)))
    back = select(large, a.of(2.0**600), select(small, a.of(2.0**-600), a.of(1.0)))
    g, s = larger * factor, smaller * factor
    g2, g_low = product(g, g)
    s2, s_low = product(s, s)
    total = g2 + s2
    low = ((g2 - total) + s2) + (g_low + s_low)
    h = sqrt(total)
    corrected = h + (fma(-h, h, total) + low) / (h + h)
    return select(h.equals(0.0), h, corrected) * back
