"""Where the cells of a grid lie: decided on the host when a grid is made, from the world or from
the first positions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from lanewise.patterns.search.points import Points
from lanewise.patterns.search.worlds import Bounded, Open, Periodic, World
from lanewise.runtime.memory import to_host

SAMPLE = 1 << 16  # positions that the box of an open world is taken from
# share of positions that the box may leave out on each side, and the part that it is widened by
TAIL = 0.01
MARGIN = 0.1
# of the sorted values every 32nd is a guess at their places; and 4 places more, to be sure
THIN, SPARE = 32, 4
MOST_ALONG = 2**23  # cells along an axis: a float32 counts them exactly
MOST_CELLS = 2**31 - 2**16  # a cell's number has 32 bits


@dataclass(frozen=True, slots=True)
class Geometry:
    """A box of cells. low: its lowest corner; side: of a cell; cells: how many; each one number an
    axis.

    periodic: positions wrap around. Otherwise the outermost cells reach to infinity.
    """

    low: tuple[float, ...]
    side: tuple[float, ...]
    cells: tuple[int, ...]
    periodic: bool

    @property
    def total(self) -> int:
        return math.prod(self.cells)

    @property
    def size(self) -> tuple[float, ...]:
        return tuple(s * n for s, n in zip(self.side, self.cells, strict=True))


def box_of(world: World, points: Points) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The lowest corner and the extents of the box that cells shall cover.

    In an open world a few elements far away do not widen it: they are found in the outermost cells.
    """
    match world:
        case Periodic():
            return world.origin, world.size
        case Bounded():
            return world.low, tuple(b - a for a, b in zip(world.low, world.high, strict=True))
        case Open():
            ends = points.once("ends", _all_ends)
            return tuple(a for a, _ in ends), tuple(b - a for a, b in ends)


def ends_of(points: Points) -> tuple[tuple[float, float], ...]:
    """The range along every axis that cells lie over in an open world."""
    return tuple(points.sample().once("ends", _all_ends))


def _all_ends(points: Points) -> list[tuple[float, float]]:
    """The range along every axis; those who choose a structure and those who make it ask for the
    same.
    """
    step = -(-points.count // SAMPLE)
    return [_ends(to_host(c[::step])) for c in points.columns()]


def _ends(values: npt.NDArray[Any]) -> tuple[float, float]:
    """The range of values, without a few that lie far from all others."""
    values = np.ascontiguousarray(values)
    cut, some = int(len(values) * TAIL), np.sort(values[::THIN])
    guess = min(cut // THIN + SPARE, len(some) - 1)
    lowest, low = _smallest(values, cut, some[guess])
    highest, high = (-x for x in _smallest(-values, cut, -some[-1 - guess]))
    wider = (high - low) * MARGIN
    return max(lowest, low - wider), min(highest, high + wider)


def _smallest(values: npt.NDArray[Any], rank: int, guess: Any) -> tuple[float, float]:
    """The smallest value, and the one that `rank` are before; a guess at what is not far above it
    leaves few to sort.
    """
    few = values[values <= guess]
    few = few if len(few) > rank else values.copy()
    few.sort()
    return float(few[0]), float(few[rank])


@lru_cache(maxsize=64)  # a search is chosen and made with one geometry
def fitted(
    low: tuple[float, ...], extent: tuple[float, ...], least: float, most: int, *, periodic: bool
) -> Geometry:
    """As many cells as there may be (`most`), with sides of at least `least`, nearly cubes."""
    widest = max(*extent, least)
    small, large = max(least, widest * 1e-7), widest
    if _count(extent, small) > most:
        small = _fewest(extent, most, small, large)
    cells = tuple(_along(e, small) for e in extent)
    return Geometry(low, _sides(extent, cells), cells, periodic)


def _fewest(extent: tuple[float, ...], most: int, small: float, large: float) -> float:
    """A side of cells that are at most so many, which hardly smaller ones would not be.

    small, large: sides of too many, and of few enough. Halved until cells differ by one along axes
    of one extent: no side between the two has others.
    """
    different = tuple(dict.fromkeys(extent))
    for _ in range(50):
        if sum([_along(e, small) - _along(e, large) for e in different]) <= 1:
            break
        middle = math.sqrt(small * large)
        small, large = (middle, large) if _count(extent, middle) > most else (small, middle)
    return large


def cells_met(geometry: Geometry, radius: float) -> list[float]:
    """Along each axis, how many cells the range of a radius around a position in the box touches,
    on average.
    """
    met: list[float] = []
    for side, n in zip(geometry.side, geometry.cells, strict=True):
        reach = radius / side
        # what would lie beyond the borders
        cut = 0.0 if geometry.periodic else min(reach, n) ** 2 / n
        met.append(max(1.0, min(n, 1 + 2 * reach - cut)))
    return met


def pairs_in_cells(geometry: Geometry, points: Points) -> int:
    """How many pairs of two points on the host, each pair twice, lie in one cell; the outermost
    cells reach to infinity.
    """
    numbers = np.sort(cell_numbers(geometry, points))
    ends = np.flatnonzero(numbers[1:] != numbers[:-1]) + 1
    members = np.diff(ends, prepend=0, append=len(numbers))
    return int(np.dot(members, members - 1))


def cell_numbers(geometry: Geometry, points: Points) -> npt.NDArray[Any]:
    """The cell of every point on the host, as devices count cells: fastest along x."""
    kind = np.dtype(np.int32 if geometry.total < 2**31 else np.int64)
    numbers: npt.NDArray[Any] = np.zeros(points.count, kind)
    axes = zip(points.columns(), geometry.low, geometry.side, geometry.cells, strict=True)
    for column, low, side, n in reversed(list(axes)):
        scaled = np.subtract(column, low, dtype=np.float64)
        scaled /= side
        along = (
            np.floor(scaled, out=scaled) % n
            if geometry.periodic
            else np.clip(scaled, 0, n - 1, out=scaled)
        )
        numbers *= kind.type(n)
        numbers += along.astype(kind)
    return numbers


def divided(
    low: tuple[float, ...], extent: tuple[float, ...], cells: tuple[int, ...], *, periodic: bool
) -> Geometry:
    """So many cells along each axis."""
    return Geometry(low, _sides(extent, cells), cells, periodic)


def _sides(extent: tuple[float, ...], cells: tuple[int, ...]) -> tuple[float, ...]:
    return tuple(e / n if e > 0 else 1.0 for e, n in zip(extent, cells, strict=True))


def _along(extent: float, side: float) -> int:
    return max(1, int(min(extent / side, MOST_ALONG))) if side > 0 else 1


def _count(extent: tuple[float, ...], side: float) -> int:
    return math.prod(_along(e, side) for e in extent)
