"""Lower the forms of assignment: plain, chained, unpacked, declared; to variables, fields and
elements of local arrays.
"""

from __future__ import annotations

import ast

from lanewise.frontend.access import (
    attribute,
    checked_index,
    field_of,
    number_inside,
    several_indices,
)
from lanewise.frontend.directions import population_index
from lanewise.frontend.elements import index_nodes, lengths, store
from lanewise.frontend.expressions import lower, number, place
from lanewise.frontend.places import (
    assign_direction,
    assign_field,
    assign_name,
    assign_population,
    assign_window,
    coerce,
    declare_array,
)
from lanewise.frontend.scope import LocalVariable, Scope
from lanewise.frontend.values import (
    ArrayReference,
    ElementsReference,
    Number,
    PopulationsReference,
    PythonObject,
    RecordReference,
    Several,
    ShapeReference,
    WindowReference,
    component,
)
from lanewise.ir import nodes as ir
from lanewise.language import types as t
from lanewise.language import values as v
from lanewise.language.lattices.base import Direction
from lanewise.support.articles import an

# of what cannot have these types
IN_MEMORY = ": numbers of 8 and 16 bits are in fields and arrays alone"


def assignment(scope: Scope, targets: list[ast.expr], value: ast.expr, node: ast.stmt) -> None:
    """`target = value`, also with several targets (`a = b = value`)."""
    if (
        isinstance(targets[0], ast.Name)
        and len(targets) == 1
        and isinstance(value, ast.Call)
        and (array := _local_array(scope, value))
    ):
        declare_array(scope, targets[0].id, array, node)
        return
    if any(isinstance(x, (ast.Tuple, ast.List)) for x in targets):
        _unpack(scope, targets, value, node)
        return
    result = lower(scope, value)
    if isinstance(result, RecordReference) and _assign_records(scope, targets, result, node):
        return
    if (
        isinstance(result, PythonObject)
        and isinstance(result.value, Direction)
        and isinstance(targets[-1], ast.Name)
    ):
        for target in targets:
            assign_direction(scope, target, result, node)
        return
    if (
        isinstance(result, WindowReference)
        and isinstance(name := targets[0], ast.Name)
        and len(targets) == 1
    ):
        assign_window(scope, name, result, node)
        return
    if not isinstance(result, Number):
        if isinstance(result, Several):
            raise scope.error(
                "one name cannot hold several values",
                node,
                found=result.describe(),
                wanted="a name for each: a, b = ...",
            )
        named = isinstance(result, (RecordReference, ArrayReference, ElementsReference))
        hint = f"use its name: {result.name}" if named else ""
        if named and not any(isinstance(x, ast.Name) for x in targets):
            hint = number_inside(result)  # a field or an element has a name already
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


def _assign_records(
    scope: Scope, targets: list[ast.expr], value: RecordReference, node: ast.stmt
) -> bool:
    """`b.shape = other.shape`: a record within another one takes the fields of one of its kind. All
    are read before the first one changes. False where a target is something else.
    """
    found = [_record(scope, x) for x in targets if isinstance(x, ast.Attribute)]
    records = [r for r in found if r is not None]
    if len(records) < len(targets):
        return False
    for record in records:
        if record.record != value.record:
            raise scope.error(
                f"{record.name} is {an(record.record.name)}",
                node,
                found=value.describe(),
                wanted=an(record.record.name),
            )
    kept = [(f.name, _kept(scope, field_of(scope, value, f, node))) for f in value.record]
    for record in records:
        for name, one in kept:
            assign_field(scope, record, name, one, node)
    return True


def _unpack(scope: Scope, targets: list[ast.expr], value: ast.expr, node: ast.stmt) -> None:
    """`x, y, z = vector`, `a, b = b, a` and `a, b = helper(x)`: all values are taken before any
    name changes.
    """
    if len(targets) > 1 or not isinstance(target := targets[0], ast.Tuple):
        raise scope.error(
            "names are unpacked in one simple assignment",
            node,
            found=ast.unparse(node),
            wanted="a, b = ...",
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


def _record(scope: Scope, node: ast.expr) -> RecordReference | None:
    """The record that a name is, or a name within one; None for anything else."""
    match node:
        case ast.Name(id=name):
            found = scope.parameters.get(name)
        case ast.Attribute(attr=name) if (outer := _record(scope, node.value)) is not None:
            found = attribute(scope, outer, node) if outer.record.part(name) else None
        case _:
            found = None
    return found if isinstance(found, RecordReference) else None


def _several(scope: Scope, value: ast.expr) -> list[Number]:
    if isinstance(value, ast.Tuple):
        for e in value.elts:
            if isinstance(record := _record(scope, e), RecordReference):
                raise _records_at_once(scope, record, e)
        return [number(scope, e) for e in value.elts]
    whole = lower(scope, value)
    if isinstance(whole, Several):
        return list(whole.values)
    if isinstance(whole, ShapeReference):
        return lengths(whole, scope, value)
    if isinstance(whole, Number) and whole.is_vector:
        return [component(whole, i) for i in range(len(whole.parts))]
    raise scope.error(
        "this cannot be unpacked",
        value,
        found=whole.describe(),
        wanted="as many values as names, or a vector",
    )


def _records_at_once(scope: Scope, record: RecordReference, node: ast.expr) -> Exception:
    """The error about `b.shape, b.before = b.before, b.shape`. In Python, where names of records
    within records are references, that would give both the same values.
    """
    field = record.record.fields[0].name
    return scope.error(
        "records are assigned one at a time",
        node,
        found=record.describe(),
        wanted="scalars and vectors",
        hint=f"to swap two records, swap their fields: {record.name}.{field} and so on",
    )


def _kept(scope: Scope, x: Number) -> Number:
    """The value that x has now, whatever is assigned later."""
    return (
        x
        if x.known
        else Number(
            x.type,
            tuple(
                p if isinstance(p, ir.Literal) or scope.is_steady(p) else scope.copy(p)
                for p in x.parts
            ),
            open=x.open,
            exact=x.exact,
        )
    )


def _local_array(scope: Scope, call: ast.Call) -> t.LocalArray | None:
    callee = lower(scope, call.func)
    if not (isinstance(callee, PythonObject) and callee.value is v.zeros):
        return None
    if len(call.args) != 2 or call.keywords:
        raise scope.error(
            "lw.zeros takes a scalar type and a length",
            call,
            found=ast.unparse(call),
            wanted="lw.zeros(lw.f32, 8)",
        )
    element, length = lower(scope, call.args[0]), number(scope, call.args[1])
    kind = v.type_of_annotation(element.value) if isinstance(element, PythonObject) else None
    if not isinstance(kind, t.Scalar) or kind in t.STORED:
        raise scope.error(
            "a local array holds scalars" + (IN_MEMORY if kind in t.STORED else ""),
            call.args[0],
            found=element.describe(),
            wanted="lw.f32, f64, i32, i64, u32 or bool",
        )
    if (
        isinstance(length.constant, bool)
        or not isinstance(length.constant, int)
        or not 1 <= length.constant <= 4096
    ):
        raise scope.error(
            "the length of a local array is a literal",
            call.args[1],
            found=length.describe(),
            wanted="a literal from 1 to 4096",
        )
    return t.LocalArray(kind, length.constant)


def declaration(
    scope: Scope, target: ast.expr, annotation: ast.expr, value: ast.expr | None, node: ast.stmt
) -> None:
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
    if t.scalar_of(kind) in t.STORED:
        raise scope.error(
            f"{target.id!r} is a variable{IN_MEMORY}",
            node,
            found=ast.unparse(node),
            wanted=f"{target.id}: lw.{t.computed(t.scalar_of(kind))} = ...",
            hint=f"lw.{kind}(...) makes it fit where it is stored",
        )
    if target.id in scope.parameters:
        raise scope.error(
            f"{target.id!r} is a parameter and has its type already",
            node,
            found=ast.unparse(node),
            wanted=f"{target.id} = ...",
        )
    decided = scope.inferred.variables.get(target.id)
    if decided is None or not decided.declared:
        raise scope.decide(
            target.id, LocalVariable(kind, False, scope.location(node), declared=True)
        )
    if decided.type != kind:
        raise scope.error(
            f"{target.id!r} is declared twice",
            node,
            found=str(kind),
            wanted=f"{decided.type}, as in line {decided.location.line}",
        )
    assign(scope, target, number(scope, value), node, declared=True)


def assign(
    scope: Scope, target: ast.expr, value: Number, node: ast.AST, *, declared: bool = False
) -> None:
    """Give a variable, a field of a mutable record or an element of a local array a value."""
    match target:
        case ast.Name(id=name):
            assign_name(scope, name, value, node, declared)
        case ast.Attribute(attr=attribute) if (
            reference := _record(scope, target.value)
        ) is not None:
            assign_field(scope, reference, attribute, value, node)
        case ast.Subscript(value=ast.Name(id=owner)) if isinstance(
            elements := scope.parameters.get(owner), ElementsReference
        ):
            store(
                scope, elements, target, [lower(scope, i) for i in index_nodes(target)], value, node
            )
        case ast.Subscript(value=owner_node, slice=index) if isinstance(
            array := lower(scope, owner_node), ArrayReference
        ):
            at = checked_index(
                scope,
                place(scope, index),
                index,
                array.type.length,
                f"the local array {array.name!r}",
            )
            kept = coerce(scope, value, array.type.element, node, f"an element of {array.name!r}")
            scope.emit(ir.SetElement(array.name, at, kept.parts[0], scope.location(node)))
        case ast.Subscript(value=ast.Name(id=owner), slice=ast.Tuple()) if isinstance(
            populations := scope.parameters.get(owner), PopulationsReference
        ):
            raise several_indices(scope, populations, target)
        case ast.Subscript(value=ast.Name(id=owner), slice=index) if isinstance(
            populations := scope.parameters.get(owner), PopulationsReference
        ):
            chosen = population_index(scope, populations, lower(scope, index), index)
            assign_population(scope, populations, chosen, value, node)
        case _:
            raise scope.error(
                "this cannot be assigned to",
                node,
                found=ast.unparse(target),
                wanted="a variable, a field of the record, or an element of a local array",
                hint="vectors are values: write v = lw.vec3(x, v.y, v.z)",
            )
