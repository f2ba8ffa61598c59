"""IR functions on NumPy arrays: every variable has many values at once, and both sides of a selection are computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

import numpy as np

from lanewise.ir import nodes as ir
from lanewise.ir.interpret import INTRINSICS

Array = np.ndarray[Any, Any]


def called(f: ir.Function, arguments: Mapping[str, Any]) -> list[Array]:
    """The results of a function without loops; those of the arguments that it has are taken."""
    env = {p.name: np.asarray(arguments[p.name], p.type.dtype) for p in f.parameters}
    with np.errstate(all="ignore"):
        results = _block(f.body, env)
    assert results is not None
    return results


def _block(block: ir.Block, env: dict[str, Array]) -> list[Array] | None:
    for number, s in enumerate(block):
        match s:
            case ir.Assign():
                env[s.name] = _value(s.value, env)
            case ir.If():
                condition, rest = _value(s.condition, env), block[number + 1 :]
                first, second = (_block((*side, *rest), dict(env)) for side in (s.then, s.otherwise))
                assert first is not None
                assert second is not None
                return [np.where(condition, a, b) for a, b in zip(first, second, strict=True)]
            case ir.Return():
                return [_value(v, env) for v in s.values]
            case _:
                raise AssertionError(f"a {type(s).__name__} statement")
    return None


_OPERATORS = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "<": np.less, "<=": np.less_equal,
    ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal, "and": np.logical_and, "or": np.logical_or,
}  # fmt: skip


def _value(e: ir.Expression, env: dict[str, Array]) -> Array:
    match e:
        case ir.Literal():
            return np.asarray(e.value, e.type.dtype)
        case ir.Local():
            return env[e.name]
        case ir.Unary():
            return (np.logical_not if e.operator == "not" else np.negative)(_value(e.operand, env))
        case ir.Binary() | ir.Compare() | ir.Logical():
            return _OPERATORS[e.operator](_value(e.left, env), _value(e.right, env))
        case ir.Select():
            return np.where(*(_value(x, env) for x in (e.condition, e.if_true, e.if_false)))
        case ir.Cast():
            return _value(e.operand, env).astype(e.type.dtype)
        case ir.Call(intrinsic="rsqrt"):
            return (1 / np.sqrt(_value(e.arguments[0], env))).astype(e.type.dtype)
        case ir.Call():
            return INTRINSICS[e.intrinsic].evaluate(*(_value(a, env) for a in e.arguments))
        case ir.Element() | ir.Builtin():
            raise AssertionError(e)
        case _:
            assert_never(e)
