"""Exponentials and hyperbolic functions.

All begin with e^x = 2^n (1 + e): n is the integer next to x / ln 2, e a polynomial of the rest
r = x - n ln 2, which has a second part for what its rounding lost.
"""

from __future__ import annotations

from lanewise.runtime.mathematics.coefficients import EXP, EXP2, SINH
from lanewise.runtime.mathematics.formats import (
    F32,
    WholeFloat,
    format_of,
    nearest_whole,
    power,
    scaled,
)
from lanewise.runtime.mathematics.registers import Register, fma, horner, select, size, within


def parts(x: Register, added: Register | None = None) -> tuple[WholeFloat, Register]:
    """Of e^x, n and e. added: a small part of x beyond its last bit."""
    form = format_of(x)
    n = nearest_whole(x, form["LOG2E"])
    a = fma(n.number, -form["LN2H"], x)
    r = fma(n.number, -form["LN2L"], a)
    c = fma(n.number, -form["LN2L"], a - r)
    if added is not None:
        # into r before the polynomial: it may be larger than r's last bit
        a, c = r, c + added
        r = a + c
        c = c - (r - a)
    return n, fma(horner(r, EXP[form.kind]), r * r, c) + r


def exp(x: Register) -> Register:
    """E to the power of x."""
    limits = (-104.0, 89.0) if format_of(x) is F32 else (-746.0, 710.0)
    n, e = parts(within(x, *limits))
    return scaled(1.0 + e, n)


def exp2(x: Register) -> Register:
    """Two to the power of x."""
    form = format_of(x)
    x = within(x, *((-151.0, 129.0) if form is F32 else (-1076.0, 1025.0)))
    n = nearest_whole(x, 1.0)
    r = x - n.number
    return scaled(fma(horner(r, EXP2[form.kind]), r, 1.0), n)


def less_one(x: Register) -> Register:
    """e^x - 1 where e^x is not too large for the format."""
    n, e = parts(x)
    s = power(n.bits)
    return fma(s, e, s - 1.0)


def expm1(x: Register) -> Register:
    """E to the power of x, less one, without cancellation."""
    form = format_of(x)
    a = within(x, *((-18.0, 89.0) if form is F32 else (-40.0, 710.0)))
    n, e = parts(a)
    s = power(n.bits)
    large = scaled(1.0 + e, n)
    result = select(n.number >= float(form.bias), large, fma(s, e, s - 1.0))
    return select(x.equals(0.0), x, result)


def tanh(x: Register) -> Register:
    """The hyperbolic tangent of x."""
    a = size(x)
    most = 10.0 if format_of(x) is F32 else 22.0
    a = select(a > most, most, a)
    t = less_one(a + a)
    near = a < (0.55 if format_of(x) is not F32 else float.fromhex("0x1.19999ap-1"))
    q = select(near, t, 2.0) / (t + 2.0)
    return select(near, q, 1.0 - q).signed(x)


def _half(x: Register) -> Register:
    """e^|x| / 2; infinite where that is."""
    a = size(x)
    most = 90.0 if format_of(x) is F32 else 711.0
    n, e = parts(select(a > most, most, a))
    return scaled(1.0 + e, WholeFloat(n.number - 1.0, n.bits - 1))


def sinh(x: Register) -> Register:
    """The hyperbolic sine of x."""
    a, h = size(x), _half(x)
    z = a * a
    near = fma(horner(z, SINH[format_of(x).kind]), z * a, a)
    return select(a <= 1.0, near, h - 0.25 / h).signed(x)


def cosh(x: Register) -> Register:
    """The hyperbolic cosine of x."""
    h = _half(x)
    return h + 0.25 / h
