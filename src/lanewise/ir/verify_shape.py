"""Whether the fields of a node hold what their annotations say."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from lanewise.ir.fields import ByClass, Fields, Many, Part
from lanewise.ir.roles import FieldRole, IrNode, StatementNode


def shape_problem(nodes: Iterable[IrNode]) -> str:
    """What is wrong with one of these, whatever stands around it, or nothing."""
    for node in nodes:
        if name := _FIRST_WRONG[type(node)](node):
            return f"{type(node).__name__}.{name} cannot be {getattr(node, name)!r}"
    return ""


def _first_wrong(table: Fields) -> Callable[[Any], str]:
    """Writes what finds the first field of a node that holds something else."""
    given: dict[str, Any] = {"Statement": StatementNode}
    tests: list[tuple[str, str]] = []
    for p in (*table.expressions, *table.of(FieldRole.BLOCK)):
        given[f"of_{p.name}"] = frozenset(p.kinds)
        tests.append((p.name, _fits(p)))
    for name, allowed in table.choices:
        given[f"of_{name}"] = frozenset(allowed)
        tests.append((name, f"node.{name} in of_{name}"))
    found = "".join(f"{name!r} if not ({fits}) else " for name, fits in tests)
    return eval(f"lambda node: {found}''", given)


def _fits(p: Part) -> str:
    """Python for whether a field holds what it may."""
    held = f"node.{p.name}"
    if p.role is FieldRole.BLOCK:
        return f"type({held}) is tuple and all([isinstance(s, Statement) for s in {held}])"
    if p.many is Many.ONE:
        return f"type({held}) in of_{p.name}"
    if p.many is Many.ANY:
        return f"{held} is None or type({held}) in of_{p.name}"
    return f"type({held}) is tuple and all([type(v) in of_{p.name} for v in ({p.listed()})])"


_FIRST_WRONG = ByClass(_first_wrong)
