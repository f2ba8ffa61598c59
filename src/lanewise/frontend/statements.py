"""Lower statements: assignments, branches, loops, returns."""

from __future__ import annotations

import ast

from lanewise import types as t
from lanewise import values as v
from lanewise.frontend.expressions import binary, condition, element_index, lower, number, scalar
from lanewise.frontend.scope import Retype, Scope, Variable
from lanewise.frontend.values import ArrayReference, Number, PythonObject, RecordReference, settle
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import reads


def lower_block(scope: Scope, nodes: list[ast.stmt]) -> bool:
    """Lower statements in order. Returns whether the end of the block can be reached."""
    for node in nodes:
        if not _statement(scope, node):
            return False
    return True


def _statement(scope: Scope, node: ast.stmt) -> bool:
    where = scope.location(node)
    match node:
        case ast.Expr(value=ast.Constant()) | ast.Pass():
            return True
        case ast.Assign(targets=[target], value=value):
            _assign_any(scope, target, value, node)
        case ast.AnnAssign(target=ast.Name() as target, value=value, annotation=annotation):
            _annotated(scope, target, annotation, value, node)
        case ast.AugAssign(target=target, op=op, value=value):
            result = binary(scope, op, number(scope, _as_load(target)), number(scope, value), node)
            assign(scope, target, result, node)
        case ast.If():
            return _if(scope, node)
        case ast.For(orelse=[]):
            _for(scope, node)
        case ast.While(orelse=[]):
            _while(scope, node)
        case ast.Break() | ast.Continue():
            if not scope.loops:
                raise scope.error("this stands outside a loop", node)
            scope.emit(ir.Break(where) if isinstance(node, ast.Break) else ir.Continue(where))
            return False
        case ast.Return():
            _return(scope, node)
            return False
        case _:
            raise scope.error(
                "this statement is not part of the kernel language", node, found=type(node).__name__,
                wanted="assignments, if/elif/else, for over range, while, break, continue, return",
            )  # fmt: skip
    return True


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


def _assign_any(scope: Scope, target: ast.expr, value: ast.expr, node: ast.stmt) -> None:
    if isinstance(target, ast.Tuple):
        _unpack(scope, target, value, node)
        return
    if isinstance(target, ast.Name) and isinstance(value, ast.Call) and (array := _local_array(scope, value)):
        _declare_array(scope, target.id, array, node)
        return
    result = lower(scope, value)
    if not isinstance(result, Number):
        raise scope.error("only numbers and vectors can be assigned", node, found=result.describe(), wanted="a scalar or a vector")
    assign(scope, target, result, node)


def _unpack(scope: Scope, target: ast.Tuple, value: ast.expr, node: ast.stmt) -> None:
    """`x, y, z = vector` and `a, b = b, a`: all values are taken before any name changes."""
    if isinstance(value, ast.Tuple):
        values = [number(scope, e) for e in value.elts]
    else:
        whole = number(scope, value)
        values = [Number(whole.scalar, (p,)) for p in whole.parts]
    if len(values) != len(target.elts):
        raise scope.error(
            "the number of names and values differ", node, found=f"{len(target.elts)} names, {len(values)} values", wanted="one name a value"
        )
    kept = [
        x if x.weak else Number(x.type, tuple(p if isinstance(p, ir.Literal) else _copy(scope, p) for p in x.parts)) for x in values
    ]
    for name, x in zip(target.elts, kept, strict=True):
        assign(scope, name, x, node)


def _copy(scope: Scope, e: ir.Expression) -> ir.Expression:
    name = scope.fresh("t")
    scope.emit(ir.Assign(name, e, e.location))
    return ir.Local(name, e.type, e.location)


def _local_array(scope: Scope, call: ast.Call) -> t.LocalArray | None:
    callee = lower(scope, call.func)
    if not (isinstance(callee, PythonObject) and callee.value is v.zeros):
        return None
    if len(call.args) != 2:
        raise scope.error("lw.zeros takes a scalar type and a length", call, found=f"{len(call.args)} arguments", wanted="lw.zeros(lw.f32, 8)")
    element, length = lower(scope, call.args[0]), number(scope, call.args[1])
    kind = v.type_of_annotation(element.value) if isinstance(element, PythonObject) else None
    if not isinstance(kind, t.Scalar):
        raise scope.error("a local array holds scalars", call.args[0], found=element.describe(), wanted="lw.f32, f64, i32, i64, u32 or bool")
    if not isinstance(length.constant, int) or not 1 <= length.constant <= 4096:
        raise scope.error("the length of a local array is a literal", call.args[1], found=length.describe(), wanted="1 to 4096")
    return t.LocalArray(kind, length.constant)


def _declare_array(scope: Scope, name: str, array: t.LocalArray, node: ast.stmt) -> None:
    known = scope.variables.setdefault(name, Variable(array, False, scope.location(node)))
    if known.type != array:
        raise scope.error(f"{name!r} changes its type", node, found=str(array), wanted=f"{known.type}, as in line {known.location.line}")
    scope.defined.add(name)
    scope.emit(ir.DeclareArray(name, array, scope.location(node)))


def _annotated(scope: Scope, target: ast.Name, annotation: ast.expr, value: ast.expr | None, node: ast.stmt) -> None:
    element = lower(scope, annotation)
    kind = v.type_of_annotation(element.value) if isinstance(element, PythonObject) else None
    if kind is None or value is None:
        raise scope.error("a variable is declared with a lanewise type and a value", node, found=ast.unparse(node), wanted="x: lw.f32 = 0")
    variable = scope.variables.setdefault(target.id, Variable(kind, False, scope.location(node)))
    if variable.weak or variable.type != kind:
        scope.variables[target.id] = Variable(kind, False, scope.location(node))
        raise Retype
    assign(scope, target, number(scope, value), node, declared=True)


def assign(scope: Scope, target: ast.expr, value: Number, node: ast.AST, *, declared: bool = False) -> None:
    """Give a variable, a field of a mutable record or an element of a local array a value."""
    match target:
        case ast.Name(id=name):
            _assign_name(scope, name, value, node, declared)
        case ast.Attribute(value=ast.Name(id=owner), attr=attribute) if isinstance(scope.parameters.get(owner), RecordReference):
            _assign_field(scope, owner, attribute, value, node)
        case ast.Subscript(value=owner_node, slice=index) if isinstance(array := lower(scope, owner_node), ArrayReference):
            place = element_index(scope, index, array.type.length, f"the local array {array.name!r}")
            kept = coerce(scope, value, array.type.element, node, f"an element of {array.name!r}")
            scope.emit(ir.SetElement(array.name, place, kept.parts[0], scope.location(node)))
        case _:
            raise scope.error(
                "this cannot be assigned to", node, found=ast.unparse(target),
                wanted="a variable, a field of the record, or an element of a local array",
                hint="vectors are values: write v = lw.vec3(x, v.y, v.z)",
            )  # fmt: skip


def _assign_field(scope: Scope, owner: str, attribute: str, value: Number, node: ast.AST) -> None:
    reference = scope.parameters[owner]
    assert isinstance(reference, RecordReference)
    field = reference.record.field(attribute)
    if field is None:
        raise scope.error(
            f"{reference.record.name} has no field {attribute!r}", node, found=f"{owner}.{attribute}",
            wanted=f"one of {', '.join(f.name for f in reference.record)}",
        )  # fmt: skip
    if not reference.mutable:
        raise scope.error(
            f"{owner!r} can only be read here", node, found=f"an assignment to {owner}.{attribute}",
            wanted="a function that returns its result", hint="only the first record of an @lw.elementwise function is updated in place",
        )  # fmt: skip
    _store(scope, f"{owner}.{attribute}", coerce(scope, value, field.type, node, f"{owner}.{attribute}"), node)


def _assign_name(scope: Scope, name: str, value: Number, node: ast.AST, declared: bool) -> None:
    if name in scope.parameters and isinstance(scope.parameters[name], RecordReference):
        raise scope.error(f"the record {name!r} cannot be replaced", node, wanted=f"assign to its fields: {name}.field = ...")
    if name in scope.loop_variables:
        raise scope.error(f"the loop variable {name!r} cannot be assigned", node, wanted="another variable")
    if value.weak and not declared and scope.assignment_counts.get(name) == 1 and name not in scope.parameters:
        scope.constants[name] = value  # set once, to a literal: it stays weak
        scope.defined.add(name)
        return
    if (parameter := scope.parameters.get(name)) is not None:
        assert isinstance(parameter, Number)
        kept = coerce(scope, value, parameter.type, node, name)
        _store(scope, name, kept, node)
        return
    known = scope.variables.get(name)
    if known is None:
        known = scope.variables[name] = Variable(value.type, value.weak, scope.location(node))
    elif known.weak and not isinstance(known.type, t.LocalArray):
        _strengthen(scope, name, known, value)
    if isinstance(known.type, t.LocalArray):
        raise scope.error(f"{name!r} is a local array", node, found="an assignment to the whole array", wanted=f"{name}[i] = value")
    kept = coerce(scope, value, known.type, node, name, first=known)
    scope.defined.add(name)
    _store(scope, name, kept, node)


def _strengthen(scope: Scope, name: str, known: Variable, value: Number) -> None:
    """A variable that only literals set so far takes the type of the first value that has one."""
    assert not isinstance(known.type, t.LocalArray)
    wanted = value.type if not value.weak else t.promote(t.scalar_of(known.type), value.scalar)
    if not value.weak or wanted != known.type:
        if isinstance(wanted, t.Scalar) and not value.weak and wanted.is_integer and t.scalar_of(known.type).is_float:
            return  # 0.5 stays a float when integers follow
        scope.variables[name] = Variable(wanted, value.weak, known.location)
        raise Retype


def coerce(scope: Scope, value: Number, wanted: t.ValueType, node: ast.AST, what: str, first: Variable | None = None) -> Number:
    """Widen a value to the type that a place has; refuse what would lose something."""
    element = t.scalar_of(wanted)
    fits = t.holds(element, value.scalar) or (value.weak and (element.is_float or value.scalar.is_integer) and element != t.BOOL)
    if value.is_vector != isinstance(wanted, t.Vector) or len(value.parts) != (wanted.length if isinstance(wanted, t.Vector) else 1):
        fits = False
    if value.weak and isinstance(value.constant, int) and element == t.U32 and not 0 <= value.constant < 2**32:
        fits = False
    if not fits:
        since = f" since line {first.location.line}" if first else ""
        convert = f"lw.{element}(...)" if isinstance(wanted, t.Scalar) else f"lw.{wanted}(...)"
        raise scope.error(
            f"{what} is of type {wanted}{since}", node, found=value.describe(), wanted=f"a value of type {wanted}",
            hint=f"convert it where you mean it: {convert}",
        )  # fmt: skip
    return settle(value, element)


def _store(scope: Scope, name: str, value: Number, node: ast.AST) -> None:
    """Assign the components of a value, through temporaries when a later one still needs an earlier variable."""
    names = t.leaves(name, value.type)
    parts = list(value.parts)
    for i, part in enumerate(parts):
        if set(reads(part)) & set(names[:i]):
            parts = [_copy(scope, p) if not isinstance(p, ir.Literal) else p for p in parts]
            break
    for n, p in zip(names, parts, strict=True):
        scope.emit(ir.Assign(n, p, scope.location(node)))


def _if(scope: Scope, node: ast.If) -> bool:
    test = condition(scope, node.test)
    before = set(scope.defined)
    with scope.nested() as then:
        then_ends = lower_block(scope, node.body)
    after_then, scope.defined = scope.defined, set(before)
    with scope.nested() as otherwise:
        else_ends = lower_block(scope, node.orelse)
    after_else = scope.defined
    scope.defined = after_then & after_else if then_ends and else_ends else after_then if then_ends else after_else
    scope.emit(ir.If(test, tuple(then), tuple(otherwise), scope.location(node)))
    return then_ends or else_ends


def _for(scope: Scope, node: ast.For) -> None:
    is_range = isinstance(node.iter, ast.Call) and isinstance(f := lower(scope, node.iter.func), PythonObject) and f.value is range
    if not (is_range and isinstance(node.target, ast.Name)):
        raise scope.error(
            "a loop runs over range()", node.iter, found=ast.unparse(node.iter), wanted="for i in range(n)", hint="while loops take any condition"
        )
    assert isinstance(node.iter, ast.Call)
    bounds = [scalar(scope, a) for a in node.iter.args]
    for b, a in zip(bounds, node.iter.args, strict=True):
        if b.scalar.is_float or b.scalar == t.BOOL:
            raise scope.error("the bounds of range() are whole numbers", a, found=b.describe(), wanted="an integer", hint="lw.i32(x)")
    name = node.target.id
    if name in scope.loop_variables or name in scope.parameters or scope.assignment_counts.get(name):
        raise scope.error(f"{name!r} is already in use", node.target, wanted="a loop variable of its own name")
    kind = t.I64 if any(b.scalar in (t.I64, t.U32) for b in bounds) else t.I32
    ends = [settle(b, kind).parts[0] for b in bounds]
    zero, one = ir.Literal(0, kind), ir.Literal(1, kind)
    start, stop = (zero, ends[0]) if len(ends) == 1 else (ends[0], ends[1])
    step = ends[2] if len(ends) == 3 else one
    if not isinstance(step, ir.Literal) or step.value == 0:
        raise scope.error("the step of range() is a literal", node.iter, found=ast.unparse(node.iter), wanted="a literal that is not 0")
    if not isinstance(stop, ir.Literal):  # Python computes the bound once
        stop = _copy(scope, stop)
    before = set(scope.defined)
    scope.variables[name] = Variable(kind, False, scope.location(node))
    scope.loop_variables.append(name)
    scope.defined.add(name)
    scope.loops += 1
    with scope.nested() as body:
        lower_block(scope, node.body)
    scope.loops -= 1
    scope.loop_variables.remove(name)
    scope.defined = before
    scope.emit(ir.For(name, start, stop, step, tuple(body), location=scope.location(node)))


def _while(scope: Scope, node: ast.While) -> None:
    where = scope.location(node)
    with scope.nested() as head:
        test = condition(scope, node.test)
    before = set(scope.defined)
    scope.loops += 1
    with scope.nested() as body:
        lower_block(scope, node.body)
    scope.loops -= 1
    scope.defined = before
    if head:  # the condition needs statements: they run before every test
        stop = ir.If(ir.Unary("not", test, t.BOOL, where), (ir.Break(where),), (), where)
        scope.emit(ir.While(ir.Literal(True, t.BOOL), (*head, stop, *body), where))
    else:
        scope.emit(ir.While(test, tuple(body), where))


def _return(scope: Scope, node: ast.Return) -> None:
    given = [] if node.value is None else node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
    values = [number(scope, e) for e in given]
    if scope.result_types is None:
        scope.result_types = [x.type for x in values]
    if len(values) != len(scope.result_types):
        raise scope.error(
            "the function returns another number of values than its annotation says", node, found=f"{len(values)} values",
            wanted=", ".join(map(str, scope.result_types)) or "no value",
        )  # fmt: skip
    kept = [coerce(scope, x, w, node, "the result") for x, w in zip(values, scope.result_types, strict=True)]
    scope.emit(ir.Return(tuple(p for x in kept for p in x.parts), scope.location(node)))

