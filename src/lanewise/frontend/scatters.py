"""Scatters as statements of an elementwise or threadwise function.

lw.scatter_add(counts, place[i], 1)     scatter add counts[place_1], 1
lw.scatter_max(image, (y, x), v)        scatter max image[y, x], v
"""

from __future__ import annotations

import ast

from lanewise.frontend.elements import places, refuse_table
from lanewise.frontend.expressions import lower, number
from lanewise.frontend.places import coerce
from lanewise.frontend.scattered import is_exact
from lanewise.frontend.scope import Scope
from lanewise.frontend.values import ElementsReference
from lanewise.ir import nodes as ir
from lanewise.language.types import BOOL, STORED, computed


def scatter(scope: Scope, operation: ir.ScatterOperation, node: ast.Call) -> None:
    """Lower a scatter: the array, the index or a tuple of indices, the value."""
    example = f"lw.scatter_{operation}(counts, i, 1), or (y, x) for an array of two dimensions"
    _check_keywords(scope, operation, node)
    if len(node.args) != 3 or any(isinstance(a, ast.Starred) for a in node.args):
        raise scope.error(
            f"lw.scatter_{operation} takes an array, an index and a value",
            node,
            found=ast.unparse(node),
            wanted=example,
        )
    array = lower(scope, node.args[0])
    if not isinstance(array, ElementsReference):
        raise scope.error(
            f"lw.scatter_{operation} changes an element of an array among the parameters",
            node.args[0],
            found=array.describe(),
            wanted=example,
        )
    refuse_table(scope, array, node)
    kind, index = array.type.element, node.args[1]
    if kind == BOOL:
        raise scope.error(
            "booleans are not scattered",
            node.args[0],
            found=array.describe(),
            wanted="an array of numbers",
            hint=f"every thread that has reason to stores the same value: {array.example} = True, "
            "in an array of numbers 1 with "
            "lw.scatter_max",
        )
    if kind in STORED:
        raise scope.error(
            f"lw.scatter_{operation} combines numbers of 32 and 64 bits",
            node.args[0],
            found=array.describe(),
            wanted=f"an array of {computed(kind)}",
        )
    nodes = list(index.elts) if isinstance(index, ast.Tuple) else [index]
    at = places(scope, array, index, nodes, [lower(scope, n) for n in nodes])
    value = coerce(
        scope, number(scope, node.args[2]), kind, node.args[2], f"an element of {array.name!r}"
    )
    if kind.is_integer and not is_exact(node):
        raise scope.error(
            "sums of integers are exact in every order",
            node,
            found=f"exact=False for elements of {kind}",
            wanted=f"lw.scatter_add({', '.join(map(ast.unparse, node.args))})",
        )
    exact = operation == "add" and kind.is_float and is_exact(node)
    kept: ir.ScatterOperation = "sum" if exact else operation
    scope.emit(ir.ScatterElement(array.name, at, kept, value.parts[0], scope.location(node)))


def _check_keywords(scope: Scope, operation: ir.ScatterOperation, node: ast.Call) -> None:
    """A sum may say whether it is exact, by a literal: what memory it takes follows from that."""
    for k in node.keywords:
        literal = isinstance(k.value, ast.Constant) and isinstance(k.value.value, bool)
        if operation != "add" or k.arg != "exact" or not literal:
            raise scope.error(
                f"lw.scatter_{operation} takes an array, an index and a value",
                node,
                found=ast.unparse(k),
                wanted="exact=True or exact=False, and that of lw.scatter_add alone",
            )
