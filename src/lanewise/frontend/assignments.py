"""Lower assignments.

Variables, fields of the record that is updated, elements of local arrays; and find the types of variables.

A variable has one type. Its first assignment gives it, unless only Python numbers are assigned first: then it is open,
and the first value that has a type decides (`total = 0.0`, later `total += x`). A decision starts the lowering anew.
"""

from __future__ import annotations

import ast

from lanewise import types as t
from lanewise import values as v
from lanewise.frontend.expressions import element_index, lower, number
from lanewise.frontend.promotion import fits
from lanewise.frontend.scope import Scope, Variable
from lanewise.frontend.values import ArrayReference, Number, PythonObject, RecordReference, Several
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import reads


def assignment(scope: Scope, targets: list[ast.expr], value: ast.expr, node: ast.stmt) -> None:
    """`target = value`, also with several targets (`a = b = value`)."""
    if (
        isinstance(targets[0], ast.Name)
        and len(targets) == 1
        and isinstance(value, ast.Call)
        and (array := _local_array(scope, value))
    ):
        _declare_array(scope, targets[0].id, array, node)
        return
    if any(isinstance(x, (ast.Tuple, ast.List)) for x in targets):
        _unpack(scope, targets, value, node)
        return
    result = lower(scope, value)
    if not isinstance(result, Number):
        if isinstance(result, Several):
            raise scope.error(
                "one name cannot hold several values",
                node,
                found=result.describe(),
                wanted="a name for each: a, b = ...",
            )
        hint = f"use its name: {result.name}" if isinstance(result, (RecordReference, ArrayReference)) else ""
        raise scope.error(
            "only numbers and vectors can be assigned",
            node,
            found=result.describe(),
            wanted="a scalar or a vector",
            hint=hint,
        )
    if len(targets) > 1:
        result = _kept(scope, result)
    for target in targets:
        assign(scope, target, result, node)


def _unpack(scope: Scope, targets: list[ast.expr], value: ast.expr, node: ast.stmt) -> None:
    """`x, y, z = vector`, `a, b = b, a` and `a, b = helper(x)`: all values are taken before any name changes."""
    if len(targets) > 1 or not isinstance(target := targets[0], ast.Tuple):
        raise scope.error(
            "names are unpacked in one simple assignment", node, found=ast.unparse(node), wanted="a, b = ..."
        )
    values = _several(scope, value)
    if len(values) != len(target.elts):
        raise scope.error(
            "the number of names and values differ",
            node,
            found=f"{len(target.elts)} names, {len(values)} values",
            wanted="one name for each value",
        )
    for name, x in zip(target.elts, [_kept(scope, x) for x in values], strict=True):
        assign(scope, name, x, node)


def _several(scope: Scope, value: ast.expr) -> list[Number]:
    if isinstance(value, ast.Tuple):
        return [number(scope, e) for e in value.elts]
    whole = lower(scope, value)
    if isinstance(whole, Several):
        return list(whole.values)
    if isinstance(whole, Number) and whole.is_vector:
        return [Number(whole.scalar, (p,)) for p in whole.parts]
    raise scope.error(
        "this cannot be unpacked", value, found=whole.describe(), wanted="as many values as names, or a vector"
    )


def _kept(scope: Scope, x: Number) -> Number:
    """The value that x has now, whatever is assigned later."""
    return (
        x
        if x.constant is not None
        else Number(x.type, tuple(p if isinstance(p, ir.Literal) else scope.copy(p) for p in x.parts), open=x.open)
    )


def _local_array(scope: Scope, call: ast.Call) -> t.LocalArray | None:
    callee = lower(scope, call.func)
    if not (isinstance(callee, PythonObject) and callee.value is v.zeros):
        return None
    if len(call.args) != 2 or call.keywords:
        raise scope.error(
            "lw.zeros takes a scalar type and a length", call, found=ast.unparse(call), wanted="lw.zeros(lw.f32, 8)"
        )
    element, length = lower(scope, call.args[0]), number(scope, call.args[1])
    kind = v.type_of_annotation(element.value) if isinstance(element, PythonObject) else None
    if not isinstance(kind, t.Scalar):
        raise scope.error(
            "a local array holds scalars",
            call.args[0],
            found=element.describe(),
            wanted="lw.f32, f64, i32, i64, u32 or bool",
        )
    if isinstance(length.constant, bool) or not isinstance(length.constant, int) or not 1 <= length.constant <= 4096:
        raise scope.error(
            "the length of a local array is a literal",
            call.args[1],
            found=length.describe(),
            wanted="a literal from 1 to 4096",
        )
    return t.LocalArray(kind, length.constant)


def _declare_array(scope: Scope, name: str, array: t.LocalArray, node: ast.stmt) -> None:
    _check_name(scope, name, node)
    known = scope.variables.setdefault(name, Variable(array, False, scope.location(node)))
    if known.type != array:
        raise scope.error(
            f"{name!r} changes its type",
            node,
            found=str(array),
            wanted=f"{known.type}, as in line {known.location.line}",
        )
    if name in scope.parameters:
        raise scope.error(
            f"{name!r} is a parameter", node, found=f"a local array of type {array}", wanted="another name"
        )
    scope.defined.add(name)
    scope.emit(ir.DeclareArray(name, array, scope.location(node)))


def declaration(scope: Scope, target: ast.expr, annotation: ast.expr, value: ast.expr | None, node: ast.stmt) -> None:
    """`x: lw.f32 = 0`: a variable whose type is said."""
    element = lower(scope, annotation)
    kind = v.type_of_annotation(element.value) if isinstance(element, PythonObject) else None
    if kind is None or value is None or not isinstance(target, ast.Name):
        raise scope.error(
            "a variable is declared with a lanewise type and a value",
            node,
            found=ast.unparse(node),
            wanted="x: lw.f32 = 0",
        )
    if target.id in scope.parameters:
        raise scope.error(
            f"{target.id!r} is a parameter and has its type already",
            node,
            found=ast.unparse(node),
            wanted=f"{target.id} = ...",
        )
    decided = scope.decisions.variables.get(target.id)
    if decided is None or not decided.declared:
        raise scope.decide(target.id, Variable(kind, False, scope.location(node), declared=True))
    if decided.type != kind:
        raise scope.error(
            f"{target.id!r} is declared twice",
            node,
            found=str(kind),
            wanted=f"{decided.type}, as in line {decided.location.line}",
        )
    assign(scope, target, number(scope, value), node, declared=True)


def assign(scope: Scope, target: ast.expr, value: Number, node: ast.AST, *, declared: bool = False) -> None:
    """Give a variable, a field of a mutable record or an element of a local array a value."""
    match target:
        case ast.Name(id=name):
            _assign_name(scope, name, value, node, declared)
        case ast.Attribute(value=ast.Name(id=owner), attr=attribute) if isinstance(
            reference := scope.parameters.get(owner), RecordReference
        ):
            _assign_field(scope, reference, attribute, value, node)
        case ast.Subscript(value=owner_node, slice=index) if isinstance(
            array := lower(scope, owner_node), ArrayReference
        ):
            place = element_index(scope, index, array.type.length, f"the local array {array.name!r}")
            kept = coerce(scope, value, array.type.element, node, f"an element of {array.name!r}")
            scope.emit(ir.SetElement(array.name, place, kept.parts[0], scope.location(node)))
        case _:
            raise scope.error(
                "this cannot be assigned to", node, found=ast.unparse(target),
                wanted="a variable, a field of the record, or an element of a local array",
                hint="vectors are values: write v = lw.vec3(x, v.y, v.z)",
            )  # fmt: skip


def _assign_field(scope: Scope, record: RecordReference, attribute: str, value: Number, node: ast.AST) -> None:
    place = f"{record.name}.{attribute}"
    field = record.record.field(attribute)
    if field is None:
        raise scope.error(
            f"{record.record.name} has no field {attribute!r}",
            node,
            found=place,
            wanted=f"one of {', '.join(f.name for f in record.record)}",
        )
    if not record.mutable:
        raise scope.error(
            f"{record.name!r} can only be read here",
            node,
            found=f"an assignment to {place}",
            wanted="a function that returns its result",
            hint="only the first record of an @lw.elementwise function is updated in place",
        )
    _store(scope, place, coerce(scope, value, field.type, node, place), node)


def _check_name(scope: Scope, name: str, node: ast.AST) -> None:
    if isinstance(scope.parameters.get(name), RecordReference):
        raise scope.error(
            f"the record {name!r} cannot be replaced",
            node,
            found=f"an assignment to {name}",
            wanted=f"assign to its fields: {name}.field = ...",
        )
    if name in scope.names.loop_variables:
        raise scope.error(
            f"the loop variable {name!r} cannot be assigned",
            node,
            found=f"an assignment to {name}",
            wanted="another variable",
        )


def _assign_name(scope: Scope, name: str, value: Number, node: ast.AST, declared: bool) -> None:
    _check_name(scope, name, node)
    if (parameter := scope.parameters.get(name)) is not None:
        assert isinstance(parameter, Number)
        _store(scope, name, coerce(scope, value, parameter.type, node, name), node)
        return
    if (
        value.constant is not None
        and not declared
        and scope.names.assignments[name] == 1
        and name not in scope.decisions.variables
    ):
        scope.constants[name] = value  # set once, to a literal: it stays weak
        scope.defined.add(name)
        return
    known = scope.variables.get(name)
    if known is None:
        known = scope.variables[name] = Variable(value.type, value.weak, scope.location(node))
    if isinstance(known.type, t.LocalArray):
        raise scope.error(
            f"{name!r} is a local array", node, found="an assignment to the whole array", wanted=f"{name}[i] = value"
        )
    if known.open:
        _decide(scope, name, known, known.type, value, node)
    kept = coerce(scope, value, known.type, node, name, known)
    scope.defined.add(name)
    _store(scope, name, kept, node)


def _decide(scope: Scope, name: str, known: Variable, current: t.ValueType, value: Number, node: ast.AST) -> None:
    """Give an open variable the type of the first value that has one.

    A float stays a float when whole numbers follow.
    """
    narrower = not value.is_vector and t.holds(t.scalar_of(current), value.scalar)
    if value.weak:
        if not narrower:
            raise scope.decide(name, Variable(value.type, True, known.location))
    elif value.is_vector or not (t.scalar_of(current).is_float and not value.scalar.is_float):
        raise scope.decide(name, Variable(value.type, False, scope.location(node)))


def coerce(
    scope: Scope, value: Number, wanted: t.ValueType, node: ast.AST, what: str, since: Variable | None = None
) -> Number:
    """Widen a value to the type that a place has; refuse what would lose something."""
    element = t.scalar_of(wanted)
    weak_fits = value.weak and element != t.BOOL and (element.is_float or value.scalar.is_integer)
    suits = t.holds(element, value.scalar) or weak_fits
    if value.constant is not None and not isinstance(value.constant, bool) and not fits(value.constant, element):
        suits = False
    if value.is_vector != isinstance(wanted, t.Vector) or (
        isinstance(wanted, t.Vector) and len(value.parts) != wanted.length
    ):
        suits = False
    if not suits:
        where = f" since line {since.location.line}" if since else ""
        raise scope.error(
            f"{what} is of type {wanted}{where}", node, found=value.describe(), wanted=f"a value of type {wanted}",
            hint=_conversion(value, wanted, node),
        )  # fmt: skip
    return scope.settle(value, element)


def _conversion(value: Number, wanted: t.ValueType, node: ast.AST) -> str:
    """How a value becomes one of the wanted type."""
    if value.is_vector and not isinstance(wanted, t.Vector):
        return "take a component, .x, or lw.length(...)"
    if value.is_vector and isinstance(wanted, t.Vector) and len(value.parts) != wanted.length:
        if wanted.length < len(value.parts):
            return f"take the components that you mean: .{t.COMPONENTS[: wanted.length]}"
        return f"add what is missing: lw.{wanted}(..., {', '.join(['0'] * (wanted.length - len(value.parts)))})"
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div) and t.scalar_of(wanted).is_integer:
        return "// divides whole numbers"
    return f"convert it where you mean it: lw.{wanted}(...)"


def _store(scope: Scope, name: str, value: Number, node: ast.AST) -> None:
    """Assign the components of a value, through temporaries when a later one still needs an earlier variable."""
    names = t.leaves(name, value.type)
    parts = list(value.parts)
    if any(set(reads(part)) & set(names[:i]) for i, part in enumerate(parts)):
        parts = [p if isinstance(p, ir.Literal) else scope.copy(p) for p in parts]
    for n, p in zip(names, parts, strict=True):
        scope.emit(ir.Assign(n, p, scope.location(node)))
