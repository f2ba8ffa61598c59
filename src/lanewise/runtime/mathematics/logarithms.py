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


def _to_base(
    f: Register, high: Register, low: Register | None, base: tuple[float, float]
) -> Register:
    """high, low: the logarithm of 2^k to the base. base: that of e, in two parts."""
    p, missed = product(f, base[0])
    total, lost = quick_sum(high, p)
    missed = fma(f, base[1], missed)
    if format_of(f) is F32:
        squared = f * f
        factors = [_float32(c * base[0]) for c in (-0.5, *LOG["float"])]
        small = lost + fma(squared, horner(f, factors), missed)
    else:
        small = lost + fma(rest(f, 0.0), base[0], missed)
    return total + (small if low is None else small + low)


def _float32(number: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", number))[0])


def log2(x: Register) -> Register:
    """The logarithm of x to base 2."""
    form = format_of(x)
    base = form["LOG2E"], form["LOG2EL"]
    return _of_any(x, "log2", lambda parts: _to_base(parts.f, parts.k, None, base))


def log10(x: Register) -> Register:
    """The logarithm of x to base 10."""
    form = format_of(x)
    base = form["LOG10E"], form["LOG10EL"]

    def of_parts(parts: Normalised) -> Register:
        high, low = (parts.k * form[n] for n in ("LOG10_2H", "LOG10_2L"))
        return _to_base(parts.f, high, low, base)

    return _of_any(x, "log10", of_parts)


def log1p(x: Register) -> Register:
    """Of 1 + x, whose lost bits come back as 2^-k (1 + x) is rounded once."""
    form = format_of(x)
    parts = split(x + 1.0, subnormal=False)
    s = power(0 - parts.bits)
    f = select(parts.bits > 60, parts.f, fma(s, x, s - 1.0))
    result = special(x, _natural(Normalised(parts.k, parts.bits, f)), one=1.0)
    small = x.code.intrinsic("fabs", x) < form.least
    return select(small, x, result)
