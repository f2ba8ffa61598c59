"""Static grid: uniform cells over a box, and the sources of each cell side by side.

Cells that are neighbours along x are one range.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from lanewise.ir.names import longest_of, own
from lanewise.language.target import target_of
from lanewise.language.types import COMPONENTS, I32, Scalar
from lanewise.launch.arguments import bind_value_array, values_arrangement
from lanewise.launch.task_list import BoundArray
from lanewise.launch.tasks import Primitive
from lanewise.layouts import Arrangement
from lanewise.patterns.search.base import (
    Search,
    Statistics,
    Walk,
    Walked,
    check_sources,
    plain_number,
    radius2,
)
from lanewise.patterns.search.builders.cells import CellBuilder, host_cells
from lanewise.patterns.search.builders.cells_device import device_cells
from lanewise.patterns.search.builders.geometry import (
    MOST_ALONG,
    MOST_CELLS,
    Geometry,
    box_of,
    cells_met,
    divided,
    fitted,
    pairs_in_cells,
)
from lanewise.patterns.search.grid_expressions import STARTS, GridExpressions, grid_uniforms
from lanewise.patterns.search.grid_walk import GridWalk, RingWalk
from lanewise.patterns.search.points import Points
from lanewise.patterns.search.sight import Sight, check_sight
from lanewise.patterns.search.turns import MANY, ROW, ball, longest_row, turns_of_lists
from lanewise.patterns.search.worlds import Open, Periodic, World
from lanewise.runtime.device import get_device
from lanewise.runtime.memory import PlannedPieces, available_memory, to_host
from lanewise.support.attributes import frozen
from lanewise.support.checks import finite, shown
from lanewise.support.errors import ArgumentError, DeviceError
from lanewise.support.kinds import number_kind

CONSTANT_BYTES = 65_536  # of constant memory that a kernel has
# cells at most for each source, where the grid is chosen: bounds the memory and the time to build
CELLS_A_SOURCE = 2
SMALL = 1 << 20  # bytes, which always fit: asking costs more than allocating
SOURCES_A_CELL = 2  # on average, where no radius says how large a cell shall be


@frozen
@dataclass(frozen=True, slots=True, kw_only=True)
class StaticGrid(Search):
    """Uniform cells over the world; in an open world over the bounding box of the first positions,
    or over the box of `over`.

    cells: along every axis, one number or one for each axis; None: cells with sides of at least the
    radius, at most two for each source. side: the least side of these in radii (None: 1); narrower
    cells leave out more of the sources that are too far. over: in an open world the lowest and the
    highest coordinate along every axis, as ((-1, 1), (-1, 1), (0, 5)); the outermost cells extend
    to infinity. The order of sums depends on the cells.
    build: "device" builds on the device of the sources; "host" on the host, with transfers in every
    build, which cannot be in a graph.
    index: the memory for the starts of cells on a GPU, "global" or "constant" (64 KiB).
    sight: which sources a target sees; cells behind it are skipped (None: it sees all).
    """

    cells: int | tuple[int, ...] | None = None
    side: float | None = None
    over: tuple[tuple[float, float], ...] | None = None
    build: Literal["device", "host"] = "device"
    index: Literal["global", "constant"] = "global"
    sight: Sight | None = None

    def __post_init__(self) -> None:
        super(StaticGrid, self).__post_init__()
        if self.radius is None and self.k is None:
            raise ArgumentError("StaticGrid(): wanted a radius, or k nearest sources, or both")
        if self.radius is None and isinstance(self.world, Periodic):
            raise ArgumentError(
                "StaticGrid(k=...): in a periodic world a grid needs a radius; lw.AllPairs(k=...) "
                "does without"
            )
        check_sight("StaticGrid", self.sight, self.radius)
        numbers: tuple[Any, ...] = self.cells if isinstance(self.cells, tuple) else (self.cells,)
        whole = all(isinstance(n, int) and not isinstance(n, bool) and n >= 1 for n in numbers)
        if self.cells is not None and not whole:
            raise ArgumentError(
                f"StaticGrid(cells={shown(self.cells)}): wanted an integer from 1 on, or one "
                "for each axis"
            )
        object.__setattr__(self, "side", plain_number(self.side))
        _check_side(self)
        if self.over is not None:
            object.__setattr__(self, "over", ranges_of("StaticGrid", self.over, self.world))
        for name, value, choices in (
            ("build", self.build, ("device", "host")),
            ("index", self.index, ("global", "constant")),
        ):
            choice: Any = value
            if not isinstance(choice, str) or value not in choices:
                raise ArgumentError(
                    f"StaticGrid({name}={shown(value)}): wanted {choices[0]!r} or {choices[1]!r}"
                )

    @property
    def sees(self) -> Sight | None:
        return self.sight

    def describe(self) -> str:
        seen = "" if self.sight is None else f", {self.sight.in_words()}"
        return f"static grid: {self.in_words()}{seen}"

    def make(self, sources: Points) -> Walked:
        check_sources(self, sources)
        radius2(self, sources.precision)
        geometry = self.geometry(sources)
        _check_memory(self, geometry, sources)
        check_constant(self, geometry, sources)
        there = self.build == "device" and not target_of(sources.device).host_memory
        build = device_cells if there else host_cells
        return _Grid(self, geometry, sources, build(geometry, sources))

    def geometry(self, sources: Points) -> Geometry:
        """Where the cells are.

        Raises `ArgumentError` for cells or ranges along the wrong number of axes.
        """
        (low, extent), periodic = self._box(sources), isinstance(self.world, Periodic)
        if self.cells is not None:
            cells = (
                self.cells if isinstance(self.cells, tuple) else (self.cells,) * sources.dimension
            )
            if len(cells) != sources.dimension:
                raise ArgumentError(
                    f"StaticGrid(cells={cells}): the positions have {sources.dimension} axes, "
                    "wanted as many numbers"
                )
            return divided(low, extent, cells, periodic=periodic)
        most = (
            sources.count * CELLS_A_SOURCE
            if self.radius is not None
            else max(1, sources.count // SOURCES_A_CELL)
        )
        return fitted(low, extent, self._least_side, most, periodic=periodic)

    @property
    def _least_side(self) -> float:
        """Of cells whose number is not given."""
        return (self.radius or 0.0) * (self.side or 1.0)

    def _box(self, sources: Points) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The lowest corner of the cells, and their extents."""
        return box_over("StaticGrid", self.over, self.world, sources)


def _check_side(search: StaticGrid) -> None:
    """Refuse a side that is no positive number, and one that has no use."""
    side: Any = search.side
    if side is None:
        return
    number = isinstance(side, int | float) and not isinstance(side, bool)
    if not number or not finite(side) or side <= 0:
        raise ArgumentError(f"StaticGrid(side={shown(side)}): wanted a positive number of radii")
    if search.radius is None or search.cells is not None:
        beside = "without a radius" if search.radius is None else f"cells={search.cells}"
        raise ArgumentError(
            f"StaticGrid(side={side:g}, {beside}): sides are counted in radii, for a grid that "
            "chooses its number of cells; leave side out"
        )


def box_over(
    name: str, over: tuple[tuple[float, float], ...] | None, world: World, sources: Points
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The lowest corner of cells over these ranges, or over the sources, and their extents."""
    if over is None:
        return box_of(world, sources.sample())
    if len(over) != sources.dimension:
        raise ArgumentError(
            f"{name}(over={over}): the positions have {sources.dimension} axes, wanted as many "
            "ranges"
        )
    return tuple(a for a, _ in over), tuple(b - a for a, b in over)


def ranges_of(name: str, over: Any, world: World) -> tuple[tuple[float, float], ...]:
    """Of every axis the lowest and the highest coordinate."""
    try:
        ranges = tuple((float(number_kind(low)), float(number_kind(high))) for low, high in over)
    except Exception:  # of the user's class, or what is no number
        raise ArgumentError(
            f"{name}(over={shown(over)}): wanted the lowest and the highest coordinate of "
            "every axis, as ((-1, 1), (0, 5))"
        ) from None
    if not ranges or not all(math.isfinite(b - a) and a <= b for a, b in ranges):
        raise ArgumentError(f"{name}(over={ranges}): wanted finite ranges, each from low to high")
    if not isinstance(world, Open):
        raise ArgumentError(
            f"{name}(over=...): cells lie over the {world}; leave it out, or choose lw.Open()"
        )
    return ranges


def _check_memory(search: StaticGrid, geometry: Geometry, sources: Points) -> None:
    """Refuse cells that are too many, before anything is allocated."""
    shape = " x ".join(str(n) for n in geometry.cells)
    if geometry.total > MOST_CELLS:
        raise ArgumentError(
            f"StaticGrid(cells={search.cells}): {shape} are {geometry.total:,} cells, and their "
            "numbers have 32 bits; wanted at most "
            f"{MOST_CELLS:,}"
        )
    if max(geometry.cells) > MOST_ALONG:
        raise ArgumentError(
            f"StaticGrid(cells={search.cells}): wanted at most {MOST_ALONG:,} cells along an axis"
        )
    overcommits = get_device(sources.device).overcommits
    if not overcommits and geometry.total <= CELLS_A_SOURCE * sources.count:
        # as many as there may be where the grid is chosen: the allocator says so if they do not fit
        return
    needed = 8 * geometry.total
    if needed <= SMALL:
        return
    if needed > (available := available_memory(sources.device)):
        raise DeviceError(
            f"StaticGrid(cells={search.cells}): {shape} cells need {needed:,} bytes on "
            f"{sources.device!r}, and {available:,} are available"
        )


def check_constant(search: StaticGrid, geometry: Geometry, sources: Points) -> None:
    """Refuse an index in constant memory where there is none, or too little."""
    if search.index != "constant":
        return
    if not target_of(sources.device).has_constant_memory:
        raise ArgumentError(
            "StaticGrid(index='constant'): only a GPU has constant memory, and the sources are on "
            f"{sources.device!r}"
        )
    needed = 4 * (geometry.total + 1)
    if needed > CONSTANT_BYTES:
        raise ArgumentError(
            f"StaticGrid(index='constant'): {geometry.total:,} cells take {needed:,} bytes, and "
            f"constant memory has {CONSTANT_BYTES:,}; "
            "choose fewer cells, or index='global'"
        )


class _Grid(Walked):
    def __init__(
        self, search: StaticGrid, geometry: Geometry, sources: Points, built: CellBuilder
    ) -> None:
        self._search, self._geometry, self._sources, self._built = search, geometry, sources, built
        self._constant = geometry.total + 1 if search.index == "constant" else 0

    @property
    def geometry(self) -> Geometry:
        """Where the cells are."""
        return self._geometry

    @property
    def planned(self) -> tuple[PlannedPieces, ...]:
        return self._built.planned

    @property
    def order(self) -> Any:
        return self._built.order

    @property
    def arrays(self) -> Mapping[str, BoundArray]:
        return {STARTS: bind_value_array(self._built.starts, I32)}

    @property
    def arrangements(self) -> Mapping[str, Arrangement]:
        return {STARTS: values_arrangement(I32)}

    @property
    def uniforms(self) -> Mapping[str, Any]:
        search, precision = self._search, self._sources.precision
        values = grid_uniforms(self._geometry, search.radius, precision)
        if search.sight is not None and search.radius is not None:
            values |= search.sight.values(precision, search.radius)
        return values

    def walk(self, index: Scalar) -> Walk:
        grid = GridExpressions(index, self._sources.precision, self._sources.dimension)
        if self._search.radius is None:
            return RingWalk(grid, self._constant)
        search = self._search
        periodic = isinstance(search.world, Periodic)
        return GridWalk(grid, self._constant, periodic, search.sight is not None and not periodic)

    def turns(self) -> Mapping[str, float]:
        if self._search.radius is None:
            return {}
        g, sources = self._geometry, self._sources
        met = cells_met(g, self._search.radius)
        some = sources if target_of(sources.device).host_memory else sources.sample()
        alike = pairs_in_cells(g, some) / max(1, some.count) * sources.count / max(1, some.count)
        names = [own(f"walk.{c}") for c in COMPONENTS[: sources.dimension]]
        # of a row that wraps around
        ranges = 1 + min(1.0, met[0] / g.cells[0]) if g.periodic else 1.0
        walk = {**dict(zip(names[1:], met[1:], strict=True)), own("walk.piece"): ranges}
        walk[ROW] = row = met[0] * alike / ranges
        if 0 < row < MANY:
            walk[longest_of(ROW)] = longest_row(row)
        looked_at = math.prod(met) * alike
        return walk | turns_of_lists(
            looked_at, alike * ball(g.side, self._search.radius), self._search.k
        )

    @property
    def settled(self) -> bool:
        return not isinstance(self._search.world, Open) or self._search.over is not None

    def fits(self, sources: Points) -> bool:
        return self.settled or self._search.geometry(sources) == self._geometry

    def tasks(self) -> tuple[Primitive, ...]:
        return self._built.tasks

    @property
    def cleared(self) -> frozenset[str]:
        return frozenset(self._built.cleared)

    @property
    def clean(self) -> Mapping[str, BoundArray]:
        return {n: bind_value_array(data, I32) for n, data in self._built.clean.items()}

    def statistics(self) -> Statistics:
        members = np.diff(to_host(self._built.starts)[: self._geometry.total + 1])
        occupied = members[members > 0]
        return Statistics(
            len(members),
            len(occupied),
            int(members.min()),
            int(members.max()),
            float(occupied.mean()) if len(occupied) else 0.0,
        )

    def describe(self) -> str:
        g = self._geometry
        sides = " x ".join(f"{s:g}" for s in g.side)
        return f"{self._search.describe()}; {' x '.join(map(str, g.cells))} cells of {sides}"
