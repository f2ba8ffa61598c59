"""Operations on Python numbers alone are done while compiling, as Python does them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lanewise.frontend.exact import exact_of
from lanewise.frontend.scope import Scope
from lanewise.frontend.shapes import same_shape
from lanewise.frontend.values import Exact, Number, component, weak, weak_vector

MAX_BITS = 1024  # a float holds less; it keeps `2 ** 10**9` from filling the memory


def fold(scope: Scope, function: Callable[..., Any], operands: tuple[Any, ...], node: ast.AST) -> Number:
    """The result of a function of Python numbers: a Python number again."""
    try:
        result = function(*operands)
        if isinstance(result, complex):
            raise ValueError("a complex number")
        if isinstance(result, int) and result.bit_length() > MAX_BITS:
            raise ValueError(f"a number of more than {MAX_BITS} bits")
    except (ZeroDivisionError, OverflowError, TypeError, ValueError) as error:
        raise scope.error("these numbers cannot be combined", node, found=str(error), wanted="a real number") from error
    return weak(result, scope.location(node))


def fold_binary(
    scope: Scope, symbol: str, function: Callable[..., Any], left: Number, right: Number, node: ast.AST
) -> Number:
    """An operation on Python numbers and vectors of them, and which of its results a direction gives."""
    vector = left.is_vector or right.is_vector
    if vector:
        same_shape(scope, [x for x in (left, right) if x.is_vector], node)
    count = max(len(left.parts), len(right.parts))
    results: list[tuple[Any, Exact]] = []
    for i, a, b in zip(range(count), exact_of(left, count), exact_of(right, count), strict=True):
        x, y = (component(n, i).constant if n.is_vector else n.constant for n in (left, right))
        result = fold(scope, function, (x, y), node).constant
        results.append((result, _exact(symbol, result) if a is not None or b is not None else None))
    constants, known = tuple(r for r, _ in results), tuple(e for _, e in results)
    exact = () if all(e is None for e in known) else known
    if vector:
        return weak_vector(constants, exact, scope.location(node))
    return replace(weak(constants[0], scope.location(node)), exact=exact)


def _exact(symbol: str, result: Any) -> Exact:
    """Sums and products of a direction's numbers with whole numbers are whole, and a product with 0 is 0."""
    whole = isinstance(result, int) and not isinstance(result, bool) and symbol in {"+", "-", "*", "**"}
    return int(result) if whole or (symbol == "*" and result == 0) else None
