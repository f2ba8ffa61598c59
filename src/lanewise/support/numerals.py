"""Numbers as messages print them."""

from __future__ import annotations

from typing import Any

import numpy as np

from lanewise.support.checks import shown

DIGITS = 12  # every number that a person writes, and few of those that rounding leaves behind
ALL_DIGITS = 17  # those that tell two float64 apart
UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))


def numerals(*values: Any) -> tuple[str, ...]:
    """Numbers of one message: with 12 digits, or as many more as tell different ones apart.

    So a number that is refused never reads like the limit that it is compared with.
    """
    exact = [_widened(v) for v in values]
    apart, texts = len(set(exact)), tuple[str, ...]()
    for digits in range(DIGITS, ALL_DIGITS + 1):
        texts = tuple(shown(v) if isinstance(v, int) else f"{v:.{digits}g}" for v in exact)
        read = {v if isinstance(v, int) else float(t) for v, t in zip(exact, texts, strict=True)}
        if len(read) >= apart:
            break
    return texts


def numeral(value: Any) -> str:
    """One number as a message prints it, see `numerals`."""
    return numerals(value)[0]


def time_text(seconds: float) -> str:
    """A time with three digits and the unit that suits: 1 us, and not the 1e+03 ns that it rounds
    to.
    """
    unit, size = next((u for u in UNITS if float(f"{seconds / u[1]:.3g}") >= 1), UNITS[-1])
    value = seconds / size
    return f"{value:,.0f} {unit}" if value >= 1000 else f"{value:.3g} {unit}"


def counted(number: int, one: str, many: str) -> str:
    """`1 body` or `1,000 bodies`."""
    return f"{number:,} {one if number == 1 else many}"


def _widened(value: Any) -> int | float:
    """The number that its own type would print: 0.1 for the float32 that is near 0.1."""
    if isinstance(value, np.floating) and not isinstance(value, float):
        return float(str(value))
    return int(value) if isinstance(value, (int, np.integer)) else float(value)
