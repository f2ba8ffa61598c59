"""x^y: two to the power of y log2 x."""

from __future__ import annotations

import math

from lanewise.runtime.mathematics.coefficients import EQ, EXP2, LP, LQ
from lanewise.runtime.mathematics.formats import (
    F32,
    F64,
    Normalised,
    format_of,
    is_unusual,
    nearest_whole,
    power,
    scaled,
    split,
)
from lanewise.runtime.mathematics.registers import (
    Register,
    fma,
    horner,
    nearest,
    product,
    quick_sum,
    select,
    size,
    within,
)

_FAR = 1100.0  # an exponent of 2 that is far beyond float64


def pow_(x: Register, y: Register) -> Register:
    """X to the power of y, with the special values of C, where another function is called."""
    if format_of(x) is F32:
        usual, far = _short(x, y, special=False), ~(size(y) < math.inf)
    else:
        usual, w = _long(x, y)
        far = ~(size(w) < _FAR)
    unusual = is_unusual(x) | far
    return x.code.where_any(unusual, "pow_unusual", (x, y), (usual,), (x.kind,), _of_any)[0]


def _of_any(x: Register, y: Register) -> Register:
    a = size(x)
    made = _short(a, y, special=True) if format_of(x) is F32 else _long_of_any(a, y)
    return _special(x, y, made)


def _special(x: Register, y: Register, result: Register) -> Register:
    form, a, b = format_of(x), size(x), size(y)
    large = b >= 2.0 ** (form.fraction + 1)
    whole = large | nearest(y).equals(y)
    half = y * 0.5
    odd = whole & ~large & ~nearest(half).equals(half)
    negative = x.bits < 0
    result = select(odd & negative, -result, result)
    finite = b < math.inf
    below = (x < 0.0) & (a < math.inf)
    result = select(below & finite & ~whole, math.nan, result)
    result = select(x.is_nan, x, select(y.is_nan, y, result))
    result = select(a.equals(1.0) & b.equals(math.inf), 1.0, result)
    return select(y.equals(0.0) | x.equals(1.0), 1.0, result)


def _ends(a: Register, w: Register, y: Register) -> Register:
    """The exponent where the base is 0 or infinite: infinite, by the sign of y."""
    zero, infinite = a.equals(0.0), a.equals(math.inf)
    sign = select(y.bits < 0, y.of(-1.0), y.of(1.0))
    end = select(zero, -sign, sign) * math.inf
    end = select(y.equals(0.0), 0.0, end)
    return select(zero | infinite, end, w)


def _short(a: Register, y: Register, *, special: bool) -> Register:
    """In float64, rounded once. special: whether a may be 0 or infinite, and y infinite."""
    parts = split(a, subnormal=special)
    f, y = parts.f.to("double"), y.to("double")
    # f / (f + 2), by a quotient of float32
    d, inverse = f + 2.0, (1.0 / (parts.f + 2.0)).to("double")
    s = f * inverse
    s = fma(fma(-s, d, f), inverse, s)
    logarithm = fma(horner(s * s, LQ["double"]), s, parts.k.to("double"))
    w = y * logarithm
    if special:
        w = _ends(a, w, y)
        w = select(w.is_nan, 0.0, w)
    w = within(w, -400.0, 400.0)
    n = nearest_whole(w, 1.0)
    r = w - n.number
    return (fma(horner(r, EQ["double"]), r, 1.0) * power(n.bits)).to("float")


def _logarithm(parts: Normalised) -> tuple[Register, Register]:
    """log2 in two parts, to about 66 bits: k + s (2 + 2/3 s^2 + ...) / ln 2."""
    f, form = parts.f, F64
    d = f + 2.0
    inverse = 1.0 / d
    s = f * inverse
    s_low = fma(-s, f - (d - 2.0), fma(-s, d, f)) * inverse
    z, z_low = product(s, s)
    z_low = fma(s + s, s_low, z_low)
    q = horner(z, LP["double"]) * z
    third, third_low = quick_sum(q.of(form["TL2E3"]), q)
    third_low = third_low + form["TL2E3L"]
    v, v_low = product(z, third)
    v_low = fma(z, third_low, fma(z_low, third, v_low))
    whole, whole_low = quick_sum(v.of(form["TL2E"]), v)
    whole_low = (whole_low + form["TL2EL"]) + v_low
    high, low = product(whole, s)
    low = fma(whole, s_low, fma(whole_low, s, low))
    total, lost = quick_sum(parts.k, high)
    return quick_sum(total, lost + low)


def _long(a: Register, y: Register) -> tuple[Register, Register]:
    """The power of ordinary numbers, and its exponent, beyond 1100 of which it is none."""
    high, low = _logarithm(split(a, subnormal=False))
    w = high * y
    return _two_to(w, fma(low, y, fma(high, y, -w))), w


def _long_of_any(a: Register, y: Register) -> Register:
    """The same where a may be 0, subnormal or infinite, and y of any size."""
    high, low = _logarithm(split(a, subnormal=True))
    bound = within(y, -(2.0**70), 2.0**70)
    w = high * bound
    rest = fma(low, bound, fma(high, bound, -w))
    w = _ends(a, w, y)
    w = select(w.is_nan, 0.0, w)
    rest = select(rest.is_nan, 0.0, rest)
    # far beyond the format it is anything
    return _two_to(within(w, -_FAR, _FAR), within(rest, -1.0, 1.0))


def _two_to(w: Register, rest: Register) -> Register:
    """2 to the power of a sum of two."""
    n = nearest_whole(w, 1.0)
    exact = w - n.number
    r = exact + rest
    r_low = rest - (r - exact)
    p = horner(r, EXP2["double"])
    e = fma(p, r, 1.0)
    e = e + fma(r_low, F64["LN2F"], fma(p, r, 1.0 - e))
    return scaled(e, n)
