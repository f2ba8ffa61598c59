"""Rows: the values that belong to an item, read by index.

What lies outside of a row is not a number.

    x = bins[k]                        place = bins.first + k if 0 <= k < bins.length else
    bins.beyond
                                       load bins[place]: x
    near = lw.window(bins, k, 16)      place = bins.first + k if 0 <= k <= bins.length - 16 else
    bins.beyond near[3]                            load bins[place + 3]
`bins.beyond` is where values begin that are not numbers, behind all rows. One test serves a whole
window, whose own indices are proved to lie within it.
"""

from __future__ import annotations

import ast

from lanewise.frontend.scope import Scope
from lanewise.frontend.values import Number, RowReference, Value, WindowReference
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import reads
from lanewise.ir.values import pairs
from lanewise.language import types as t
from lanewise.language.values import WINDOW


def row_element(scope: Scope, row: RowReference, index: Number, node: ast.Subscript) -> Number:
    """`row[k]`."""
    place = _place(scope, row, _whole(scope, index, node.slice), 1, node)
    return _loaded(scope, row, place, node)


def window_element(
    scope: Scope, window: WindowReference, index: Number, node: ast.Subscript
) -> Number:
    """`window[j]`, where j surely lies within it."""
    k = _whole(scope, index, node.slice)
    # in a loop without rounds
    never = any(not len(scope.loop_ranges.get(n, (0,))) for n in reads(k.parts[0]))
    limits = (0, 0) if never else _limits(scope, k.parts[0])
    if limits is None or limits[0] < 0 or limits[1] >= window.size:
        raise scope.error(
            f"an index into the window {window.name!r} has to lie within it, whatever the data",
            node.slice,
            found=ast.unparse(node.slice)
            + (f", from {limits[0]} to {limits[1]}" if limits else ", known only at run time"),
            wanted=f"a literal from 0 to {window.size - 1}, or what the variables of loops over "
            "literal ranges give",
            hint=f"{window.row.name}[k] takes any index, and tests each",
        )
    place = ir.Binary(
        "+", window.place, _wide(k.parts[0]), t.I64, scope.location(node), bounded=True
    )
    return _loaded(scope, window.row, place, node)


def window(scope: Scope, arguments: list[Value], node: ast.AST) -> Value:
    """`lw.window(row, first, size)`."""
    match arguments:
        case [RowReference() as row, Number() as first, Number(constant=int() as size)] if (
            not isinstance(size, bool)
        ):
            pass
        case _:
            raise scope.error(
                "lw.window takes a row, the first index and a number of values",
                node,
                found=", ".join(a.describe() for a in arguments) or "no arguments",
                wanted="lw.window(bins, first, 16), with a literal for the number",
            )
    if not 1 <= size <= WINDOW:
        raise scope.error(
            "a window has 1 to 256 values", node, found=str(size), wanted=f"1 to {WINDOW}"
        )
    return WindowReference(row, _place(scope, row, _whole(scope, first, node), size, node), size)


def row_length(scope: Scope, row: RowReference, node: ast.AST) -> Number:
    """`len(row)`."""
    return Number(t.I32, (ir.Local(f"{row.name}.length", t.I32, scope.location(node)),))


def _whole(scope: Scope, index: Number, node: ast.AST) -> Number:
    if index.is_vector or not index.scalar.is_integer:
        raise scope.error(
            "an index must be an integer",
            node,
            found=index.describe(),
            wanted="an integer",
            hint="lw.i32(x)",
        )
    return scope.settle(index, t.I32 if index.weak else index.scalar)


def _place(scope: Scope, row: RowReference, index: Number, size: int, node: ast.AST) -> ir.Local:
    """Where `size` values from an index on lie: within the row, or behind all rows."""
    where, k = scope.location(node), scope.bind(index.parts[0], row.name)
    length: ir.Expression = ir.Local(f"{row.name}.length", t.I32, where)
    if k.type != t.I32:  # a wide index: the comparison is wide as well
        k, length = _wide(k), _wide(length)
    behind = ir.Binary(
        "-", length, ir.Literal(size - 1, length.type), length.type, where, bounded=True
    )
    inside = ir.Logical(
        "and",
        ir.Compare(">=", k, ir.Literal(0, k.type), where),
        ir.Compare("<", k, behind if size > 1 else length, where),
        where,
    )
    first, beyond = (ir.Local(f"{row.name}.{n}", t.I64, where) for n in ("first", "beyond"))
    within = ir.Binary("+", first, _wide(k), t.I64, where, bounded=True)
    return scope.copy(ir.Select(inside, within, beyond, t.I64, where), row.name)


def _wide(e: ir.Expression) -> ir.Expression:
    return e if e.type == t.I64 else ir.Cast(e, t.I64, e.location)


def _loaded(scope: Scope, row: RowReference, place: ir.Expression, node: ast.AST) -> Number:
    name, where = scope.fresh(row.name), scope.location(node)
    scope.emit(ir.LoadRecord(row.name, place, pairs(name, row.type)))
    scalar = t.scalar_of(row.type)
    return Number(row.type, tuple(ir.Local(n, scalar, where) for n in t.leaves(name, row.type)))


def _limits(scope: Scope, e: ir.Expression) -> tuple[int, int] | None:
    """The smallest and the largest value of an index of literals and variables of loops over
    literal ranges.
    """
    match e:
        case ir.Literal(value=value):
            return int(value), int(value)
        case ir.Local(name=name) if (rounds := scope.loop_ranges.get(name)) is not None and len(
            rounds
        ):
            return min(rounds[0], rounds[-1]), max(rounds[0], rounds[-1])
        case ir.Binary(operator="+" | "-" | "*" as operator):
            left, right = _limits(scope, e.left), _limits(scope, e.right)
            if left is None or right is None:
                return None
            if operator == "*":
                corners = [a * b for a in left for b in right]
                return min(corners), max(corners)
            low, high = right if operator == "+" else (-right[1], -right[0])
            return left[0] + low, left[1] + high
        case _:
            return None
