"""The searches that the ladder `boids` climbs: the thesis's eight, ours, and OpenSteer's own loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from lanewise.ladders.boids_thesis import ALL, AROUND, CONSTANT, DEVICE, HOST, ONE, SORT, THREE
from lanewise.patterns.search import AllPairs, Nearest, Search, StaticGrid
from lanewise.patterns.search.dynamic_grid import DynamicGrid
from lanewise.sims.boids.boundaries import find_boundary
from lanewise.sims.boids.choice import search_world
from lanewise.sims.boids.parameters import THESIS, THESIS_K
from lanewise.target import CPU, target_of

OWN_CELLS, CURVE, AUTOMATIC = "static grid, own cells", "dynamic grid, curve", "automatic"
IN_TURN = "one after another"
BOUNDARY = "wrap"
MOST_CELLS = 25  # along an axis: the starts of 25^3 cells are the most that constant memory holds, as in the thesis


@dataclass(frozen=True, slots=True)
class Version:
    """A rung: what finds flockmates (None: every agent looks at all others, one agent after another), and what it is compared with."""

    name: str
    over: str | None
    search: Search | None


def versions(world: float, device: str) -> Iterator[Version]:
    """The rungs for a world of this radius; each is compared with one before it."""
    cells = thesis_cells(world)
    common: dict[str, Any] = {
        "radius": THESIS.radius, "k": THESIS_K, "world": search_world(find_boundary(BOUNDARY).end, world),
    }  # fmt: skip
    make: tuple[tuple[str, str | None, Callable[[], Search]], ...] = (
        (ALL, None, lambda: AllPairs(**common)),
        (HOST, ALL, lambda: StaticGrid(cells=cells, build="host", **common)),
        (CONSTANT, HOST, lambda: StaticGrid(cells=cells, build="host", index="constant", **common)),
        (DEVICE, HOST, lambda: StaticGrid(cells=cells, **common)),
        (SORT, ALL, lambda: DynamicGrid(order="sort", **common)),
        (ONE, ALL, lambda: DynamicGrid(order="1-D", **common)),
        (THREE, ALL, lambda: DynamicGrid(order="3-D", leaves="all", **common)),
        (AROUND, HOST, lambda: DynamicGrid(order="3-D", leaves="around", **common)),
        (OWN_CELLS, ALL, lambda: StaticGrid(**common)),
        (CURVE, ALL, lambda: DynamicGrid(order="curve", **common)),
        (AUTOMATIC, ALL, lambda: Nearest(**common)),
    )
    yield from (Version(name, over, search()) for name, over, search in make)
    if target_of(device) is CPU:
        yield Version(IN_TURN, None, None)


def thesis_cells(world: float) -> int:
    """Cells along an axis: as many as leave a side of the search radius, up to those of which constant memory holds the starts."""
    return max(1, min(MOST_CELLS, int(2 * world / THESIS.radius)))


def is_host_built(search: Search) -> bool:
    """Whether the structure is built by the host wherever the agents are."""
    match search:
        case StaticGrid(build="host"):
            return True
        case DynamicGrid(order=order):
            return order != "curve"
        case _:
            return False
