"""The error function and what it lacks to 1."""

from __future__ import annotations

from lanewise.runtime.mathematics.coefficients import ERF, G
from lanewise.runtime.mathematics.exponentials import parts
from lanewise.runtime.mathematics.formats import F32, format_of, scaled
from lanewise.runtime.mathematics.registers import Register, fma, horner, product, select, size


def _near(a: Register) -> Register:
    return fma(horner(a * a, ERF[a.kind]), a, a)


def _tail(a: Register) -> Register:
    """That of a from 0.49 on: e^(-a^2) / (a + K) times a polynomial of 1 - 2 K / (a + K)."""
    form = format_of(a)
    k = 2.0 if form is F32 else 3.5
    under = a + k
    lost = a - (under - k)
    v = 1.0 / under
    w = v * fma(-v, lost, fma(-under, v, 1.0))
    u = fma(w, -2.0 * k, fma(v, -2.0 * k, 1.0))
    g = horner(u, G[form.kind])
    p = fma(g, v, g * w)
    square, rest = product(a, a)
    n, e = parts(-square, -rest)
    return scaled(fma(e, p, p), n)


def erfc(x: Register) -> Register:
    """What the error function of x lacks to 1, without cancellation."""
    most = 10.203125 if format_of(x) is F32 else 27.375
    a = size(x)
    a = select(a > most, most, a)
    tail = _tail(select(a < 0.4921875, 0.4921875, a))
    inside = 1.0 - _near(select(a > 1.0, 1.0, a)).signed(x)
    return select(a < 0.5, inside, select(x < 0.0, 2.0 - tail, tail))


def erf(x: Register) -> Register:
    """The error function of x."""
    a = size(x)
    near = _near(select(a > 1.0, 1.0, a))
    far = 1.0 - _tail(select(a < 1.0, 1.0, select(a > 6.0, 6.0, a)))
    return select(a < 1.0, near, far).signed(x)
