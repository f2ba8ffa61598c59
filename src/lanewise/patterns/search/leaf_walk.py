"""How a kernel runs through the leaves of the thesis's dynamic grids.

"all":     for every leaf: if its box is near: for its sources: visit "range":   leaves are slices
in the order of x: find the first that is near by halving, continue to the last "listed":  go down
the planes to the cell that the target is in; for the leaves that are listed around it: as above The
last is the thesis's optimised variant, which looks only at the grid cells around. Its lists hold
every leaf within the radius of the cell, so that no neighbour is missed, and with the k nearest the
bound leaves out those that are not needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.values import value_array
from lanewise.language.types import BOOL, I32, Scalar
from lanewise.patterns.search.base import Visit, Walk
from lanewise.patterns.search.box_expressions import BoxExpressions
from lanewise.patterns.search.builders.ordering import LIST
from lanewise.patterns.search.builders.parts import division_arrangement, division_leaves

STARTS, INFO = own("leaves.starts"), own("leaves.info")
DIVISIONS, LISTS = own("leaves.divisions"), own("leaves.around")
LISTED_CELLS = own("leaves.listed")
How = Literal["all", "range", "listed"]


@dataclass(frozen=True, slots=True)
class LeafWalk(Walk):
    """The leaves whose boxes are near; `slices` are boxes along x alone."""

    index: Scalar
    precision: Scalar
    axes: int
    periodic: bool
    slices: bool
    how: How

    @property
    def boxes(self) -> BoxExpressions:
        return BoxExpressions(self.index, self.precision, self.axes, self.periodic)

    def arguments(self) -> tuple[ir.ArrayArgument, ...]:
        arrays = (
            self.boxes.boxes(),
            value_array(STARTS, I32, written=False),
            value_array(INFO, I32, written=False),
        )
        if self.how != "listed":
            return arrays
        divisions = ir.ArrayArgument(
            DIVISIONS, division_leaves(self.precision), division_arrangement(self.precision)
        )
        return (*arrays, divisions, value_array(LISTS, I32, written=False))

    def uniforms(self) -> tuple[ir.Parameter, ...]:
        listed = (ir.Parameter(LISTED_CELLS, self.index),) if self.how == "listed" else ()
        return (*self.boxes.uniforms(), *listed)

    def around(self, place: Sequence[ir.Local], bound2: ir.Expression, visit: Visit) -> ir.Block:
        b, leaves = self.boxes, self.boxes.whole("leaves")
        head = (*b.start(place), *self.read(INFO, b.number(0), leaves))
        match self.how:
            case "all":
                leaf = b.whole("leaf")
                loop = ir.For(
                    leaf.name,
                    b.number(0),
                    leaves,
                    b.number(1),
                    self.look(leaf, place, bound2, visit),
                )
                return (*head, loop)
            case "range":
                return (*head, *self.range(place, bound2, visit, leaves))
            case "listed":
                return (*head, *self.listed(place, bound2, visit, leaves))
            case _:
                assert_never(self.how)

    # ------------------------------------------------------------ one leaf

    def look(
        self, leaf: ir.Local, place: Sequence[ir.Local], bound2: ir.Expression, visit: Visit
    ) -> ir.Block:
        """Its sources, if its box is near."""
        b = self.boxes
        axes = (0,) if self.slices else None
        return (
            b.load(leaf),
            *b.distance(place, axes),
            ir.If(b.near(bound2), self.sources(leaf, visit)),
        )

    def sources(self, leaf: ir.Local, visit: Visit) -> ir.Block:
        """Visit every source of a leaf."""
        b, first, last, j = (self.boxes, *(self.boxes.whole(n) for n in ("first", "last", "j")))
        return (
            *self.read(STARTS, leaf, first),
            *self.read(STARTS, build.add(leaf, 1), last),
            ir.For(j.name, first, last, b.number(1), visit(j)),
        )

    def read(self, array: str, place: ir.Expression, into: ir.Local) -> ir.Block:
        """An integer of 32 bits, as an index."""
        if self.index == I32:
            return (ir.LoadRecord(array, place, (("value", into.name),)),)
        short = ir.Local(f"{into.name}.short", I32)
        return (
            ir.LoadRecord(array, place, (("value", short.name),)),
            ir.Assign(into.name, ir.Cast(short, self.index)),
        )

    # ------------------------------------------------------------ slices in order

    def range(
        self, place: Sequence[ir.Local], bound2: ir.Expression, visit: Visit, leaves: ir.Local
    ) -> ir.Block:
        """From the first leaf that is not too far below, as long as none is too far above."""
        b = self.boxes
        leaf, end, middle = b.whole("leaf"), b.whole("end"), b.whole("middle")
        centre, x = b.real("centre.x"), place[0]
        test = (b.load(middle), *b.distance(place, (0,)))
        before = ir.Logical(
            "and", ir.Compare("<", centre, x), ir.Unary("not", b.near(bound2), b.flag("near").type)
        )
        halve = (
            ir.Assign(middle.name, build.divide(build.add(leaf, end), 2)),
            *test,
            ir.If(
                before,
                (ir.Assign(leaf.name, build.add(middle, 1)),),
                (ir.Assign(end.name, middle),),
            ),
        )
        beyond = ir.If(ir.Compare(">", centre, x), (ir.Assign(leaf.name, leaves),))
        step = (
            b.load(leaf),
            *b.distance(place, (0,)),
            ir.If(b.near(bound2), self.sources(leaf, visit), (beyond,)),
            ir.Assign(leaf.name, build.add(leaf, 1)),
        )
        return (
            ir.Assign(leaf.name, b.number(0)),
            ir.Assign(end.name, leaves),
            ir.While(build.less(leaf, end), halve),
            ir.While(build.less(leaf, leaves), step),
        )

    # ------------------------------------------------------------ leaves around a cell

    def listed(
        self, place: Sequence[ir.Local], bound2: ir.Expression, visit: Visit, leaves: ir.Local
    ) -> ir.Block:
        """The leaves of the list of the target's cell; all leaves where there is no list."""
        b = self.boxes
        cell, row, count, m, leaf = (b.whole(n) for n in ("cell", "row", "count", "m", "leaf"))
        has_list = build.less(cell, ir.Local(LISTED_CELLS, self.index))
        all_leaves = b.flag("all")
        pick = ir.If(
            ir.Unary("not", all_leaves, BOOL),
            self.read(LISTS, build.add(build.add(row, m), 1), leaf),
        )
        return (
            *self.cell_of(place, cell),
            ir.Assign(row.name, build.multiply(cell, LIST + 1)),
            ir.Assign(count.name, b.number(-1)),
            ir.If(has_list, self.read(LISTS, row, count)),
            ir.Assign(all_leaves.name, build.less(count, 0)),
            ir.If(all_leaves, (ir.Assign(count.name, leaves),)),
            ir.For(
                m.name,
                b.number(0),
                count,
                b.number(1),
                (ir.Assign(leaf.name, m), pick, *self.look(leaf, place, bound2, visit)),
            ),
        )

    def cell_of(self, place: Sequence[ir.Local], cell: ir.Local) -> ir.Block:
        """The cell that the planes lead to."""
        b = self.boxes
        division, below, above = b.whole("division"), b.whole("below"), b.whole("above")
        plane = b.real("plane")
        short = [ir.Local(own(f"walk.{n}.short"), I32) for n in ("axis", "below", "above")]
        reads = (
            ("place", plane.name),
            *((n, s.name) for n, s in zip(("axis", "below", "above"), short, strict=True)),
        )
        along: ir.Expression = place[-1]
        for axis in range(len(place) - 2, -1, -1):
            along = ir.Select(
                ir.Compare("==", short[0], ir.Literal(axis, I32)),
                place[axis],
                along,
                self.precision,
            )
        wide = [s if self.index == I32 else ir.Cast(s, self.index) for s in short]
        step = (
            ir.LoadRecord(DIVISIONS, division, reads),
            ir.Assign(below.name, wide[1]),
            ir.Assign(above.name, wide[2]),
            ir.Assign(
                division.name, ir.Select(ir.Compare("<", along, plane), below, above, self.index)
            ),
        )
        return (
            *self.read(INFO, b.number(1), division),
            ir.While(ir.Compare(">=", division, b.number(0)), step),
            ir.Assign(cell.name, build.subtract(b.number(-1), division)),
        )
