"""The float64 twin of a typed function, and its derivatives by central differences: what gradients are held against."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lanewise.ir import nodes as ir
from lanewise.ir.interpret import call
from lanewise.ir.traverse import flat_map, rewrite, rewrite_statement
from lanewise.language.types import F32, F64, Scalar

STEP = 1e-5


def widened(f: ir.Function) -> ir.Function:
    """The same function with float64 in place of float32."""

    def kind(scalar: Scalar) -> Scalar:
        return F64 if scalar == F32 else scalar

    def expression(e: ir.Expression) -> ir.Expression:
        return e if isinstance(e, ir.Compare | ir.Logical) else replace(e, type=kind(e.type))

    def statement(s: ir.Statement) -> ir.Block:
        s = rewrite_statement(s, lambda e: rewrite(e, expression), lambda b: b)
        match s:
            case ir.DeclareArray():
                return (replace(s, type=replace(s.type, element=kind(s.type.element))),)
            case ir.Apply():
                return (replace(s, function=widened(s.function)),)
            case _:
                return (s,)

    parameters, results = (tuple(replace(p, type=kind(p.type)) for p in x) for x in (f.parameters, f.results))
    return replace(f, parameters=parameters, results=results, body=flat_map(f.body, statement))


def value(f: ir.Function, arguments: dict[str, Any]) -> list[Any]:
    """The results for arguments by name; those that it does not have are left out."""
    typed = {p.name: p.type.dtype.type(arguments[p.name]) for p in f.parameters}
    return call(f, typed)[0]


def central(function: Any, arguments: dict[str, Any], name: str, step: float = STEP) -> float:
    """The derivative of a function of arguments with respect to one of them, by differences of the fourth order."""

    def at(steps: float) -> float:
        return float(function(arguments | {name: np.float64(arguments[name]) + steps * step}))

    return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step)
