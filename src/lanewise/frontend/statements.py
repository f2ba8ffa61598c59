"""Lower statements: branches, loops, returns."""

from __future__ import annotations

import ast

from lanewise.frontend import operators
from lanewise.frontend.access import number_inside
from lanewise.frontend.assignments import assign, assignment, declaration
from lanewise.frontend.directions import items_of, unroll
from lanewise.frontend.expressions import (
    check_nesting,
    condition,
    lower,
    misfit_error,
    number,
    scalar,
)
from lanewise.frontend.places import coerce
from lanewise.frontend.promotion import Misfit
from lanewise.frontend.scattered import operation_of
from lanewise.frontend.scatters import scatter
from lanewise.frontend.scope import Retype, Scope
from lanewise.frontend.syntax import describe_syntax
from lanewise.frontend.values import Number, PythonObject, Several
from lanewise.ir import nodes as ir
from lanewise.language import types as t


def lower_block(scope: Scope, nodes: list[ast.stmt]) -> bool:
    """Lower statements in order. Returns whether the end of the block can be reached."""
    for node in nodes:
        try:
            if not _statement(scope, node):
                return False
        except Misfit as misfit:
            raise misfit_error(scope, misfit, node) from None
    return True


def _statement(scope: Scope, node: ast.stmt) -> bool:
    check_nesting(scope, node)
    match node:
        case ast.Expr(value=ast.Constant()) | ast.Pass():
            return True
        case ast.Assign(targets=targets, value=value):
            assignment(scope, targets, value, node)
        case ast.AnnAssign(target=target, value=value, annotation=annotation):
            declaration(scope, target, annotation, value, node)
        case ast.AugAssign(target=target, op=op, value=value):
            result = operators.binary(
                scope, op, number(scope, _as_load(target)), number(scope, value), node
            )
            assign(scope, target, result, node)
        case ast.If():
            return _if(scope, node)
        case ast.For(orelse=[]):
            return _for(scope, node)
        case ast.While(orelse=[]):
            return _while(scope, node)
        case ast.Break() | ast.Continue():
            _leave(scope, node)
            return False
        case ast.Return():
            _return(scope, node)
            return False
        case ast.Expr(value=ast.Call() as call) if operation := _scattering(scope, call):
            scatter(scope, operation, call)
        case ast.Expr(value=value) if not isinstance(value, (ast.Yield, ast.YieldFrom, ast.Await)):
            syntax = lower(scope, value)
            raise scope.error(
                "the value of this line is not used",
                node,
                found=syntax.describe(),
                wanted="an assignment or a return",
                hint="functions change nothing: assign their result",
            )
        case _:
            syntax, hint = describe_syntax(node.value if isinstance(node, ast.Expr) else node)
            raise scope.error(
                "this statement is not part of the kernel language",
                node,
                found=syntax,
                wanted="assignments, if/elif/else, for over range, while, break, continue, return",
                hint=hint,
            )
    return True


def _scattering(scope: Scope, call: ast.Call) -> ir.ScatterOperation | None:
    """What a call scatters, if it does."""
    if not isinstance(call.func, (ast.Name, ast.Attribute)):
        return None
    callee = lower(scope, call.func)
    return operation_of(callee.value) if isinstance(callee, PythonObject) else None


def _as_load(target: ast.expr) -> ast.expr:
    """The target of `+=` as the expression that reads it."""
    match target:
        case ast.Name(id=name):
            return ast.copy_location(ast.Name(name, ast.Load()), target)
        case ast.Attribute(value=value, attr=attribute):
            return ast.copy_location(ast.Attribute(value, attribute, ast.Load()), target)
        case ast.Subscript(value=value, slice=index):
            return ast.copy_location(ast.Subscript(value, index, ast.Load()), target)
        case _:
            return target


def _if(scope: Scope, node: ast.If) -> bool:
    test = condition(scope, node.test)
    if isinstance(test, ir.Literal) and scope.decides:
        return lower_block(scope, node.body if test.value else node.orelse)
    before = set(scope.defined)
    with scope.nested() as then:
        then_ends = lower_block(scope, node.body)
    after_then, scope.defined = scope.defined, set(before)
    with scope.nested() as otherwise:
        else_ends = lower_block(scope, node.orelse)
    after_else = scope.defined
    scope.defined = (
        after_then & after_else
        if then_ends and else_ends
        else after_then
        if then_ends
        else after_else
    )
    scope.emit(ir.If(test, tuple(then), tuple(otherwise), scope.location(node)))
    return then_ends or else_ends


def _for(scope: Scope, node: ast.For) -> bool:
    """Returns whether the statement after the loop can be reached."""
    if isinstance(node.iter, (ast.Name, ast.Attribute, ast.Subscript)):
        items = items_of(scope, node.iter, lower(scope, node.iter))
        if items is not None:
            return unroll(scope, node, items, lower_block)
    _counted(scope, node)
    return True


def _counted(scope: Scope, node: ast.For) -> None:
    kind, start, stop, step = _range(scope, node)
    assert isinstance(node.target, ast.Name)
    name = node.target.id
    if any(
        name in x for x in (scope.loop_names, scope.parameters, scope.items)
    ) or _unrolled_elsewhere(scope, name):
        raise scope.error(
            f"{name!r} is already in use",
            node.target,
            found=f"for {name} in ...",
            wanted="a loop variable with its own name",
        )
    # Another loop may have counted in another type under this name.
    variable = name if scope.loop_types.setdefault(name, kind) == kind else scope.fresh(name)
    before = set(scope.defined)
    scope.loop_names[name] = ir.Local(variable, kind)
    scope.loop_ranges.pop(variable, None)
    if (
        isinstance(start, ir.Literal)
        and isinstance(stop, ir.Literal)
        and isinstance(step, ir.Literal)
    ):
        scope.loop_ranges[variable] = range(int(start.value), int(stop.value), int(step.value))
    body, _ = _body(scope, node.body)
    del scope.loop_names[name]
    scope.defined = before
    scope.emit(ir.For(variable, start, stop, step, tuple(body), location=scope.location(node)))


def _unrolled_elsewhere(scope: Scope, name: str) -> bool:
    return name in scope.loop_types and scope.loop_types[name] is None


def _body(scope: Scope, nodes: list[ast.stmt]) -> tuple[list[ir.Statement], list[set[str]]]:
    """The statements of a loop, and what is defined at each `break`."""
    left: list[set[str]] = []
    scope.breaks.append(left)
    with scope.nested() as body:
        lower_block(scope, nodes)
    scope.breaks.pop()
    return body, left


def _range(
    scope: Scope, node: ast.For
) -> tuple[t.Scalar, ir.Expression, ir.Expression, ir.Expression]:
    """The type of the loop variable, and the start, the end (computed once, as Python does) and the
    step.
    """
    call = _range_call(scope, node)
    bounds = [scalar(scope, a) for a in call.args]
    for b, a in zip(bounds, call.args, strict=True):
        if not b.scalar.is_integer:
            raise scope.error(
                "the bounds of range() are integers",
                a,
                found=b.describe(),
                wanted="an integer",
                hint="lw.i32(x)",
            )
    if len(bounds) == 3 and not bounds[2].constant:
        described = "0" if bounds[2].constant == 0 else bounds[2].describe()
        raise scope.error(
            "the step of range() is a literal",
            call.args[2],
            found=described,
            wanted="a literal that is not 0",
            hint="a while loop",
        )
    kind = t.I64 if any(b.scalar in (t.I64, t.U32) for b in bounds) else t.I32
    ends = [scope.settle(b, kind).parts[0] for b in bounds]
    start, stop = (ir.Literal(0, kind), ends[0]) if len(ends) == 1 else (ends[0], ends[1])
    step = ends[2] if len(ends) == 3 else ir.Literal(1, kind)
    keeps = isinstance(stop, ir.Literal) or scope.is_steady(stop)
    return kind, start, stop if keeps else scope.copy(stop), step


def _instead_of(scope: Scope, items: ast.expr) -> str:
    """What to write instead of a loop over these items."""
    value = lower(scope, items) if isinstance(items, ast.Name) else None
    inside = number_inside(value) if isinstance(value, PythonObject) else ""
    return inside or "index what you loop over, or use while, which takes any condition"


def _range_call(scope: Scope, node: ast.For) -> ast.Call:
    """The call of `range` with one to three arguments that a loop runs over."""
    call = node.iter
    callee = (
        lower(scope, call.func)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        else None
    )
    if not (
        isinstance(call, ast.Call)
        and isinstance(callee, PythonObject)
        and callee.value is range
        and isinstance(node.target, ast.Name)
    ):
        raise scope.error(
            "a loop runs over range()",
            node,
            found=f"for {ast.unparse(node.target)} in {ast.unparse(call)}",
            wanted="for i in range(n)",
            hint=_instead_of(scope, call),
        )
    if (
        not 1 <= len(call.args) <= 3
        or call.keywords
        or any(isinstance(a, ast.Starred) for a in call.args)
    ):
        raise scope.error(
            "range() takes one to three integers",
            call,
            found=ast.unparse(call),
            wanted="range(end) or range(start, end, step)",
        )
    return call


def _while(scope: Scope, node: ast.While) -> bool:
    where = scope.location(node)
    with scope.nested() as head:
        test = condition(scope, node.test)
    before = set(scope.defined)
    body, left = _body(scope, node.body)
    endless = isinstance(test, ir.Literal) and bool(test.value)
    scope.defined = set.intersection(*left) if endless and left else before
    if head:  # the condition needs statements: they run before every test
        stop = ir.If(ir.Unary("not", test, t.BOOL, where), (ir.Break(where),), (), where)
        scope.emit(ir.While(ir.Literal(True, t.BOOL), (*head, stop, *body), where))
    else:
        scope.emit(ir.While(test, tuple(body), where))
    return bool(left) or not endless


def _leave(scope: Scope, node: ast.Break | ast.Continue) -> None:
    if not scope.breaks:
        raise scope.error(
            "this stands outside a loop", node, found=ast.unparse(node), wanted="a loop round it"
        )
    left = scope.breaks[-1]
    if left is None:
        raise scope.error(
            "a loop over directions is unrolled and runs to its end",
            node,
            found=ast.unparse(node),
            wanted="an if round the statements that not every direction needs",
            hint="a tuple of the directions that you want, made outside the function, may be "
            "looped over",
        )
    if isinstance(node, ast.Break):
        left.append(set(scope.defined))
    scope.emit(
        ir.Break(scope.location(node))
        if isinstance(node, ast.Break)
        else ir.Continue(scope.location(node))
    )


def _return(scope: Scope, node: ast.Return) -> None:
    elements = (
        []
        if node.value is None
        else node.value.elts
        if isinstance(node.value, ast.Tuple)
        else [node.value]
    )
    begin = len(scope.block)
    whole = lower(scope, elements[0]) if len(elements) == 1 else None
    if isinstance(whole, Several):
        values = list(whole.values)
    else:
        # what was written to see that it is not several values is written again
        del scope.block[begin:]
        values = [number(scope, e) for e in elements]
    if scope.result_types is None:
        scope.result_types = [scope.computed(x).type for x in values]
        scope.results_open = [x.weak for x in values]
    if len(values) != len(scope.result_types):
        raise scope.error(
            "the function returns another number of values than it says",
            node,
            found=f"{len(values)} value{'' if len(values) == 1 else 's'}",
            wanted=", ".join(map(str, scope.result_types)) or "no value",
        )
    _decide_results(scope, values)
    kept = [
        coerce(scope, x, w, node, "the result")
        for x, w in zip(values, scope.result_types, strict=True)
    ]
    scope.emit(ir.Return(tuple(p for x in kept for p in x.parts), scope.location(node)))


def _decide_results(scope: Scope, values: list[Number]) -> None:
    """In a helper without declared results `return 0.0` leaves the type open: the first return that
    has a type decides.
    """
    before = list(zip(scope.result_types or [], scope.results_open, strict=False))
    after = [_wider(x, kind, is_open) for x, (kind, is_open) in zip(values, before, strict=False)]
    if after != before:
        scope.inferred.results = after
        raise Retype


def _wider(x: Number, kind: t.ValueType, is_open: bool) -> tuple[t.ValueType, bool]:
    fits = not x.is_vector and t.holds(t.scalar_of(kind), x.scalar)
    if (
        not is_open
        or (x.weak and fits)
        or (not x.is_vector and t.scalar_of(kind).is_float and not x.scalar.is_float)
    ):
        return kind, is_open
    kind = x.type
    return t.computed(kind) if isinstance(kind, t.Scalar) else kind, x.weak
