"""Arithmetic by whole numbers that a direction gives: `x * 1`, `x * -1` and `x + 0` are no operation, `x * 0` is nothing.

A component of a velocity is 1, 0 or -1, and a kernel means by a product with it whether a population takes part, and
with which sign. That is the product for every finite x (of a zero the sign may differ).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lanewise import types as t
from lanewise.errors import Location
from lanewise.frontend.values import Exact, Number
from lanewise.ir import nodes as ir

Known = tuple[ir.Expression, Exact]


def exact_of(x: Number, count: int) -> tuple[Exact, ...]:
    """What is known of each component, of a scalar that meets a vector for each of its partners."""
    if not x.exact:
        return (None,) * count
    return x.exact if len(x.exact) == count else x.exact * count


def combine(symbol: ir.BinaryOperator, left: Known, right: Known, where: Location) -> Known:
    """One operation on scalars of one type; what is known of its result."""
    match symbol, left, right:
        case "*", (_, 0), _:
            return _zero(left[0], where), 0
        case "*", _, (_, 0):
            return _zero(right[0], where), 0
        case ("*", (x, known), (_, 1)) | ("*", (_, 1), (x, known)) | ("/", (x, known), (_, 1)):
            return x, known
        case ("*", (x, known), (_, -1)) | ("*", (_, -1), (x, known)) | ("/", (x, known), (_, -1)):
            return negate((x, known), where)
        case ("+" | "-", kept, (_, 0)) | ("+", (_, 0), kept):
            return kept
        case "-", (_, 0), subtracted:
            return negate(subtracted, where)
        case (("+" | "-"), (x, _), (ir.Unary(operator="-", operand=y), _)):
            return ir.Binary("-" if symbol == "+" else "+", x, y, y.type, where), None
        case _:
            return ir.Binary(symbol, left[0], right[0], left[0].type, where), None


def negate(x: Known, where: Location) -> Known:
    """The negative, of a literal at once."""
    e, known = x
    opposite = None if known is None else -known
    match e:
        case ir.Literal(value=value) if e.type.is_float or -value <= t.limits(e.type)[1]:
            return ir.Literal(-value, e.type, where), opposite
        case ir.Unary(operator="-", operand=positive):
            return positive, opposite
        case _:
            return ir.Unary("-", e, e.type, where), opposite


def negative(x: Number, where: Location) -> Number:
    """`-x` of Python numbers, or of a number that a direction gives."""
    results = [negate(k, where) for k in zip(x.parts, exact_of(x, len(x.parts)), strict=True)]
    constant = None if x.constant is None else -x.constant
    return replace(x, parts=tuple(e for e, _ in results), constant=constant, exact=exact_result(results))


def exact_result(results: Sequence[Known]) -> tuple[Exact, ...]:
    """What is known of the components of a result."""
    exact = tuple(k for _, k in results)
    return () if all(k is None for k in exact) else exact


def _zero(like: ir.Expression, where: Location) -> ir.Expression:
    return ir.Literal(0.0 if like.type.is_float else 0, like.type, where)
