"""Which search a flock uses: a name of the command line, or a search of the caller's, made to fit
its world.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import lanewise as lw
from lanewise.sims.boids.rules import BOX, OPEN
from lanewise.sims.common.checks import check_known
from lanewise.sims.common.searches import MOST_NEIGHBORS, World
from lanewise.support.errors import InputError


@dataclass(frozen=True, slots=True)
class Chosen:
    """The search of a flock with its own structure, and why it is that one; the plan of its
    kernel, where tuning decided it.
    """

    search: lw.Search
    why: str
    plan: lw.Plan | None = None


MARGIN = 1e-5  # of the world's radius: rounding may put an agent this far outside


def _automatic(radius: float, k: int | None, world: World) -> lw.Search:
    return (
        lw.Neighbors(radius=radius, world=world)
        if k is None
        else lw.Nearest(k=k, radius=radius, world=world)
    )


SEARCHES: dict[str, Callable[[float, int | None, World], lw.Search]] = {
    "auto": _automatic,
    "all-pairs": lambda radius, k, world: lw.AllPairs(radius=radius, k=k, world=world),
    "static-grid": lambda radius, k, world: lw.StaticGrid(radius=radius, k=k, world=world),
    "cell-array": lambda radius, k, world: lw.CellArray(radius=radius, k=k, world=world),
    "dynamic-grid": lambda radius, k, world: lw.DynamicGrid(radius=radius, k=k, world=world),
}
"""Name -> (radius, k, world) -> search."""


CONCRETE: dict[str, Any] = {
    cls.__name__: cls
    for cls in (lw.AllPairs, lw.StaticGrid, lw.CellArray, lw.DynamicGrid, lw.NeighborLists)
}
"""What automatic searches choose from, by the names in checkpoints."""


def search_world(end_of_world: int, radius: float, thick: float | None = None) -> World:
    """Where a search expects the agents. thick: of agents in the plane y = 0, about how far their
    search looks: its world is as high, so that cells lie side by side.
    """
    if end_of_world == OPEN:
        return lw.Open()
    if end_of_world == BOX:
        high = radius if thick is None else thick
        return lw.Periodic((2 * radius, 2 * high, 2 * radius), origin=(-radius, -high, -radius))
    edge = radius * (1 + MARGIN)
    high = edge if thick is None else thick / 4
    return lw.Bounded((-edge, -high, -edge), (edge, high, edge))


def check_k(k: int | None, agents: int, think_every: int) -> None:
    """Refuse no neighbours, more than there are agents, and more than kernels are made for."""
    # who thinks sometimes finds itself among its neighbours
    most = MOST_NEIGHBORS - (think_every > 1)
    if k is None:
        return
    if k < 1:
        raise InputError(f"k is {k}; wanted at least 1 neighbour")
    if k > agents:
        raise InputError(f"k is {k}; there are only {agents} agents")
    if k > most:
        raise InputError(
            f"k is {k}; wanted at most {most}, the longest list that is kept in registers"
        )


def find_search(
    name: str | lw.Search, radius: float, k: int | None, world: World, *, flat: bool = False
) -> lw.Search:
    """The search of a name; a search itself stays as it is, but has to have this radius, k and
    world. flat: of agents in the plane y = 0, where a repeated world of any height will do; the
    search gets this one's.

    Raises `InputError` for an unknown name, a radius that the world is too small for, and a search
    that looks for something else.
    """
    size = min(world.size) if isinstance(world, lw.Periodic) else None
    if size is not None and 2 * radius > size:
        raise InputError(
            f"the radius is {radius:g}; in a periodic world of {size:g} it is at most half of "
            f"that, {size / 2:g}"
        )
    if isinstance(name, str):
        check_known("search", name, SEARCHES)
        return SEARCHES[name](radius, k, world)
    if flat and _side_by_side(name.world, world):
        name = replace(name, world=world)
    asked = {"radius": radius, "k": k, "world": world}
    for part, value in asked.items():
        if getattr(name, part) != value:
            raise InputError(
                f"the search has {part} {getattr(name, part)}, and the flock {value}; build it "
                "with the flock's, or name it: "
                f"{', '.join(SEARCHES)}"
            )
    return name


def _side_by_side(one: World, other: World) -> bool:
    """Whether worlds repeat, and differ in their heights at most."""
    if not (isinstance(one, lw.Periodic) and isinstance(other, lw.Periodic)):
        return False
    return (one.size[::2], one.origin[::2]) == (other.size[::2], other.origin[::2])


def skin_of(search: str | lw.Search) -> float:
    """How much farther than the radius a search looks."""
    return search.skin if isinstance(search, lw.NeighborLists) else 0.0


def collision_search(search: lw.Search, agent_radius: float) -> lw.Search:
    """Who touches whom, in any direction: over such a structure as flockmates are found with.

    Raises `ArgumentError` for a search that cannot look so far.
    """
    every = {"sight": None} if isinstance(search, lw.AllPairs | lw.StaticGrid) else {}
    return replace(search, radius=2 * agent_radius, k=None, **every)


def search_to_json(search: lw.Search) -> str:
    """One line from which `search_from_json` makes the same search for the same radius, k and
    world.
    """
    own = {n: v for n, v in asdict(search).items() if n not in ("radius", "k", "world")}
    return json.dumps({"search": type(search).__name__, **own})


def search_from_json(
    text: str, radius: float, k: int | None, world: Callable[[float], World]
) -> lw.Search:
    """What `search_to_json` wrote; raises `KeyError`, `TypeError` or `ValueError`.

    world: of a skin, which is zero for all but lists.
    """
    values: dict[str, Any] = json.loads(text)
    cls: Any = CONCRETE[values.pop("search")]
    own: dict[str, Any] = {n: _tuples(v) for n, v in values.items()}
    if own.get("sight") is not None:
        own["sight"] = lw.Sight(**own["sight"])
    made: lw.Search = cls(radius=radius, k=k, world=world(own.get("skin", 0.0)), **own)
    return made


def _tuples(value: Any) -> Any:
    """Lists of JSON as tuples."""
    values: list[Any] = value if isinstance(value, list) else []
    return tuple(_tuples(v) for v in values) if isinstance(value, list) else value
