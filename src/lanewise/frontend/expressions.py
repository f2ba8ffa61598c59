"""Lower expressions: from syntax to typed scalars."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Literal

import numpy as np

from lanewise import types as t
from lanewise.frontend import operators
from lanewise.frontend.calls import lowering_of
from lanewise.frontend.mathematics import choose
from lanewise.frontend.promotion import Misfit, common_scalar
from lanewise.frontend.scope import Scope
from lanewise.frontend.shapes import same_shape
from lanewise.frontend.syntax import describe_syntax
from lanewise.frontend.values import ArrayReference, Number, PythonObject, RecordReference, Value, from_python, weak
from lanewise.ir import nodes as ir


def lower(scope: Scope, node: ast.expr) -> Value:
    """Lower any expression."""
    try:
        return _lower(scope, node)
    except Misfit as misfit:
        raise misfit_error(scope, misfit, node) from None


def misfit_error(scope: Scope, misfit: Misfit, node: ast.AST) -> Exception:
    """The error for a Python number that its partner's type cannot hold."""
    return scope.error(
        f"{misfit.constant!r} does not fit {misfit.scalar}",
        node,
        found=f"{misfit.constant!r}, which meets a value of type {misfit.scalar}",
        wanted=f"a number that {misfit.scalar} can hold",
        hint=f"convert the other side to a wider type, or the number with lw.{misfit.scalar}(...), which wraps"
        if misfit.scalar.is_integer
        else "convert the other side with lw.f64(...)",
    )


def _lower(scope: Scope, node: ast.expr) -> Value:
    match node:
        case ast.Constant(value=bool() | int() | float() as value):
            return weak(value, scope.location(node))
        case ast.Name(id=name):
            return _name(scope, name, node)
        case ast.BinOp(left=left, op=op, right=right):
            return operators.binary(scope, op, number(scope, left), number(scope, right), node)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return Number(t.BOOL, (ir.Unary("not", condition(scope, operand), t.BOOL, scope.location(node)),))
        case ast.UnaryOp(op=op, operand=operand):
            return operators.unary(scope, op, number(scope, operand), node)
        case ast.Compare():
            return _compare(scope, node)
        case ast.BoolOp():
            return _logical(scope, node)
        case ast.IfExp():
            return _conditional(scope, node)
        case ast.Attribute():
            return _attribute(scope, node)
        case ast.Subscript():
            return _subscript(scope, node)
        case ast.Call():
            return _call(scope, node)
        case _:
            found, hint = describe_syntax(node)
            raise scope.error(
                "this expression is not part of the kernel language",
                node,
                found=found,
                wanted="arithmetic, comparisons, and/or/not, `a if c else b`, fields, components, indices and calls",
                hint=hint,
            )


def number(scope: Scope, node: ast.expr) -> Number:
    """Lower an expression that has to be a scalar or a vector."""
    value = lower(scope, node)
    if isinstance(value, Number):
        return value
    raise scope.error(
        "a number or vector is needed here",
        node,
        found=value.describe(),
        wanted="a scalar or a vector",
        hint=_number_inside(value),
    )


def _number_inside(value: Value) -> str:
    """How to get at a number in something that is none."""
    match value:
        case RecordReference():
            return f"use one of its fields, for example {value.name}.{value.record.fields[0].name}"
        case ArrayReference():
            return f"use one of its elements, for example {value.name}[0]"
        case PythonObject(value=list() | np.ndarray()):
            return "a tuple of numbers may be named from outside; an array is a parameter"
        case _:
            return ""


def scalar(scope: Scope, node: ast.expr) -> Number:
    """Lower an expression that has to be a scalar."""
    value = number(scope, node)
    if value.is_vector:
        raise scope.error(
            "a scalar is needed here", node, found=value.describe(), wanted="a scalar", hint="take a component: .x"
        )
    return value


def condition(scope: Scope, node: ast.expr) -> ir.Expression:
    """Lower an expression that has to be a truth value."""
    value = scalar(scope, node)
    if value.scalar != t.BOOL:
        raise scope.error(
            "a condition must be true or false",
            node,
            found=value.describe(),
            wanted="a bool",
            hint="compare it, for example `!= 0`",
        )
    return value.parts[0]


def _name(scope: Scope, name: str, node: ast.Name) -> Value:
    where = scope.location(node)
    if name in scope.parameters:
        value = scope.parameters[name]
        return (
            replace(value, parts=tuple(replace(p, location=where) for p in value.parts))
            if isinstance(value, Number)
            else value
        )
    if name in scope.loop_names:
        return Number(scope.loop_names[name].type, (replace(scope.loop_names[name], location=where),))
    if name in scope.names.loop_variables:
        raise scope.error(
            f"the loop variable {name!r} has no value outside its loop", node, found=name,
            wanted="a variable that the loop assigns", hint=f"write last = {name} in the loop, with last = 0 before it",
        )  # fmt: skip
    if name in scope.names.assignments:
        if name not in scope.defined:
            raise scope.error(
                f"{name!r} may have no value here",
                node,
                found="an assignment that does not happen on every path to this line",
                wanted=f"a value for {name!r} before this line",
            )
        return _variable(scope, name, node)
    if name in scope.names.visible:
        return from_python(scope.names.visible[name], where)
    raise scope.error(
        f"{name!r} is not defined", node, found=name, wanted="a parameter, a local variable or a module-level name"
    )


def _variable(scope: Scope, name: str, node: ast.Name) -> Value:
    where = scope.location(node)
    if name in scope.constants:
        constant = scope.constants[name].constant
        assert constant is not None
        return weak(constant, where)
    variable = scope.variables[name]
    if isinstance(variable.type, t.LocalArray):
        return ArrayReference(name, variable.type)
    element = t.scalar_of(variable.type)
    parts = tuple(ir.Local(n, element, where) for n in t.leaves(name, variable.type))
    return Number(variable.type, parts, open=variable.open)


def _compare(scope: Scope, node: ast.Compare) -> Number:
    """`a < b < c` is `a < b and b < c` with b computed once, and c only when it is needed."""
    operands = [node.left, *node.comparators]
    for op in node.ops:
        operators.check_comparison(scope, op, node)

    def link(left: Number, index: int) -> ir.Expression:
        right = scalar(scope, operands[index + 1])
        last = index + 1 == len(node.ops)
        right = right if last else scope.bind_number(right)
        test = operators.compare(scope, node.ops[index], left, right, node)
        return test if last else both(scope, "and", test, lambda: link(right, index + 1), node)

    return Number(t.BOOL, (link(scalar(scope, node.left), 0),))


def both(
    scope: Scope,
    symbol: Literal["and", "or"],
    left: ir.Expression,
    lower_right: Callable[[], ir.Expression],
    node: ast.AST,
) -> ir.Expression:
    """`and` and `or`. When the right side needs statements of its own (a helper call), it moves under an `if`."""
    where = scope.location(node)
    with scope.nested() as body:
        right = lower_right()
    if not body:
        return ir.Logical(symbol, left, right, where)
    flag = scope.copy(left)
    test = flag if symbol == "and" else ir.Unary("not", flag, t.BOOL, where)
    scope.emit(ir.If(test, (*body, ir.Assign(flag.name, right, where)), (), where))
    return flag


def _logical(scope: Scope, node: ast.BoolOp) -> Number:
    symbol = "and" if isinstance(node.op, ast.And) else "or"
    result = condition(scope, node.values[0])
    for operand in node.values[1:]:
        result = both(scope, symbol, result, lambda operand=operand: condition(scope, operand), node)
    return Number(t.BOOL, (result,))


def _conditional(scope: Scope, node: ast.IfExp) -> Number:
    """`a if c else b`; an `if` statement when a side needs statements of its own."""
    test = scope.bind(condition(scope, node.test))
    with scope.nested() as then:
        first = number(scope, node.body)
    with scope.nested() as otherwise:
        second = number(scope, node.orelse)
    if not then and not otherwise and first.is_vector == second.is_vector:
        return choose(scope, test, first, second, node)
    kind, where = common_scalar([first, second]), scope.location(node)
    same_shape(scope, [x for x in (first, second) if x.is_vector], node)
    shape = first if first.is_vector else second
    names = [scope.fresh("t") for _ in shape.parts]
    for block, value in ((then, scope.settle(first, kind)), (otherwise, scope.settle(second, kind))):
        # A scalar for a vector: later components copy the first, so that it is computed once, and only on its own path.
        parts = (
            value.parts
            if value.is_vector or not shape.is_vector
            else (value.parts[0], *(ir.Local(names[0], kind, where) for _ in names[1:]))
        )
        block += [ir.Assign(n, p, where) for n, p in zip(names, parts, strict=True)]
    scope.emit(ir.If(test, tuple(then), tuple(otherwise), where))
    result = t.Vector(kind, len(names)) if shape.is_vector else kind
    return Number(result, tuple(ir.Local(n, kind, where) for n in names), open=first.weak and second.weak)


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
            return from_python(getattr(value, node.attr), where)
        case _:
            module = isinstance(owner, PythonObject) and isinstance(owner.value, ModuleType)
            raise scope.error(
                f"{owner.describe()} has no {node.attr!r}",
                node,
                found=ast.unparse(node),
                wanted="a name that the module has" if module else "a record, a vector or a module before the dot",
            )


def element_index(scope: Scope, node: ast.expr, length: int, what: str) -> ir.Expression:
    """A checked index into something of a known length."""
    value = scalar(scope, node)
    if not value.scalar.is_integer:
        raise scope.error(
            "an index must be a whole number", node, found=value.describe(), wanted="an integer", hint="lw.i32(x)"
        )
    if value.constant is None:
        return value.parts[0]
    constant = int(value.constant)
    if not -length <= constant < length:
        raise scope.error(f"index {constant} is outside {what}", node, found=str(constant), wanted=f"0 to {length - 1}")
    return ir.Literal(constant % length, t.I32, scope.location(node))


def _subscript(scope: Scope, node: ast.Subscript) -> Value:
    owner = lower(scope, node.value)
    if isinstance(node.slice, ast.Slice):
        raise scope.error(
            "slices are not part of the kernel language",
            node,
            found=ast.unparse(node),
            wanted="one index",
            hint="a loop",
        )
    match owner:
        case ArrayReference(name=name, type=array):
            index = element_index(scope, node.slice, array.length, f"the local array {name!r}")
            return Number(array.element, (ir.Element(name, index, array.element, scope.location(node)),))
        case Number(type=t.Vector(element=element, length=length)):
            index = element_index(scope, node.slice, length, f"a {owner.type}")
            if not isinstance(index, ir.Literal):
                raise scope.error(
                    "a component of a vector is chosen by a literal",
                    node,
                    found="an index known only at run time",
                    wanted="a literal",
                    hint="use a local array: lw.zeros(lw.f32, n)",
                )
            return Number(element, (owner.parts[int(index.value)],))
        case PythonObject(value=tuple() as items):
            index = element_index(scope, node.slice, len(items), "the tuple")
            if not isinstance(index, ir.Literal):
                raise scope.error(
                    "an element of a tuple is chosen by a literal",
                    node,
                    found="an index known only at run time",
                    wanted="a literal",
                    hint="put the elements into a local array: a = lw.zeros(lw.f32, n)",
                )
            return from_python(items[int(index.value)], scope.location(node))
        case _:
            raise scope.error(
                "this cannot be indexed",
                node,
                found=owner.describe(),
                wanted="a vector, a local array or a tuple of numbers",
                hint=_number_inside(owner) if isinstance(owner, PythonObject) else "",
            )


def _call(scope: Scope, node: ast.Call) -> Value:
    callee = lower(scope, node.func)
    if not isinstance(callee, PythonObject):
        raise scope.error("this cannot be called", node, found=callee.describe(), wanted="a function")
    lowering = lowering_of(scope, callee, node)
    if extra := next((k for k in node.keywords), None) or next(
        (a for a in node.args if isinstance(a, ast.Starred)), None
    ):
        raise scope.error(
            "calls in a kernel take plain positional arguments",
            extra,
            found=ast.unparse(extra),
            wanted="the values, in order",
        )
    return lowering(scope, [lower(scope, a) for a in node.args], node)
