"""Which structures are worth measuring for Neighbors and Nearest, and how they are remembered.

They are remembered as recipes: with their parameters in terms that suit every call of a kind, so
that what was measured can be used again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from lanewise.patterns.search.all_pairs import AllPairs
from lanewise.patterns.search.automatic import (
    CROWDED,
    CROWDED_RINGS,
    CROWDED_WIDE,
    FEW,
    WIDE,
    Nearest,
    Neighbors,
    Outlook,
    choose,
    look,
    look_into,
)
from lanewise.patterns.search.base import Search
from lanewise.patterns.search.builders.geometry import Geometry, box_of, fitted
from lanewise.patterns.search.dynamic_grid import DynamicGrid
from lanewise.patterns.search.points import Points
from lanewise.patterns.search.static_grid import CELLS_A_SOURCE, StaticGrid
from lanewise.patterns.search.worlds import Periodic
from lanewise.support.errors import ArgumentError

SIDES = (0.5, 0.7, 1.4, 2.0)  # of cells, in radii (without a radius: in sides of the default cells)
LEAVES = (4, 16, 32)  # besides the default, 8
# times the limit of the automatic choice: there the curve is 12 times as fast and more (table of
# patterns/search/automatic.py)
CLEAR = 64
CLEAR_PAIRS = 8  # times as many looks as others take


@dataclass(frozen=True, slots=True)
class Candidates:
    """configurations: what is to be measured, the automatic choice first; refused: what is not,
    with the reason.
    """

    configurations: tuple[Configuration, ...]
    refused: tuple[tuple[Configuration, str], ...]


def candidates(requested: Search, points: Points) -> Candidates:
    """The structures worth measuring for a search and these sources.

    Raises `ArgumentError` for a world with other axes, and for more neighbours than there are
    sources.
    """
    if not isinstance(requested, Neighbors | Nearest):
        return Candidates((REQUESTED,), ())
    outlook = look(requested, points)
    chosen = choose(requested, points, outlook)[0]
    side = chosen.side if isinstance(chosen, StaticGrid) else None
    default = Configuration(type(chosen).__name__, side=side)
    verdicts = {
        r: _refusal(r, requested, points, outlook)
        for r in _configurations(requested, points)
        if r != default
    }
    kept = (default, *(r for r, reason in verdicts.items() if not reason))
    return Candidates(kept, tuple((r, reason) for r, reason in verdicts.items() if reason))


def _configurations(requested: Search, points: Points) -> Iterator[Configuration]:
    """All structures, those with the same cells once."""
    if requested.radius is not None or not isinstance(requested.world, Periodic):
        yield Configuration("StaticGrid")
        seen = {_default_cells(requested, points).cells}
        for side in SIDES:
            cells = cells_of(requested, points, side).cells
            if (
                cells not in seen
                or _cells_wanted(requested, points, side) > points.count * MOST_CELLS_A_SOURCE
            ):
                yield Configuration("StaticGrid", side=side)
            seen.add(cells)
    yield Configuration("DynamicGrid")
    yield from (Configuration("DynamicGrid", leaf=leaf) for leaf in LEAVES)
    yield Configuration("AllPairs")


def _refusal(
    configuration: Configuration, requested: Search, points: Points, outlook: Outlook
) -> str:
    """Why a structure need not be measured, or nothing."""
    if configuration.name == "AllPairs":
        # More than the limit are in a cell of a grid only where boxes along a curve do with less.
        inside = min(outlook.members, _limit(requested, outlook))
        looks = FEW + inside * 3**points.dimension
        clear = points.count > CLEAR_PAIRS * looks
        return (
            f"a target would look at {points.count:,} sources, through others at about {looks:,.0f}"
            if clear
            else ""
        )
    if configuration.name == "DynamicGrid":
        return ""
    if configuration.side is not None:
        cells = _cells_wanted(requested, points, configuration.side)
        most = points.count * MOST_CELLS_A_SOURCE
        if cells > most:
            return (
                f"{cells:,.0f} cells are more than {most:,}, {MOST_CELLS_A_SOURCE} for each source"
            )
        outlook = look_into(cells_of(requested, points, configuration.side), points)
    crowded = outlook.members > CLEAR * _limit(requested, outlook)
    return (
        f"the cell of a source would hold {outlook.members:,.0f} sources on average"
        if crowded
        else ""
    )


def _limit(requested: Search, outlook: Outlook) -> float:
    """With more sources in the cell of a source the automatic choice is a curve."""
    if requested.k is not None:
        return max(CROWDED, 2 * requested.k) if requested.radius is not None else CROWDED_RINGS
    assert requested.radius is not None
    return CROWDED_WIDE if outlook.side > WIDE * requested.radius else math.inf


MOST_CELLS_A_SOURCE = 16  # with more, building takes longer than any search saves
_PARAMETERS = {"StaticGrid": "side", "DynamicGrid": "leaf", "AllPairs": None}
_TEXT = re.compile(r"([A-Za-z]+)(?:\((side|leaf)=([0-9.]+)\))?")


@dataclass(frozen=True, slots=True)
class Configuration:
    """A structure in terms that suit every call of a kind: "StaticGrid(side=0.7)",
    "DynamicGrid(leaf=16)", "AllPairs".

    side: of the cells of a static grid, in radii, or without a radius in sides of the default
    cells; leaf: of a dynamic grid along a curve. None: by default.
    """

    name: str
    side: float | None = None
    leaf: int | None = None

    def __str__(self) -> str:
        side = "" if self.side is None else f"(side={self.side:g})"
        return f"{self.name}{side}" if self.leaf is None else f"{self.name}(leaf={self.leaf})"

    def search(self, requested: Search, points: Points) -> Search:
        """The concrete search for these sources."""
        radius = requested.radius
        k = requested.k
        world = requested.world
        position = requested.position
        if self == REQUESTED:
            return requested.plan(points)
        if self.name == "AllPairs":
            return AllPairs(radius=radius, k=k, world=world, position=position)
        if self.name == "DynamicGrid":
            return DynamicGrid(radius=radius, k=k, world=world, position=position, leaf=self.leaf)
        if self.side is None:
            return StaticGrid(radius=radius, k=k, world=world, position=position)
        if radius is not None and (
            _cells_wanted(requested, points, self.side) <= points.count * CELLS_A_SOURCE
        ):
            return StaticGrid(radius=radius, k=k, world=world, position=position, side=self.side)
        cells = cells_of(requested, points, self.side).cells
        return StaticGrid(radius=radius, k=k, world=world, position=position, cells=cells)


REQUESTED = Configuration("the requested structure")
"""The only one of a search that names its structure: plans alone are measured over it."""


def configuration_from(text: str) -> Configuration:
    """The configuration that `str` describes; raises `ValueError` for any other text."""
    if text == str(REQUESTED):
        return REQUESTED
    match = _TEXT.fullmatch(text)
    if (
        match is None
        or match[1] not in _PARAMETERS
        or match[2] not in (None, _PARAMETERS[match[1]])
    ):
        raise ValueError(
            f"{text!r} is no structure; wanted AllPairs, StaticGrid(side=...) or "
            "DynamicGrid(leaf=...)"
        )
    if match[2] == "side":
        return Configuration(match[1], side=float(match[3]))
    if match[2] == "leaf":
        try:
            return Configuration(match[1], leaf=DynamicGrid(k=1, leaf=int(match[3])).leaf)
        except ArgumentError as error:
            raise ValueError(str(error)) from error
    return Configuration(match[1])


def cells_of(requested: Search, points: Points, side: float) -> Geometry:
    """Cells with sides of at least that many radii: larger ones where they would be more than 16
    for each source.
    """
    (low, extent), periodic = (
        box_of(requested.world, points.sample()),
        isinstance(requested.world, Periodic),
    )
    most = points.count * MOST_CELLS_A_SOURCE
    return fitted(low, extent, side * _unit(requested, points), most, periodic=periodic)


def _unit(requested: Search, points: Points) -> float:
    """What sides are measured in."""
    if requested.radius is not None:
        return requested.radius
    cells = _default_cells(requested, points)
    return min(
        (s for s, n in zip(cells.side, cells.cells, strict=True) if n > 1), default=cells.side[0]
    )


def _default_cells(requested: Search, points: Points) -> Geometry:
    """The cells of a static grid whose user says nothing about them."""
    return StaticGrid(
        radius=requested.radius, k=requested.k, world=requested.world, position=requested.position
    ).geometry(points)


def _cells_wanted(requested: Search, points: Points, side: float) -> float:
    """How many cells with such sides there would be without a limit."""
    extents = box_of(requested.world, points.sample())[1]
    return math.prod(max(1.0, e // (side * _unit(requested, points))) for e in extents)
