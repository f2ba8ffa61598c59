"""Recipes: structures with their parameters in terms that suit every call of a kind, so that what was measured can be used again."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from lanewise.errors import ArgumentError
from lanewise.patterns.search.all_pairs import AllPairs
from lanewise.patterns.search.base import Search
from lanewise.patterns.search.builders.geometry import Geometry, box_of, fitted
from lanewise.patterns.search.dynamic_grid import DynamicGrid
from lanewise.patterns.search.points import Points
from lanewise.patterns.search.static_grid import StaticGrid
from lanewise.patterns.search.worlds import Periodic

MOST_CELLS_A_SOURCE = 16  # with more, building takes longer than any search saves
_PARAMETERS = {"StaticGrid": "side", "DynamicGrid": "leaf", "AllPairs": None}
_TEXT = re.compile(r"([A-Za-z]+)(?:\((side|leaf)=([0-9.]+)\))?")


@dataclass(frozen=True, slots=True)
class Configuration:
    """A structure in terms that suit every call of a kind: "StaticGrid(side=0.7)", "DynamicGrid(leaf=16)", "AllPairs".

    side: of the cells of a static grid, in radii, or without a radius in sides of the default cells; leaf: of a dynamic grid along
    a curve. None: by default.
    """

    name: str
    side: float | None = None
    leaf: int | None = None

    def __str__(self) -> str:
        given = "" if self.side is None else f"(side={self.side:g})"
        return f"{self.name}{given}" if self.leaf is None else f"{self.name}(leaf={self.leaf})"

    def search(self, wish: Search, points: Points) -> Search:
        """The concrete search for these sources."""
        radius, k, world, position = wish.radius, wish.k, wish.world, wish.position
        if self.name == "AllPairs":
            return AllPairs(radius=radius, k=k, world=world, position=position)
        if self.name == "DynamicGrid":
            return DynamicGrid(radius=radius, k=k, world=world, position=position, leaf=self.leaf)
        cells = None if self.side is None else cells_of(wish, points, self.side).cells
        return StaticGrid(radius=radius, k=k, world=world, position=position, cells=cells)


def configuration_from(text: str) -> Configuration:
    """The configuration that `str` describes; raises `ValueError` for any other text."""
    match = _TEXT.fullmatch(text)
    if match is None or match[1] not in _PARAMETERS or match[2] not in (None, _PARAMETERS[match[1]]):
        raise ValueError(f"{text!r} is no structure; wanted AllPairs, StaticGrid(side=...) or DynamicGrid(leaf=...)")
    if match[2] == "side":
        return Configuration(match[1], side=float(match[3]))
    if match[2] == "leaf":
        try:
            return Configuration(match[1], leaf=DynamicGrid(k=1, leaf=int(match[3])).leaf)
        except ArgumentError as error:
            raise ValueError(str(error)) from error
    return Configuration(match[1])


def cells_of(wish: Search, points: Points, side: float) -> Geometry:
    """Cells with sides of at least so many radii: larger ones where they would be more than 16 for each source."""
    (low, extent), periodic = box_of(wish.world, points.sample()), isinstance(wish.world, Periodic)
    most = points.count * MOST_CELLS_A_SOURCE
    return fitted(low, extent, side * _unit(wish, points), most, periodic=periodic)


def _unit(wish: Search, points: Points) -> float:
    """What sides are measured in."""
    if wish.radius is not None:
        return wish.radius
    cells = default_cells(wish, points)
    return min((s for s, n in zip(cells.side, cells.cells, strict=True) if n > 1), default=cells.side[0])


def default_cells(wish: Search, points: Points) -> Geometry:
    """The cells of a static grid whose user says nothing about them."""
    return StaticGrid(radius=wish.radius, k=wish.k, world=wish.world, position=wish.position).geometry(points)


def cells_wanted(wish: Search, points: Points, side: float) -> float:
    """How many cells with such sides there would be without a limit."""
    extents = box_of(wish.world, points.sample())[1]
    return math.prod(max(1.0, e // (side * _unit(wish, points))) for e in extents)
