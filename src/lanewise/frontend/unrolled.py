"""Loops over directions: the body is lowered once for each, with the loop's name bound to it."""

from __future__ import annotations

import ast
from collections.abc import Callable

from lanewise.frontend.scope import Scope
from lanewise.frontend.values import PopulationsReference, PythonObject, Value, from_python, whole
from lanewise.lattices.base import Direction, Lattice

Items = list[Value]
LowerBlock = Callable[[Scope, list[ast.stmt]], bool]


def items_of(scope: Scope, node: ast.For, iterated: Value) -> Items | None:
    """What an unrolled loop runs over; None for what is no lattice, tuple or list."""
    if isinstance(iterated, PopulationsReference):
        name = iterated.lattice.name
        raise scope.error(
            "a loop does not run over populations",
            node.iter,
            found=iterated.describe(),
            wanted=f"for q in lw.{name}: ... {iterated.name}[q]",
        )
    if not isinstance(iterated, PythonObject) or not isinstance(iterated.value, (Lattice, tuple, list)):
        return None
    where = scope.location(node.iter)
    items: Items = []
    for item in iterated.value:  # type: ignore[reportUnknownVariableType]
        if isinstance(item, Direction):
            items.append(PythonObject(item))
        elif isinstance(item, int) and not isinstance(item, bool):
            items.append(whole(item, where))
        else:
            raise scope.error(
                "a loop is unrolled over directions or whole numbers",
                node.iter,
                found=from_python(item).describe(),
                wanted="a lattice, or a tuple of its directions or of whole numbers",
            )
    return items


def unroll(scope: Scope, node: ast.For, items: Items, lower_block: LowerBlock) -> bool:
    """Lower the body for every item. Returns whether the statement after the loop can be reached."""
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
            wanted="a loop variable of its own name",
        )
    return name
