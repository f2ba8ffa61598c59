"""gather: a copy of some leaves of an array of records, in another order and another layout.

parallel for p: load order[p]; load source[order[p]]; store sorted[p]
"""

from __future__ import annotations

from lanewise.ir import nodes as ir
from lanewise.ir.names import COUNT, own
from lanewise.ir.values import record_array, value_array
from lanewise.language.record import Leaf
from lanewise.language.types import I32, Scalar
from lanewise.layouts import Layout
from lanewise.patterns.elements import ELEMENTWISE
from lanewise.patterns.search.base import ORDER

SORTED = own("sorted")


def build_gather(
    name: str,
    leaves: tuple[Leaf, ...],
    layout: Layout,
    copied: tuple[Leaf, ...],
    to: Layout,
    index: Scalar,
) -> ir.Kernel:
    """The kernel that copies `copied` of the array `name` (all its `leaves` in `layout`) in the
    order of `$order`.
    """
    count, p = ir.Parameter(COUNT, index), ir.Local(own("p"), index)
    place = ir.Local(own("place"), I32)
    wide: ir.Expression = place if index == I32 else ir.Cast(place, index)
    body = (
        ir.LoadRecord(ORDER, p, (("value", place.name),)),
        ir.LoadRecord(name, wide, tuple((x.name, f"{name}.{x.name}") for x in copied)),
        ir.StoreRecord(
            SORTED, p, tuple((x.name, ir.Local(f"{name}.{x.name}", x.type)) for x in copied)
        ),
    )
    arrays = (
        value_array(ORDER, I32, written=False),
        record_array(name, leaves, layout, written=False),
        record_array(SORTED, copied, to, written=True),
    )
    loop = ir.Parallel(p.name, ir.Local(count.name, index), body)
    return ir.Kernel("gather", ELEMENTWISE, arrays, (), (count,), (loop,))
