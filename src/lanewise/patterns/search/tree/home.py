"""home: the results of a part's own rows, of those of all targets in the order of the tree.

parallel for k: row = order[k] - first row of the part
    if 0 <= row < rows of the part: result[row] = results of all[place of k]
"""

from __future__ import annotations

from collections.abc import Sequence

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import COUNT, identifier, own
from lanewise.ir.values import pairs, value_array
from lanewise.language import types as t
from lanewise.language.types import I32, Scalar
from lanewise.patterns.elements import ELEMENTWISE
from lanewise.patterns.search.base import ORDER
from lanewise.patterns.search.tree.dealt import BLOCK, PARTS, place_of

FIRST, ROWS = own("home.first"), own("home.rows")  # of the part
ROOM = own("home.room")  # places of each part among the results of all


def of_all(result: str) -> str:
    """The array with a result of all targets."""
    return own(f"all.{result.removeprefix(own(''))}")


def build_home(name: str, results: Sequence[tuple[str, t.ValueType]], index: Scalar) -> ir.Kernel:
    """The kernel over all targets. results: their names and types."""
    k, row, place = (ir.Local(own(n), index) for n in ("k", "row", "place"))
    first, rows, room = (ir.Local(n, index) for n in (FIRST, ROWS, ROOM))
    moved: list[ir.Statement] = []
    for result, kind in results:
        read = pairs(own(f"moved.{result.removeprefix(own(''))}"), kind)
        kept = tuple((leaf, ir.Local(v, t.scalar_of(kind))) for leaf, v in read)
        moved += [
            ir.LoadRecord(of_all(result), place, read),
            ir.StoreRecord(result, row, kept),
        ]
    target = ir.Local(own("target"), I32)
    body = (
        ir.LoadRecord(ORDER, k, (("value", target.name),)),
        ir.Assign(row.name, build.subtract(build.cast(target, index), first)),
        ir.If(
            ir.Logical("and", build.less(ir.Literal(-1, index), row), build.less(row, rows)),
            (ir.Assign(place.name, place_of(k, room, index)), *moved),
        ),
    )
    arrays = (
        value_array(ORDER, I32, written=False),
        *(value_array(of_all(n), kind, written=False) for n, kind in results),
        *(value_array(n, kind, written=True) for n, kind in results),
    )
    counts = tuple(ir.Parameter(n, index) for n in (COUNT, FIRST, ROWS, ROOM, PARTS, BLOCK))
    loop = ir.Parallel(k.name, ir.Local(COUNT, index), body)
    return ir.Kernel(identifier(f"{name}_home"), ELEMENTWISE, arrays, (), counts, (loop,))
