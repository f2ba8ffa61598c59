"""Integers of a type as the language defines them, on Python's unbounded numbers: the oracle of the tests of
integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lanewise.language.types import Scalar


@dataclass(frozen=True)
class Whole:
    """A number of a whole type; every result is taken modulo two to the number of bits."""

    value: int
    kind: Scalar

    def of(self, value: int) -> Whole:
        bits = 8 * self.kind.size
        value %= 1 << bits
        return Whole(value - (1 << bits) if self.kind.kind == "i" and value >> (bits - 1) else value, self.kind)

    def __add__(self, other: Any) -> Whole:
        return self.of(self.value + _plain(other))

    def __radd__(self, other: int) -> Whole:
        return self + other

    def __sub__(self, other: Any) -> Whole:
        return self.of(self.value - _plain(other))

    def __mul__(self, other: Any) -> Whole:
        return self.of(self.value * _plain(other))

    def __floordiv__(self, other: Any) -> Whole:
        return self.of(self.value // _plain(other) if _plain(other) else 0)

    def __mod__(self, other: Any) -> Whole:
        return self.of(self.value % _plain(other) if _plain(other) else 0)

    def __pow__(self, exponent: int) -> Whole:
        return self.of(self.value**exponent)

    def __lshift__(self, other: Any) -> Whole:
        places = _plain(other)
        return self.of(self.value << places if 0 <= places < 8 * self.kind.size else 0)

    def __rshift__(self, other: Any) -> Whole:
        places, bits = _plain(other), 8 * self.kind.size
        return self.of(self.value >> (places if 0 <= places < bits else bits))

    def __neg__(self) -> Whole:
        return self.of(-self.value)

    def __invert__(self) -> Whole:
        return self.of(~self.value)

    def __abs__(self) -> Whole:
        return self.of(abs(self.value))

    def __lt__(self, other: Any) -> bool:
        return self.value < _plain(other)

    def __gt__(self, other: Any) -> bool:
        return self.value > _plain(other)

    def __eq__(self, other: object) -> bool:
        return self.value == _plain(other)

    def __hash__(self) -> int:
        return hash(self.value)


def _plain(x: Any) -> int:
    return x.value if isinstance(x, Whole) else int(x)


def truncated(x: float, low: int, high: int) -> int:
    """A float as an integer from `low` to `high`."""
    if x != x:
        return 0
    return low if x <= low else high if x >= high else int(x)
