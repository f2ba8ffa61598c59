"""Which agents may come near to others within some steps, wherever these fly.

No agent flies farther than `drift`, the way at full speed: two of them meet only if they are nearer
than the radius and twice the drift now. In a periodic box this also holds for images. Who leaves a
sphere comes back at the opposite side, as the mirror image of where it would be: so agents near its
surface may meet those that are near to their mirror images.

Agents are counted into the cells of a coarse grid. Those of a part mark the cells that are so near
to theirs, and who is in a marked cell may come near. One box for all agents of a part would be the
whole world as soon as one of them has come back at the opposite side.

Without `from __future__ import annotations`: the types are chosen when a set of kernels is made.
"""

# Types that a function makes are annotations of the kernels in it.
# pyright: reportInvalidTypeForm=false, reportUnknownParameterType=false

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lanewise as lw
from lanewise.sims.boids.rules import BOUNDED, BOX, OPEN, SPHERE, kinds

ROUNDING = 1e-5  # of lengths, and more than what float32 loses
CLOSE = 1e-3  # of a cell: the same for a cell's number
FINE = 0.5  # sides of cells, of how near agents are that may meet
MOST_CELLS, CELLS_AN_AGENT = 1 << 24, 2  # at most, and the least that a large flock has of them
FEW_CELLS = 1 << 12


@dataclass(frozen=True, slots=True)
class Reach:
    """The kernels of it. ends: the lowest coordinates of an agent, the negative highest ones, and
    its negative squared distance from the centre: the least of all agents are those of their box.
    cells: the cell of an agent, and that of its mirror image; where that does not count, one that
    is never marked.
    """

    ends: lw.Elementwise
    cells: lw.Elementwise


@cache
def make_reach(precision: str, end_of_world: int) -> Reach:
    """The kernels of a precision, for one end of the world."""
    boid, real, vec, _ = kinds(precision)

    @lw.elementwise
    def ends(b: boid) -> tuple[vec, vec, real]:  # type: ignore[valid-type]
        return b.position, -b.position, -lw.dot(b.position, b.position)

    @lw.function
    def along(x, low, a_unit, n):  # type: ignore[no-untyped-def]
        """The cell of a coordinate; the outermost ones have what lies beyond."""
        return lw.i32(max(0.0, min(lw.floor((x - low) * a_unit), n - 1.0)))

    @lw.function
    def cell(p, low, a_unit, n, across, layer):  # type: ignore[no-untyped-def]
        x, y = along(p.x, low.x, a_unit.x, n.x), along(p.y, low.y, a_unit.y, n.y)
        return x + across * y + layer * along(p.z, low.z, a_unit.z, n.z)

    @lw.elementwise
    def cells(
        b: boid,  # type: ignore[valid-type]
        low: vec,  # type: ignore[valid-type]
        a_unit: vec,  # type: ignore[valid-type]
        n: vec,  # type: ignore[valid-type]
        across: lw.i32,
        layer: lw.i32,
        unmarked: lw.i32,
        shell2: real,  # type: ignore[valid-type]
    ) -> tuple[lw.i32, lw.i32]:
        p = b.position
        own = cell(p, low, a_unit, n, across, layer)
        if end_of_world == SPHERE and lw.dot(p, p) >= shell2:
            return own, cell(-p, low, a_unit, n, across, layer)
        return own, unmarked

    return Reach(ends, cells)


@dataclass(frozen=True, slots=True)
class CoarseGrid:
    """Cells over all agents. near: along each axis how many cells apart agents may be that may
    meet. periodic: cells at one end are next to those at the other. shell2: the squared distance
    from the centre from which on mirror images count.
    """

    low: tuple[float, ...]
    side: tuple[float, ...]
    cells: tuple[int, ...]
    near: tuple[int, ...]
    periodic: bool
    shell2: float

    @property
    def total(self) -> int:
        return math.prod(self.cells)

    @property
    def values(self) -> dict[str, Any]:
        """What the kernel of cells takes."""
        nx, ny, _ = self.cells
        return {
            "low": self.low,
            "a_unit": tuple(1 / s for s in self.side),
            "n": tuple(map(float, self.cells)),
            "across": nx,
            "layer": nx * ny,
            "unmarked": self.total,
            "shell2": self.shell2,
        }

    def marked(self, module: Any, cells: Any) -> Any:
        """1 for every cell that is near to one of these, uint8; one more that is 0. module: of
        arrays, where the cells are.
        """
        marks = module.zeros(self.total + 1, dtype="uint8")
        marks[cells] = 1
        box = marks[:-1].reshape(self.cells[::-1])
        for axis, near in enumerate(self.near[::-1]):
            box |= _spread(module, box, axis, near, periodic=self.periodic)
        return marks


def _spread(module: Any, marks: Any, axis: int, near: int, *, periodic: bool) -> Any:
    """Marks of all cells that are so near to marked ones along an axis."""
    found, n = marks.copy(), marks.shape[axis]
    for apart in range(1, min(near, n - 1) + 1):
        if periodic:
            found |= module.roll(marks, apart, axis) | module.roll(marks, -apart, axis)
        else:
            first, last = [slice(None)] * 3, [slice(None)] * 3
            first[axis], last[axis] = slice(None, -apart), slice(apart, None)
            found[tuple(last)] |= marks[tuple(first)]
            found[tuple(first)] |= marks[tuple(last)]
    return found


def box_of(part: lw.RecordArray, reach: Reach, end: int, world: float) -> Any:
    """The corners of the box of some agents; None where one of them is not where its world lets it
    be, or nowhere: then it is unknown who may come near.
    """
    low, high, away2 = (np.asarray(v, np.float64) for v in reach.ends.min(part))
    corners = np.stack([low, -high])
    if not np.isfinite(corners).all():
        return None
    most = world * (1 + ROUNDING)
    if end == BOX and np.abs(corners).max() > most:
        return None
    if end in (SPHERE, BOUNDED) and math.sqrt(-float(away2)) > most:
        return None
    assert end in (SPHERE, BOUNDED, BOX, OPEN)
    return corners


def grid_over(
    boxes: Iterable[NDArray[np.float64]],
    end: int,
    radius: float,
    drift: float,
    world: float,
    agents: int,
) -> CoarseGrid:
    """The grid over the boxes of all parts, for agents who fly so far. agents: how many."""
    corners = np.stack(list(boxes))
    low, high = corners[:, 0].min(axis=0), corners[:, 1].max(axis=0)
    if end == BOX:
        low, high = np.full(3, -world), np.full(3, world)
    apart = radius + 2 * drift
    apart += ROUNDING * (apart + world + float(np.abs(corners).max()))
    extent, side = high - low, FINE * apart
    most = min(MOST_CELLS, max(FEW_CELLS, CELLS_AN_AGENT * agents))
    while np.prod(cells := np.maximum(1.0, np.floor(extent / side))) > most:
        side *= 1.1
    sides = np.where(extent > 0, extent / cells, side)
    near = np.ceil(np.minimum(apart / sides + CLOSE, cells))
    shell = max(0.0, world - radius - 2 * drift - ROUNDING * world)
    return CoarseGrid(
        tuple(map(float, low)),
        tuple(map(float, sides)),
        tuple(map(int, cells)),
        tuple(map(int, near)),
        end == BOX,
        shell * shell,
    )
