"""What a flock looks like in numbers: order, distances, speeds, how full its cells are.

Without `from __future__ import annotations`: the types are chosen when a set of kernels is made.
"""

import math
from dataclasses import asdict, dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import lanewise as lw
from lanewise.sims.boids.boundaries import find_boundary
from lanewise.sims.boids.choice import search_world
from lanewise.sims.boids.rules import FIELDS, record_class
from lanewise.sims.common.meshes import in_one_place, values_in_one_place
from lanewise.support.attributes import frozen

if TYPE_CHECKING:
    from lanewise.sims.boids.flock import Flock

MOST_CELLS = 2**20  # an axis
FARTHEST = 1e300


@frozen
@dataclass(frozen=True, slots=True)
class Statistics:
    """A flock in numbers.

    polarisation: the length of the mean heading, 1 if all agents head the same way. nearest:
    distances to the nearest flockmate at any distance; in a periodic world within the search radius
    (NaN if there is none). cells: the number of cubes as large as the search radius that contain
    agents. A flock without agents has no cells, and NaN for all means and extremes.
    """

    polarisation: float
    speed_min: float
    speed_mean: float
    speed_max: float
    nearest_min: float
    nearest_mean: float
    cells: int
    cell_min: int
    cell_max: int
    cell_mean: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


NOBODY = Statistics(*[math.nan] * 6, cells=0, cell_min=0, cell_max=0, cell_mean=math.nan)
"""Of a flock without agents."""


@dataclass(frozen=True, slots=True)
class Measures:
    """The kernels of measuring.

    moments: heading and speed. nearest: the squared distance of the nearest one, and whether there
    is one. distance, reach: that distance; without one nothing, and farther than any.
    """

    moments: lw.Elementwise
    nearest: lw.Pairwise
    distance: lw.Elementwise
    reach: lw.Elementwise


@cache
def make_measures(precision: str) -> Measures:
    """The kernels of a precision."""
    boid: Any = record_class(precision)
    real = lw.f64 if precision == "f64" else lw.f32

    @lw.elementwise
    def moments(b: boid) -> tuple[lw.dvec3, lw.f64]:  # type: ignore[valid-type]
        return lw.dvec3(b.forward), lw.f64(b.speed)

    @lw.pairwise
    def nearest(target: boid, source: boid) -> tuple[real, lw.i32]:  # type: ignore[valid-type]
        d = source.position - target.position
        return lw.dot(d, d), 1

    @lw.elementwise
    def distance(square: real, found: lw.i32) -> lw.f64:  # type: ignore[valid-type]
        return lw.sqrt(lw.f64(square)) if found > 0 else 0 * lw.f64(square)

    @lw.elementwise
    def reach(square: real, found: lw.i32) -> lw.f64:  # type: ignore[valid-type]
        return lw.sqrt(lw.f64(square)) if found > 0 else 0 * lw.f64(square) + FARTHEST

    return Measures(moments, nearest, distance, reach)


def polarisation(boids: lw.RecordArray, measures: Measures) -> float:
    """The length of the mean heading, summed in float64; NaN of no agents."""
    if not len(boids):
        return math.nan
    heading, _ = measures.moments.sum(in_one_place(boids))
    return float(np.linalg.norm(heading)) / len(boids)


class FlockObserver:
    """Measures the same agents again and again: what finds the nearest one is bound once, and
    rebuilt in every look.
    """

    def __init__(
        self, boids: lw.RecordArray, precision: str, search: lw.Search, radius: float
    ) -> None:
        """`search`: for the nearest one, with k = 1; `radius`: the side of cells."""
        self._agents, boids = boids, in_one_place(boids)
        self._boids, self._kernels, self._radius = boids, make_measures(precision), radius
        self._nearest = (
            self._kernels.nearest.using(search).bind(boids, boids) if len(boids) > 1 else None
        )

    def take(self, position: NDArray[Any]) -> Statistics:
        """All statistics of the agents as they are now; `position`: theirs, (n, 3) on the host."""
        kernels, boids, count = self._kernels, self._boids, len(self._boids)
        if not count:
            return NOBODY
        if boids is not self._agents:  # they lie on a mesh
            for name in FIELDS:
                setattr(boids, name, values_in_one_place(getattr(self._agents, name)))
        (heading, speed), (_, slowest), (_, fastest) = (
            getattr(kernels.moments, f)(boids) for f in ("sum", "min", "max")
        )
        least = mean = float("nan")
        if self._nearest is not None:
            square, neighbours = self._nearest()
            if some := int(lw.sum(neighbours)):
                least = float(kernels.reach.min(square, neighbours))
                mean = float(kernels.distance.sum(square, neighbours)) / some
        populations = cell_populations(position, self._radius)
        return Statistics(
            float(np.linalg.norm(heading)) / count,
            float(slowest),
            float(speed) / count,
            float(fastest),
            least,
            mean,
            len(populations),
            int(populations.min()),
            int(populations.max()),
            count / len(populations),
        )


def observer_of(flock: "Flock") -> FlockObserver:
    """For many looks at one flock."""
    s = flock.settings
    world = search_world(find_boundary(s.boundary).end, s.world)
    # Without a radius nothing is too far; a periodic world needs one, or all pairs would have to be
    # looked at.
    within = s.parameters.radius if isinstance(world, lw.Periodic) else None
    return FlockObserver(
        flock.boids, s.precision, lw.Nearest(k=1, radius=within, world=world), s.parameters.radius
    )


def cell_populations(position: NDArray[Any], side: float) -> NDArray[np.int64]:
    """How many agents are in each cube of this side that has any."""
    cells = np.floor((position.astype(np.float64) - position.min(axis=0)) / side)
    if (cells.max(axis=0) < MOST_CELLS).all():
        cells = cells.astype(np.int64)
        return np.unique(
            (cells[:, 0] * MOST_CELLS + cells[:, 1]) * MOST_CELLS + cells[:, 2], return_counts=True
        )[1]
    return np.unique(cells, axis=0, return_counts=True)[1]
