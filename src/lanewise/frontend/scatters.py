"""Scatters as statements of a threadwise function.

lw.scatter_add(counts, place[i], 1)     scatter add counts[place_1], 1
lw.scatter_max(image, (y, x), v)        scatter max image[y, x], v
"""

from __future__ import annotations

import ast
from functools import reduce
from typing import Any

from lanewise.frontend.elements import places, refuse_table
from lanewise.frontend.expressions import lower, number
from lanewise.frontend.places import coerce
from lanewise.frontend.scope import Scope
from lanewise.frontend.source import Source
from lanewise.frontend.values import ElementsReference
from lanewise.ir import nodes as ir
from lanewise.types import BOOL


def operation_of(value: Any) -> ir.ScatterOperation | None:
    """What a function scatters, or None for one that does not."""
    return getattr(value, "__lanewise_scatter__", None) if callable(value) else None


def scattered_arrays(source: Source) -> set[str]:
    """The names that a function hands to scatters first."""
    calls = [n for n in ast.walk(source.tree) if isinstance(n, ast.Call) and n.args and isinstance(n.args[0], ast.Name)]
    names = source.names() if calls else {}
    return {c.args[0].id for c in calls if isinstance(c.args[0], ast.Name) and operation_of(_value(c.func, names))}


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    """What a name with attributes stands for; None for anything else."""
    path: list[str] = []
    while isinstance(node, ast.Attribute):
        path.insert(0, node.attr)
        node = node.value
    return reduce(lambda x, n: getattr(x, n, None), path, names.get(node.id)) if isinstance(node, ast.Name) else None


def scatter(scope: Scope, operation: ir.ScatterOperation, node: ast.Call) -> None:
    """Lower a scatter: the array, the index or a tuple of indices, the value."""
    example = f"lw.scatter_{operation}(counts, i, 1), or (y, x) for an array of two dimensions"
    if len(node.args) != 3 or node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
        raise scope.error(
            f"lw.scatter_{operation} takes an array, an index and a value",
            node,
            found=ast.unparse(node),
            wanted=example,
        )
    array = lower(scope, node.args[0])
    if not isinstance(array, ElementsReference):
        raise scope.error(
            f"lw.scatter_{operation} changes an element of an array of a threadwise function", node.args[0],
            found=array.describe(), wanted=example,
        )  # fmt: skip
    refuse_table(scope, array, node)
    kind, index = array.type.element, node.args[1]
    if kind == BOOL:
        raise scope.error(
            "truth values are not scattered", node.args[0], found=array.describe(), wanted="an array of numbers",
            hint=f"every thread that has reason to stores the same value: {array.example} = True, in an array of numbers 1 with "
            "lw.scatter_max",
        )  # fmt: skip
    if operation == "add" and kind.is_float:
        raise scope.error(
            "sums of floats in any order have other bits in every run", node.args[0], found=array.describe(),
            wanted="an array of whole numbers: lw.i32, lw.i64, lw.u32",
            hint="add parts of a unit in lw.i64: lw.scatter_add(sums, i, lw.i64(lw.floor(lw.f64(x) * 2.0**32 + 0.5))), "
            "and divide by 2.0**32 at the end",
        )  # fmt: skip
    nodes = list(index.elts) if isinstance(index, ast.Tuple) else [index]
    at = places(scope, array, index, nodes, [lower(scope, n) for n in nodes])
    value = coerce(scope, number(scope, node.args[2]), kind, node.args[2], f"an element of {array.name!r}")
    scope.emit(ir.ScatterElement(array.name, at, operation, value.parts[0], scope.location(node)))
