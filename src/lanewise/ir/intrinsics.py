"""The scalar functions of the language: which operands they take, what they mean, how wide they are.

The NumPy function is the definition; the emitters hold the spelling of each in their own language.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from lanewise.values import SCALAR_FUNCTIONS


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """`domain` "float" converts integers to floats first, "number" keeps them; `predicate` results are bool."""

    name: str
    arity: int
    domain: Literal["float", "number"]
    predicate: bool
    evaluate: Callable[..., Any]


def _table() -> dict[str, Intrinsic]:
    number = {"min": 2, "max": 2, "clamp": 3, "abs": 1}
    several = {"atan2": 2, "pow": 2, "hypot": 2, "mix": 3, "fma": 3}
    predicates = {"isnan", "isinf", "isfinite"}
    return {
        name: Intrinsic(
            name, number.get(name, several.get(name, 1)), "number" if name in number else "float", name in predicates, evaluate
        )
        for name, evaluate in SCALAR_FUNCTIONS.items()
    }  # fmt: skip


INTRINSICS = _table()
