"""Lower expressions: from syntax to typed scalars."""

from __future__ import annotations

import ast
import operator
from dataclasses import replace
from typing import Any

import numpy as np

from lanewise import types as t
from lanewise.frontend.calls import lower_call
from lanewise.frontend.scope import Scope
from lanewise.frontend.values import (
    ArrayReference, Number, PythonObject, RecordReference, Value, common_scalar, from_python, settle, weak,
)  # fmt: skip
from lanewise.ir import nodes as ir

_BINARY: dict[type[ast.operator], tuple[ir.BinaryOperator, Any]] = {
    ast.Add: ("+", operator.add), ast.Sub: ("-", operator.sub), ast.Mult: ("*", operator.mul), ast.Div: ("/", operator.truediv),
    ast.FloorDiv: ("//", operator.floordiv), ast.Mod: ("%", operator.mod), ast.BitAnd: ("&", operator.and_),
    ast.BitOr: ("|", operator.or_), ast.BitXor: ("^", operator.xor), ast.LShift: ("<<", operator.lshift), ast.RShift: (">>", operator.rshift),
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], tuple[ir.CompareOperator, Any]] = {
    ast.Eq: ("==", operator.eq), ast.NotEq: ("!=", operator.ne), ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le), ast.Gt: (">", operator.gt), ast.GtE: (">=", operator.ge),
}  # fmt: skip
_BITWISE = {"&", "|", "^", "<<", ">>"}


def lower(scope: Scope, node: ast.expr) -> Value:
    """Lower any expression."""
    match node:
        case ast.Constant(value=bool() | int() | float() as value):
            return _at(weak(value), scope, node)
        case ast.Name(id=name):
            return _name(scope, name, node)
        case ast.BinOp(left=left, op=op, right=right):
            return binary(scope, op, number(scope, left), number(scope, right), node)
        case ast.UnaryOp(op=op, operand=operand):
            return _unary(scope, op, operand, node)
        case ast.Compare():
            return _compare(scope, node)
        case ast.BoolOp():
            return _logical(scope, node.op, node.values, node)
        case ast.IfExp():
            return _conditional(scope, node)
        case ast.Attribute():
            return _attribute(scope, node)
        case ast.Subscript():
            return _subscript(scope, node)
        case ast.Call():
            return _call(scope, node)
        case _:
            raise scope.error(
                "this expression is not part of the kernel language", node, found=type(node).__name__,
                wanted="arithmetic, comparisons, and/or/not, `a if c else b`, fields, components, indices and calls",
            )  # fmt: skip


def number(scope: Scope, node: ast.expr) -> Number:
    """Lower an expression that has to be a scalar or a vector."""
    value = lower(scope, node)
    if isinstance(value, Number):
        return value
    hint = f"use one of its fields, for example {value.name}.{value.record.fields[0].name}" if isinstance(value, RecordReference) else ""
    raise scope.error("a number or vector is needed here", node, found=value.describe(), wanted="a scalar or a vector", hint=hint)


def scalar(scope: Scope, node: ast.expr) -> Number:
    value = number(scope, node)
    if value.is_vector:
        raise scope.error("a scalar is needed here", node, found=value.describe(), wanted="a scalar", hint="take a component: .x")
    return value


def condition(scope: Scope, node: ast.expr) -> ir.Expression:
    """Lower an expression that has to be a truth value."""
    value = scalar(scope, node)
    if value.scalar != t.BOOL:
        raise scope.error(
            "a condition must be true or false", node, found=value.describe(), wanted="a bool", hint="compare it, for example `!= 0`"
        )
    return value.parts[0]


def _at(value: Number, scope: Scope, node: ast.AST) -> Number:
    return replace(value, parts=tuple(replace(p, location=scope.location(node)) for p in value.parts))


def _name(scope: Scope, name: str, node: ast.Name) -> Value:
    if name in scope.parameters:
        value = scope.parameters[name]
        return _at(value, scope, node) if isinstance(value, Number) else value
    if name in scope.assignment_counts or name in scope.loop_variables:
        if name not in scope.defined:
            raise scope.error(
                f"{name!r} may have no value here", node, found="an assignment that does not happen on every path to this line",
                wanted=f"a value for {name!r} before this line",
            )  # fmt: skip
        if name in scope.constants:
            return _at(scope.constants[name], scope, node)
        variable = scope.variables[name]
        if isinstance(variable.type, t.LocalArray):
            return ArrayReference(name, variable.type)
        element, where = t.scalar_of(variable.type), scope.location(node)
        return Number(variable.type, tuple(ir.Local(n, element, where) for n in t.leaves(name, variable.type)))
    if name in scope.globals:
        value = from_python(scope.globals[name])
        return _at(value, scope, node) if isinstance(value, Number) else value
    raise scope.error(f"{name!r} is not defined", node, found=name, wanted="a parameter, a local variable or a module-level name")


def binary(scope: Scope, op: ast.operator, left: Number, right: Number, node: ast.AST) -> Number:
    """An arithmetic operation by component, in the common type of both sides."""
    if isinstance(op, ast.Pow):
        return _power(scope, left, right, node)
    if type(op) not in _BINARY:
        raise scope.error("this operator is not part of the kernel language", node, found=type(op).__name__, hint="lw.dot(a, b)?")
    symbol, fold = _BINARY[type(op)]
    if left.weak and right.weak:
        try:
            return _at(weak(fold(left.constant, right.constant)), scope, node)
        except (ZeroDivisionError, TypeError, ValueError) as error:
            raise scope.error("these two numbers cannot be combined", node, found=str(error)) from error
    kind = common_scalar([left, right])
    if symbol in _BITWISE and kind.is_float:
        raise scope.error(f"{symbol!r} works on whole numbers", node, found=f"{left.describe()} and {right.describe()}", wanted="integers")
    if kind == t.BOOL and symbol not in {"&", "|", "^"}:
        kind = t.I32
    if symbol == "/" and not kind.is_float:
        kind = t.F64 if kind == t.I64 else t.F32
    left, right = _same_shape(scope, settle(left, kind), settle(right, kind), node)
    where = scope.location(node)
    parts = tuple(ir.Binary(symbol, a, b, kind, where) for a, b in zip(left.parts, right.parts, strict=True))
    return Number(t.Vector(kind, len(parts)) if left.is_vector else kind, parts)


def _same_shape(scope: Scope, left: Number, right: Number, node: ast.AST) -> tuple[Number, Number]:
    """Repeat a scalar for every component of the vector that it meets."""
    if left.is_vector and right.is_vector and len(left.parts) != len(right.parts):
        raise scope.error(
            "vectors of different lengths do not fit", node, found=f"{left.type} and {right.type}", wanted="two vectors of one length"
        )
    if left.is_vector == right.is_vector:
        return left, right
    vector, single = (left, right) if left.is_vector else (right, left)
    one = scope.bind(single.parts[0])
    spread = Number(t.Vector(single.scalar, len(vector.parts)), (one,) * len(vector.parts))
    return (left, spread) if left.is_vector else (spread, right)


def _power(scope: Scope, base: Number, exponent: Number, node: ast.AST) -> Number:
    """Whole powers become multiplications, the square root a square root, everything else `pow`."""
    if exponent.is_vector:
        raise scope.error("the exponent must be a scalar", node, found=exponent.describe(), wanted="a scalar")
    if base.weak and exponent.weak:
        return _at(weak(base.constant**exponent.constant), scope, node)  # type: ignore[operator]
    power = exponent.constant
    if isinstance(power, int) and abs(power) <= 64:
        return _whole_power(scope, base, power, node)
    if power == 0.5:
        return lower_call(scope, PythonObject(np.sqrt), [base], node)
    if not common_scalar([base, exponent]).is_float:
        raise scope.error(
            "a whole number to a power that is not a literal", node, found=f"{base.describe()} ** {exponent.describe()}",
            wanted="a float base, or a literal exponent", hint="convert the base: lw.f32(x) ** n",
        )  # fmt: skip
    return lower_call(scope, PythonObject(np.power), [base, exponent], node)


def _whole_power(scope: Scope, base: Number, power: int, node: ast.AST) -> Number:
    if power < 0:
        if not base.scalar.is_float:
            raise scope.error("a whole number to a negative power", node, found=f"exponent {power}", wanted="a float base")
        return binary(scope, ast.Div(), weak(1.0), _whole_power(scope, base, -power, node), node)
    if power == 0:
        one = Number(base.scalar, (ir.Literal(1.0 if base.scalar.is_float else 1, base.scalar, scope.location(node)),))
        return one if not base.is_vector else Number(base.type, one.parts * len(base.parts))
    square = scope.bind_number(base)
    result: Number | None = None
    while True:  # binary exponentiation: x**3 is (x * x) * x
        if power & 1:
            result = square if result is None else binary(scope, ast.Mult(), square, result, node)
        power >>= 1
        if not power:
            return result if result is not None else square
        square = binary(scope, ast.Mult(), square, square, node)
        if power > 1:
            square = scope.bind_number(square)


def _unary(scope: Scope, op: ast.unaryop, operand: ast.expr, node: ast.AST) -> Number:
    where = scope.location(node)
    if isinstance(op, ast.Not):
        return Number(t.BOOL, (ir.Unary("not", condition(scope, operand), t.BOOL, where),))
    value = number(scope, operand)
    if isinstance(op, ast.UAdd):
        return value
    if isinstance(op, ast.Invert):
        if value.scalar.is_float:
            raise scope.error("'~' works on whole numbers and truth values", node, found=value.describe(), wanted="an integer or a bool")
        return Number(value.type, tuple(ir.Unary("not" if value.scalar == t.BOOL else "~", p, p.type, where) for p in settle(value, value.scalar).parts))
    if value.weak:
        return _at(weak(-value.constant), scope, node)  # type: ignore[operator]
    if value.scalar == t.BOOL:
        value = settle(value, t.I32)
    return Number(value.type, tuple(ir.Unary("-", p, p.type, where) for p in value.parts))


def _compare(scope: Scope, node: ast.Compare) -> Number:
    """`a < b < c` is `a < b and b < c` with b computed once."""
    result: ir.Expression | None = None
    left = scalar(scope, node.left)
    for op, right_node in zip(node.ops, node.comparators, strict=True):
        if type(op) not in _COMPARE:
            raise scope.error("this comparison is not part of the kernel language", node, found=type(op).__name__, wanted="== != < <= > >=")
        symbol, fold = _COMPARE[type(op)]
        right = scalar(scope, right_node)
        if len(node.ops) > 1:
            right = scope.bind_number(right)
        if left.weak and right.weak:
            one: ir.Expression = ir.Literal(bool(fold(left.constant, right.constant)), t.BOOL, scope.location(node))
        else:
            kind = common_scalar([left, right])
            one = ir.Compare(symbol, settle(left, kind).parts[0], settle(right, kind).parts[0], scope.location(node))
        result = one if result is None else ir.Logical("and", result, one, scope.location(node))
        left = right
    assert result is not None
    return Number(t.BOOL, (result,))


def _logical(scope: Scope, op: ast.boolop, operands: list[ast.expr], node: ast.AST) -> Number:
    """`and` and `or`. When the right side needs statements of its own (a helper call), it moves under an `if`."""
    symbol = "and" if isinstance(op, ast.And) else "or"
    left = condition(scope, operands[0])
    for right_node in operands[1:]:
        with scope.nested() as body:
            right = condition(scope, right_node)
        if not body:
            left = ir.Logical(symbol, left, right, scope.location(node))
            continue
        name = scope.fresh("t")
        scope.emit(ir.Assign(name, left, scope.location(node)))
        flag = ir.Local(name, t.BOOL, scope.location(node))
        test = flag if symbol == "and" else ir.Unary("not", flag, t.BOOL, scope.location(node))
        scope.emit(ir.If(test, (*body, ir.Assign(name, right, scope.location(node))), (), scope.location(node)))
        left = flag
    return Number(t.BOOL, (left,))


def _conditional(scope: Scope, node: ast.IfExp) -> Number:
    """`a if c else b`; an `if` statement when a side needs statements of its own."""
    test = scope.bind(condition(scope, node.test))
    with scope.nested() as then:
        first = number(scope, node.body)
    with scope.nested() as otherwise:
        second = number(scope, node.orelse)
    kind = common_scalar([first, second])
    first, second = _same_shape(scope, settle(first, kind), settle(second, kind), node)
    where = scope.location(node)
    if not then and not otherwise:
        parts = tuple(ir.Select(test, a, b, kind, where) for a, b in zip(first.parts, second.parts, strict=True))
        return Number(first.type, parts)
    names = [scope.fresh("t") for _ in first.parts]
    then += [ir.Assign(n, p, where) for n, p in zip(names, first.parts, strict=True)]
    otherwise += [ir.Assign(n, p, where) for n, p in zip(names, second.parts, strict=True)]
    scope.emit(ir.If(test, tuple(then), tuple(otherwise), where))
    return Number(first.type, tuple(ir.Local(n, kind, where) for n in names))


def _attribute(scope: Scope, node: ast.Attribute) -> Value:
    owner = lower(scope, node.value)
    where = scope.location(node)
    match owner:
        case RecordReference():
            field = owner.record.field(node.attr)
            if field is None:
                raise scope.error(
                    f"{owner.record.name} has no field {node.attr!r}", node, found=f"{owner.name}.{node.attr}",
                    wanted=f"one of {', '.join(f.name for f in owner.record)}",
                )  # fmt: skip
            names = t.leaves(f"{owner.name}.{field.name}", field.type)
            return Number(field.type, tuple(ir.Local(n, t.scalar_of(field.type), where) for n in names))
        case Number(type=t.Vector(element=element, length=length)):
            allowed = t.COMPONENTS[:length]
            if not all(c in allowed for c in node.attr) or len(node.attr) > 4:
                raise scope.error(
                    f"{owner.type} has no component {node.attr!r}", node, found=node.attr,
                    wanted=f"one of {', '.join(allowed)}, or several such as .{allowed}",
                )  # fmt: skip
            parts = tuple(owner.parts[t.COMPONENTS.index(c)] for c in node.attr)
            return Number(element if len(parts) == 1 else t.Vector(element, len(parts)), parts)
        case PythonObject(value=value) if hasattr(value, node.attr):
            found = from_python(getattr(value, node.attr))
            return _at(found, scope, node) if isinstance(found, Number) else found
        case _:
            raise scope.error(f"there is no {node.attr!r} here", node, found=owner.describe(), wanted="a record, a vector or a module")


def element_index(scope: Scope, node: ast.expr, length: int, what: str) -> ir.Expression:
    """A checked index into something of a known length."""
    value = scalar(scope, node)
    if value.scalar.is_float:
        raise scope.error("an index must be a whole number", node, found=value.describe(), wanted="an integer", hint="lw.i32(x)")
    if value.weak:
        constant = int(value.constant or 0)
        if not -length <= constant < length:
            raise scope.error(f"index {constant} is outside {what}", node, found=str(constant), wanted=f"0 to {length - 1}")
        return ir.Literal(constant % length, t.I32, scope.location(node))
    return value.parts[0]


def _subscript(scope: Scope, node: ast.Subscript) -> Number:
    owner = lower(scope, node.value)
    match owner:
        case ArrayReference(name=name, type=array):
            index = element_index(scope, node.slice, array.length, f"the local array {name!r}")
            return Number(array.element, (ir.Element(name, index, array.element, scope.location(node)),))
        case Number(type=t.Vector(element=element, length=length)):
            index = element_index(scope, node.slice, length, f"a {owner.type}")
            if not isinstance(index, ir.Literal):
                raise scope.error(
                    "a component of a vector is chosen by a literal", node, found="an index known only at run time", wanted="a literal",
                    hint="use a local array: lw.zeros(lw.f32, n)",
                )  # fmt: skip
            return Number(element, (owner.parts[int(index.value)],))
        case _:
            raise scope.error("this cannot be indexed", node, found=owner.describe(), wanted="a vector or a local array")


def _call(scope: Scope, node: ast.Call) -> Number:
    callee = lower(scope, node.func)
    if not isinstance(callee, PythonObject):
        raise scope.error("this cannot be called", node, found=callee.describe(), wanted="a function")
    if node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
        raise scope.error("calls in a kernel take plain positional arguments", node, found="a keyword or starred argument")
    return lower_call(scope, callee, [lower(scope, a) for a in node.args], node)
