"""Short names for the index arithmetic that patterns and passes write, simplified as it is built.

Integers given as Python numbers take the index type of the expression that they meet. Results
surely fit their type: places are below the length of an array. A user's numbers, which wrap, are
nothing for these functions.
"""

from __future__ import annotations

from functools import reduce

from lanewise.ir import nodes as ir
from lanewise.language.types import BOOL, Scalar

Operand = ir.Expression | int


def literal(value: int, scalar: Scalar) -> ir.Literal:
    return ir.Literal(value, scalar)


def _pair(a: Operand, b: Operand) -> tuple[ir.Expression, ir.Expression]:
    """Both operands as expressions of one type."""
    if isinstance(a, int):
        assert not isinstance(b, int)
        return ir.Literal(a, b.type), b
    return a, ir.Literal(b, a.type) if isinstance(b, int) else b


def _literal(e: ir.Expression) -> int | None:
    return int(e.value) if isinstance(e, ir.Literal) else None


def _bounded(
    operator: ir.BinaryOperator, left: ir.Expression, right: ir.Expression
) -> ir.Expression:
    return ir.Binary(operator, left, right, left.type, bounded=True)


def index_of(e: ir.Expression, scalar: Scalar) -> ir.Expression:
    """A number of lanewise's own, which surely fits, as an index or a number of another type."""
    if isinstance(e, ir.Literal):
        return ir.Literal(int(e.value), scalar)
    return e if e.type == scalar else ir.Cast(e, scalar, bounded=True)


def cast(e: ir.Expression, scalar: Scalar) -> ir.Expression:
    """A value in another type, if it is not of that type."""
    return e if e.type == scalar else ir.Cast(e, scalar)


def zero(kind: Scalar) -> ir.Literal:
    """Zero of a type: False where it is that of booleans."""
    return ir.Literal(False if kind == BOOL else 0.0 if kind.is_float else 0, kind)


def add(a: Operand, b: Operand) -> ir.Expression:
    left, right = _pair(a, b)
    match _literal(left), _literal(right):
        case 0, _:
            return right
        case _, 0:
            return left
        case int(x), int(y):
            return ir.Literal(x + y, left.type)
        case _:
            return _bounded("+", left, right)


def subtract(a: Operand, b: Operand) -> ir.Expression:
    left, right = _pair(a, b)
    return left if _literal(right) == 0 else _bounded("-", left, right)


def multiply(a: Operand, b: Operand) -> ir.Expression:
    left, right = _pair(a, b)
    match _literal(left), _literal(right):
        case (0, _) | (_, 0):
            return ir.Literal(0, left.type)
        case 1, _:
            return right
        case _, 1:
            return left
        case int(x), int(y):
            return ir.Literal(x * y, left.type)
        case _:
            return _bounded("*", left, right)


def divide(a: Operand, b: Operand) -> ir.Expression:
    left, right = _pair(a, b)
    match _literal(left), _literal(right):
        case _, 1:
            return left
        case int(x), int(y):
            return ir.Literal(x // y, left.type)
        case _, int(y) if (parts := _whole(left, y)) is not None:
            return add(divide(parts[0], y), parts[1])
        case _:
            return _bounded("//", left, right)


def remainder(a: Operand, b: Operand) -> ir.Expression:
    left, right = _pair(a, b)
    if _literal(right) == 1:
        return ir.Literal(0, left.type)
    if (divisor := _literal(right)) is not None and (parts := _whole(left, divisor)) is not None:
        return remainder(parts[0], divisor)
    return _bounded("%", left, right)


def _whole(e: ir.Expression, divisor: int) -> tuple[ir.Expression, ir.Expression] | None:
    """(rest, quotient) of a sum `rest + quotient * divisor`."""
    match e:
        case ir.Binary(
            operator="+",
            left=rest,
            right=ir.Binary(operator="*", left=quotient, right=ir.Literal(value=v)),
        ):
            return (rest, quotient) if v == divisor else None
        case _:
            return None


def shift_left(a: ir.Expression, bits: int) -> ir.Expression:
    """By fewer bits than the type has."""
    return _bounded("<<", *_pair(a, bits))


def shift_right(a: ir.Expression, bits: ir.Expression) -> ir.Expression:
    """By fewer bits than the type has."""
    return _bounded(">>", a, bits)


def ceil_divide(a: ir.Expression, b: int) -> ir.Expression:
    return divide(add(a, b - 1), b)


def minimum(a: Operand, b: Operand) -> ir.Expression:
    left, right = _pair(a, b)
    return ir.Call("min", (left, right), left.type)


def maximum(a: Operand, b: Operand) -> ir.Expression:
    left, right = _pair(a, b)
    return ir.Call("max", (left, right), left.type)


def less(a: Operand, b: Operand) -> ir.Expression:
    left, right = _pair(a, b)
    return ir.Compare("<", left, right)


def equal(a: Operand, b: Operand) -> ir.Expression:
    left, right = _pair(a, b)
    return ir.Compare("==", left, right)


# Of numbers of one type, written as they are: nothing is folded, as sums of floats depend on it.


def plus(a: ir.Expression, b: ir.Expression) -> ir.Expression:
    """The sum of two numbers of one type."""
    return ir.Binary("+", a, b, a.type)


def minus(a: ir.Expression, b: ir.Expression) -> ir.Expression:
    """Their difference."""
    return ir.Binary("-", a, b, a.type)


def times(a: ir.Expression, b: ir.Expression) -> ir.Expression:
    """Their product."""
    return ir.Binary("*", a, b, a.type)


def over(a: ir.Expression, b: ir.Expression) -> ir.Expression:
    """Their quotient."""
    return ir.Binary("/", a, b, a.type)


def root(a: ir.Expression) -> ir.Expression:
    """The square root of a float."""
    return ir.Call("sqrt", (a,), a.type)


def conjuncts(e: ir.Expression) -> tuple[ir.Expression, ...]:
    """The tests of which each has to hold, in their order."""
    match e:
        case ir.Logical(operator="and", left=left, right=right):
            return (*conjuncts(left), *conjuncts(right))
        case _:
            return (e,)


def all_of(first: ir.Expression, *others: ir.Expression) -> ir.Expression:
    """Whether each of several tests holds."""
    return reduce(lambda a, b: ir.Logical("and", a, b), others, first)


FALSE = ir.Literal(False, BOOL)
