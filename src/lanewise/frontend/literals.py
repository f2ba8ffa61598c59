"""Operations on Python numbers alone are done while compiling, as Python does them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from lanewise.frontend.scope import Scope
from lanewise.frontend.values import Number, weak

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
