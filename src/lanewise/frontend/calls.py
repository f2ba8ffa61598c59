"""Lower calls: conversions, vectors, mathematics, helpers."""

from __future__ import annotations

import ast
import builtins
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lanewise import types as t
from lanewise import values as v
from lanewise.frontend.scope import Scope
from lanewise.frontend.values import Number, PythonObject, RecordReference, Value, common_scalar, settle
from lanewise.ir import nodes as ir
from lanewise.ir.intrinsics import INTRINSICS

_RENAMED = {"minimum": "min", "maximum": "max", "fabs": "abs", "absolute": "abs", "power": "pow", "arcsin": "asin", "arccos": "acos",
            "arctan": "atan", "arctan2": "atan2", "pow_": "pow", "abs_": "abs",
            "min_": "min", "max_": "max"}  # fmt: skip
_REFUSED: dict[Any, str] = {
    int: "lw.i32(x) or lw.i64(x)", float: "lw.f32(x) or lw.f64(x)", builtins.sum: "a loop", print: "kernel.python(...), where print works",
    builtins.round: "lw.floor(x + 0.5)", builtins.len: "the length as a literal or a parameter",
}  # fmt: skip


def intrinsic_name(function: Any) -> str | None:
    """The intrinsic that a Python function stands for: lanewise's own, or the one of `math`, `numpy` and builtins of that name."""
    name = getattr(function, "__name__", None)
    owner = getattr(function, "__module__", None) or ""
    known = owner.startswith("lanewise") or owner in ("math", "builtins") or isinstance(function, np.ufunc) or function in vars(math).values()
    if not isinstance(name, str) or not known:
        return None
    name = _RENAMED.get(name, name)
    return name if name in INTRINSICS else None


def lower_call(scope: Scope, callee: PythonObject, arguments: list[Value], node: ast.AST) -> Number:
    """Lower a call of a Python object to the IR."""
    function = callee.value
    if function in (v.same, v.zeros):
        return _same(scope, arguments, node) if function is v.same else _misplaced_zeros(scope, node)
    if getattr(function, "__lanewise_function__", False):
        return scope.call_helper(scope, function, arguments, node)
    numbers = [_as_number(scope, a, node) for a in arguments]
    value_type = v.type_of_annotation(function)
    if isinstance(value_type, t.Scalar):
        return _convert(scope, value_type, numbers, node)
    if isinstance(value_type, t.Vector):
        return _vector(scope, value_type, numbers, node)
    if function in _VECTOR_FUNCTIONS:
        return _VECTOR_FUNCTIONS[function](scope, numbers, node)
    if function is v.select:
        return _select(scope, numbers, node)
    if name := intrinsic_name(function):
        return _intrinsic(scope, name, numbers, node)
    hint = _REFUSED.get(function, "decorate your own helpers with @lw.function") if callable(function) else ""
    raise scope.error("this cannot be called in a kernel", node, found=callee.describe(), wanted="a function of lanewise", hint=hint)


def _as_number(scope: Scope, value: Value, node: ast.AST) -> Number:
    if isinstance(value, Number):
        return value
    raise scope.error("a scalar or a vector is needed as argument", node, found=value.describe(), wanted="a scalar or a vector")


def _count(scope: Scope, name: str, arguments: list[Any], wanted: int, node: ast.AST) -> None:
    if len(arguments) != wanted:
        raise scope.error(f"{name} takes {wanted} argument{'s' if wanted > 1 else ''}", node, found=f"{len(arguments)} given", wanted=str(wanted))


def _same(scope: Scope, arguments: list[Value], node: ast.AST) -> Number:
    records = [a.name for a in arguments if isinstance(a, RecordReference)]
    own = [n for n, p in scope.parameters.items() if isinstance(p, RecordReference)]
    if sorted(records) != sorted(own) or len(own) != 2:
        raise scope.error(
            "lw.same asks whether the two records of a pairwise function are one element", node,
            found=", ".join(a.describe() for a in arguments), wanted="lw.same(target, source), in the pairwise function itself",
        )  # fmt: skip
    scope.uses_same = True
    return Number(t.BOOL, (ir.Local("same", t.BOOL, scope.location(node)),))


def _misplaced_zeros(scope: Scope, node: ast.AST) -> Number:
    raise scope.error("a local array needs a name", node, found="lw.zeros inside an expression", wanted="a = lw.zeros(lw.f32, 8)")


def _convert(scope: Scope, scalar: t.Scalar, arguments: list[Number], node: ast.AST) -> Number:
    _count(scope, f"lw.{scalar}", arguments, 1, node)
    if arguments[0].is_vector:
        raise scope.error(f"lw.{scalar} takes a scalar", node, found=arguments[0].describe(), wanted="a scalar")
    return settle(arguments[0], scalar)


def _vector(scope: Scope, vector: t.Vector, arguments: list[Number], node: ast.AST) -> Number:
    """Components from scalars and shorter vectors, or one scalar for all."""
    parts = tuple(p for a in arguments for p in settle(a, vector.element).parts)
    if len(parts) == 1:
        parts = (scope.bind(parts[0]),) * vector.length
    if len(parts) != vector.length:
        raise scope.error(
            f"{vector} takes {vector.length} components", node, found=f"{len(parts)} given", wanted=f"{vector.length}, or 1 for all"
        )
    return Number(vector, parts)


def _intrinsic(scope: Scope, name: str, arguments: list[Number], node: ast.AST) -> Number:
    intrinsic = INTRINSICS[name]
    if name in {"min", "max"} and len(arguments) > 2:
        arguments = [_intrinsic(scope, name, arguments[:-1], node), arguments[-1]]
    _count(scope, name, arguments, intrinsic.arity, node)
    kind = common_scalar(arguments)
    if kind == t.BOOL or (intrinsic.domain == "float" and not kind.is_float):
        kind = t.F32 if intrinsic.domain == "float" and kind != t.I64 else t.F64 if intrinsic.domain == "float" else t.I32
    settled = [settle(a, kind) for a in arguments]
    width = max(len(a.parts) for a in settled)
    if any(len(a.parts) not in (1, width) for a in settled):
        raise scope.error(f"the vectors given to {name} differ in length", node, found=", ".join(str(a.type) for a in settled))
    spread = [a if len(a.parts) == width else Number(kind, (scope.bind(a.parts[0]),) * width) for a in settled]
    result = t.BOOL if intrinsic.predicate else kind
    columns = zip(*(a.parts for a in spread), strict=True)
    parts = tuple(ir.Call(name, column, result, scope.location(node)) for column in columns)
    return Number(result if width == 1 and not any(a.is_vector for a in settled) else t.Vector(result, width), parts)


def _select(scope: Scope, arguments: list[Number], node: ast.AST) -> Number:
    _count(scope, "select", arguments, 3, node)
    test, first, second = arguments
    if test.type != t.BOOL:
        raise scope.error("select needs a truth value first", node, found=test.describe(), wanted="a bool")
    kind = common_scalar([first, second])
    first, second = settle(first, kind), settle(second, kind)
    if len(first.parts) != len(second.parts):
        raise scope.error("select needs two values of one shape", node, found=f"{first.type} and {second.type}")
    flag = scope.bind(test.parts[0])
    parts = tuple(ir.Select(flag, a, b, kind, scope.location(node)) for a, b in zip(first.parts, second.parts, strict=True))
    return Number(first.type, parts)


def _operands(scope: Scope, name: str, arguments: list[Number], lengths: tuple[int, ...], count: int, node: ast.AST) -> list[Number]:
    _count(scope, name, arguments, count, node)
    for a in arguments:
        if not a.is_vector or len(a.parts) not in lengths or len(a.parts) != len(arguments[0].parts):
            raise scope.error(
                f"{name} takes {'two vectors of one length' if count == 2 else 'a vector'}", node,
                found=", ".join(x.describe() for x in arguments), wanted=f"vectors of {' or '.join(map(str, lengths))} components",
            )  # fmt: skip
    kind = common_scalar(arguments)
    kind = kind if kind.is_float or count == 2 else t.F32
    return [scope.bind_number(settle(a, kind)) for a in arguments]


def _dot(scope: Scope, arguments: list[Number], node: ast.AST) -> Number:
    a, b = _operands(scope, "dot", arguments, (2, 3, 4), 2, node)
    where = scope.location(node)
    products: list[ir.Expression] = [ir.Binary("*", x, y, x.type, where) for x, y in zip(a.parts, b.parts, strict=True)]
    total = products[0]
    for p in products[1:]:
        total = ir.Binary("+", total, p, p.type, where)
    return Number(total.type, (total,))


def _cross(scope: Scope, arguments: list[Number], node: ast.AST) -> Number:
    a, b = _operands(scope, "cross", arguments, (3,), 2, node)
    where, kind = scope.location(node), a.scalar

    def component(i: int, j: int) -> ir.Expression:
        left, right = (ir.Binary("*", a.parts[p], b.parts[q], kind, where) for p, q in ((i, j), (j, i)))
        return ir.Binary("-", left, right, kind, where)

    return Number(t.Vector(kind, 3), (component(1, 2), component(2, 0), component(0, 1)))


def _length(scope: Scope, arguments: list[Number], node: ast.AST) -> Number:
    (a,) = _operands(scope, "length", arguments, (2, 3, 4), 1, node)
    return _intrinsic(scope, "sqrt", [_dot(scope, [a, a], node)], node)


def _normalize(scope: Scope, arguments: list[Number], node: ast.AST) -> Number:
    (a,) = _operands(scope, "normalize", arguments, (2, 3, 4), 1, node)
    norm = scope.bind(_length(scope, [a], node).parts[0], "length")
    return Number(a.type, tuple(ir.Binary("/", p, norm, p.type, scope.location(node)) for p in a.parts))


_VECTOR_FUNCTIONS: dict[Any, Callable[[Scope, list[Number], ast.AST], Number]] = {
    v.dot: _dot, v.cross: _cross, v.length: _length, v.normalize: _normalize,
}  # fmt: skip
