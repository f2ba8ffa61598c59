"""A function with a result: the sum of it over the index space, as a loop in a single thread, which
passes divide like any other.

    def total(y, x, a) -> f32: return a[y, x]
->  parallel for point in range(1): sum: f64 = 0.0; for y: for x: load a[y, x]: a_1; value = a_1;
sum += f64(value)
        store result[0] = sum
Sums have 64 bits, as the other totals of lanewise.
"""

from __future__ import annotations

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.folds import neutral
from lanewise.ir.names import extent_of, own
from lanewise.ir.traverse import flat_map, statements
from lanewise.language.types import Scalar
from lanewise.patterns.results import total_type

RESULT, POINT, ROW = own("result"), own("point"), own("plane.row")  # passes have rows as well
_VALUE, _SUM = own("value"), own("sum")


def with_value(body: ir.Block, kind: Scalar) -> ir.Block:
    """The body of a function, with its results in a variable: its returns return nothing."""

    def visit(s: ir.Statement) -> ir.Block:
        match s:
            case ir.Return(values=(value,)):
                return ir.Assign(_VALUE, value, s.location), ir.Return((), s.location)
            case _:
                return (s,)

    several = sum(isinstance(s, ir.Return) for s in statements(body)) > 1
    begin = (
        (ir.Assign(_VALUE, neutral("or" if kind.kind == "b" else "+", kind)),) if several else ()
    )
    return (*begin, *flat_map(body, visit))


def summed(body: ir.Block, kind: Scalar, indices: tuple[str, ...], index: Scalar) -> ir.Block:
    """The reference of a sum: loops over the index space instead of its threads.

    `body` is that of `with_value`, without returns.
    """
    wide = total_type(kind)
    value, total = ir.Local(_VALUE, kind), ir.Local(_SUM, wide)
    one = value if kind == wide else ir.Cast(value, wide)
    add = ir.Assign(_SUM, ir.Binary("+", total, one, wide))
    extents = [ir.Local(extent_of(i), index) for i in indices]
    loops: ir.Block = (_over(indices[-1], extents[-1], (*body, add)),)
    match indices:
        case (z, y, _):  # two loops are what can be divided well
            row, behind = ir.Local(ROW, index), ir.Local(z, index)
            head = (
                ir.Assign(z, build.divide(row, extents[1])),
                ir.Assign(y, build.subtract(row, build.multiply(behind, extents[1]))),
            )
            loops = (_over(ROW, build.multiply(extents[0], extents[1]), (*head, *loops)),)
        case (y, _):
            loops = (_over(y, extents[0], loops),)
        case _:
            pass
    store = ir.StoreElement(RESULT, (ir.Local(POINT, index),), total)
    return (
        ir.Parallel(
            POINT, ir.Literal(1, index), (ir.Assign(_SUM, neutral("+", wide)), *loops, store)
        ),
    )


def _over(variable: str, extent: ir.Expression, body: ir.Block) -> ir.For:
    return ir.For(variable, ir.Literal(0, extent.type), extent, ir.Literal(1, extent.type), body)
