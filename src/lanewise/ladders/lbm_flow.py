"""The flow that the ladder `lbm` solves: a stream through a box of solid discs, with boundary
values on its rows and columns.

The functions below are all that a user would write; every rung is a way to run them. The kinds are
those of the paper: fluid and solid sites, which its second kernel tells apart by a branch, and the
rows and columns of the box, to which its first kernel gives boundary values in one loop or in two.
In three dimensions the discs are spheres, the faces of x are the columns, the others the rows.
"""

# Kernels read their annotations where they are defined.

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

import lanewise as lw
from lanewise.sims.lbm.operators.numbers import number_types, pairs_of

SOLID, BOUNDARY, ROW, COLUMN = 1, 2, 3, 4
OMEGA, STREAM = 1.7, (0.05, 0.01, 0.0)  # a relaxation rate, and the velocity of the boundary values
SPACING, RADIUS = {2: 32, 3: 24}, {2: 4, 3: 5}  # of the discs or spheres, in sites
NOISE = 1e-3  # of the first populations
Loop = Literal["together", "split"]


@cache
def make_flow(lattice: lw.Lattice, precision: str, *, walls: bool = False) -> lw.Sitewise:
    """The flow in "f32" or "f64".

    With `walls` solid sites are half-way walls that are not updated, not the paper's branch.

    Populations are deviations from the lattice's weights.
    """
    types = number_types(lattice, precision)
    real, vector, populations = types.real, types.vector, types.populations
    half = pairs_of(lattice)

    @lw.sitewise(lattice)
    def fluid(f: populations, omega: real):  # type: ignore[valid-type]
        excess = real(0)
        momentum = vector(0)
        for q in lattice:
            excess += f[q]
        for q in lattice:
            momentum += f[q] * q.velocity
        density = 1 + excess
        u = momentum / density
        square = 1.5 * lw.dot(u, u)
        for q in lattice:
            c = q.along(u)
            f[q] += omega * (q.weight * (excess + density * (3 * c + 4.5 * c * c - square)) - f[q])

    def boundary(f: populations, stream: vector):  # type: ignore[valid-type]
        excess = real(0)
        for q in lattice:
            excess += f[q]
        density = 1 + excess
        square = 1.5 * lw.dot(stream, stream)
        for q in lattice:
            c = q.along(stream)
            f[q] = q.weight * (excess + density * (3 * c + 4.5 * c * c - square))

    def solid(f: populations):  # type: ignore[valid-type]
        for q in half:
            kept = f[q]
            f[q] = f[q.opposite]
            f[q.opposite] = kept

    if walls:
        fluid.wall(SOLID, "solid")
    else:
        fluid.kind(SOLID, "solid")(solid)
    for number, name in ((BOUNDARY, "boundary"), (ROW, "row"), (COLUMN, "column")):
        fluid.kind(number, name)(boundary)
    return fluid


def values_of(lattice: lw.Lattice) -> dict[str, Any]:
    """What all sites share."""
    return {"omega": OMEGA, "stream": STREAM[: lattice.dimension]}


@dataclass(frozen=True, slots=True)
class SiteBox:
    """Sites of a lattice: shape (ny, nx) or (nz, ny, nx). solid: the share of the sites that lie in
    discs; None for discs of the usual radius.
    """

    lattice: lw.Lattice
    shape: tuple[int, ...]
    solid: float | None = None

    @property
    def count(self) -> int:
        return int(np.prod(self.shape))

    @property
    def name(self) -> str:
        """For example "D2Q9 128 x 128"."""
        return f"{self.lattice.name} {' x '.join(map(str, reversed(self.shape)))}"

    def mask(self, loop: Loop) -> npt.NDArray[np.uint8]:
        """The kinds of the sites, with rows and columns as one kind ("together") or as two
        ("split").
        """
        mask = np.where(self._discs(), np.uint8(SOLID), np.uint8(0))
        row, column = (ROW, COLUMN) if loop == "split" else (BOUNDARY, BOUNDARY)
        for axis in reversed(range(self.lattice.dimension)):  # of the array: its last one is x
            ends = [slice(None)] * self.lattice.dimension
            for end in (0, -1):
                ends[axis] = end  # type: ignore[call-overload]
                mask[tuple(ends)] = column if axis == self.lattice.dimension - 1 else row
        return mask

    def _discs(self) -> npt.NDArray[np.bool_]:
        """Discs or spheres in the middle of the cells of a square grid."""
        spacing, radius = SPACING[self.lattice.dimension], RADIUS[self.lattice.dimension]
        squares = [
            ((np.arange(n, dtype=np.float32) % spacing) + 0.5 - spacing / 2) ** 2
            for n in self.shape
        ]
        total = squares[0]
        for square in squares[1:]:
            total = total[..., None] + square
        if self.solid is None:
            return total < radius**2
        # those nearest to the middles; sites as far away as each other are solid together
        nearest = np.sort(total, axis=None)
        return total < nearest[min(round(self.solid * total.size), total.size - 1)]

    def start(self, seed: int, *, each: bool) -> npt.NDArray[np.float32]:
        """First populations (Q, *shape): noise, for each direction its own, or the same for all
        (and held once).
        """
        random, shape = np.random.default_rng(seed), (self.lattice.size, *self.shape)
        noise = NOISE * random.standard_normal(shape if each else self.shape, dtype=np.float32)
        return np.broadcast_to(noise, shape)
