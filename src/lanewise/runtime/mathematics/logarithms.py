"""Logarithms: of x = 2^k (1 + f) the sum of k ln 2 and log(1 + f)."""

from __future__ import annotations

import math

from lanewise.runtime.mathematics.coefficients import LOG
from lanewise.runtime.mathematics.formats import F32, Normalised, format_of, power, split
from lanewise.runtime.mathematics.registers import (
    Register,
    fma,
    horner,
    product,
    quick_sum,
    select,
)


def rest(f: Register, y: Register | float) -> Register:
    """log(1 + f) - f + y."""
    h = f * 0.5 * f
    if format_of(f) is F32:
        return fma(horner(f, LOG["float"]), f * f * f, y - h)
    s = f / (f + 2.0)
    z = s * s
    return fma(s, fma(z, horner(z, LOG["double"]), h), y) - h


def special(x: Register, result: Register, *, one: float = 0.0) -> Register:
    """A logarithm where its argument is infinite, 0 (`-one`), or has none."""
    result = select(x < math.inf, result, x)
    return select(x <= -one, select(x.equals(-one), x.of(-math.inf), x.of(math.nan)), result)


def _natural(parts: Normalised) -> Register:
    form = format_of(parts.f)
    f, k = parts.f, parts.k
    return fma(k, form["LN2H"], f + rest(f, k * form["LN2L"]))


def log(x: Register) -> Register:
    """The natural logarithm of x."""
    return special(x, _natural(split(x)))


def _to_base(
    parts: Normalised, high: Register, low: Register | float, base: tuple[float, float]
) -> Register:
    """high, low: the logarithm of 2^k to the base. base: that of e."""
    f, t = parts.f, rest(parts.f, 0.0)
    p, lost = product(f, base[0])
    total, also = quick_sum(high, p)
    return total + (also + (fma(t, base[0], fma(f, base[1], lost)) + low))


def log2(x: Register) -> Register:
    """The logarithm of x to base 2."""
    form, parts = format_of(x), split(x)
    return special(x, _to_base(parts, parts.k, 0.0, (form["LOG2E"], form["LOG2EL"])))


def log10(x: Register) -> Register:
    """The logarithm of x to base 10."""
    form, parts = format_of(x), split(x)
    low = parts.k * form["LOG10_2L"]
    return special(
        x, _to_base(parts, parts.k * form["LOG10_2H"], low, (form["LOG10E"], form["LOG10EL"]))
    )


def log1p(x: Register) -> Register:
    """Of 1 + x, whose lost bits come back as 2^-k (1 + x) is rounded once."""
    form = format_of(x)
    parts = split(x + 1.0, subnormal=False)
    s = power(0 - parts.bits)
    f = select(parts.bits > 60, parts.f, fma(s, x, s - 1.0))
    result = special(x, _natural(Normalised(parts.k, parts.bits, f)), one=1.0)
    small = x.code.intrinsic("fabs", x) < form.least
    return select(small, x, result)
