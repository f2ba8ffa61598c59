"""Cell array with binary search: cells along all axes but the first, and the sources of each in the
order of their first coordinate.

A target looks at the rows of cells within the radius of it, and finds by halving which sources of a
row are near enough along the first axis (S. Mauch, Efficient Algorithms for Solving Static
Hamilton-Jacobi Equations, 2003; the best structure of B. Wirz, B. Knafla and C. Leopold, 2008).
The host builds it; sources on a GPU are brought there, and the array back, in every build.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.values import value_array
from lanewise.language.target import target_of
from lanewise.language.types import COMPONENTS, I32, Scalar
from lanewise.launch.arguments import bind_value_array, values_arrangement
from lanewise.launch.task_list import BoundArray
from lanewise.launch.tasks import Primitive, reading, writing
from lanewise.layouts import Arrangement
from lanewise.patterns.search.base import (
    ORDER,
    POSITIONS,
    Search,
    Statistics,
    Visit,
    Walk,
    Walked,
    check_sources,
    radius2,
)
from lanewise.patterns.search.builders.cells import cells_of, host_column
from lanewise.patterns.search.builders.counting import sort_by_cell
from lanewise.patterns.search.builders.geometry import Geometry, fitted
from lanewise.patterns.search.builders.merging import order_of
from lanewise.patterns.search.builders.parts import Mirror
from lanewise.patterns.search.grid_expressions import (
    REACH,
    STARTS,
    GridExpressions,
    grid_uniforms,
)
from lanewise.patterns.search.grid_walk import Rows
from lanewise.patterns.search.points import Points
from lanewise.patterns.search.static_grid import box_over, ranges_of
from lanewise.patterns.search.worlds import Open, Periodic
from lanewise.runtime.memory import PlannedPieces, to_host
from lanewise.support.attributes import frozen
from lanewise.support.errors import ArgumentError

PLACES = own("cells.places")  # the first coordinate of every source, in sorted places
COLUMNS_A_SOURCE = 2  # at most: bounds the memory and the time to build


@frozen
@dataclass(frozen=True, slots=True, kw_only=True)
class CellArray(Search):
    """Columns of cells along the first axis, each sorted along it.

    It needs a radius, and a world that is not periodic. over: in an open world the range of the
    columns along every axis, (lowest, highest); None: that of the first positions.
    """

    over: tuple[tuple[float, float], ...] | None = None

    def __post_init__(self) -> None:
        super(CellArray, self).__post_init__()
        if self.radius is None:
            raise ArgumentError(
                "CellArray(): wanted a radius, which says where to begin to look; "
                "lw.StaticGrid and lw.DynamicGrid find the k nearest without one"
            )
        if isinstance(self.world, Periodic):
            raise ArgumentError(
                "CellArray(world=...): columns are sorted from end to end, and a periodic world "
                "has none; wanted lw.StaticGrid or lw.DynamicGrid"
            )
        if self.over is not None:
            object.__setattr__(self, "over", ranges_of("CellArray", self.over, self.world))

    def describe(self) -> str:
        return f"cell array: {self.in_words()}"

    def make(self, sources: Points) -> Walked:
        check_sources(self, sources)
        radius2(self, sources.precision)
        return _CellArray(self, self.geometry(sources), sources)

    def geometry(self, sources: Points) -> Geometry:
        """The columns: one cell along the first axis."""
        low, extent = box_over("CellArray", self.over, self.world, sources)
        most = max(1, sources.count * COLUMNS_A_SOURCE)
        across = fitted(low[1:], extent[1:], self.radius or 0.0, most, periodic=False)
        side = extent[0] if extent[0] > 0 else 1.0
        return Geometry(low, (side, *across.side), (1, *across.cells), periodic=False)


@dataclass(frozen=True, slots=True)
class ColumnWalk(Walk):
    """The columns within the radius of a target, and the part of each that is near."""

    grid: GridExpressions

    def arguments(self) -> tuple[ir.ArrayArgument, ...]:
        places = value_array(PLACES, self.grid.precision, written=False)
        return (*self.grid.arguments(), places)

    def uniforms(self) -> tuple[ir.Parameter, ...]:
        return self.grid.uniforms()

    def around(self, place: Sequence[ir.Local], bound2: ir.Expression, visit: Visit) -> ir.Block:
        g = self.grid
        low, high = g.real("low"), g.real("high")
        rows = Rows(g, place, bound2)
        ends = (
            ir.Assign(low.name, g.binary("-", place[0], g.value(REACH))),
            ir.Assign(high.name, g.binary("+", place[0], g.value(REACH))),
        )
        inner = self.column(g.row([g.whole(c) for c in COMPONENTS[1 : g.axes]]), low, high, visit)
        return (*ends, *rows.across(inner))

    def column(self, row: ir.Expression, low: ir.Local, high: ir.Local, visit: Visit) -> ir.Block:
        """Visit the sources of a column from one coordinate to another."""
        g, number, j = self.grid, self.grid.whole("row"), self.grid.whole("j")
        short = [ir.Local(own(f"walk.{n}.short"), I32) for n in ("begin", "end")]
        begin, end, last = g.whole("begin"), g.whole("end"), g.whole("last")
        one = ir.Literal(1, g.index)
        return (
            ir.Assign(number.name, row),
            ir.LoadRecord(STARTS, number, (("value", short[0].name),)),
            ir.LoadRecord(STARTS, build.add(number, 1), (("value", short[1].name),)),
            ir.Assign(begin.name, build.cast(short[0], g.index)),
            ir.Assign(end.name, build.cast(short[1], g.index)),
            ir.Assign(last.name, end),
            *self.halve(begin, end, "<", low),
            ir.Assign(end.name, last),
            ir.Assign(last.name, begin),
            *self.halve(last, end, "<=", high),
            ir.For(j.name, begin, last, one, visit(j)),
        )

    def halve(
        self, first: ir.Local, end: ir.Local, below: Literal["<", "<="], bound: ir.Local
    ) -> ir.Block:
        """Move `first` to the first place from it on, before `end`, that is not below the bound."""
        middle, x = self.grid.whole("middle"), self.grid.real("at")
        step = (
            ir.Assign(middle.name, build.divide(build.add(first, end), 2)),
            ir.LoadRecord(PLACES, middle, (("value", x.name),)),
            ir.If(
                ir.Compare(below, x, bound),
                (ir.Assign(first.name, build.add(middle, 1)),),
                (ir.Assign(end.name, middle),),
            ),
        )
        return (ir.While(build.less(first, end), step),)


class _CellArray(Walked):
    def __init__(self, search: CellArray, geometry: Geometry, sources: Points) -> None:
        self._search, self._geometry, self._sources = search, geometry, sources
        n, real = sources.count, sources.precision.size
        sizes = {"starts": 4 * (geometry.total + 1), "order": 4 * n, "places": real * n}
        what = f"a cell array of {geometry.total:,} columns"
        host = there = PlannedPieces("cpu", sizes, what)
        if not target_of(sources.device).host_memory:
            there = PlannedPieces(sources.device, sizes, what)
        self._pieces = tuple(dict.fromkeys((host, there)))
        self._starts, self._order, self._places = (Mirror(name, host, there) for name in sizes)

    @property
    def planned(self) -> tuple[PlannedPieces, ...]:
        return self._pieces

    @property
    def order(self) -> Any:
        return self._order.device.view("int32")

    @property
    def arrays(self) -> Mapping[str, BoundArray]:
        kind = self._sources.precision
        places = self._places.device.view(kind.dtype.name)
        return {
            STARTS: bind_value_array(self._starts.device.view("int32"), I32),
            PLACES: bind_value_array(places, kind),
        }

    @property
    def arrangements(self) -> Mapping[str, Arrangement]:
        return {
            STARTS: values_arrangement(I32),
            PLACES: values_arrangement(self._sources.precision),
        }

    @property
    def uniforms(self) -> Mapping[str, Any]:
        return grid_uniforms(self._geometry, self._search.radius, self._sources.precision)

    def walk(self, index: Scalar) -> Walk:
        s = self._sources
        return ColumnWalk(GridExpressions(index, s.precision, s.dimension))

    @property
    def settled(self) -> bool:
        return not isinstance(self._search.world, Open) or self._search.over is not None

    def fits(self, sources: Points) -> bool:
        return self.settled or self._search.geometry(sources) == self._geometry

    def tasks(self) -> tuple[Primitive, ...]:
        touched = (*reading(POSITIONS), *writing(STARTS, PLACES, ORDER))
        read = ((POSITIONS, self._sources.lying_in),)
        waits = not target_of(self._sources.device).host_memory
        return (Primitive("cell_array", self._build, touched, waits=waits, read=read),)

    def _build(self, points: Points | None = None) -> None:
        """Sources along the first axis, then by column, which leaves them in that order."""
        p, dtype = points or self._sources, self._sources.precision.dtype
        columns = [host_column(c) for c in p.columns()]
        along = order_of(columns[0])
        starts, order = (m.host.view(np.int32) for m in (self._starts, self._order))
        by_column = np.empty(p.count, np.int32)
        sort_by_cell(cells_of(self._geometry, p, columns)[along], starts, by_column)
        np.take(along, by_column, out=order)
        np.take(columns[0], order, out=self._places.host.view(dtype))
        for memory in (self._starts, self._order, self._places):
            memory.send(len(memory.host))

    def statistics(self) -> Statistics:
        members = np.diff(to_host(self._starts.device).view(np.int32))
        occupied = members[members > 0]
        mean = float(occupied.mean()) if len(occupied) else 0.0
        return Statistics(len(members), len(occupied), int(members.min()), int(members.max()), mean)

    def describe(self) -> str:
        shape = " x ".join(map(str, self._geometry.cells[1:]))
        return f"{self._search.describe()}; {shape} columns"
