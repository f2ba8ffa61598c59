"""What a name, a field, a component or an index stands for."""

from __future__ import annotations

import ast
from dataclasses import replace
from types import ModuleType

import numpy as np

from lanewise.frontend.directions import ATTRIBUTES, direction_attribute
from lanewise.frontend.elements import array_attribute
from lanewise.frontend.rows import row_element, window_element
from lanewise.frontend.scope import Scope
from lanewise.frontend.values import (
    ArrayReference,
    ElementsReference,
    Number,
    PopulationsReference,
    PythonObject,
    RecordReference,
    RowReference,
    Several,
    ShapeReference,
    Value,
    WindowReference,
    component,
    from_python,
    weak_vector,
)
from lanewise.ir import nodes as ir
from lanewise.language import types as t
from lanewise.language.lattices.base import Direction, Lattice
from lanewise.language.record import Field, Record, meant_field
from lanewise.support.articles import an
from lanewise.support.elsewhere import use
from lanewise.support.errors import CompileError, Location


def name_value(scope: Scope, name: str, node: ast.Name) -> Value:
    """A parameter, a local variable, or what the module calls by this name."""
    where = scope.location(node)
    if name in scope.parameters:
        value = scope.parameters[name]
        return (
            replace(value, parts=tuple(replace(p, location=where) for p in value.parts))
            if isinstance(value, Number)
            else value
        )
    if name in scope.items:
        return _located(scope.items[name], where)
    if name in scope.loop_names:
        return Number(
            scope.loop_names[name].type, (replace(scope.loop_names[name], location=where),)
        )
    if name in scope.names.loop_variables:
        raise scope.error(
            f"the loop variable {name!r} has no value outside its loop",
            node,
            found=name,
            wanted="a variable that the loop assigns",
            hint=f"write last = {name} in the loop, with last = 0 before it",
        )
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
        f"{name!r} is not defined",
        node,
        found=name,
        wanted="a parameter, a local variable or a module-level name",
    )


def _variable(scope: Scope, name: str, node: ast.Name) -> Value:
    where = scope.location(node)
    if name in scope.constants:
        return _located(scope.constants[name], where)
    variable = scope.variables[name]
    if isinstance(variable.type, t.LocalArray):
        return ArrayReference(name, variable.type)
    element = t.scalar_of(variable.type)
    parts = tuple(ir.Local(n, element, where) for n in t.leaves(name, variable.type))
    return Number(variable.type, parts, open=variable.open)


def _located(value: Value, where: Location) -> Value:
    """A constant where it is used."""
    if not isinstance(value, Number):
        return value
    return replace(value, parts=tuple(replace(p, location=where) for p in value.parts))


def attribute(scope: Scope, owner: Value, node: ast.Attribute) -> Value:
    """A field of a record, components of a vector, or a member of a Python object."""
    where = scope.location(node)
    match owner:
        case RecordReference():
            if (part := owner.record.part(node.attr)) is not None:
                return replace(owner, name=f"{owner.name}.{node.attr}", record=part)
            field = owner.record.field(node.attr)
            if field is None:
                raise scope.error(
                    f"{owner.record.name} has no field {node.attr!r}",
                    node,
                    found=f"{owner.name}.{node.attr}",
                    wanted=f"one of {', '.join(owner.record.names)}",
                    hint=meant_field(owner.record, node.attr).removeprefix("; "),
                )
            return field_of(scope, owner, field, node)
        case Number(type=t.Vector(element=element, length=length)):
            allowed = t.COMPONENTS[:length]
            if not all(c in allowed for c in node.attr) or len(node.attr) > 4:
                raise scope.error(
                    f"{owner.type} has no component {node.attr!r}", node, found=node.attr,
                    wanted=f"one of {', '.join(allowed)}, or several such as .{allowed}",
                )  # fmt: skip
            picked = [component(owner, t.COMPONENTS.index(c)) for c in node.attr]
            if len(picked) == 1:
                return picked[0]
            exact = tuple(e for x in picked for e in (x.exact or (None,)))
            if owner.known:
                return weak_vector(
                    tuple(x.constant for x in picked if x.constant is not None), exact, where
                )
            return Number(
                t.Vector(element, len(picked)), tuple(x.parts[0] for x in picked), exact=exact
            )
        case ElementsReference():
            return array_attribute(scope, owner, node)
        case PythonObject(value=Direction() as direction) if hasattr(direction, node.attr):
            return direction_attribute(direction, node.attr, where)
        case PythonObject(value=value) if hasattr(value, node.attr):
            return from_python(getattr(value, node.attr), where)
        case _:
            raise scope.error(
                f"{owner.describe()} has no {node.attr!r}",
                node,
                found=ast.unparse(node),
                wanted=_expected(owner),
                hint=_elsewhere(owner, node.attr),
            )


def field_of(scope: Scope, owner: RecordReference, field: Field, node: ast.AST) -> Number:
    """The value that a field of a record has."""
    names, where = t.leaves(f"{owner.name}.{field.name}", field.type), scope.location(node)
    return Number(field.type, tuple(ir.Local(n, t.scalar_of(field.type), where) for n in names))


def _elsewhere(owner: Value, name: str) -> str:
    """Where a name is that lanewise does not have."""
    match owner:
        case PythonObject(value=ModuleType(__name__="lanewise")):
            return use(name)
        case _:
            return ""


def _expected(owner: Value) -> str:
    """What may stand where an unknown attribute was found."""
    match owner:
        case PythonObject(value=ModuleType()):
            return "a name that the module has"
        case PythonObject(value=Direction()):
            return f"one of {ATTRIBUTES}"
        case PopulationsReference():
            return f"{owner.name}[q], with a direction or a literal for q"
        case _:
            return "a record, a vector or a module before the dot"


def checked_index(
    scope: Scope, value: Number, node: ast.expr, length: int, what: str
) -> ir.Expression:
    """A checked index into something of a known length."""
    if not value.scalar.is_integer:
        raise scope.error(
            "an index must be an integer",
            node,
            found=value.describe(),
            wanted="an integer",
            hint="lw.i32(x)",
        )
    if value.constant is None:
        return scope.computed(value).parts[0]
    constant = int(value.constant)
    if not -length <= constant < length:
        raise scope.error(
            f"index {constant} is outside {what}",
            node,
            found=str(constant),
            wanted=f"0 to {length - 1}",
        )
    return ir.Literal(constant % length, t.I32, scope.location(node))


def subscript(scope: Scope, owner: Value, place: Number, node: ast.Subscript) -> Value:
    """An element of a local array, or a component, tuple element or direction that a literal
    chooses.
    """
    match owner:
        case RowReference():
            return row_element(scope, owner, place, node)
        case WindowReference():
            return window_element(scope, owner, place, node)
        case ArrayReference(name=name, type=array):
            index = checked_index(
                scope, place, node.slice, array.length, f"the local array {name!r}"
            )
            return Number(
                array.element, (ir.Element(name, index, array.element, scope.location(node)),)
            )
        case Number(type=t.Vector(length=length)):
            index = checked_index(scope, place, node.slice, length, an(owner.type))
            if not isinstance(index, ir.Literal):
                raise scope.error(
                    "a component of a vector is chosen by a literal",
                    node,
                    found="an index known only at run time",
                    wanted="a literal",
                    hint="use a local array: lw.zeros(lw.f32, n)",
                )
            return component(owner, int(index.value))
        case PythonObject(value=(tuple() | Lattice()) as items):
            what = f"the lattice {items.name}" if isinstance(items, Lattice) else "the tuple"
            index = checked_index(scope, place, node.slice, len(items), what)
            if not isinstance(index, ir.Literal):
                raise scope.error(
                    "an element of a tuple is chosen by a literal",
                    node,
                    found="an index known only at run time",
                    wanted="a literal",
                    hint="put the elements into a local array: a = lw.zeros(lw.f32, n)",
                )
            return from_python(items[int(index.value)], scope.location(node))
        case Several(values=values):
            index = checked_index(
                scope, place, node.slice, len(values), "the results of the helper"
            )
            if not isinstance(index, ir.Literal):
                raise scope.error(
                    "a result of a helper is chosen by a literal",
                    node,
                    found="an index known only at run time",
                    wanted="a literal",
                )
            return values[int(index.value)]
        case _:
            raise _not_indexed(scope, owner, node)


def several_indices(scope: Scope, owner: Value, node: ast.Subscript) -> CompileError:
    """The error of `owner[y, x]`, where the owner is no array that a parameter declares."""
    match owner:
        case PythonObject():
            return _not_indexed(scope, owner, node)
        case PopulationsReference(name=name):
            wanted = f"a direction or its number, such as {name}[q] or {name}[1]"
        case _:
            wanted = "one index"
    return scope.error(
        "this takes one index", node.slice, found=ast.unparse(node.slice), wanted=wanted
    )


def _not_indexed(scope: Scope, owner: Value, node: ast.Subscript) -> CompileError:
    return scope.error(
        "this cannot be indexed",
        node,
        found=owner.describe(),
        wanted="a vector, a local array or a tuple of numbers",
        hint=number_inside(owner) if isinstance(owner, PythonObject) else "",
    )


def number_inside(value: Value) -> str:
    """How to get at a number in something that is none."""
    match value:
        case RecordReference():
            return f"use one of its fields, for example {value.name}.{value.record.fields[0].name}"
        case RowReference() | WindowReference():
            return f"use one of its values, for example {value.name}[0]"
        case ElementsReference():
            return f"use one of its elements, for example {value.example}"
        case ShapeReference(array=array):
            return f"use one of its lengths, for example {array.name}.shape[0]"
        case ArrayReference():
            return f"use one of its elements, for example {value.name}[0]"
        case PopulationsReference():
            return f"use one of them, for example {value.name}[0]"
        case PythonObject(value=Direction()):
            return f"use one of its attributes: {ATTRIBUTES}"
        case PythonObject(value=list()):
            return (
                "a tuple of numbers may be named from outside; an array is a parameter, such as "
                "table: lw.Array1[lw.f32]"
            )
        case PythonObject(value=np.ndarray(ndim=axes, dtype=dtype)):
            return (
                "an array is a parameter, and is passed in the call: "
                f"table: lw.Array{min(max(axes, 1), 3)}[lw.{t.from_dtype(dtype) or t.F32}]"
            )
        case PythonObject(value=value) if isinstance(getattr(value, "record", None), Record):
            return (
                "records are passed in the call; a loop over other elements is an @lw.pairwise "
                "function"
            )
        case _:
            return ""
