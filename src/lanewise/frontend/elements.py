"""Arrays of a threadwise function, and tables of others: their elements by index, their shapes.

v = a[y, k + 1]      load a[y, k + 1]: a_1; v = a_1
c[y, x] = v          store c[y, x] = v
n = a.shape[1]       n = $a.shape1
"""

from __future__ import annotations

import ast

from lanewise.frontend.places import coerce
from lanewise.frontend.scope import Scope
from lanewise.frontend.values import ElementsReference, Number, ShapeReference, Value
from lanewise.ir import nodes as ir
from lanewise.language import types as t


def element(
    scope: Scope, array: ElementsReference, node: ast.Subscript, indices: list[Value]
) -> Number:
    """`a[y, x]`: a load."""
    at, where = places(scope, array, node, index_nodes(node), indices), scope.location(node)
    name = scope.fresh(array.name)
    scope.emit(ir.LoadElement(array.name, at, name, where))
    return Number(array.type.element, (ir.Local(name, array.type.element, where),))


def store(
    scope: Scope,
    array: ElementsReference,
    node: ast.Subscript,
    indices: list[Value],
    value: Number,
    at: ast.AST,
) -> None:
    """`a[y, x] = value`."""
    refuse_table(scope, array, node)
    where = places(scope, array, node, index_nodes(node), indices)
    kept = coerce(scope, value, array.type.element, at, f"an element of {array.name!r}")
    scope.emit(ir.StoreElement(array.name, where, kept.parts[0], scope.location(node)))


def refuse_table(scope: Scope, array: ElementsReference, node: ast.AST) -> None:
    """Refuse to write to a table: other elements read it at the same time, or write to the same
    place.
    """
    if array.is_table:
        raise scope.error(
            f"the table {array.name!r} is read only",
            node,
            found=f"an element of {array.describe()}, which is written",
            wanted="a field of the record, or a result of the function",
            hint=f"elementwise functions may lw.scatter_add({array.name}, i, value), scatter_min "
            "or scatter_max; "
            "@lw.threadwise functions write to the elements of arrays",
        )


def index_nodes(node: ast.Subscript) -> list[ast.expr]:
    """What stands between the brackets, by dimension."""
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def places(
    scope: Scope,
    array: ElementsReference,
    node: ast.expr,
    nodes: list[ast.expr],
    indices: list[Value],
) -> tuple[ir.Expression, ...]:
    """The checked indices of an element. nodes: of each index; `node` has them all."""
    rank = array.type.rank
    if len(indices) != rank:
        raise scope.error(
            f"{array.name!r} has {rank} dimension{'s' if rank > 1 else ''}",
            node,
            found=f"{len(indices)} {'index' if len(indices) == 1 else 'indices'}: "
            f"{ast.unparse(node)}",
            wanted=array.example,
            hint="an element has all its indices in one pair of brackets"
            if len(indices) < rank
            else "",
        )
    return tuple(
        _place(scope, array, d, i, n) for d, (i, n) in enumerate(zip(indices, nodes, strict=True))
    )


def _place(
    scope: Scope, array: ElementsReference, dimension: int, value: Value, node: ast.expr
) -> ir.Expression:
    if not isinstance(value, Number) or value.is_vector or not value.scalar.is_integer:
        raise scope.error(
            "an index must be an integer", node, found=value.describe(), wanted="an integer",
            hint="lw.i32(x)" if isinstance(value, Number) and value.scalar.is_float else "",
        )  # fmt: skip
    if value.constant is not None and value.constant < 0:
        raise scope.error(
            "a negative index is outside of the array",
            node,
            found=ast.unparse(node),
            wanted="0 or more",
            hint=f"the last one is {array.name}.shape[{dimension}] - 1",
        )
    return scope.settle(value, t.computed(value.scalar)).parts[0]


def array_attribute(scope: Scope, array: ElementsReference, node: ast.Attribute) -> ShapeReference:
    """`a.shape`."""
    if node.attr != "shape":
        raise scope.error(
            f"an array has no {node.attr!r} in a kernel", node, found=ast.unparse(node),
            wanted=f"{array.name}.shape[{array.type.rank - 1}], len({array.name}) or an element",
        )  # fmt: skip
    return ShapeReference(array)


def lengths(shape: ShapeReference, scope: Scope, node: ast.AST) -> list[Number]:
    """All lengths of a shape: `m, n = a.shape`."""
    return [length(scope, shape.array, d, node) for d in range(shape.array.type.rank)]


def length(scope: Scope, array: ElementsReference, dimension: int, node: ast.AST) -> Number:
    """`a.shape[d]`, which all threads share."""
    local = ir.Local(array.length(dimension), array.index, scope.location(node))
    return Number(array.index, (local,))


def shape_element(scope: Scope, shape: ShapeReference, place: Value, node: ast.Subscript) -> Number:
    """`a.shape[d]` for a literal d."""
    rank, name = shape.array.type.rank, shape.array.name
    constant = place.constant if isinstance(place, Number) else None
    if not isinstance(constant, int) or isinstance(constant, bool) or not -rank <= constant < rank:
        raise scope.error(
            f"a dimension of {name!r} is chosen by a literal", node.slice,
            found=ast.unparse(node.slice), wanted=" or ".join(str(d) for d in range(rank)),
        )  # fmt: skip
    return length(scope, shape.array, constant % rank, node)
