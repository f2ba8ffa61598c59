"""Agents where they start, as a record array; what is refused of places."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import lanewise as lw
from lanewise.layouts import layout_by_name
from lanewise.sims.boids.boundaries import find_boundary
from lanewise.sims.boids.choice import search_world
from lanewise.sims.boids.rules import FIELDS, SPHERE, record_class
from lanewise.sims.boids.settings import FLAT, Settings
from lanewise.sims.boids.state import State
from lanewise.sims.common.meshes import require_divided
from lanewise.sims.common.searches import World
from lanewise.support.errors import InputError
from lanewise.support.numerals import counted

PLACES: dict[str, Any] = {"start": "ball", "start_radius": None, "seed": 0}
"""The defaults of what places agents."""


def check_placed(**places: Any) -> None:
    """Refuse what says where agents start, next to a state that says it."""
    for name, value in places.items():
        if value != PLACES[name]:
            raise InputError(
                f"{name}={value!r} places agents, and the state says where they are; leave {name} "
                "out"
            )


def make_boids(state: State, settings: Settings, place: str | lw.Mesh) -> lw.RecordArray:
    """The record array of a state at a place, in the precision and layout of the settings."""
    cls = record_class(settings.precision)
    layout, record, count = layout_by_name(settings.layout), cls.__record__, len(state)
    scalar = np.float64 if settings.precision == "f64" else np.float32
    row = -(-layout.arrange(record.leaves).nbytes(count) // max(1, count))
    row += 2 * 9 * np.dtype(scalar).itemsize
    require_divided(place, count, row, f"a flock of {counted(count, 'agent', 'agents')}")
    with np.errstate(over="ignore"):
        fields = {n: np.asarray(getattr(state, n)).astype(scalar) for n in FIELDS}
    for name, values in fields.items():
        if not np.isfinite(values).all():
            raise InputError(f"{name} holds more than float32 can; use precision f64")
    boids: lw.RecordArray = cls.array(**fields, layout=layout, device=place)
    return boids


def placed(state: State, rows: NDArray[np.int32]) -> State:
    """The agents in the order of their places."""
    return State(**{n: getattr(state, n)[rows] for n in FIELDS}, ids=state.ids[rows])


def world_of(settings: Settings, skin: float = 0.0) -> World:
    """Where the search of a flock expects its agents; skin: how much farther than the radius it
    looks.
    """
    thick = settings.parameters.radius if settings.dimension == FLAT else None
    if thick is not None and settings.is_periodic:  # a search looks at half of its height at most
        thick = max(thick, settings.touching if settings.collide else 0.0) + skin
    return search_world(find_boundary(settings.boundary).end, settings.world, thick)


def check_plane(settings: Settings, state: State) -> None:
    """Refuse agents that are not in the plane of a flat flock, or would leave it."""
    if settings.dimension != FLAT:
        return
    for name in ("position", "forward", "acceleration"):
        away = np.flatnonzero(getattr(state, name)[:, 1] != 0)
        if len(away):
            row = int(away[0])
            raise InputError(
                f"agent {state.ids[row]} has {name}.y = {getattr(state, name)[row, 1]:g}, and with "
                "dimension 2 agents stay in the plane y = 0; wanted zero, or dimension 3"
            )


def check_places(settings: Settings, position: NDArray[Any], ids: NDArray[np.int64]) -> None:
    """Refuse agents outside of a world that has an end."""
    end = find_boundary(settings.boundary).end
    distance = np.sqrt((position.astype(np.float64) ** 2).sum(axis=1))
    sphere = settings.boundary == "bounded" or end == SPHERE
    if sphere and len(position) and distance.max() > settings.world:
        row = int(np.argmax(distance > settings.world))
        raise InputError(
            f"agent {ids[row]} starts {distance[row]:g} from the centre, outside of the world of "
            f"radius {settings.world:g}; "
            "a larger --world holds it, or --boundary open"
        )
