"""How a kernel runs through the cells of a grid: rows of cells along x, each one range of sources.

    for z: for y: if the row is near enough: for the sources from its first to its last cell: visit
No neighbour is missed, since cells of sources are computed as cells of the ends of the range are
(see `grid_expressions.py`). Where positions wrap around, rounding may move a position across a
border: the range is wider by a margin instead.

The k nearest without a radius are looked for in rings of cells around the target's own, outwards
until no closer source can be left:

    ring = 0 while true: for the rows of the ring: visit;  if nothing beyond the ring is nearer than
    the bound: break;  ring += 1
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.language.types import BOOL, COMPONENTS
from lanewise.patterns.search.base import Visit
from lanewise.patterns.search.grid_expressions import (
    REACH,
    CellWalk,
    GridExpressions,
    inverse,
    margin,
    side,
)
from lanewise.patterns.search.sight import LEAST, NEAR, STEEP, heading


@dataclass(frozen=True, slots=True)
class GridWalk(CellWalk):
    """The cells within the radius of a target.

    Rows of which every cell is farther away than the bound are left out. sighted: also what lies
    after the target (see `sight.py`).
    """

    periodic: bool
    sighted: bool = False

    def uniforms(self) -> tuple[ir.Parameter, ...]:
        names = (LEAST, NEAR) if self.sighted else ()
        return (*self.grid.uniforms(), *(ir.Parameter(n, self.grid.precision) for n in names))

    def around(self, place: Sequence[ir.Local], bound2: ir.Expression, visit: Visit) -> ir.Block:
        rows = Rows(self.grid, place, bound2)
        if self.sighted:
            return rows.sighted(visit)
        return rows.periodic(visit) if self.periodic else rows.open(visit)


class Rows:
    """The rows around a position."""

    def __init__(
        self, g: GridExpressions, place: Sequence[ir.Local], bound2: ir.Expression
    ) -> None:
        self.g, self.place, self.bound2 = g, place, bound2
        self.scaled = [g.real(f"scaled.{c}") for c in COMPONENTS[: g.axes]]
        self.first, self.last, self.cell = (
            [g.whole(f"{name}{c}") for c in COMPONENTS[: g.axes]]
            for name in ("first.", "last.", "")
        )

    def open(self, visit: Visit) -> ir.Block:
        g = self.g
        return self.across(
            g.range(g.row(self.cell[1:]), self.first[0], self.last[0], visit), begin=0
        )

    def across(self, inner: ir.Block, begin: int = 1) -> ir.Block:
        """The rows within the radius, with what is done in each; cells are counted along the axes
        from `begin` on.
        """
        g, body = self.g, list[ir.Statement]()
        for axis, p in list(enumerate(self.place))[begin:]:
            c = COMPONENTS[axis]
            body += g.cell(f"first.{c}", g.binary("-", p, g.value(REACH)), axis)
            body += g.cell(f"last.{c}", g.binary("+", p, g.value(REACH)), axis)
            if axis:
                body += (
                    ir.Assign(self.scaled[axis].name, g.scaled(p, axis)),
                    *g.cut_off(self.scaled[axis], axis, 0),
                )
        return (*body, *self.rows(self.gap, inner))

    # ------------------------------------------------------------ what is seen

    def sighted(self, visit: Visit) -> ir.Block:
        """As `open`, with the part of every row that the target may see."""
        g = self.g
        low, high = g.real("seen.low"), g.real("seen.high")
        inner = (
            *self.part_seen(),
            *g.cell("first.x", g.binary("+", self.place[0], low), 0),
            *g.cell("last.x", g.binary("+", self.place[0], high), 0),
            *g.range(g.row(self.cell[1:]), self.first[0], self.last[0], visit),
        )
        return self.across(inner)

    def part_seen(self) -> ir.Block:
        """From where to where along x, from the target, something of the row may be seen."""
        g, body = self.g, list[ir.Statement]()
        low, high, end = g.real("seen.low"), g.real("seen.high"), g.real("seen.end")
        reach, near = g.value(REACH), g.value(NEAR)
        rest: ir.Expression = g.value(LEAST)
        for axis in range(1, g.axes):
            most = g.real(f"seen.{COMPONENTS[axis]}")
            body += self.most_along(most, axis)
            rest = g.binary("-", rest, most)
        along = heading(0, g.precision)
        ahead = ir.Compare(">", along, g.number(STEEP))
        behind = ir.Compare("<", along, g.number(-STEEP))
        less = g.real("seen.less")
        return (
            *body,
            ir.Assign(low.name, ir.Unary("-", reach, g.precision)),
            ir.Assign(high.name, reach),
            ir.Assign(less.name, ir.Unary("-", near, g.precision)),
            ir.Assign(end.name, g.binary("/", rest, along)),
            ir.If(ahead, (ir.Assign(low.name, g.at_least(low, g.at_most(end, less))),)),
            ir.If(behind, (ir.Assign(high.name, g.at_most(high, g.at_least(end, near))),)),
        )

    def most_along(self, most: ir.Local, axis: int) -> ir.Block:
        """The largest product of the heading and a place in the row along an axis, as far as the
        radius reaches; the outermost cells have no outer border.
        """
        g, c, reach = self.g, self.cell[axis], self.g.value(REACH)
        a, b, less = g.real("seen.a"), g.real("seen.b"), g.real("seen.less")
        room = g.binary("*", g.value(margin(axis)), g.value(side(axis)))
        scaled, at = g.scaled(self.place[axis], axis), ir.Cast(c, g.precision)
        last = build.subtract(g.cells(axis), 1)
        facing = heading(axis, g.precision)
        return (
            ir.Assign(less.name, ir.Unary("-", reach, g.precision)),
            ir.Assign(a.name, g.binary("*", g.binary("-", at, scaled), g.value(side(axis)))),
            ir.Assign(b.name, g.binary("+", g.binary("+", a, g.value(side(axis))), room)),
            ir.Assign(a.name, g.binary("-", a, room)),
            ir.If(build.less(c, 1), (ir.Assign(a.name, less),)),
            ir.If(ir.Compare(">=", c, last), (ir.Assign(b.name, reach),)),
            ir.Assign(a.name, g.at_least(a, less)),
            ir.Assign(b.name, g.at_most(b, reach)),
            ir.Assign(a.name, g.binary("*", facing, a)),
            ir.Assign(b.name, g.binary("*", facing, b)),
            ir.Assign(most.name, g.at_least(a, b)),
        )

    def gap(self, axis: int) -> ir.Block:
        """How far the cells of a row or a layer are."""
        return self.g.gap(f"gap.{COMPONENTS[axis]}", self.cell[axis], self.scaled[axis], axis)

    def rows(self, gap: Callable[[int], ir.Block], inner: ir.Block) -> ir.Block:
        """The loops over z and y around what is done in a row, and the test that leaves rows
        out.
        """
        g = self.g
        gaps = [g.real(f"gap.{c}") for c in COMPONENTS[: g.axes]]
        block: ir.Block = (ir.If(g.near(gaps[1:], self.bound2), inner),)
        for axis in range(1, g.axes):
            block = (
                g.loop(COMPONENTS[axis], self.first[axis], self.last[axis], (*gap(axis), *block)),
            )
        return block

    # ------------------------------------------------------------ positions that wrap around

    def periodic(self, visit: Visit) -> ir.Block:
        """As `open`, with cells counted beyond the borders; a row that crosses the border is two
        ranges.
        """
        g, body = self.g, list[ir.Statement]()
        for axis, p in enumerate(self.place):
            body += self.wrapping_ends(p, axis)
        home = [g.whole(f"home.{c}") for c in COMPONENTS[: g.axes]]
        places = tuple(
            ir.Assign(home[axis].name, self.wrapped(self.cell[axis], axis))
            for axis in range(1, g.axes)
        )
        inner = (*places, *self.pieces(g.row(home[1:]), visit))
        return (*body, *self.rows(self.wrapping_gap, inner))

    def wrapping_gap(self, axis: int) -> ir.Block:
        """As `gap`; no distance where all cells are looked at."""
        gap = self.g.real(f"gap.{COMPONENTS[axis]}")
        nothing = ir.If(self.cut(axis), (ir.Assign(gap.name, self.g.number(0)),))
        return (*self.gap(axis), nothing)

    def cut(self, axis: int) -> ir.Local:
        """Whether all cells of an axis are looked at: then what is near on one side may be nearer
        on the other.
        """
        return ir.Local(f"{self.first[axis].name}.all", BOOL)

    def wrapping_ends(self, place: ir.Local, axis: int) -> ir.Block:
        """The first and the last cell of the range along an axis, at most all of them."""
        g, first, last = self.g, self.first[axis], self.last[axis]
        w, scaled = g.real(f"wrapped.{COMPONENTS[axis]}"), self.scaled[axis]
        reach = g.binary(
            "+", g.binary("*", g.value(REACH), g.value(inverse(axis))), g.value(margin(axis))
        )
        ends = (g.binary("-", scaled, reach), g.binary("+", scaled, reach))
        count = build.subtract(last, first)
        return (
            *g.wrapped(f"wrapped.{COMPONENTS[axis]}", place, axis),
            ir.Assign(scaled.name, g.binary("*", w, g.value(inverse(axis)))),
            ir.Assign(
                first.name, build.index_of(ir.Call("floor", (ends[0],), g.precision), g.index)
            ),
            ir.Assign(
                last.name, build.index_of(ir.Call("floor", (ends[1],), g.precision), g.index)
            ),
            # What is no number must not lead out of the grid, whatever index a processor makes of
            # it.
            ir.Assign(
                self.cut(axis).name,
                ir.Logical(
                    "or",
                    ir.Logical(
                        "or",
                        ir.Compare(">=", build.add(count, 1), g.cells(axis)),
                        build.less(build.add(first, g.cells(axis)), 0),
                    ),
                    ir.Compare(">=", last, build.add(g.cells(axis), g.cells(axis))),
                ),
            ),
            ir.If(
                self.cut(axis),
                (
                    ir.Assign(first.name, ir.Literal(0, g.index)),
                    ir.Assign(last.name, build.subtract(g.cells(axis), 1)),
                ),
            ),
        )

    def wrapped(self, cell: ir.Local, axis: int) -> ir.Expression:
        """The cell of the grid that a cell beyond its borders is the image of."""
        n = self.g.cells(axis)
        below = ir.Select(build.less(cell, 0), build.add(cell, n), cell, self.g.index)
        return ir.Select(ir.Compare(">=", cell, n), build.subtract(cell, n), below, self.g.index)

    def pieces(self, row: ir.Expression, visit: Visit) -> ir.Block:
        """The range of a row within the grid, and what lies beyond one of its ends."""
        g, n, zero = self.g, self.g.cells(0), ir.Literal(0, self.g.index)
        first, last = self.first[0], self.last[0]
        before, beyond = build.less(first, 0), ir.Compare(">=", last, n)
        piece, a, b = g.whole("piece"), g.whole("a"), g.whole("b")
        whole = (
            ir.Assign(a.name, build.maximum(first, 0)),
            ir.Assign(b.name, build.minimum(last, build.subtract(n, 1))),
        )
        rest = (
            ir.Assign(a.name, ir.Select(before, build.add(first, n), zero, g.index)),
            ir.Assign(
                b.name, ir.Select(before, build.subtract(n, 1), build.subtract(last, n), g.index)
            ),
        )
        count = ir.Select(ir.Logical("or", before, beyond), ir.Literal(1, g.index), zero, g.index)
        body = (ir.If(build.equal(piece, 0), whole, rest), *g.range(row, a, b, visit))
        return (g.loop("piece", zero, count, body),)


@dataclass(frozen=True, slots=True)
class RingWalk(CellWalk):
    """All cells, ring by ring, until the bound says that the rest is too far."""

    def around(self, place: Sequence[ir.Local], bound2: ir.Expression, visit: Visit) -> ir.Block:
        return _Rings(self.grid, place, bound2).block(visit)


class _Rings:
    def __init__(
        self, g: GridExpressions, place: Sequence[ir.Local], bound2: ir.Expression
    ) -> None:
        self.g, self.place, self.bound2 = g, place, bound2
        self.scaled = [g.real(f"scaled.{c}") for c in COMPONENTS[: g.axes]]
        self.home, self.cell = (
            [g.whole(f"{name}{c}") for c in COMPONENTS[: g.axes]] for name in ("home.", "")
        )
        self.ring = g.whole("ring")

    def block(self, visit: Visit) -> ir.Block:
        g, body = self.g, list[ir.Statement]()
        for axis, p in enumerate(self.place):
            body += (
                ir.Assign(self.scaled[axis].name, g.scaled(p, axis)),
                *g.cut_off(self.scaled[axis], axis, 0),
            )
            body += g.cell(f"home.{COMPONENTS[axis]}", p, axis)
        grow = ir.Assign(self.ring.name, build.add(self.ring, 1))
        again = ir.While(ir.Literal(True, BOOL), (*self.rows(visit), *self.leave(), grow))
        return (*body, ir.Assign(self.ring.name, ir.Literal(0, g.index)), again)

    # ------------------------------------------------------------ one ring

    def rows(self, visit: Visit) -> ir.Block:
        """The rows that the ring touches: whole ones at its faces, the two cells at its ends
        within.
        """
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
        return build.minimum(
            build.add(self.home[axis], self.ring), build.subtract(self.g.cells(axis), 1)
        )

    def row(self, whole: ir.Local, visit: Visit) -> ir.Block:
        """One range for a whole row; else the cells at both ends, where they are cells of the
        grid.
        """
        g, index = self.g, self.g.index
        piece, a, b = g.whole("piece"), g.whole("a"), g.whole("b")
        left, right = build.subtract(self.home[0], self.ring), build.add(self.home[0], self.ring)
        end = ir.Select(build.equal(piece, 0), left, right, index)
        choose = ir.If(whole, (
            ir.Assign(a.name, self.lowest(0)), ir.Assign(b.name, self.highest(0)),
        ), (
            ir.Assign(a.name, end), ir.Assign(b.name, end),
        ))  # fmt: skip
        there = ir.Logical(
            "and", ir.Compare(">=", a, ir.Literal(0, index)), build.less(b, g.cells(0))
        )
        body = (choose, ir.If(there, g.range(g.row(self.cell[1:]), a, b, visit)))
        count = ir.Select(whole, ir.Literal(0, index), ir.Literal(1, index), index)
        return (g.loop("piece", ir.Literal(0, index), count, body),)

    # ------------------------------------------------------------ the end

    def leave(self) -> ir.Block:
        """Break when all cells were visited, or when the nearest cell that was not is beyond the
        bound.
        """
        g = self.g
        rest, more = g.real("rest"), ir.Local(g.whole("more").name, BOOL)
        body: list[ir.Statement] = [
            ir.Assign(rest.name, ir.Literal(float("inf"), g.precision)),
            ir.Assign(more.name, ir.Literal(False, BOOL)),
        ]
        for axis in range(g.axes):
            low = build.subtract(self.home[axis], self.ring)
            high = build.add(self.home[axis], self.ring)
            below = g.binary("-", self.scaled[axis], ir.Cast(low, g.precision))
            above = g.binary("-", ir.Cast(build.add(high, 1), g.precision), self.scaled[axis])
            body.append(
                self.closer(ir.Compare(">", low, ir.Literal(0, g.index)), below, axis, rest, more)
            )
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
