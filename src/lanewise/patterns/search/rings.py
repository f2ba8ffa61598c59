"""The k nearest without a radius, in a grid: rings of cells around the target's own, outwards until no closer source can be left.

ring = 0
while true: for the rows of the ring: visit;  if nothing beyond the ring is nearer than the bound: break;  ring += 1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.patterns.search.base import Visit
from lanewise.patterns.search.grid_expressions import CellWalk, GridExpressions
from lanewise.types import BOOL, COMPONENTS


@dataclass(frozen=True, slots=True)
class RingWalk(CellWalk):
    """All cells, ring by ring, until the bound says that the rest is too far."""

    def around(self, place: Sequence[ir.Local], bound2: ir.Expression, visit: Visit) -> ir.Block:
        return _Rings(self.grid, place, bound2).block(visit)


class _Rings:
    def __init__(self, g: GridExpressions, place: Sequence[ir.Local], bound2: ir.Expression) -> None:
        self.g, self.place, self.bound2 = g, place, bound2
        self.scaled = [g.real(f"scaled.{c}") for c in COMPONENTS[: g.axes]]
        self.home, self.cell = ([g.whole(f"{name}{c}") for c in COMPONENTS[: g.axes]] for name in ("home.", ""))
        self.ring = g.whole("ring")

    def block(self, visit: Visit) -> ir.Block:
        g, body = self.g, list[ir.Statement]()
        for axis, p in enumerate(self.place):
            body += (ir.Assign(self.scaled[axis].name, g.scaled(p, axis)), *g.cut_off(self.scaled[axis], axis, 0))
            body += g.cell(f"home.{COMPONENTS[axis]}", p, axis)
        grow = ir.Assign(self.ring.name, build.add(self.ring, 1))
        again = ir.While(ir.Literal(True, BOOL), (*self.rows(visit), *self.leave(), grow))
        return (*body, ir.Assign(self.ring.name, ir.Literal(0, g.index)), again)

    # ------------------------------------------------------------ one ring

    def rows(self, visit: Visit) -> ir.Block:
        """The rows that the ring touches: whole ones at its faces, the two cells at its ends within."""
        g = self.g
        faces: ir.Expression = self.at_face(1)
        if g.axes > 2:
            faces = ir.Logical("or", faces, self.at_face(2))
        whole = ir.Local(g.whole("face").name, BOOL)
        block: ir.Block = (ir.Assign(whole.name, faces), *self.row(whole, visit))
        for axis in range(1, g.axes):
            block = (g.loop(COMPONENTS[axis], self.lowest(axis), self.highest(axis), block),)
        return block

    def at_face(self, axis: int) -> ir.Expression:
        away = build.subtract(self.cell[axis], self.home[axis])
        return build.equal(ir.Call("abs", (away,), self.g.index), self.ring)

    def lowest(self, axis: int) -> ir.Expression:
        return build.maximum(build.subtract(self.home[axis], self.ring), 0)

    def highest(self, axis: int) -> ir.Expression:
        return build.minimum(build.add(self.home[axis], self.ring), build.subtract(self.g.cells(axis), 1))

    def row(self, whole: ir.Local, visit: Visit) -> ir.Block:
        """One range for a whole row; else the cells at both ends, where they are cells of the grid."""
        g, index = self.g, self.g.index
        piece, a, b = g.whole("piece"), g.whole("a"), g.whole("b")
        left, right = build.subtract(self.home[0], self.ring), build.add(self.home[0], self.ring)
        end = ir.Select(build.equal(piece, 0), left, right, index)
        choose = ir.If(whole, (
            ir.Assign(a.name, self.lowest(0)), ir.Assign(b.name, self.highest(0)),
        ), (
            ir.Assign(a.name, end), ir.Assign(b.name, end),
        ))  # fmt: skip
        there = ir.Logical("and", ir.Compare(">=", a, ir.Literal(0, index)), build.less(b, g.cells(0)))
        body = (choose, ir.If(there, g.range(g.row(self.cell[1:]), a, b, visit)))
        count = ir.Select(whole, ir.Literal(0, index), ir.Literal(1, index), index)
        return (g.loop("piece", ir.Literal(0, index), count, body),)

    # ------------------------------------------------------------ the end

    def leave(self) -> ir.Block:
        """Break when all cells were visited, or when the nearest cell that was not is beyond the bound."""
        g = self.g
        rest, more = g.real("rest"), ir.Local(g.whole("more").name, BOOL)
        body: list[ir.Statement] = [
            ir.Assign(rest.name, ir.Literal(float("inf"), g.precision)), ir.Assign(more.name, ir.Literal(False, BOOL)),
        ]  # fmt: skip
        for axis in range(g.axes):
            low, high = build.subtract(self.home[axis], self.ring), build.add(self.home[axis], self.ring)
            below = g.binary("-", self.scaled[axis], ir.Cast(low, g.precision))
            above = g.binary("-", ir.Cast(build.add(high, 1), g.precision), self.scaled[axis])
            body.append(self.closer(ir.Compare(">", low, ir.Literal(0, g.index)), below, axis, rest, more))
            last = build.subtract(g.cells(axis), 1)
            body.append(self.closer(build.less(high, last), above, axis, rest, more))
        beyond = ir.Compare(">", g.binary("*", rest, rest), self.bound2)
        done = ir.Logical("or", ir.Unary("not", more, BOOL), beyond)
        return (*body, ir.If(done, (ir.Break(),)))

    def closer(
        self, there: ir.Expression, away: ir.Expression, axis: int, rest: ir.Local, more: ir.Local
    ) -> ir.Statement:
        """Cells beyond a face of the ring, if there are any: how far they are at least."""
        g, gap = self.g, self.g.real("gap")
        taken = (
            ir.Assign(gap.name, away),
            *g.surely(gap, axis),
            ir.Assign(rest.name, g.at_most(rest, gap)),
            ir.Assign(more.name, ir.Literal(True, BOOL)),
        )
        return ir.If(there, taken)
