"""What can be wrong with one expression node: types that do not agree, names that were not given a
value.
"""

from __future__ import annotations

from functools import cache
from typing import assert_never

import numpy as np

from lanewise.ir import nodes as ir
from lanewise.ir.interpret import INTRINSICS
from lanewise.ir.printer import print_expression
from lanewise.language.types import BOOL, I64, LocalArray, Scalar

Known = dict[str, Scalar | LocalArray]


class _Text:
    """The text of an expression, which is printed only when there is something to say of it."""

    __slots__ = ("_expression",)

    def __init__(self, expression: ir.Expression) -> None:
        self._expression = expression

    def __str__(self) -> str:
        return print_expression(self._expression)


def expression_problem(e: ir.Expression, samples: Known, *, in_grid: bool) -> str:
    """What is wrong with this node (not with its children), or nothing."""
    text = _Text(e)
    match e:
        case ir.Literal():
            return "" if _fits(e.value, e.type) else f"{e.value!r} is no {e.type}"
        case ir.Local():
            return (
                ""
                if samples.get(e.name) == e.type
                else f"{e.name}: {e.type} is {samples.get(e.name, 'unknown')}"
            )
        case ir.Element():
            array = samples.get(e.array)
            fits = (
                isinstance(array, LocalArray)
                and array.element == e.type
                and e.index.type.is_integer
            )
            return "" if fits else f"{text} does not fit {e.array}: {array or 'unknown'}"
        case ir.Binary():
            return _binary(e, text)
        case ir.Compare():
            return (
                ""
                if e.left.type == e.right.type
                else f"{text} compares {e.left.type} with {e.right.type}"
            )
        case ir.Logical():
            return "" if e.left.type == e.right.type == BOOL else f"{text} needs booleans"
        case ir.Select():
            fits = e.condition.type == BOOL and e.if_true.type == e.if_false.type == e.type
            return "" if fits else f"{text} mixes types"
        case ir.Unary():
            return _unary(e, text)
        case ir.Call():
            return _call(e, text)
        case ir.Builtin(name="phase" | "read_phase" | "far"):
            if (e.name == "far") != (e.type == BOOL):
                return f"{text} is no {e.type}"
            return f"{text} within a grid" if in_grid else ""
        case ir.Builtin():
            if e.name == "clock" and e.type != I64:
                return f"{text} is no {e.type}"
            return "" if in_grid else f"{text} outside a grid"
        case ir.Cast():
            return ""
        case _:
            assert_never(e)


def _fits(value: float | int | bool, scalar: Scalar) -> bool:
    if scalar == BOOL:
        return isinstance(value, bool)
    if scalar.is_float:
        return isinstance(value, float)
    least, most = _limits(scalar)
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


@cache
def _limits(scalar: Scalar) -> tuple[int, int]:
    limits = np.iinfo(scalar.dtype.str)
    return int(limits.min), int(limits.max)


def _binary(e: ir.Binary, text: _Text) -> str:
    if not e.left.type == e.right.type == e.type:
        return f"{text} mixes {e.left.type}, {e.right.type} and {e.type}"
    bitwise = e.operator in ("&", "|", "^")
    whole = bitwise or e.operator in ("<<", ">>")
    wrong = (
        (e.operator == "/" and not e.type.is_float)
        or (whole and e.type.is_float)
        or (e.type == BOOL and not bitwise)
    )
    return f"{text} is not defined for {e.type}" if wrong else ""


def _unary(e: ir.Unary, text: _Text) -> str:
    if e.operand.type != e.type:
        return f"{text} changes its type"
    fits = {"not": e.type == BOOL, "~": e.type.is_integer, "-": e.type != BOOL}[e.operator]
    return "" if fits else f"{text} is not defined for {e.type}"


def _call(e: ir.Call, text: _Text) -> str:
    intrinsic = INTRINSICS.get(e.intrinsic)
    if intrinsic is None or len(e.arguments) != intrinsic.arity:
        return f"{text} is no intrinsic"
    kinds = {a.type for a in e.arguments}
    result = {BOOL} if intrinsic.predicate else kinds
    whole = intrinsic.domain == "number" or all(k.is_float for k in kinds)
    return (
        ""
        if len(kinds) == 1 and BOOL not in kinds and {e.type} == result and whole
        else f"{text} mixes types"
    )
