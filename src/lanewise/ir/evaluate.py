"""The value of an expression, on NumPy scalars: the definition of what every operator and intrinsic means."""

from __future__ import annotations

from typing import Any, assert_never

import numpy as np

from lanewise.errors import VerificationError
from lanewise.ir import nodes as ir
from lanewise.ir.intrinsics import INTRINSICS

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
            return np.asarray(evaluate(e.operand, env)).astype(e.type.dtype)[()]
        case ir.Call():
            result = INTRINSICS[e.intrinsic].evaluate(*(evaluate(a, env) for a in e.arguments))
            return np.asarray(result).astype(e.type.dtype)[()]
        case ir.Element():
            return env[e.array][element_index(evaluate(e.index, env), env[e.array])]
        case _:
            assert_never(e)


def element_index(index: Any, array: Any) -> int:
    """The index into a local array, checked."""
    if not 0 <= index < len(array):
        raise VerificationError(f"index {index} outside a local array of {len(array)}")
    return int(index)
