"""Give a variable, a field or an array a value of the same type, and find the types of variables.

A variable has one type. Its first assignment gives it, unless only Python numbers are assigned
first: then it is open, and the first value that has a type decides (`total = 0.0`, later `total +=
x`). A decision starts the lowering anew.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from lanewise.frontend.promotion import fits
from lanewise.frontend.scope import LocalVariable, Scope
from lanewise.frontend.values import (
    ElementsReference,
    Number,
    PopulationsReference,
    PythonObject,
    RecordReference,
    WindowReference,
)
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import reads
from lanewise.language import types as t
from lanewise.language.record import meant_field
from lanewise.support.articles import an


def assign_field(
    scope: Scope, record: RecordReference, attribute: str, value: Number, node: ast.AST
) -> None:
    """`record.field = value`, for the record that is updated in place."""
    place = f"{record.name}.{attribute}"
    part, field = record.record.part(attribute), record.record.field(attribute)
    if part is not None:
        raise scope.error(
            f"{place} is {an(part.name)}, whose fields are assigned one by one",
            node,
            found=f"an assignment of {value.describe()} to {place}",
            wanted=f"{place}.{part.names[0]} = ..., or another {part.name}",
        )
    if field is None:
        raise scope.error(
            f"{record.record.name} has no field {attribute!r}",
            node,
            found=place,
            wanted=f"one of {', '.join(record.record.names)}",
            hint=meant_field(record.record, attribute).removeprefix("; "),
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


def assign_population(
    scope: Scope, populations: PopulationsReference, index: int, value: Number, node: ast.AST
) -> None:
    """`f[q] = value`, for the populations that a site changes."""
    if populations.field:
        raise scope.error(
            f"the field {populations.name!r} can only be read",
            node,
            found=f"an assignment to {populations.name} at a neighbour",
            wanted="the value of this site as the result of the function that writes the field",
            hint="sites are updated at the same time: what a site wrote into its neighbour, "
            "another would read or not",
        )
    if not populations.mutable:
        raise scope.error(
            f"{populations.name!r} can only be read here",
            node,
            found=f"an assignment to a population of {populations.name}",
            wanted="a function that returns its result",
            hint="only the function of a kind of sites changes their populations, by its own "
            "parameter",
        )
    kept = coerce(scope, value, populations.type, node, "a population")
    _store(scope, populations.leaf(index), kept, node)


def _check_name(scope: Scope, name: str, node: ast.AST) -> None:
    if name in scope.indices:
        raise scope.error(
            f"the index {name!r} cannot be assigned",
            node,
            found=f"an assignment to {name}",
            wanted="another variable",
        )
    if isinstance(array := scope.parameters.get(name), ElementsReference):
        raise scope.error(
            f"the {'table' if array.is_table else 'array'} {name!r} cannot be replaced",
            node,
            found=f"an assignment to {name}",
            wanted="another name"
            if array.is_table
            else f"assign to its elements: {array.example} = ...",
        )
    if isinstance(scope.parameters.get(name), PopulationsReference):
        raise scope.error(
            f"the populations {name!r} cannot be replaced",
            node,
            found=f"an assignment to {name}",
            wanted=f"assign to each: {name}[q] = ...",
        )
    if isinstance(scope.parameters.get(name), PythonObject):
        raise scope.error(
            f"{name!r} is a direction of the call",
            node,
            found=f"an assignment to {name}",
            wanted="another variable",
        )
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


def assign_name(scope: Scope, name: str, value: Number, node: ast.AST, declared: bool) -> None:
    """`name = value`. A name that is set once, to a Python number, stays that number."""
    _check_name(scope, name, node)
    if (parameter := scope.parameters.get(name)) is not None:
        assert isinstance(parameter, Number)
        _store(scope, name, coerce(scope, value, parameter.type, node, name), node)
        return
    value = scope.computed(value)
    constant = not declared and _stays_constant(scope, name)
    if value.given and constant:
        scope.constants[name] = value  # set once, to a literal: it stays weak
        scope.defined.add(name)
        return
    if name in scope.constants:  # so in an earlier pass of an unrolled loop, in this one it is not
        if not constant:
            raise scope.decide(name, LocalVariable(value.type, value.weak, scope.location(node)))
        del scope.constants[name]
    variable = scope.variables.get(name)
    if variable is None:
        variable = scope.variables[name] = LocalVariable(
            value.type, value.weak, scope.location(node)
        )
    if isinstance(variable.type, t.LocalArray):
        raise scope.error(
            f"{name!r} is a local array",
            node,
            found="an assignment to the whole array",
            wanted=f"{name}[i] = value",
        )
    if variable.open:
        _decide(scope, name, variable, variable.type, value, node)
    kept = coerce(scope, value, variable.type, node, name, variable)
    scope.defined.add(name)
    _store(scope, name, kept, node)


def assign_direction(
    scope: Scope, target: ast.expr, direction: PythonObject, node: ast.AST
) -> None:
    """`other = q.opposite`: another name of a direction."""
    if not isinstance(target, ast.Name):
        raise scope.error(
            "a direction has its own name",
            node,
            found=ast.unparse(target),
            wanted="a variable, or one of its attributes on the right: .index .velocity",
        )
    _check_name(scope, target.id, node)
    if target.id in scope.parameters or not _stays_constant(scope, target.id):
        raise scope.error(
            f"{target.id!r} is a direction here and something else elsewhere",
            node,
            found=f"an assignment of {direction.describe()}",
            wanted="a name that one line sets, to directions",
        )
    scope.constants[target.id] = direction
    scope.defined.add(target.id)


def assign_window(scope: Scope, target: ast.Name, window: WindowReference, node: ast.AST) -> None:
    """`near = lw.window(bins, first, 16)`: the name of a window."""
    _check_name(scope, target.id, node)
    if target.id in scope.parameters or not _stays_constant(scope, target.id):
        raise scope.error(
            f"{target.id!r} is a window here and something else elsewhere",
            node,
            found=f"an assignment of {window.describe()}",
            wanted="a name that one line sets",
        )
    scope.constants[target.id] = replace(window, name=target.id)
    scope.defined.add(target.id)


def _stays_constant(scope: Scope, name: str) -> bool:
    """A name that one line sets.

    In an unrolled loop each pass has its own constant, unless that of an earlier pass may stay.
    """
    once = scope.names.assignments[name] == 1 and name not in scope.inferred.variables
    return once and (
        not scope.items or scope.depth == scope.unrolled_at or name not in scope.defined
    )


def _decide(
    scope: Scope,
    name: str,
    variable: LocalVariable,
    current: t.ValueType,
    value: Number,
    node: ast.AST,
) -> None:
    """Give an open variable the type of the first value that has one.

    A float stays a float when integers follow.
    """
    narrower = not value.is_vector and t.holds(t.scalar_of(current), value.scalar)
    if value.weak and value.type == current:
        return
    if value.weak:
        if not narrower:
            raise scope.decide(name, LocalVariable(value.type, True, variable.location))
    elif value.is_vector or not (t.scalar_of(current).is_float and not value.scalar.is_float):
        raise scope.decide(name, LocalVariable(value.type, False, scope.location(node)))


def coerce(
    scope: Scope,
    value: Number,
    target: t.ValueType,
    node: ast.AST,
    what: str,
    since: LocalVariable | None = None,
) -> Number:
    """Widen a value to the type that a place has; refuse what would lose something."""
    element = t.scalar_of(target)
    weak_fits = value.weak and element != t.BOOL and (element.is_float or value.scalar.is_integer)
    suits = t.holds(element, value.scalar) or weak_fits
    since_when = f" since line {since.location.line}" if since else ""
    number = value.constant
    if number is not None and not isinstance(number, bool) and not fits(number, element):
        if weak_fits and element.is_integer:
            raise scope.error(
                f"{number!r} does not fit {element}",
                node,
                found=f"{number!r}, where {what} is of type {element}{since_when}",
                wanted=f"a number that {element} can hold",
                hint=f"lw.{element}(...) wraps it, and lw.f64(...) rounds it",
            )
        suits = False
    if value.is_vector != isinstance(target, t.Vector) or (
        isinstance(target, t.Vector) and len(value.parts) != target.length
    ):
        suits = False
    if not suits:
        raise scope.error(
            f"{what} is of type {target}{since_when}",
            node,
            found=value.describe(),
            wanted=f"a value of type {target}",
            hint=_conversion(value, target, node),
        )
    return scope.settle(value, element)


def _conversion(value: Number, target: t.ValueType, node: ast.AST) -> str:
    """How a value becomes one of the wanted type."""
    if value.is_vector and not isinstance(target, t.Vector):
        return "take a component, .x, or lw.length(...)"
    if value.is_vector and isinstance(target, t.Vector) and len(value.parts) != target.length:
        if target.length < len(value.parts):
            return f"take the components that you mean: .{t.COMPONENTS[: target.length]}"
        return (
            f"add what is missing: lw.{target}(..., "
            f"{', '.join(['0'] * (target.length - len(value.parts)))})"
        )
    if (
        isinstance(node, ast.AugAssign)
        and isinstance(node.op, ast.Div)
        and t.scalar_of(target).is_integer
    ):
        return "// divides integers"
    return f"convert it explicitly: lw.{target}(...)"


def _store(scope: Scope, name: str, value: Number, node: ast.AST) -> None:
    """Assign the components of a value, through temporaries when a later one still needs an earlier
    variable.
    """
    names = t.leaves(name, value.type)
    parts = list(value.parts)
    if any(set(reads(part)) & set(names[:i]) for i, part in enumerate(parts)):
        parts = [p if isinstance(p, ir.Literal) else scope.copy(p) for p in parts]
    for n, p in zip(names, parts, strict=True):
        if not (isinstance(p, ir.Local) and p.name == n):  # what a direction leaves as it is
            scope.emit(ir.Assign(n, p, scope.location(node)))


def declare_array(scope: Scope, name: str, array: t.LocalArray, node: ast.stmt) -> None:
    """`name = lw.zeros(...)`."""
    _check_name(scope, name, node)
    variable = scope.variables.setdefault(name, LocalVariable(array, False, scope.location(node)))
    if variable.type != array:
        raise scope.error(
            f"{name!r} changes its type",
            node,
            found=str(array),
            wanted=f"{variable.type}, as in line {variable.location.line}",
        )
    if name in scope.parameters:
        raise scope.error(
            f"{name!r} is a parameter",
            node,
            found=f"a local array of type {array}",
            wanted="another name",
        )
    scope.defined.add(name)
    scope.emit(ir.DeclareArray(name, array, scope.location(node)))
