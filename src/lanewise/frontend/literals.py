"""Arithmetic that is done while compiling: of Python numbers, as Python does it, and by
integers that a direction gives.

Of the latter `x * 1`, `x * -1` and `x + 0` are no operation, `x * 0` is nothing. A component of a
velocity is 1, 0 or -1, and a kernel means by a product with it whether a population takes part, and
with which sign. That is the product for every finite x (of a zero the sign may differ).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from lanewise.frontend.scope import Scope
from lanewise.frontend.shapes import same_shape
from lanewise.frontend.values import Exact, Number, component, weak, weak_vector
from lanewise.ir import nodes as ir
from lanewise.language import types as t
from lanewise.support.errors import Location

MAX_BITS = 1024  # a float holds less; it keeps `2 ** 10**9` from filling the memory


def fold(
    scope: Scope, function: Callable[..., Any], operands: tuple[Any, ...], node: ast.AST
) -> Number:
    """The result of a function of Python numbers: a Python number again."""
    try:
        result = function(*operands)
        if isinstance(result, complex):
            raise ValueError("a complex number")
        if isinstance(result, int) and result.bit_length() > MAX_BITS:
            raise ValueError(f"a number of more than {MAX_BITS} bits")
    except (ZeroDivisionError, OverflowError, TypeError, ValueError) as error:
        raise scope.error(
            "these numbers cannot be combined", node, found=str(error), wanted="a real number"
        ) from error
    return weak(result, scope.location(node))


def fold_binary(
    scope: Scope,
    symbol: str,
    function: Callable[..., Any],
    left: Number,
    right: Number,
    node: ast.AST,
) -> Number:
    """An operation on Python numbers and vectors of them, and which of its results a direction
    gives.
    """
    vector = left.is_vector or right.is_vector
    if vector:
        same_shape(scope, [x for x in (left, right) if x.is_vector], node)
    count = max(len(left.parts), len(right.parts))
    results: list[tuple[Any, Exact]] = []
    for i, a, b in zip(range(count), exact_of(left, count), exact_of(right, count), strict=True):
        x, y = (component(n, i).constant if n.is_vector else n.constant for n in (left, right))
        result = fold(scope, function, (x, y), node).constant
        results.append((result, _exact(symbol, result) if a is not None or b is not None else None))
    constants, exacts = tuple(r for r, _ in results), tuple(e for _, e in results)
    exact = () if all(e is None for e in exacts) else exacts
    if vector:
        return weak_vector(constants, exact, scope.location(node))
    return replace(weak(constants[0], scope.location(node)), exact=exact)


def _exact(symbol: str, result: Any) -> Exact:
    """Sums and products of a direction's numbers with integers are whole, and a product with 0
    is 0.
    """
    whole = (
        isinstance(result, int) and not isinstance(result, bool) and symbol in {"+", "-", "*", "**"}
    )
    return int(result) if whole or (symbol == "*" and result == 0) else None


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
        case ("*", (x, exact), (_, 1)) | ("*", (_, 1), (x, exact)) | ("/", (x, exact), (_, 1)):
            return x, exact
        case ("*", (x, exact), (_, -1)) | ("*", (_, -1), (x, exact)) | ("/", (x, exact), (_, -1)):
            return negate((x, exact), where)
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
    e, exact = x
    opposite = None if exact is None else -exact
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
    return replace(
        x, parts=tuple(e for e, _ in results), constant=constant, exact=exact_result(results)
    )


def exact_result(results: Sequence[Known]) -> tuple[Exact, ...]:
    """What is known of the components of a result."""
    exact = tuple(k for _, k in results)
    return () if all(k is None for k in exact) else exact


def _zero(like: ir.Expression, where: Location) -> ir.Expression:
    return ir.Literal(0.0 if like.type.is_float else 0, like.type, where)
