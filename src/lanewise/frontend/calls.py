"""Calls: which functions a kernel may call, and how each is lowered."""

from __future__ import annotations

import ast
import builtins
import math
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from lanewise.frontend import mathematics, operators
from lanewise.frontend.directions import along, along_of
from lanewise.frontend.elements import length as array_length
from lanewise.frontend.literals import exact_of, exact_result
from lanewise.frontend.mathematics import check_count, intrinsic
from lanewise.frontend.random_numbers import drawing
from lanewise.frontend.rows import row_length, window
from lanewise.frontend.scope import Scope
from lanewise.frontend.values import (
    ElementsReference,
    Number,
    PythonObject,
    RecordReference,
    RowReference,
    Value,
    from_python,
    literal_values,
)
from lanewise.ir import nodes as ir
from lanewise.ir.interpret import INTRINSICS
from lanewise.ir.names import own
from lanewise.language import types as t
from lanewise.language import values as v
from lanewise.language.record import record_of
from lanewise.language.vectors import LiteralVector

Lowering = Callable[[Scope, list[Value], ast.AST], Value]
_OnNumbers = Callable[[Scope, list[Number], ast.AST], Number]

# The names of `math`, NumPy and Python for the intrinsics.
_SPELLINGS = {
    "min": ("minimum",),
    "max": ("maximum",),
    "abs": ("fabs", "absolute"),
    "pow": ("power",),
    "asin": ("arcsin",),
    "acos": ("arccos",),
    "atan": ("arctan",),
    "atan2": ("arctan2",),
    "round": ("rint",),
}
_HINTS: dict[Any, str] = {
    int: "lw.i32(x) or lw.i64(x)",
    float: "lw.f32(x) or lw.f64(x)",
    builtins.sum: "a loop",
    print: "kernel.python(...), where print works",
    builtins.round: "lw.round(x)",
    builtins.len: "the length as a literal or a parameter",
    range: "range() stands only behind `for i in`",
    math.copysign: "lw.select(x < 0, -a, a)",
    np.dot: "lw.dot(a, b)",
    np.cross: "lw.cross(a, b)",
    np.linalg.norm: "lw.length(a)",
    np.where: "lw.select(condition, a, b)",
    np.clip: "lw.clamp(x, low, high)",
    np.array: "lw.vec3(x, y, z)",
    np.sum: "lw.dot(a, b), v.x + v.y + v.z, or a loop",
    np.zeros: "lw.zeros(lw.f32, n)",
}


def _foreign_functions() -> dict[Any, str]:
    """The functions of `math`, NumPy and Python that stand for an intrinsic."""
    intrinsics: dict[Any, str] = {}
    for name in INTRINSICS:
        for spelling in (name, *_SPELLINGS.get(name, ())):
            intrinsics |= {
                f: name
                for module in (math, np, builtins)
                if callable(f := getattr(module, spelling, None))
            }
    return {f: name for f, name in intrinsics.items() if f not in (builtins.pow, builtins.round)}


_FOREIGN = _foreign_functions()
_OWN: dict[Any, _OnNumbers] = {
    v.dot: mathematics.dot,
    v.cross: mathematics.cross,
    v.length: mathematics.length,
    v.normalize: mathematics.normalize,
    v.select: mathematics.select,
}


def lowering_of(scope: Scope, callee: PythonObject, node: ast.AST) -> Lowering:
    """How to lower a call of a Python object; refuses what a kernel cannot call."""
    function = callee.value
    kind = v.type_of_annotation(function)
    if kind is None and isinstance(function, type) and issubclass(function, np.generic):
        kind = t.from_dtype(function)
    if getattr(function, "__lanewise_function__", False):
        return lambda scope, arguments, node: scope.call_helper(scope, function, arguments, node)
    if (draw := drawing(function)) is not None:
        return draw
    if (direction := along_of(function)) is not None:
        return lambda scope, arguments, node: along(scope, direction, arguments, node)
    if function is v.same:
        return _same
    if function is v.window:
        return window
    if function is builtins.len:
        return _length
    if function is builtins.pow:
        return _numbers_only(_python_power)
    if isinstance(kind, t.Scalar):
        return _numbers_only(lambda scope, numbers, node: _convert(scope, kind, numbers, node))
    if isinstance(kind, t.Vector):
        return _numbers_only(lambda scope, numbers, node: _vector(scope, kind, numbers, node))
    if own := _looked_up(_OWN, function):
        return _numbers_only(_also_of_literals(function, own))
    if name := getattr(function, "__lanewise_intrinsic__", None):

        def by_component(scope: Scope, numbers: list[Number], node: ast.AST) -> Number:
            return intrinsic(scope, name, numbers, node)

        return _numbers_only(_also_of_literals(function, by_component))
    if name := _looked_up(_FOREIGN, function):
        return _numbers_only(lambda scope, numbers, node: _foreign(scope, name, numbers, node))
    raise scope.error(
        "this cannot be called in a kernel",
        node,
        found=callee.describe(),
        wanted="a function of lanewise",
        hint=_hint(function),
    )


_GENERATORS = (random.Random, np.random.RandomState, np.random.Generator)


def _looked_up(table: dict[Any, Any], function: Any) -> Any:
    try:
        return table.get(function)
    except TypeError:  # it cannot be hashed, so it is no function
        return None


def _hint(function: Any) -> str:
    if function is v.zeros:
        return "a local array needs a name: a = lw.zeros(lw.f32, 8)"
    if operation := getattr(function, "__lanewise_scatter__", ""):
        return (
            f"lw.scatter_{operation} has no value: it is a separate statement, in an elementwise "
            "or threadwise function"
        )
    if getattr(function, "__module__", None) == "random" or isinstance(
        getattr(function, "__self__", None), _GENERATORS
    ):
        return (
            "lw.random(seed, step, index), or lw.normal, lw.random_integer, lw.unit_vector: "
            "functions of a seed and counters"
        )
    if name := getattr(function, "__lanewise_reduction__", ""):
        return f"lw.{name} takes whole arrays, outside of kernels; here a loop adds up"
    if hint := _looked_up(_HINTS, function):
        return hint
    if record_of(function) is not None:
        return "kernels make no records: assign the fields of one that is there"
    if isinstance(function, np.ufunc) or function in vars(math).values():
        return (
            f"the mathematics that kernels know: {', '.join(sorted(INTRINSICS))}, dot, cross, "
            "length, normalize, select"
        )
    return (
        "decorate your own helpers with @lw.function"
        if callable(function) and not isinstance(function, type)
        else ""
    )


def _numbers_only(lower: _OnNumbers) -> Lowering:
    def checked(scope: Scope, arguments: list[Value], node: ast.AST) -> Value:
        numbers = [a for a in arguments if isinstance(a, Number)]
        if len(numbers) < len(arguments):
            other = next(a for a in arguments if not isinstance(a, Number))
            raise scope.error(
                "a scalar or a vector is needed as argument",
                node,
                found=other.describe(),
                wanted="a scalar or a vector",
            )
        return lower(scope, numbers, node)

    return checked


def _also_of_literals(function: Callable[..., Any], lower: _OnNumbers) -> _OnNumbers:
    """Where all arguments are Python numbers known at compile time, compute the result in Python,
    exactly.
    """

    def lowered(scope: Scope, numbers: list[Number], node: ast.AST) -> Number:
        if all(n.known for n in numbers) and any(n.is_vector or n.exact for n in numbers):
            with suppress(TypeError, ValueError, ArithmeticError):
                result = from_python(function(*map(_python_value, numbers)), scope.location(node))
                if isinstance(result, Number):
                    return _marked(result, numbers)
        return lower(scope, numbers, node)

    return lowered


def _marked(result: Number, arguments: list[Number]) -> Number:
    """Integers that are computed from the components of a direction stay exact."""
    values = literal_values(result)
    whole = all(isinstance(v, int) and not isinstance(v, bool) for v in values)
    return replace(
        result, exact=tuple(map(int, values)) if whole and any(n.exact for n in arguments) else ()
    )


def _python_value(x: Number) -> Any:
    return LiteralVector(*literal_values(x)) if x.is_vector else x.constant


def _foreign(scope: Scope, name: str, arguments: list[Number], node: ast.AST) -> Number:
    """A function of `math`, NumPy or Python: it does not take vectors, so `kernel.python` would
    fail.
    """
    if vector := next((a for a in arguments if a.is_vector), None):
        raise scope.error(
            "this function takes scalars",
            node,
            found=vector.describe(),
            wanted="a scalar",
            hint=f"lw.{name} takes vectors too",
        )
    return intrinsic(scope, name, arguments, node)


def _python_power(scope: Scope, arguments: list[Number], node: ast.AST) -> Number:
    check_count(scope, "pow", arguments, 2, node)
    return operators.power(scope, arguments[0], arguments[1], node)


def _same(scope: Scope, arguments: list[Value], node: ast.AST) -> Number:
    records = [a.name for a in arguments if isinstance(a, RecordReference)]
    of_kernel = [n for n, p in scope.parameters.items() if isinstance(p, RecordReference)]
    if not scope.same_allowed or sorted(records) != sorted(of_kernel) or len(of_kernel) != 2:
        raise scope.error(
            "lw.same asks whether the two records of a pairwise function are one element",
            node,
            found=", ".join(a.describe() for a in arguments) or "no arguments",
            wanted="lw.same(target, source), in the pairwise function itself",
        )
    scope.uses_same = True
    return Number(t.BOOL, (ir.Local(own("same"), t.BOOL, scope.location(node)),))


def _length(scope: Scope, arguments: list[Value], node: ast.AST) -> Number:
    match arguments:
        case [RowReference() as row]:
            return row_length(scope, row, node)
        case [ElementsReference() as array]:
            return array_length(scope, array, 0, node)
        case _:
            raise scope.error(
                "this cannot be called in a kernel",
                node,
                found=PythonObject(builtins.len).describe(),
                wanted="a function of lanewise",
                hint=_hint(builtins.len),
            )


def _convert(scope: Scope, scalar: t.Scalar, arguments: list[Number], node: ast.AST) -> Number:
    check_count(scope, f"lw.{scalar}", arguments, 1, node)
    if arguments[0].is_vector:
        hint = (
            "take a component: .x"
            if arguments[0].scalar == scalar
            else f"{t.Vector(scalar, len(arguments[0].parts))} converts vectors"
        )
        raise scope.error(
            f"lw.{scalar} takes a scalar",
            node,
            found=arguments[0].describe(),
            wanted="a scalar",
            hint=hint,
        )
    if scalar == t.F16 and arguments[0].scalar == t.F64:
        raise scope.error(
            "lw.f16 rounds a number of 32 bits",
            node,
            found=arguments[0].describe(),
            wanted="a value of type f32",
            hint="lw.f16(lw.f32(x)), which rounds twice",
        )
    converted = scope.settle(arguments[0], scalar, explicit=True)
    return converted if scalar == t.BOOL else replace(converted, exact=arguments[0].exact)


def _vector(scope: Scope, vector: t.Vector, arguments: list[Number], node: ast.AST) -> Number:
    """Components from scalars and shorter vectors, or one scalar for all."""
    parts = tuple(
        p for a in arguments for p in scope.settle(a, vector.element, explicit=True).parts
    )
    exact = tuple(e for a in arguments for e in exact_of(a, len(a.parts)))
    if len(parts) == 1:
        parts, exact = (scope.bind(parts[0]),) * vector.length, exact * vector.length
    if len(parts) != vector.length:
        raise scope.error(
            f"{vector} takes {vector.length} components",
            node,
            found=f"{len(parts)} given",
            wanted=f"{vector.length}, or 1 for all",
        )
    return Number(vector, parts, exact=exact_result(list(zip(parts, exact, strict=True))))
