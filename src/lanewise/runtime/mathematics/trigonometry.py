"""Sine, cosine and tangent: x = q pi/2 + r, and polynomials of r.

Most arguments are reduced by two parts of pi/2. Registers enter another function where a lane has
one of which almost nothing is left, which takes three parts and what their differences lose, or one
above a switch, which takes the digits of 2 / pi that it reaches (Payne and Hanek).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lanewise.runtime.mathematics.coefficients import COS, SIN, TAN
from lanewise.runtime.mathematics.formats import F32, format_of, nearest_whole
from lanewise.runtime.mathematics.registers import Register, fma, horner, select, size

# of an argument that is left at least, where two parts of pi/2 are enough
_LEFT = {"float": 2.0**-20, "double": 2.0**-45}


@dataclass(frozen=True)
class ReducedAngle:
    """An argument without its quarters of a circle: two parts of what is left, and bits whose last
    two count the quarters.
    """

    r: Register
    c: Register
    quarter: Register


def _most(x: Register) -> float:
    """Up to which size three parts of pi/2 are enough."""
    return 30000.0 if format_of(x) is F32 else 2.0**30


def _reduced(x: Register) -> ReducedAngle:
    form = format_of(x)
    q = nearest_whole(x, form["TWOPI"])
    n = q.number
    a = fma(n, -form["P0"], x)  # exact
    h = n * form["P1"]
    low = fma(n, form["P1"], -h)
    b = a - h
    v = b - a
    e = (a - (b - v)) - (h + v)
    c = fma(n, -form["P2"], e - low)
    r = b + c
    return ReducedAngle(r, c - (r - b), q.bits)


def argument(x: Register) -> ReducedAngle:
    """An argument of any size, reduced."""
    near, large = _reduced(x), size(x) > _most(x)
    parts = x.code.where_any(
        large, "reduced", x, (near.r, near.c, near.quarter), (x.kind, x.kind, format_of(x).whole)
    )
    return ReducedAngle(*parts)


def _sine(a: ReducedAngle) -> Register:
    r, c, z = a.r, a.c, a.r * a.r
    return r + fma(horner(z, SIN[r.kind]), z * r, c - z * (c * 0.5))


def _cosine(a: ReducedAngle) -> Register:
    r, z = a.r, a.r * a.r
    h = z * 0.5
    w = 1.0 - h
    return w + (((1.0 - w) - h) + fma(z * z, horner(z, COS[r.kind]), -(r * a.c)))


def _tangent(a: ReducedAngle) -> Register:
    r, z = a.r, a.r * a.r
    # the slope 1 + tan^2, to a tenth
    c = fma(a.c * z, 1.375, a.c)
    return r + fma(horner(z, TAN[r.kind]), z * r, c)


def _odd(quarter: Register) -> Register:
    return (quarter & 1).equals(1)


def _turned(a: ReducedAngle, quarter: Register) -> Register:
    """The sine after so many quarters."""
    value = select(_odd(quarter), _cosine(a), _sine(a))
    sign = (quarter & 2) << (30 if quarter.kind == "i32" else 62)
    return (value.bits ^ sign).as_float


def _nearly_reduced(x: Register) -> tuple[ReducedAngle, Register]:
    """An argument of no large size, reduced by two parts of pi/2, and where that is not enough: the
    third part counts, and differences round, where the first one leaves almost nothing.
    """
    form = format_of(x)
    q = nearest_whole(x, form["TWOPI"])
    n = q.number
    a = fma(n, -form["P0"], x)  # exact
    r = fma(n, -form["P1"], a)
    c = fma(n, -form["P1"], a - r)
    far = (size(x) > _most(x)) | (size(a) < size(x) * _LEFT[x.kind])
    return ReducedAngle(r, c, q.bits), far


def _of_angles(
    name: str, x: Register, of: Callable[[Register, ReducedAngle], Register]
) -> Register:
    """A function of x and its angle."""
    angle, far = _nearly_reduced(x)

    def rare(y: Register) -> Register:
        return of(y, argument(y))

    return x.code.where_any(far, f"{name}_unusual", x, (of(x, angle),), (x.kind,), rare)[0]


def sin(x: Register) -> Register:
    """The sine of x."""
    return _of_angles("sin", x, lambda x, a: select(x.equals(0.0), x, _turned(a, a.quarter)))


def cos(x: Register) -> Register:
    """The cosine of x."""
    return _of_angles("cos", x, lambda x, a: _turned(a, a.quarter + 1))


def tan(x: Register) -> Register:
    """The tangent of x."""

    def of(x: Register, a: ReducedAngle) -> Register:
        t, odd = _tangent(a), _odd(a.quarter)
        quotient = select(odd, -1.0, t) / select(odd, t, 1.0)
        return select(x.equals(0.0), x, quotient)

    return _of_angles("tan", x, of)
