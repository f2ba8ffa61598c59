"""Inverse trigonometric functions."""

from __future__ import annotations

import math

from lanewise.runtime.mathematics.coefficients import ASIN, ATAN
from lanewise.runtime.mathematics.formats import F32, format_of, is_outside
from lanewise.runtime.mathematics.registers import (
    Register,
    fma,
    horner,
    product,
    select,
    size,
    sqrt,
)

_TAN_PI_8 = {"float": float.fromhex("0x1.a8279ap-2"), "double": math.sqrt(2.0) - 1.0}
_TAN_3_PI_8 = {"float": float.fromhex("0x1.3504f4p1"), "double": math.sqrt(2.0) + 1.0}


def _with_base(t: Register, high: Register, low: Register) -> Register:
    """The arc tangent of a small t, added to a number in two parts."""
    z = t * t
    return high + (fma(horner(z, ATAN[t.kind]), z * t, low) + t)


def atan(x: Register) -> Register:
    """The angle whose tangent is x."""
    form, a = format_of(x), size(x)
    far, middle = a > _TAN_3_PI_8[x.kind], a > _TAN_PI_8[x.kind]
    over = select(far, a.of(-1.0), select(middle, a - 1.0, a))
    under = select(far, a, select(middle, a + 1.0, a.of(1.0)))
    high = select(far, a.of(form["PI2H"]), select(middle, a.of(form["PI4H"]), a.of(0.0)))
    low = select(far, a.of(form["PI2L"]), select(middle, a.of(form["PI4L"]), a.of(0.0)))
    return _with_base(over / under, high, low).signed(x)


def atan2(y: Register, x: Register) -> Register:
    """The angle of the point (x, y), with the signs that C gives it. Points that are very near or
    far, no numbers among them, go another way, which is called.
    """
    a, b = size(y), size(x)
    swapped = a > b
    larger, smaller = select(swapped, a, b), select(swapped, b, a)
    edge = _edge(x)
    usual = _of_octant(y, x, larger, smaller)
    far = is_outside(larger, 2.0**-edge, 2.0**edge)
    return x.code.where_any(far, "atan2_unusual", (y, x), (usual,), (x.kind,), _of_any)[0]


def _edge(x: Register) -> int:
    return 100 if format_of(x) is F32 else 900


def _of_any(y: Register, x: Register) -> Register:
    a, b = size(y), size(x)
    swapped = a > b
    larger, smaller = select(swapped, a, b), select(swapped, b, a)
    # of two that are infinite the angle is that of (1, 1)
    both = smaller.equals(math.inf)
    larger, smaller = select(both, 1.0, larger), select(both, 1.0, smaller)
    edge, up = _edge(x), 2.0 ** (24 if format_of(x) is F32 else 54)
    factor = select(
        larger > 2.0**edge,
        larger.of(0.25),
        select(larger < 2.0**-edge, larger.of(up), larger.of(1.0)),
    )
    g = select(larger.equals(0.0), 1.0, larger * factor)
    result = _of_octant(y, x, g, smaller * factor)
    result = select(y.is_nan, y, result)
    return select(x.is_nan, x, result)


def _of_octant(y: Register, x: Register, larger: Register, smaller: Register) -> Register:
    """The angle, by the sizes of both: some eighths of a circle, and an arc tangent."""
    form, swapped, negative = format_of(x), size(y) > size(x), x.bits < 0
    half = smaller > larger * _TAN_PI_8[x.kind]
    over = select(half, smaller - larger, smaller)
    under = select(half, smaller + larger, larger)
    # (swapped, negative): t, pi - t, pi/2 - t, pi/2 + t, where t begins at an eighth or at 0
    turns = swapped ^ negative
    t, eighth = over / under, select(half, x.of(1.0), x.of(0.0))
    t, eighth = select(turns, -t, t), select(turns, -eighth, eighth)
    eighths = eighth + select(swapped, x.of(2.0), select(negative, x.of(4.0), x.of(0.0)))
    high, lost = product(eighths, form["PI4H"])
    return _with_base(t, high, fma(eighths, form["PI4L"], lost)).signed(y)


def _arc(x: Register) -> tuple[Register, Register, Register]:
    """For asin and acos: whether |x| is at most 1/2, s, and asin s - s."""
    a = size(x)
    near = a <= 0.5
    z = select(near, a * a, (1.0 - a) * 0.5)
    s = select(near, a, sqrt(z))
    return near, s, horner(z, ASIN[x.kind]) * z * s


def asin(x: Register) -> Register:
    """The angle whose sine is x."""
    form = format_of(x)
    near, s, w = _arc(x)
    far = form["PI4H"] + ((form["PI4H"] - (s + s)) - ((w + w) - form["PI2L"]))
    return select(near, s + w, far).signed(x)


def acos(x: Register) -> Register:
    """The angle whose cosine is x."""
    form = format_of(x)
    near, s, w = _arc(x)
    s_signed, w_signed = s.signed(x), w.signed(x)
    close = form["PI2H"] - (s_signed - (form["PI2L"] - w_signed))
    twice = (s + w) * 2.0
    far = select(x < 0.0, form["PIH"] - (twice - form["PIL"]), twice)
    return select(near, close, far)
