"""The searches that the ladder `boids` climbs: the thesis's eight, ours, those that it left to the
future, and OpenSteer's own loop; and the thesis's figures for them.

J. Breitbart, Case studies on GPU usage and data structure design, University of Kassel (2008),
chapters 5 to 7: a GeForce 8800 GTS with 96 processors, an Athlon 64 3700+. Most of its measurements
are drawn as curves without numbers; only what it states is here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import lanewise as lw
from lanewise.sims.boids.boundaries import find_boundary
from lanewise.sims.boids.choice import search_world
from lanewise.sims.boids.parameters import THESIS, THESIS_K
from lanewise.sims.common.devices import CPU, target_of

OWN_CELLS, CURVE, AUTOMATIC = "static grid, own cells", "dynamic grid, curve", "automatic"
COLUMNS, LISTS, AHEAD = "cell array", "lists with a skin", "static grid, cells behind left out"
IN_TURN = "one after another"
BOUNDARY = "wrap"
# along an axis: the starts of 25^3 cells are the most that constant memory holds, as in the thesis
MOST_CELLS = 25
# How much farther than the radius lists look: an agent moves by half of it in two steps, and lists
# of a wider skin are longer than they save.
SKIN = 0.5
# Who is not behind an agent, or so near that it is seen in every direction.
SIGHT = lw.Sight(heading="forward", cosine=0.0, near=THESIS.near_radius)


@dataclass(frozen=True, slots=True)
class Version:
    """A rung: what finds flockmates (None: every agent looks at all others, one agent after
    another), and what it is compared with.
    """

    name: str
    over: str | None
    search: lw.Search | None


def versions(world: float, device: str) -> Iterator[Version]:
    """The rungs for a world of this radius; each is compared with one before it."""
    cells = thesis_cells(world)
    common: dict[str, Any] = {
        "radius": THESIS.radius,
        "k": THESIS_K,
        "world": search_world(find_boundary(BOUNDARY).end, world),
    }
    make: tuple[tuple[str, str | None, Callable[[], lw.Search]], ...] = (
        (ALL, None, lambda: lw.AllPairs(**common)),
        (HOST, ALL, lambda: lw.StaticGrid(cells=cells, build="host", **common)),
        (
            CONSTANT,
            HOST,
            lambda: lw.StaticGrid(cells=cells, build="host", index="constant", **common),
        ),
        (DEVICE, HOST, lambda: lw.StaticGrid(cells=cells, **common)),
        (SORT, ALL, lambda: lw.DynamicGrid(order="sort", **common)),
        (ONE, ALL, lambda: lw.DynamicGrid(order="1-D", **common)),
        (THREE, ALL, lambda: lw.DynamicGrid(order="3-D", leaves="all", **common)),
        (AROUND, HOST, lambda: lw.DynamicGrid(order="3-D", leaves="around", **common)),
        (OWN_CELLS, ALL, lambda: lw.StaticGrid(**common)),
        (CURVE, ALL, lambda: lw.DynamicGrid(order="curve", **common)),
        (COLUMNS, HOST, lambda: lw.CellArray(**common)),
        (LISTS, OWN_CELLS, lambda: lw.NeighborLists(skin=SKIN, **common)),
        (AHEAD, OWN_CELLS, lambda: lw.StaticGrid(sight=SIGHT, **common)),
        (AUTOMATIC, ALL, lambda: lw.Nearest(**common)),
    )
    yield from (Version(name, over, search()) for name, over, search in make)
    if target_of(device) is CPU:
        yield Version(IN_TURN, None, None)


def thesis_cells(world: float) -> int:
    """Cells along an axis: as many as leave a side of the search radius, up to those of which
    constant memory holds the starts.
    """
    return max(1, min(MOST_CELLS, int(2 * world / THESIS.radius)))


def sight_of(search: lw.Search | None) -> lw.Sight | None:
    """Whom a target sees; None: all."""
    return search.sight if isinstance(search, lw.AllPairs | lw.StaticGrid) else None


def is_host_built(search: lw.Search) -> bool:
    """Whether the structure is built by the host wherever the agents are."""
    match search:
        case lw.StaticGrid(build="host"):
            return True
        case lw.DynamicGrid(order=order):
            return order != "curve"
        case lw.CellArray():
            return True
        case _:
            return False


GPU = "GeForce 8800 GTS"
SOURCE = (
    "J. Breitbart, Case studies on GPU usage and data structure design (2008), chapters 5 to 7, "
    f"{GPU}; what it states in words and "
    "tables (its curves carry no numbers)"
)

ALL = "all pairs"
HOST, CONSTANT, DEVICE = "static grid, host", "static grid, constant memory", "static grid, device"
SORT, ONE, THREE, AROUND = (f"dynamic grid, {x}" for x in ("sort", "1-D", "3-D", "3-D around"))
EIGHT = (ALL, HOST, CONSTANT, DEVICE, SORT, ONE, THREE, AROUND)
"""Its eight searches, in its order."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A statement about one search.

    `agents` and `world` are None where it does not depend on them, or the thesis does not say.

    factor: over the rung that this one is compared with. steps: simulated in a second. idle:
    threads without an agent.
    """

    rung: str
    text: str
    where: str
    agents: int | None = None
    world: float | None = None
    factor: float | None = None
    steps: float | None = None
    idle: int | None = None


FIGURES = (
    Figure(HOST, "35 x all pairs", "chapter 7, footnote 1", 2**17, 200.0, factor=35.0),
    Figure(HOST, "> 5 steps/s", "section 7.4, figure 7.3", 2**18, 200.0, steps=5.0),
    Figure(HOST, "about 60 steps/s", "section 7.4, figure 7.3", 2**15, 200.0, steps=60.0),
    Figure(CONSTANT, "at most 1.02 x host", "section 6.2.3"),
    Figure(DEVICE, "slower than host", "section 6.3.2"),
    Figure(SORT, "slower than static grid", "section 7.3"),
    Figure(ONE, "slower than static grid", "section 7.3"),
    Figure(ONE, "11,152 idle", "table 7.1", 2**14, idle=11_152),
    Figure(THREE, "slower than static grid", "section 7.3"),
    Figure(THREE, "9,821 idle", "table 7.1", 2**14, idle=9_821),
    Figure(AROUND, "1.15 x static grid", "section 7.3, figure 7.3", 2**13, 200.0, factor=1.15),
    Figure(AROUND, "> 5 steps/s", "section 7.4, figure 7.3", 2**18, 200.0, steps=5.0),
)


def figures_of(rung: str, agents: int, world: float) -> tuple[Figure, ...]:
    """What the thesis says of this rung at this size."""
    return tuple(
        f
        for f in FIGURES
        if f.rung == rung and f.agents in (None, agents) and f.world in (None, world)
    )


def paper_of(rung: str, agents: int, world: float) -> Mapping[str, float] | None:
    """The thesis's factor over the rung that this one is compared with, by machine."""
    factors = [f.factor for f in figures_of(rung, agents, world) if f.factor is not None]
    return {GPU: factors[0]} if factors else None


def as_extra(rung: str, agents: int, world: float) -> dict[str, float | int | str | None]:
    """All that it says, as extra numbers and words of the rung; None for what it does not say."""
    figures = figures_of(rung, agents, world)
    return {
        "thesis": "; ".join(f.text for f in figures) or None,
        "thesis_where": "; ".join(f.where for f in figures) or None,
        "thesis_steps_per_second": next((f.steps for f in figures if f.steps is not None), None),
        "thesis_idle_threads": next((f.idle for f in figures if f.idle is not None), None),
    }
