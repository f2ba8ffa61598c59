"""Neighbors and Nearest: what is wanted, not how.

The structure is chosen for the sources of a call, with the reason.

What decides is how crowded the cells of a static grid would be: the mean number of sources in the
cell of a source (`Outlook`). Measured on two busy CPU cores, 65,536 sources in three dimensions,
float32, build and search, the time of the static grid by that of the dynamic grid along a curve (r:
the radius):

    sources                          in a cell   cell / r   all within r   7 nearest within r
    uniform, 2 within r                    1.5        1.1           0.64                 0.49
    uniform, 8 within r                    3.0        1.0           0.72                 0.56
    uniform, 64 within r                    17        1.0           0.58                 1.05
    uniform, 512 within r                  129        1.0           0.97                 2.79
    20 clusters, 2 within r                348        9.5           1.49                 1.50
    20 clusters, 512 within r              348        1.5           0.51                 1.92
    half in a millionth, 2 within r      8,194         57             25                   12
    5 % far away, 2 within r            44,350      2,038            101                  130
Without a radius, 7 nearest: uniform (3 in a cell) 0.79, 0.1 % far away (4) 1.15, 20 clusters (824)
3.42. So a list of the nearest prefers the curve when cells hold more than it takes; all within a
radius only when cells are also much wider than the radius, since all those near have to be met in
any case. GPUs get the same limits: on an NVIDIA H200 building, gathering and searching the static
grid takes 0.23 to 0.24 ms for 2^20 agents in a coherent order at the density of the thesis (7
nearest within sqrt(18)).

`kernel.tune()` measures on the machine at hand instead (lanewise.patterns.search.tuning.tune).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lanewise.language.target import target_of
from lanewise.patterns.search.all_pairs import AllPairs
from lanewise.patterns.search.base import STRUCTURED, Search, Walked, check_sources
from lanewise.patterns.search.builders.geometry import Geometry, box_of, fitted, pairs_in_cells
from lanewise.patterns.search.dynamic_grid import DynamicGrid
from lanewise.patterns.search.points import Points
from lanewise.patterns.search.static_grid import CELLS_A_SOURCE, SOURCES_A_CELL, StaticGrid
from lanewise.patterns.search.worlds import Periodic
from lanewise.support.attributes import frozen
from lanewise.support.errors import ArgumentError

FEW = 256  # sources that all pairs are as fast for as a structure that has to be built
# More members than these in the cell of a source, on average, and the curve is faster (table
# above).
CROWDED, CROWDED_WIDE, CROWDED_RINGS = 16, 64, 4
SIDES = (0.5,)  # radii, of narrower cells
ROUNDING = 1e-9  # of a side that is as wide as the radius
ROW = 3  # tests that a GPU does in the time that it takes to come to a row of cells
WIDE = 2  # radii: wider cells offer mostly sources that are not near


@frozen
@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbors(Search):
    """All sources nearer than the radius; lanewise chooses the structure by the positions of the
    sources.

        @lw.pairwise(search=lw.Neighbors(radius=0.5))
        def density(target: Body, source: Body) -> lw.f32:
            return source.mass

    radius: in the units of the positions; a source at exactly that distance is left out. world:
    `lw.Open()`, `lw.Periodic(size)` or `lw.Bounded(low, high)`. An element meets itself.

    Raises `ArgumentError` without a radius, with `k`, and for a radius that is not positive.
    """

    def __post_init__(self) -> None:
        super(Neighbors, self).__post_init__()
        if self.radius is None or self.k is not None:
            raise ArgumentError(
                f"Neighbors(radius={self.radius}, k={self.k}): wanted a radius; lw.Nearest(k=...) "
                "takes the nearest"
            )

    def describe(self) -> str:
        return f"neighbors: {self.in_words()}"

    def plan(self, points: Points) -> Search:
        return choose(self, points)[0]

    def make(self, sources: Points) -> Walked:
        return self.plan(sources).make(sources)


@frozen
@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest(Search):
    """The k nearest sources, optionally only within a radius; lanewise chooses the structure by the
    positions of the sources.

        @lw.pairwise(search=lw.Nearest(k=2))
        def mean_mass(target: Body, source: Body) -> lw.f32:
            return source.mass / 2

    k: 1 to 32. radius: in the units of the positions. If distances are equal, the smaller index
    comes first. An element is not among its own nearest. Raises `ArgumentError` without `k`.
    """

    def __post_init__(self) -> None:
        super(Nearest, self).__post_init__()
        if self.k is None:
            raise ArgumentError(
                "Nearest(): wanted k, the number of nearest sources; lw.Neighbors(radius=...) "
                "takes all of them"
            )

    def describe(self) -> str:
        return f"nearest: {self.in_words()}"

    def plan(self, points: Points) -> Search:
        return choose(self, points)[0]

    def make(self, sources: Points) -> Walked:
        return self.plan(sources).make(sources)


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a static grid would be like, estimated from some positions.

    members: sources in the cell of a source, on average over sources, itself counted. side: of a
    cell, the longest.
    """

    members: float
    side: float


def choose(
    search: Search, points: Points, outlook: Outlook | None = None, device: str | None = None
) -> tuple[Search, str]:
    """A concrete search for these sources, and why it is that one. `outlook`: what `look` says,
    where that is known. device: of the call, where the sources do not lie there.
    """
    radius, k, world, position = search.radius, search.k, search.world, search.position
    if points.count <= FEW:
        reason = f"{points.count:,} sources are too few for a structure to pay"
        return AllPairs(radius=radius, k=k, world=world, position=position), reason
    if points.dimension not in STRUCTURED:
        reason = (
            f"positions have {points.dimension} axes: cells and boxes divide two or three, all "
            "pairs any number"
        )
        return AllPairs(radius=radius, k=k, world=world, position=position), reason
    curve = DynamicGrid(radius=radius, k=k, world=world, position=position)
    if radius is None and isinstance(world, Periodic):
        return (
            curve,
            "without a radius, rings of cells have no end in a periodic world; boxes along a curve "
            "do",
        )
    outlook = outlook or look(search, points)
    crowd = (
        f"the cell of a source holds {outlook.members:,.{1 if outlook.members < 100 else 0}f} "
        "sources on average"
    )
    if k is not None and outlook.members > (
        limit := max(CROWDED, 2 * k) if radius is not None else CROWDED_RINGS
    ):
        return (
            curve,
            f"{crowd}, more than {limit}: the {k} nearest are found with fewer looks in small "
            "boxes along a curve",
        )
    if (
        k is None
        and radius is not None
        and outlook.members > CROWDED_WIDE
        and outlook.side > WIDE * radius
    ):
        wide = f"its side, {outlook.side:.3g}, is more than {WIDE} radii"
        return curve, f"{crowd}, and {wide}: boxes along a curve follow the crowd"
    if radius is not None and (side := _side(search, points, outlook, device)) is not None:
        density = _density(radius, points, outlook)
        wide = f"{density:,.{1 if density < 100 else 0}f} sources"
        return (
            StaticGrid(radius=radius, k=k, world=world, position=position, side=side),
            f"{points.count:,} sources, and a cell as wide as the radius would hold {wide} on "
            "average: in narrower ones a target meets fewer that are too far",
        )
    grid = StaticGrid(radius=radius, k=k, world=world, position=position)
    return (
        grid,
        f"{points.count:,} sources, and {crowd}: cells are faster to build than boxes, "
        "and searched without a tree",
    )


def _side(search: Search, points: Points, outlook: Outlook, device: str | None) -> float | None:
    """The sides of cells in radii, with which a target among spread sources is done soonest on a
    GPU; None for the radius, also where it reaches across the box, which is one cell then.
    """
    blocks = target_of(device or points.device).has_blocks
    if not blocks or search.k is not None or search.radius is None:
        return None
    if outlook.side * (1 + ROUNDING) < search.radius:
        return None
    density = _density(search.radius, points, outlook)
    costs = {side: _tests(side, points.dimension, density) for side in (1.0, *SIDES)}
    best = min(costs, key=lambda side: costs[side])
    return None if best == 1.0 else best


def _density(radius: float, points: Points, outlook: Outlook) -> float:
    """Sources in a cube (or square) of the radius, as dense as in the cells that were looked at."""
    return outlook.members * (radius / outlook.side) ** points.dimension


def _tests(side: float, axes: int, density: float) -> float:
    """Sources that a target tests among cells with sides of so many radii, and what rows of cells
    cost in such tests.

    density: sources in a cube (or square) of the radius. Rows that are too far are left out.
    """
    reach = 1 / side
    rows = 1 + 2 * reach if axes == 2 else 1 + 4 * reach + math.pi * reach**2
    return rows * (ROW + (1 + 2 * reach) * side**axes * density)


def look(search: Search, points: Points) -> Outlook:
    """The cells that a static grid would have, and how crowded they would be.

    Raises `ArgumentError` for a world with other axes, and for more neighbours than there are
    sources.
    """
    check_sources(search, points)
    (low, extent), periodic = (
        box_of(search.world, points.sample()),
        isinstance(search.world, Periodic),
    )
    most = (
        points.count * CELLS_A_SOURCE
        if search.radius is not None
        else max(1, points.count // SOURCES_A_CELL)
    )
    return look_into(fitted(low, extent, search.radius or 0.0, most, periodic=periodic), points)


def look_into(geometry: Geometry, points: Points) -> Outlook:
    """How crowded these cells would be."""
    some = points.sample()
    others = pairs_in_cells(geometry, some) / some.count  # in the same cell, of the sample
    return Outlook(1 + others * (points.count - 1) / max(1, some.count - 1), max(geometry.side))
