"""Values that kernels stumble over: limits of types, zeros of both signs, what is no number, denormals; and
small ones.
"""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from lanewise.language import types as t

Array = np.ndarray[Any, Any]


def edges(kind: t.Scalar) -> list[float]:
    """The awkward values of a type."""
    if kind == t.BOOL:
        return [0, 1]
    low, high = t.limits(kind)
    if not kind.is_float:
        half = 1 << 8 * kind.size - 1
        sides = [low, low + 1, -1, -2] if low < 0 else [half, half - 1]
        return [
            *sides,
            high,
            high - 1,
            high // 2,
            high // 2 + 1,
            high // 3,
            0,
            1,
            2,
            3,
            *((2**31, 2**32, 2**53 + 1) if kind == t.I64 else ()),
        ]
    info = np.finfo(kind.dtype.name)
    tiny, small = float(info.tiny), float(info.smallest_subnormal)
    if kind == t.F16:
        return [0.0, -0.0, np.nan, np.inf, -np.inf, tiny, small, -small, low, high, 1.0, -1.0, 0.5, 2049.0]
    return [0.0, -0.0, np.nan, np.inf, -np.inf, tiny, small, -small, tiny / 3, low, high, high / 2, float(info.eps), 1.0, -1.0, 0.5,
            2.0**24 + 1, 2.0**31, -(2.0**31), 2.0**32, 2.0**63, 1e-3]  # fmt: skip


def scalars(rng: Random, kind: t.Scalar, count: int, share: float) -> Array:
    """So many values of a type; `share` of them awkward, the others small."""
    awkward = edges(kind)

    def one() -> float:
        if rng.random() < share:
            return rng.choice(awkward)
        if kind == t.BOOL:
            return rng.randrange(2)
        if kind.is_float:
            return rng.choice((rng.randint(-16, 16) / 8, rng.gauss(0, 1), rng.gauss(0, 50)))
        return rng.choice((rng.randint(0, 9), rng.randint(0, 100) - (50 if kind.kind == "i" else 0)))

    return (
        np.array([one() for _ in range(count)]).astype(kind.dtype)
        if kind.is_float
        else np.array([one() for _ in range(count)], kind.dtype)
    )


def values(rng: Random, kind: t.ValueType, count: int, share: float) -> Array:
    """The same for vectors, with one row an element."""
    if isinstance(kind, t.Scalar):
        return scalars(rng, kind, count, share)
    return scalars(rng, kind.element, count * kind.length, share).reshape(count, kind.length)


def eighths(rng: Random, kind: t.ValueType, count: int) -> Array:
    """Multiples of 1/8 of at most 2 (integers: of at most 4)."""
    shape = (count, kind.length) if isinstance(kind, t.Vector) else (count,)
    scalar = t.scalar_of(kind)
    drawn = np.random.default_rng(rng.getrandbits(63)).integers(-16, 17, shape)
    return (drawn / 8).astype(scalar.dtype) if scalar.is_float else (drawn // 4).astype(scalar.dtype)
