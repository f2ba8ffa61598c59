"""The definition of the intrinsics, on NumPy scalars of one type."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np


def _rsqrt(x: Any) -> Any:
    x = x if isinstance(x, np.floating) else np.float32(x)
    return type(x)(1) / np.sqrt(x)


def _min(a: Any, b: Any) -> Any:
    return np.minimum(a, b)[()]


def _max(a: Any, b: Any) -> Any:
    return np.maximum(a, b)[()]


def _clamp(x: Any, low: Any, high: Any) -> Any:
    return _min(_max(x, low), high)


def _mix(a: Any, b: Any, weight: Any) -> Any:
    return a + (b - a) * weight


def _fma(a: Any, b: Any, c: Any) -> Any:
    return a * b + c


def _each(function: Callable[[float], float]) -> Callable[[Any], Any]:
    """A function of Python's floats, of NumPy's scalars and arrays: computed in float64."""

    def apply(x: Any) -> Any:
        computed = np.vectorize(function, otypes=[np.float64])(x)
        return computed.astype(np.asarray(x).dtype)[()]

    return apply


def _gamma(x: float) -> float:
    try:
        return math.gamma(x)
    except ValueError:  # at 0 infinite, at the integers below, and at -inf, not a number
        return math.copysign(math.inf, x) if x == 0 else math.nan
    except OverflowError:
        return math.copysign(math.inf, x)


SCALAR_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "rsqrt": _rsqrt,
    "min": _min,
    "max": _max,
    "clamp": _clamp,
    "mix": _mix,
    "fma": _fma,
    **{
        name: getattr(np, name)
        for name in (
            "sqrt",
            "cbrt",
            "exp",
            "exp2",
            "expm1",
            "log",
            "log2",
            "log10",
            "log1p",
            "sin",
            "cos",
            "tan",
            "sinh",
            "cosh",
            "tanh",
            "floor",
            "ceil",
            "trunc",
            "hypot",
            "isnan",
            "isinf",
            "isfinite",
        )
    },
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "pow": np.power,
    "abs": np.abs,
    "round": np.rint,
    "erf": _each(math.erf),
    "erfc": _each(math.erfc),
    "gamma": _each(_gamma),
}
