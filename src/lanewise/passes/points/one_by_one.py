"""Blocks at an edge compute the points of a thread one after the other, in a loop.

    for $point in range(16): y = $y.first + ...; x = $x.first + ...
      if y < $y.extent and x < $x.extent: what is done for a point
They are few, and what is written out for all of their points at once, with the tests of edges,
would take more registers than the inside needs, which all blocks have to have.
"""

from __future__ import annotations

from math import prod

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.traverse import statements
from lanewise.passes.points.shape import POINT, Shape, first_of, thread_of

FEWEST = 8  # points of a thread that are too many to be written out


def legal(body: ir.Block, shape: Shape) -> bool:
    """Whether there are but values, loads and stores, some of them under tests, for many points."""
    return prod(shape.points) >= FEWEST and all(
        isinstance(s, ir.Assign | ir.LoadElement | ir.StoreElement | ir.If)
        for s in statements(body)
    )


def apply(body: ir.Block, loops: tuple[ir.Parallel, ...], shape: Shape) -> ir.Block:
    """The body for all points of a thread that there are."""
    kind = loops[0].extent.type
    number: ir.Expression = ir.Local(POINT, kind)
    starts, tests = list[ir.Statement](), list[ir.Expression]()
    for d in shape.order():
        loop, many = loops[d], shape.points[d]
        own = build.remainder(number, many)
        number = build.divide(number, many)
        starts.append(ir.Assign(loop.variable, _place(loop, d, own, shape)))
        tests.append(build.less(ir.Local(loop.variable, kind), loop.extent))
    rounds = (*starts, ir.If(build.all_of(*tests), body))
    zero, one, end = (ir.Literal(n, kind) for n in (0, 1, prod(shape.points)))
    return (ir.For(POINT, zero, end, one, rounds, role="points"),)


def _place(loop: ir.Parallel, d: int, own: ir.Expression, shape: Shape) -> ir.Expression:
    """Where a point of a thread lies along an index; own: which of its points along it."""
    kind, group = loop.extent.type, shape.group(d)
    thread = build.multiply(ir.Local(thread_of(loop.variable), kind), group)
    behind = build.multiply(build.divide(own, group), group * shape.threads[d])
    within = build.add(build.add(thread, behind), build.remainder(own, group))
    return build.add(ir.Local(first_of(loop.variable), kind), within)
