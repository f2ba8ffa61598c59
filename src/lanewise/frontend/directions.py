"""Directions and populations: constants of the compiler, the variables that they choose, and loops
over them.

The body of such a loop is lowered once for each direction, with the loop's name bound to it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import MethodType

from lanewise.frontend.literals import Known, combine, exact_of, negate
from lanewise.frontend.scope import Scope
from lanewise.frontend.values import (
    Number,
    PopulationsReference,
    PythonObject,
    Value,
    component,
    from_python,
    weak,
    weak_vector,
    whole,
)
from lanewise.ir import nodes as ir
from lanewise.language.lattices.base import Direction, Lattice
from lanewise.support.errors import Location

ATTRIBUTES = ".x .y .z .index .weight .velocity .opposite .along(v)"


def direction_attribute(direction: Direction, name: str, where: Location) -> Value:
    """`q.x` and its kind; integers are marked as known from a direction."""
    match name:
        case "x" | "y" | "z" | "index":
            return whole(getattr(direction, name), where)
        case "velocity":
            if direction.lattice.dimension == 1:  # on a line it is a number
                return whole(direction.x, where)
            velocity = direction.lattice.velocities[direction.index]
            return weak_vector(velocity, velocity, where)
        case _:
            return from_python(getattr(direction, name), where)


def population_index(
    scope: Scope, populations: PopulationsReference, place: Value, node: ast.expr
) -> int:
    """Which population `f[place]` is."""
    lattice = populations.lattice
    one, several = (
        ("a neighbour", "neighbours") if populations.field else ("a population", "populations")
    )
    match place:
        case PythonObject(value=Direction(lattice=other, index=index)):
            if other != lattice:
                raise scope.error(
                    f"{populations.name!r} has the directions of {lattice.name}",
                    node,
                    found=place.describe(),
                    wanted=f"a direction of {lattice.name}",
                )
            return index
        case Number(constant=int() as index) if not isinstance(index, bool):
            if not -lattice.size <= index < lattice.size:
                raise scope.error(
                    f"index {index} is outside the {several} of {lattice.name}",
                    node,
                    found=str(index),
                    wanted=f"0 to {lattice.size - 1}",
                )
            return index % lattice.size
        case _:
            raise scope.error(
                f"{one} is chosen by a direction",
                node,
                found=place.describe(),
                wanted=f"a direction of {lattice.name}, or a literal from 0 to {lattice.size - 1}",
                hint=f"for q in lw.{lattice.name}: ... {populations.name}[q]",
            )


def along_of(function: object) -> Direction | None:
    """The direction q of the bound method `q.along`."""
    owner = function.__self__ if isinstance(function, MethodType) else None
    return owner if isinstance(owner, Direction) else None


def along(scope: Scope, direction: Direction, arguments: list[Value], node: ast.AST) -> Number:
    """`q.along(v)`: the sum and difference of the components of v that the velocity meets."""
    vector = arguments[0] if len(arguments) == 1 else None
    if not isinstance(vector, Number) or len(vector.parts) != direction.lattice.dimension:
        raise scope.error(
            f"along() of {direction!r} takes a vector of {direction.lattice.dimension} components",
            node,
            found=", ".join(a.describe() for a in arguments) or "no argument",
            wanted=f"one vector of {direction.lattice.dimension} components",
        )
    where = scope.location(node)
    if vector.known:
        return weak(
            direction.along([component(vector, i).constant for i in range(len(vector.parts))]),
            where,
        )
    total: Known = (ir.Literal(0.0 if vector.scalar.is_float else 0, vector.scalar, where), 0)
    for v, part, exact in zip(
        direction.lattice.velocities[direction.index],
        vector.parts,
        exact_of(vector, len(vector.parts)),
        strict=True,
    ):
        if v:
            total = combine(
                "+", total, (part, exact) if v > 0 else negate((part, exact), where), where
            )
    return Number(
        vector.scalar, (total[0],), open=vector.open, exact=() if total[1] is None else (total[1],)
    )


Items = list[Value]
LowerBlock = Callable[[Scope, list[ast.stmt]], bool]


def items_of(scope: Scope, node: ast.expr, iterated: Value) -> Items | None:
    """What an unrolled loop runs over, which is written as `node`; None for what is no lattice,
    tuple or list.
    """
    if isinstance(iterated, PopulationsReference):
        name = iterated.lattice.name
        raise scope.error(
            f"a loop does not run over {'a field' if iterated.field else 'populations'}",
            node,
            found=iterated.describe(),
            wanted=f"for q in lw.{name}: ... {iterated.name}[q]",
        )
    if not isinstance(iterated, PythonObject) or not isinstance(
        iterated.value, (Lattice, tuple, list)
    ):
        return None
    where = scope.location(node)
    items: Items = []
    for item in iterated.value:  # type: ignore[reportUnknownVariableType]
        if isinstance(item, Direction):
            items.append(PythonObject(item))
        elif isinstance(item, int) and not isinstance(item, bool):
            items.append(whole(item, where))
        else:
            raise scope.error(
                "a loop is unrolled over directions or integers",
                node,
                found=from_python(item).describe(),
                wanted="a lattice, or a tuple of its directions or of integers",
            )
    return items


def unroll(scope: Scope, node: ast.For, items: Items, lower_block: LowerBlock) -> bool:
    """Lower the body for every item.

    Returns whether the statement after the loop can be reached.
    """
    name = _own_name(scope, node)
    outermost = not scope.items
    if outermost:
        scope.unrolled_at = scope.depth
    scope.breaks.append(None)
    reached = True
    for item in items:
        scope.items[name] = item
        if not (reached := lower_block(scope, node.body)):
            break
    scope.items.pop(name, None)
    scope.breaks.pop()
    return reached


def _own_name(scope: Scope, node: ast.For) -> str:
    if not isinstance(node.target, ast.Name):
        raise scope.error(
            "a loop over directions has one name",
            node.target,
            found=f"for {ast.unparse(node.target)} in ...",
            wanted="for q in lattice",
        )
    name = node.target.id
    taken = name in scope.items or name in scope.loop_names or name in scope.parameters
    if taken or scope.loop_types.setdefault(name, None) is not None:
        raise scope.error(
            f"{name!r} is already in use",
            node.target,
            found=f"for {name} in ...",
            wanted="a loop variable with its own name",
        )
    return name
