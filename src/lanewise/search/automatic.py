"""Neighbors and Nearest: what is wanted, not how. The structure is chosen for the sources of a call, with the reason."""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.errors import ArgumentError
from lanewise.search.all_pairs import AllPairs
from lanewise.search.base import Search, Structure
from lanewise.search.points import Points
from lanewise.search.static_grid import StaticGrid
from lanewise.search.worlds import Periodic

FEW = 256  # sources that all pairs are as fast for as a structure that has to be built


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbors(Search):
    """All sources nearer than the radius."""

    def __post_init__(self) -> None:
        super(Neighbors, self).__post_init__()
        if self.radius is None or self.k is not None:
            raise ArgumentError(
                f"Neighbors(radius={self.radius}, k={self.k}): wanted a radius; lw.Nearest(k=...) takes the nearest"
            )

    def describe(self) -> str:
        return f"neighbors: {self.found()}"

    def plan(self, points: Points) -> Search:
        return choose(self, points)[0]

    def make(self, sources: Points) -> Structure:
        return self.plan(sources).make(sources)


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest(Search):
    """The k nearest sources, optionally those within a radius."""

    def __post_init__(self) -> None:
        super(Nearest, self).__post_init__()
        if self.k is None:
            raise ArgumentError(
                "Nearest(): wanted k, the number of nearest sources; lw.Neighbors(radius=...) takes all of them"
            )

    def describe(self) -> str:
        return f"nearest: {self.found()}"

    def plan(self, points: Points) -> Search:
        return choose(self, points)[0]

    def make(self, sources: Points) -> Structure:
        return self.plan(sources).make(sources)


def choose(search: Search, points: Points) -> tuple[Search, str]:
    """A concrete search for these sources, and why it is that one."""
    if points.count <= FEW:
        reason = f"{points.count:,} sources are too few for a structure to pay"
        return AllPairs(radius=search.radius, k=search.k, world=search.world, position=search.position), reason
    if search.radius is None and isinstance(search.world, Periodic):
        reason = "without a radius nothing says where to stop in a periodic world"
        return AllPairs(k=search.k, world=search.world, position=search.position), reason
    grid = StaticGrid(radius=search.radius, k=search.k, world=search.world, position=search.position)
    return grid, f"{points.count:,} sources in a grid of cells"
