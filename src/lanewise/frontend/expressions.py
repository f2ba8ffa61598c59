"""Lower expressions: from syntax to typed scalars."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Literal

from lanewise.frontend import operators
from lanewise.frontend.access import (
    attribute,
    name_value,
    number_inside,
    several_indices,
    subscript,
)
from lanewise.frontend.calls import lowering_of
from lanewise.frontend.directions import population_index
from lanewise.frontend.elements import element, index_nodes, shape_element
from lanewise.frontend.indices import index_of as number_of_element
from lanewise.frontend.interpolation import interpolation
from lanewise.frontend.mathematics import choose
from lanewise.frontend.promotion import Misfit, common_scalar
from lanewise.frontend.scope import Scope, deeper
from lanewise.frontend.shapes import same_shape
from lanewise.frontend.sums import generator_of, sum_of_terms
from lanewise.frontend.syntax import describe_syntax
from lanewise.frontend.values import (
    ElementsReference,
    Number,
    PopulationsReference,
    PythonObject,
    ShapeReference,
    Value,
    weak,
    whole,
)
from lanewise.ir import nodes as ir
from lanewise.language import types as t
from lanewise.language.interpolation import interpolate
from lanewise.language.lattices.base import Direction
from lanewise.language.values import index_of

NESTED = 120  # blocks one inside the other


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
        hint=f"convert the other side to a wider type, or the number with lw.{misfit.scalar}(...), "
        "which wraps"
        if misfit.scalar.is_integer
        else "convert the other side with lw.f64(...)",
    )


def _lower(scope: Scope, node: ast.expr) -> Value:
    match node:
        case ast.Constant(value=bool() | int() | float() as value):
            return weak(value, scope.location(node))
        case ast.Name(id=name):
            return name_value(scope, name, node)
        case ast.BinOp():
            return _binary(scope, node)
        case ast.UnaryOp():
            return _unary(scope, node)
        case ast.Compare():
            return _compare(scope, node)
        case ast.BoolOp():
            return _logical(scope, node)
        case ast.IfExp():
            return _conditional(scope, node)
        case ast.Attribute():
            return attribute(scope, lower(scope, node.value), node)
        case ast.Subscript():
            return _subscript(scope, node)
        case ast.Call():
            return _call(scope, node)
        case _:
            syntax, hint = describe_syntax(node)
            raise scope.error(
                "this expression is not part of the kernel language",
                node,
                found=syntax,
                wanted="arithmetic, comparisons, and/or/not, `a if c else b`, fields, components, "
                "indices and calls",
                hint=hint,
            )


def _binary(scope: Scope, node: ast.BinOp) -> Number:
    """An operation, and those that its left side is made of: a sum of many terms is as deep as it
    is long.
    """
    spine, first = [node], node.left
    while isinstance(first, ast.BinOp):
        spine.append(first)
        first = first.left
    value = number(scope, first)
    for part in reversed(spine):
        try:
            value = scope.shallow(
                operators.binary(scope, part.op, value, number(scope, part.right), part)
            )
        except Misfit as misfit:
            raise misfit_error(scope, misfit, part) from None
    return value


def _unary(scope: Scope, node: ast.UnaryOp) -> Number:
    """Signs, `not` and `~`, one inside the other."""
    nested, operand = [node], node.operand
    while isinstance(operand, ast.UnaryOp):
        nested.append(operand)
        operand = operand.operand
    value = number(scope, operand)
    for part in reversed(nested):
        if isinstance(part.op, ast.Not):
            value = _negated(scope, _truth(scope, value, part.operand), part)
        else:
            value = operators.unary(scope, part.op, value, part)
        value = scope.shallow(value)
    return value


def check_nesting(scope: Scope, node: ast.AST) -> None:
    """Refuse blocks in blocks in blocks: passes walk through them, and Python's stack ends."""
    if scope.depth > NESTED:
        raise scope.error(
            "this is nested too deeply",
            node,
            found=f"more than {NESTED} branches, loops or `else` one inside the other (an `elif` "
            "is inside the `else` before it)",
            wanted=f"at most {NESTED}",
            hint="a loop, a helper for a part of it, or values in a local array",
        )


def number(scope: Scope, node: ast.expr) -> Number:
    """Lower an expression that has to be a scalar or a vector."""
    return _numeric(scope, lower(scope, node), node)


def _numeric(scope: Scope, value: Value, node: ast.expr) -> Number:
    if isinstance(value, Number):
        return value
    raise scope.error(
        "a number or vector is needed here",
        node,
        found=value.describe(),
        wanted="a scalar or a vector",
        hint=number_inside(value),
    )


def scalar(scope: Scope, node: ast.expr) -> Number:
    """Lower an expression that has to be a scalar."""
    return _one(scope, number(scope, node), node)


def place(scope: Scope, node: ast.expr) -> Number:
    """Lower an index: a scalar, or a direction, which stands for its number."""
    value = lower(scope, node)
    if isinstance(value, PythonObject) and isinstance(value.value, Direction):
        return whole(value.value.index, scope.location(node))
    return _one(scope, _numeric(scope, value, node), node)


def _one(scope: Scope, value: Number, node: ast.expr) -> Number:
    if value.is_vector:
        raise scope.error(
            "a scalar is needed here",
            node,
            found=value.describe(),
            wanted="a scalar",
            hint="take a component: .x",
        )
    return value


def condition(scope: Scope, node: ast.expr) -> ir.Expression:
    """Lower an expression that has to be a boolean."""
    return _truth(scope, number(scope, node), node)


def _truth(scope: Scope, condition: Number, node: ast.expr) -> ir.Expression:
    value = _one(scope, condition, node)
    if value.scalar != t.BOOL:
        raise scope.error(
            "a condition must be true or false",
            node,
            found=value.describe(),
            wanted="a bool",
            hint="compare it, for example `!= 0`",
        )
    return value.parts[0]


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
    """`and` and `or`. When the right side needs its own statements (a helper call), it moves
    under an `if`.
    """
    where = scope.location(node)
    if isinstance(left, ir.Literal) and scope.decides:
        return lower_right() if bool(left.value) == (symbol == "and") else left
    with scope.nested() as body:
        right = lower_right()
    if isinstance(right, ir.Literal) and scope.decides:
        return left if bool(right.value) == (symbol == "and") else right
    if not body:
        return ir.Logical(symbol, left, right, where)
    flag = scope.copy(left)
    test = flag if symbol == "and" else ir.Unary("not", flag, t.BOOL, where)
    scope.emit(ir.If(test, (*body, ir.Assign(flag.name, right, where)), (), where))
    return flag


def _negated(scope: Scope, test: ir.Expression, node: ast.AST) -> Number:
    if isinstance(test, ir.Literal) and scope.decides:
        return weak(not test.value, scope.location(node))
    return Number(t.BOOL, (ir.Unary("not", test, t.BOOL, scope.location(node)),))


def _logical(scope: Scope, node: ast.BoolOp) -> Number:
    symbol = "and" if isinstance(node.op, ast.And) else "or"
    result = condition(scope, node.values[0])
    for operand in node.values[1:]:
        result = both(
            scope, symbol, result, lambda operand=operand: condition(scope, operand), node
        )
        result = scope.bind(result) if deeper(result) else result
    return Number(t.BOOL, (result,))


def _conditional(scope: Scope, node: ast.IfExp) -> Number:
    """`a if c else b`; an `if` statement when a side needs its own statements."""
    check_nesting(scope, node)
    test = scope.bind(condition(scope, node.test))
    if isinstance(test, ir.Literal) and scope.decides:
        return number(scope, node.body if test.value else node.orelse)
    with scope.nested() as then:
        first = number(scope, node.body)
    with scope.nested() as otherwise:
        second = scope.shallow(number(scope, node.orelse))
    if not then and not otherwise and first.is_vector == second.is_vector:
        return choose(scope, test, first, second, node)
    kind, where = common_scalar([first, second]), scope.location(node)
    same_shape(scope, [x for x in (first, second) if x.is_vector], node)
    shape = first if first.is_vector else second
    names = [scope.fresh("t") for _ in shape.parts]
    for block, value in (
        (then, scope.settle(first, kind)),
        (otherwise, scope.settle(second, kind)),
    ):
        # A scalar for a vector: later components copy the first, so that it is computed once, and
        # only on its own path.
        parts = (
            value.parts
            if value.is_vector or not shape.is_vector
            else (value.parts[0], *(ir.Local(names[0], kind, where) for _ in names[1:]))
        )
        block += [ir.Assign(n, p, where) for n, p in zip(names, parts, strict=True)]
    scope.emit(ir.If(test, tuple(then), tuple(otherwise), where))
    result = t.Vector(kind, len(names)) if shape.is_vector else kind
    return Number(
        result, tuple(ir.Local(n, kind, where) for n in names), open=first.weak and second.weak
    )


def _subscript(scope: Scope, node: ast.Subscript) -> Value:
    if isinstance(node.slice, ast.Slice):
        raise scope.error(
            "slices are not part of the kernel language",
            node,
            found=ast.unparse(node),
            wanted="one index",
            hint="a loop",
        )
    owner = lower(scope, node.value)
    if isinstance(owner, ElementsReference):
        return element(scope, owner, node, [lower(scope, i) for i in index_nodes(node)])
    if isinstance(node.slice, ast.Tuple):
        raise several_indices(scope, owner, node)
    if isinstance(owner, ShapeReference):
        return shape_element(scope, owner, lower(scope, node.slice), node)
    if isinstance(owner, PopulationsReference):
        index = population_index(scope, owner, lower(scope, node.slice), node.slice)
        return Number(owner.type, (ir.Local(owner.leaf(index), owner.type, scope.location(node)),))
    return subscript(scope, owner, place(scope, node.slice), node)


def _call(scope: Scope, node: ast.Call) -> Value:
    callee = lower(scope, node.func)
    if not isinstance(callee, PythonObject):
        raise scope.error(
            "this cannot be called", node, found=callee.describe(), wanted="a function"
        )
    if callee.value is index_of:
        return number_of_element(scope, node)
    if (terms := generator_of(callee, node)) is not None:
        return sum_of_terms(scope, node, terms, lower, number)
    if callee.value is interpolate:
        return interpolation(scope, node, [lower(scope, a) for a in node.args])
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
