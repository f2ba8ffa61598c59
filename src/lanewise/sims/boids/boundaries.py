"""The end of the world, and the scenes of OpenSteerDemo: its boundary conditions for a world of any
radius.

Its scenes wrap around at the sphere as well, should an agent get past what it was meant to avoid.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from lanewise.sims.boids.obstacles import Box, Obstacle, Rectangle, Sphere, Vector
from lanewise.sims.boids.rules import BOUNDED, BOX, OPEN, SPHERE
from lanewise.sims.common.checks import known
from lanewise.support.checks import check_fields
from lanewise.support.errors import InputError

_TILT: Vector = (math.sqrt(0.5), math.sqrt(0.5), 0.0)
_TILTED_UP: Vector = (-math.sqrt(0.5), math.sqrt(0.5), 0.0)


@dataclass(frozen=True, slots=True)
class Boundary:
    """A named world: what happens at its end, and its obstacles (a function of its radius)."""

    name: str
    description: str
    end: int
    obstacles: Callable[[float], tuple[Obstacle, ...]] = lambda world: ()

    def __post_init__(self) -> None:
        check_fields(self, InputError)


def _room(world: float) -> Sphere:
    return Sphere((0.0, 0.0, 0.0), world, "inside")


def _six_spheres(world: float) -> tuple[Obstacle, ...]:
    half = world / 2
    places: tuple[Vector, ...] = (
        (half, 0, 0),
        (-half, 0, 0),
        (0, half, 0),
        (0, -half, 0),
        (0, 0, half),
        (0, 0, -half),
    )
    return tuple(Sphere(p, 0.33 * world) for p in places)


def _rectangle(world: float) -> Rectangle:
    return Rectangle((0.0, 0.0, 0.0), world, 1.6 * world, _TILT, _TILTED_UP, "both")


def _box(world: float, seen: str) -> Box:
    return Box((0.0, 0.0, 0.0), world, 1.6 * world, 0.4 * world, _TILT, _TILTED_UP, seen)


BOUNDARIES: dict[str, Boundary] = {
    b.name: b
    for b in (
        Boundary("wrap", "a sphere: who leaves it comes back at the opposite side", SPHERE),
        Boundary("open", "no end", OPEN),
        Boundary(
            "periodic",
            "a box of twice the radius, repeated: flockmates are seen across its faces",
            BOX,
        ),
        Boundary("bounded", "a sphere: who leaves it ends the run with an error", BOUNDED),
        Boundary("inside-sphere", "inside a sphere", SPHERE, lambda w: (_room(w),)),
        Boundary(
            "outside-sphere",
            "inside a sphere, around another one",
            SPHERE,
            lambda w: (_room(w), Sphere((0.0, 0.0, 0.0), w / 2)),
        ),
        Boundary(
            "outside-spheres",
            "inside a sphere, around six others",
            SPHERE,
            lambda w: (_room(w), *_six_spheres(w)),
        ),
        Boundary("outside-spheres-wrap", "around six spheres", SPHERE, _six_spheres),
        Boundary(
            "rectangle",
            "inside a sphere, with a rectangle",
            SPHERE,
            lambda w: (_room(w), _rectangle(w)),
        ),
        Boundary("rectangle-wrap", "a rectangle", SPHERE, lambda w: (_rectangle(w),)),
        Boundary(
            "outside-box",
            "inside a sphere, around a box",
            SPHERE,
            lambda w: (_room(w), _box(w, "outside")),
        ),
        Boundary("inside-box", "inside a box", SPHERE, lambda w: (_box(w, "inside"),)),
    )
}
"""Name -> boundary. The scenes from "inside-sphere" on are those of OpenSteerDemo.

Their obstacles scale with the world.
"""


def find_boundary(name: str) -> Boundary:
    """Raises `InputError` for an unknown name."""
    return known("boundary", name, BOUNDARIES)
