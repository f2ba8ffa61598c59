"""How many agents meet, and what steps of a flock are predicted to take."""

from __future__ import annotations

import math
from dataclasses import dataclass

import lanewise as lw
from lanewise.models import DeviceModel
from lanewise.patterns.search.dynamic_grid import CURVE_LEAF, THESIS_LEAF
from lanewise.patterns.search.static_grid import CELLS_A_SOURCE
from lanewise.sims.boids.parameters import THESIS

# share of a sphere in a slice as thick as its radius, averaged over the agents in the sphere: 9/16
# x 16/15
SLICE = 0.6


FILLED = 0.62  # of a leaf of the recursive orders: the thesis's table 7.1 has 59.5 % and 62.5 %


FAN_OUT = 4  # boxes below one of the tree along the curve


STATE_BYTES = 2 * 52 + 2 * 36  # an agent is read and written, so are its three urges


BUILD_BYTES = 2 * 24 + 8 * 4  # the sorted copy of positions and headings; cells, places and order


@dataclass(frozen=True, slots=True)
class Met:
    """What a target looks at, on average: sources whose distance is computed, and boxes or rows of
    cells that may hold some.
    """

    sources: float
    boxes: float = 0.0

    @property
    def total(self) -> float:
        return self.sources + self.boxes


def met(search: lw.Search, agents: int, world: float) -> Met | None:
    """What a target looks at in a sphere of this radius; None for searches that choose
    themselves.
    """
    reach, density = 2 * THESIS.radius, agents / (4 / 3 * math.pi * world**3)

    def around(side: float) -> float:
        """Agents in the cells or leaves of this side that the search radius touches."""
        return min(agents, density * (reach + side) ** 3)

    match search:
        case lw.AllPairs():
            return Met(agents)
        case lw.StaticGrid():
            cells = search.cells if isinstance(search.cells, int) else own_cells(agents, world)
            side = 2 * world / cells
            rows = min(cells, reach / side + 1) ** 2
            # with a cosine of -1 a target sees the whole ball, with 0 half of it
            seen = 1.0 if search.sight is None else (1 - search.sight.cosine) / 2
            return Met(seen * around(side), rows)
        case lw.CellArray():
            # columns as wide as the radius, of which a piece as long as the search reaches is met
            across = reach + THESIS.radius
            return Met(min(agents, density * across**2 * reach), (across / THESIS.radius) ** 2)
        case lw.NeighborLists():
            ball = 4 / 3 * math.pi * (THESIS.radius + search.skin) ** 3
            return Met(min(agents, density * ball))
        case lw.DynamicGrid(order="curve"):
            side = (CURVE_LEAF / density) ** (1 / 3)
            return Met(around(side), FAN_OUT * around(side) / CURVE_LEAF * FAN_OUT / (FAN_OUT - 1))
        case lw.DynamicGrid(order=order):
            # "3-D" divides along one axis as well: see patterns/search/builders/ordering.py
            members = THESIS_LEAF if order == "sort" else FILLED * THESIS_LEAF
            inside = min(agents, agents * SLICE * reach / world + 2 * members)
            listed = agents / members if search.leaves == "all" else inside / members
            return Met(inside, listed if order == "3-D" else 0.0)
        case _:
            return None


def own_cells(agents: int, world: float) -> int:
    """Cells along an axis of a static grid that chooses them: sides of the radius, at most two for
    each source.
    """
    most = round((CELLS_A_SOURCE * agents) ** (1 / 3))
    return max(1, min(most, int(2 * world / THESIS.radius)))


def predicted_seconds(
    search: lw.Search, agents: int, world: float, pair_seconds: float, model: DeviceModel
) -> float | None:
    """The model's time of a step, or None for searches that choose themselves."""
    looked = met(search, agents, world)
    if looked is None:
        return None
    nbytes = STATE_BYTES + (0 if isinstance(search, lw.AllPairs) else BUILD_BYTES)
    return agents * (looked.total * pair_seconds + nbytes / model.memory_bandwidth)
