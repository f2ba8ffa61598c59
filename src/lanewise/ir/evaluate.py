"""The value of an expression, on NumPy scalars: the definition of what every operator and intrinsic means.

Intrinsics are the scalar functions of the language: which operands they take, what they mean, how wide they are. The emitters hold the
spelling of each in their own language.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, assert_never

import numpy as np

from lanewise.errors import VerificationError
from lanewise.ir import nodes as ir
from lanewise.types import convert, limits
from lanewise.values import SCALAR_FUNCTIONS

Environment = dict[str, Any]

_COMPARE = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_BINARY = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "//": np.floor_divide, "%": np.mod, "&": np.bitwise_and,
    "|": np.bitwise_or, "^": np.bitwise_xor, "<<": np.left_shift, ">>": np.right_shift,
}  # fmt: skip


def evaluate(e: ir.Expression, env: Environment) -> Any:
    """The value of an expression: a NumPy scalar of its type. Coordinates of the running thread stand in `env` as `@thread`."""
    match e:
        case ir.Literal():
            return e.type.dtype.type(e.value)
        case ir.Local():
            return env[e.name]
        case ir.Builtin():
            return e.type.dtype.type(env[f"@{e.name}"])
        case ir.Unary():
            value = evaluate(e.operand, env)
            return np.bool_(not value) if e.operator == "not" else -value if e.operator == "-" else ~value
        case ir.Binary(bounded=True, operator="+" | "-" | "*"):
            return _within(e, evaluate(e.left, env), evaluate(e.right, env))
        case ir.Binary():
            return _BINARY[e.operator](evaluate(e.left, env), evaluate(e.right, env))
        case ir.Compare():
            return np.bool_(_COMPARE[e.operator](evaluate(e.left, env), evaluate(e.right, env)))
        case ir.Logical():
            left = evaluate(e.left, env)
            decided = not left if e.operator == "and" else bool(left)
            return left if decided else evaluate(e.right, env)
        case ir.Select():
            return evaluate(e.if_true if evaluate(e.condition, env) else e.if_false, env)
        case ir.Cast():
            return convert(evaluate(e.operand, env), e.type)
        case ir.Call():
            result = INTRINSICS[e.intrinsic].evaluate(*(evaluate(a, env) for a in e.arguments))
            return np.asarray(result).astype(e.type.dtype)[()]
        case ir.Element():
            return env[e.array][element_index(evaluate(e.index, env), env[e.array])]
        case _:
            assert_never(e)


def _within(e: ir.Binary, left: Any, right: Any) -> Any:
    """The result of index arithmetic, which compilers take to fit."""
    a, b = int(left), int(right)
    result = a + b if e.operator == "+" else a - b if e.operator == "-" else a * b
    low, high = limits(e.type)
    if not low <= result <= high:
        raise VerificationError(f"{a} {e.operator} {b} of an index is beyond {e.type}")
    return e.type.dtype.type(result)


def element_index(index: Any, array: Any) -> int:
    """The index into a local array, checked."""
    if not 0 <= index < len(array):
        raise VerificationError(f"index {index} outside a local array of {len(array)}")
    return int(index)


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
