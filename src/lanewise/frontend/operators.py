"""Arithmetic, comparisons and powers of typed numbers."""

from __future__ import annotations

import ast
import operator
from dataclasses import replace
from typing import Any

from lanewise.frontend.literals import (
    MAX_BITS,
    combine,
    exact_of,
    exact_result,
    fold,
    fold_binary,
    negative,
)
from lanewise.frontend.mathematics import intrinsic
from lanewise.frontend.promotion import common_scalar, signed_scalar
from lanewise.frontend.scope import Scope
from lanewise.frontend.shapes import same_shape
from lanewise.frontend.values import Number, component, weak
from lanewise.ir import nodes as ir
from lanewise.language import types as t
from lanewise.support.errors import CompileError

_BINARY: dict[type[ast.operator], tuple[ir.BinaryOperator, Any]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv),
    ast.FloorDiv: ("//", operator.floordiv),
    ast.Mod: ("%", operator.mod),
    ast.BitAnd: ("&", operator.and_),
    ast.BitOr: ("|", operator.or_),
    ast.BitXor: ("^", operator.xor),
    ast.LShift: ("<<", operator.lshift),
    ast.RShift: (">>", operator.rshift),
}
_OF_BITS = {"&", "|", "^", "<<", ">>"}
_COMPARE: dict[type[ast.cmpop], tuple[ir.CompareOperator, Any]] = {
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
}
_COMPARE_WORDS: dict[type[ast.cmpop], str] = {
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Is: "is",
    ast.IsNot: "is not",
}


def binary(scope: Scope, op: ast.operator, left: Number, right: Number, node: ast.AST) -> Number:
    """An arithmetic operation by component, in the common type of both sides."""
    left, right = scope.computed(left), scope.computed(right)
    if isinstance(op, ast.Pow):
        return power(scope, left, right, node)
    if type(op) not in _BINARY:
        raise scope.error(
            "'@' is not part of the kernel language",
            node,
            found="a matrix product",
            wanted="lw.dot(a, b) or lw.cross(a, b)",
        )
    symbol, function = _BINARY[type(op)]
    _check_literals(scope, symbol, left, right, node)
    if left.known and right.known:
        return fold_binary(scope, symbol, function, left, right, node)
    kind = _computed_in(scope, symbol, left, right, node)
    still_open, operands = left.weak and right.weak, (left, right)
    left, right = same_shape(scope, [scope.settle(left, kind), scope.settle(right, kind)], node)
    where, count = scope.location(node), len(left.parts)
    sides = [
        zip(x.parts, exact_of(g, count), strict=True)
        for x, g in zip((left, right), operands, strict=True)
    ]
    results = [combine(symbol, a, b, where) for a, b in zip(*sides, strict=True)]
    parts = tuple(e for e, _ in results)
    result = t.Vector(kind, count) if left.is_vector else kind
    return Number(result, parts, open=still_open, exact=exact_result(results))


def _check_literals(scope: Scope, symbol: str, left: Number, right: Number, node: ast.AST) -> None:
    """Refuse literals that can only be mistakes: divisors, shifts, bits of floats.

    Of vectors those where both sides are literals.
    """
    floats = left.scalar.is_float or right.scalar.is_float
    if symbol in _OF_BITS and left.known and right.known and floats:
        raise _no_integers(scope, symbol, left, right, node)
    for n in range(len(right.parts) if right.constant is not None or left.known else 0):
        x, y = (_constant(number, n) for number in (left, right))
        if symbol in {"/", "//", "%"} and y is not None and y == 0:
            raise scope.error(
                "a division by zero",
                node,
                found=f"{symbol} {y!r}",
                wanted="another divisor",
                hint="infinity is math.inf" if symbol == "/" else "",
            )
        if symbol not in {"<<", ">>"} or not isinstance(y, int):
            continue
        kind = _computed_in(scope, symbol, left, right, node)
        bits = MAX_BITS if x is not None else 8 * kind.size
        if not 0 <= y < bits:
            if x is None:
                message, found = f"{kind} has {bits} bits", f"a shift by {y}"
            else:
                message, found = "this shift of a literal is out of range", f"{x} {symbol} {y}"
            raise scope.error(message, node, found=found, wanted=f"a shift by 0 to {bits - 1}")


def _constant(x: Number, n: int) -> bool | int | float | None:
    """The Python number of a component, or of a scalar that meets each of a vector's."""
    if not x.is_vector:
        return x.constant
    return component(x, n).constant if n < len(x.parts) else None


def _computed_in(scope: Scope, symbol: str, left: Number, right: Number, node: ast.AST) -> t.Scalar:
    kind = (signed_scalar if symbol in {"//", "%", ">>"} else common_scalar)([left, right])
    if symbol in _OF_BITS:
        if kind.is_float or (kind == t.BOOL and symbol in {"<<", ">>"}):
            raise _no_integers(scope, symbol, left, right, node)
        return kind
    if kind == t.BOOL:
        raise scope.error(
            "booleans are no numbers",
            node,
            found=f"{left.describe()} and {right.describe()}",
            wanted="numbers",
            hint="lw.i32(a) makes 0 or 1 of it; combine conditions with and, or, not",
        )
    return t.float_of(kind) if symbol == "/" else kind


def _no_integers(
    scope: Scope, symbol: str, left: Number, right: Number, node: ast.AST
) -> CompileError:
    return scope.error(
        f"{symbol!r} works on integers",
        node,
        found=f"{left.describe()} and {right.describe()}",
        wanted="integers",
    )


def power(scope: Scope, base: Number, exponent: Number, node: ast.AST) -> Number:
    """Whole powers become multiplications, the square root a square root, everything else `pow`."""
    if exponent.is_vector:
        raise scope.error(
            "the exponent must be a scalar", node, found=exponent.describe(), wanted="a scalar"
        )
    if base.constant is not None and exponent.constant is not None:
        if (
            isinstance(base.constant, int)
            and exponent.constant > MAX_BITS
            and abs(base.constant) > 1
        ):
            raise scope.error(
                "this power is too large",
                node,
                found=f"{base.constant} ** {exponent.constant}",
                wanted="a smaller exponent",
            )
        return fold_binary(scope, "**", operator.pow, base, exponent, node)
    kind, literal = _computed_in(scope, "**", base, exponent, node), exponent.constant
    whole = (
        int(literal)
        if literal is not None and literal == literal // 1 and abs(literal) < 2**31
        else None
    )
    if whole is not None and (abs(whole) <= 64 or not kind.is_float):
        return _whole_power(scope, replace(scope.settle(base, kind), open=base.weak), whole, node)
    if literal == 0.5:
        return intrinsic(scope, "sqrt", [base], node)
    if not kind.is_float:
        raise scope.error(
            "an integer to a power that is not a literal",
            node,
            found=f"{base.describe()} ** {exponent.describe()}",
            wanted="a float base, or a literal exponent",
            hint="lw.f32(x) ** n, or 1 << n for powers of two",
        )
    return intrinsic(scope, "pow", [base, exponent], node)


def _whole_power(scope: Scope, base: Number, exponent: int, node: ast.AST) -> Number:
    if exponent < 0:
        if not base.scalar.is_float:
            raise scope.error(
                "an integer to a negative power",
                node,
                found=f"exponent {exponent}",
                wanted="a float base",
                hint="lw.f32(x)",
            )
        return binary(scope, ast.Div(), weak(1.0), _whole_power(scope, base, -exponent, node), node)
    if exponent == 0:
        one: ir.Expression = ir.Literal(
            1.0 if base.scalar.is_float else 1, base.scalar, scope.location(node)
        )
        return Number(base.type, (one,) * len(base.parts))
    square = scope.bind_number(base)
    result: Number | None = None
    while True:  # binary exponentiation: x**3 is (x * x) * x
        if exponent & 1:
            result = square if result is None else binary(scope, ast.Mult(), square, result, node)
        exponent >>= 1
        if not exponent:
            return result if result is not None else square
        square = binary(scope, ast.Mult(), square, square, node)
        if exponent > 1:
            square = scope.bind_number(square)


def unary(scope: Scope, op: ast.unaryop, value: Number, node: ast.AST) -> Number:
    """`-x`, `+x` and `~x`."""
    symbol: ir.UnaryOperator = "~" if isinstance(op, ast.Invert) else "-"
    value = scope.computed(value)
    if symbol == "~" and (value.scalar.is_float or isinstance(value.constant, bool)):
        raise scope.error(
            "'~' works on integers and booleans",
            node,
            found=value.describe(),
            wanted="an integer",
            hint="not x",
        )
    if symbol == "-" and value.scalar == t.BOOL:
        raise scope.error(
            "booleans are no numbers",
            node,
            found=value.describe(),
            wanted="a number",
            hint="not x, or lw.i32(x)",
        )
    if isinstance(op, ast.UAdd):
        return value
    if value.constant is not None and not value.exact:
        return fold(
            scope, operator.invert if symbol == "~" else operator.neg, (value.constant,), node
        )
    if symbol == "-" and (value.known or value.exact):
        return negative(value, scope.location(node))
    if value.scalar == t.BOOL:
        symbol = "not"
    return Number(
        value.type,
        tuple(ir.Unary(symbol, p, p.type, scope.location(node)) for p in value.parts),
        open=value.open,
    )


def check_comparison(scope: Scope, op: ast.cmpop, node: ast.AST) -> None:
    """Refuse `in` and `is`."""
    if type(op) not in _COMPARE:
        raise scope.error(
            "this comparison is not part of the kernel language",
            node,
            found=f"'{_COMPARE_WORDS[type(op)]}'",
            wanted="== != < <= > >=",
        )


def compare(
    scope: Scope, op: ast.cmpop, left: Number, right: Number, node: ast.AST
) -> ir.Expression:
    """One comparison of two scalars."""
    symbol, function = _COMPARE[type(op)]
    if left.constant is not None and right.constant is not None:
        return ir.Literal(
            bool(function(left.constant, right.constant)), t.BOOL, scope.location(node)
        )
    kind = signed_scalar([left, right])
    return ir.Compare(
        symbol,
        scope.settle(left, kind).parts[0],
        scope.settle(right, kind).parts[0],
        scope.location(node),
    )
