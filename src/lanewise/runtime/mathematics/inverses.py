"""Inverse trigonometric functions."""

from __future__ import annotations

import math

from lanewise.runtime.mathematics.coefficients import ASIN, ATAN
from lanewise.runtime.mathematics.formats import F32, format_of
from lanewise.runtime.mathematics.registers import Register, fma, horner, select, size, sqrt

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
    """The angle of the point (x, y), with the signs that C gives it."""
    form, a, b = format_of(x), size(y), size(x)
    swapped = a > b
    larger, smaller = select(swapped, a, b), select(swapped, b, a)
    # of two that are infinite the angle is that of (1, 1)
    both = smaller.equals(math.inf)
    larger, smaller = select(both, 1.0, larger), select(both, 1.0, smaller)
    edge, down, up = (100, 0.25, 2.0**24) if form is F32 else (900, 0.25, 2.0**54)
    factor = select(
        larger > 2.0**edge,
        larger.of(down),
        select(larger < 2.0**-edge, larger.of(up), larger.of(1.0)),
    )
    g, s = larger * factor, smaller * factor
    half = s > g * _TAN_PI_8[x.kind]
    over, under = select(half, s - g, s), select(half, s + g, g)
    under = select(larger.equals(0.0), 1.0, under)
    t = over / under
    negative = x.bits < 0
    # the angle is base + t or base - t: of the octant
    quarter = select(half, larger.of(form["PI4H"]), larger.of(0.0))
    quarter_low = select(half, larger.of(form["PI4L"]), larger.of(0.0))
    # (swapped, negative): t, pi - t, pi/2 - t, pi/2 + t, where t begins at `quarter`
    pi_high = select(half, larger.of(form["TPI4H"]), larger.of(form["PIH"]))
    pi_low = select(half, larger.of(form["TPI4L"]), larger.of(form["PIL"]))
    minus_high = select(half, larger.of(form["PI4H"]), larger.of(form["PI2H"]))
    minus_low = select(half, larger.of(form["PI4L"]), larger.of(form["PI2L"]))
    plus_high = select(half, larger.of(form["TPI4H"]), larger.of(form["PI2H"]))
    plus_low = select(half, larger.of(form["TPI4L"]), larger.of(form["PI2L"]))
    high = select(
        swapped, select(negative, plus_high, minus_high), select(negative, pi_high, quarter)
    )
    low = select(
        swapped, select(negative, plus_low, minus_low), select(negative, pi_low, quarter_low)
    )
    turns = swapped ^ negative
    t = select(turns, -t, t)
    result = _with_base(t, high, low)
    result = select(y.is_nan, y, result.signed(y))
    return select(x.is_nan, x, result)


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
