"""Logarithms: of x = 2^k (1 + f) the sum of k ln 2 and log(1 + f)."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

from lanewise.runtime.mathematics.coefficients import LOG
from lanewise.runtime.mathematics.formats import (
    F32,
    Normalised,
    format_of,
    is_outside,
    is_unusual,
    power,
    split,
)
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


def _of_any(x: Register, name: str, of_parts: Callable[[Normalised], Register]) -> Register:
    """A logarithm. What is no normal positive number goes another way, which is called: there are
    few of these.
    """

    def rare(y: Register) -> Register:
        return special(y, of_parts(split(y)))

    usual = of_parts(split(x, subnormal=False))
    return x.code.where_any(is_unusual(x), f"{name}_unusual", x, (usual,), (x.kind,), rare)[0]


def log(x: Register) -> Register:
    """The natural logarithm of x."""
    return _of_any(x, "log", _natural)


def _to_base(parts: Normalised, base: str, two: str = "") -> Register:
    """base, two: the names of the logarithms of e and of 2 to the base, in two parts; that of 2 is
    1 without a name.
    """
    form, f, k = format_of(parts.f), parts.f, parts.k
    of_e, of_e_low = form[base], form[f"{base}L"]
    if form is F32:
        factors = [_float32(c * of_e) for c in (-0.5, *LOG["float"])]
        low = f * of_e_low
        if two:
            low = fma(k, form[f"{two}L"], low)
        near = fma(f, of_e, fma(f * f, horner(f, factors), low))
        return fma(k, form[f"{two}H"], near) if two else k + near
    p, missed = product(f, of_e)
    total, lost = quick_sum(k * form[f"{two}H"] if two else k, p)
    low = lost + fma(rest(f, 0.0), of_e, fma(f, of_e_low, missed))
    return total + (fma(k, form[f"{two}L"], low) if two else low)


def _float32(number: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", number))[0])


def log2(x: Register) -> Register:
    """The logarithm of x to base 2."""
    return _of_any(x, "log2", lambda parts: _to_base(parts, "LOG2E"))


def log10(x: Register) -> Register:
    """The logarithm of x to base 10."""
    return _of_any(x, "log10", lambda parts: _to_base(parts, "LOG10E", "LOG10_2"))


def log1p(x: Register) -> Register:
    """Of 1 + x, whose lost bits come back as 2^-k (1 + x) is rounded once. Where that is large, or
    not above 0, another function is called.
    """
    y = x + 1.0
    usual = _of_sum(x, split(y, subnormal=False))
    far = is_outside(y, format_of(x).least, 2.0**60)
    return x.code.where_any(far, "log1p_unusual", x, (usual,), (x.kind,), _of_any_sum)[0]


def _of_any_sum(x: Register) -> Register:
    parts = split(x + 1.0, subnormal=False)
    near = _of_sum(x, parts)
    return special(x, select(parts.bits > 60, _natural(parts), near), one=1.0)


def _of_sum(x: Register, parts: Normalised) -> Register:
    s = power(0 - parts.bits)
    result = _natural(Normalised(parts.k, parts.bits, fma(s, x, s - 1.0)))
    return select(x.equals(0.0), x, result)
