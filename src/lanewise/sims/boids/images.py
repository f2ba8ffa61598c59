"""Obstacles in a periodic world: which of their images an agent can meet, and what cannot have
images.

A path that leaves the box comes back at the other side, so an obstacle stands at its place and at
all places whole sides of the box away. Those that an agent somewhere in the box meets within its
look-ahead are few, and each is its own obstacle for the kernels.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from lanewise.sims.boids.obstacles import (
    ALONG_Y,
    Box,
    Obstacle,
    Plane,
    Rectangle,
    Sphere,
    Vector,
    frame,
)
from lanewise.sims.boids.parameters import Parameters
from lanewise.support.articles import an
from lanewise.support.errors import InputError

SEAM = (
    # of the world's radius: by so much the squares of a plane overlap, or rounding would leave gaps
    # between them
    1e-6
)


def images(
    obstacles: Sequence[Obstacle], world: float, room: float, reach: float
) -> tuple[Obstacle, ...]:
    """The images that agents in the box from -world to world meet within `reach`, obstacle after
    obstacle.

    room: what agents keep to obstacles.
    """
    return tuple(
        image for o in obstacles for image in _images(_tile(o, world, room), world, room, reach)
    )


def look_ahead(p: Parameters) -> float:
    """How far an agent looks for obstacles, at most: in a periodic world also one that starts
    faster.
    """
    return p.avoid_time * p.max_speed


def check_images(obstacles: Sequence[Obstacle], world: float, p: Parameters) -> None:
    """Refuse what cannot have images in a periodic world. Raises `InputError`."""
    side = 2 * world
    for o in obstacles:
        kind = type(o).__name__.lower()
        if isinstance(o, Plane):
            if sum(c != 0 for c in o.normal) > 1:
                raise InputError(
                    f"a plane with the normal {o.normal} comes back through a periodic world "
                    "without end; wanted a normal along an axis, "
                    "or another boundary"
                )
            continue
        size = 2 * max(_halves(o, p.agent_radius))
        if size > side * (1 + SEAM):
            raise InputError(
                f"{an(kind)} with the room that agents keep to it, {p.agent_radius:g}, is {size:g} "
                f"long; in a periodic world of {side:g} "
                "it would overlap itself; wanted a smaller one, or a larger world"
            )
    if obstacles and look_ahead(p) > side:
        raise InputError(
            f"agents look {look_ahead(p):g} ahead for obstacles, the avoid time times the max "
            f"speed; in a periodic world of {side:g} they "
            "would see the same one again; wanted a shorter avoid time, or a larger world"
        )


def _tile(o: Obstacle, world: float, room: float) -> Obstacle:
    """What is repeated: a plane is made of squares as large as the box, to which no room is added
    at their edges.
    """
    if not isinstance(o, Plane):
        return o
    size = 2 * (world * (1 + SEAM) - room)
    return Rectangle(o.center, size, size, o.normal, frame(o.normal, ALONG_Y)[1], o.seen)


def _images(o: Obstacle, world: float, room: float, reach: float) -> Iterator[Obstacle]:
    side = 2 * world
    shifts: list[list[float]] = []
    for center, half in zip(o.center, _halves(o, room), strict=True):
        far = (world + reach + half) / side + SEAM
        first, last = math.ceil(-center / side - far), math.floor(-center / side + far)
        shifts.append([side * n for n in range(first, last + 1)])
    for shift in itertools.product(*shifts):
        x, y, z = (c + s for c, s in zip(o.center, shift, strict=True))
        yield replace(o, center=(x, y, z))


def _halves(o: Obstacle, room: float) -> Vector:
    """Half the extents along x, y and z, with the room that agents keep: they meet an obstacle
    larger by that.
    """
    match o:
        case Sphere():
            half = o.radius + room
            return half, half, half
        case Box():
            axes, sizes = frame(o.forward, o.up), (o.width, o.height, o.depth)
        case Rectangle():
            axes, sizes = frame(o.forward, o.up)[:2], (o.width, o.height)
        case Plane():
            return math.inf, math.inf, math.inf
    x, y, z = np.abs(np.array(axes)).T @ (np.array(sizes) / 2 + room)
    return float(x), float(y), float(z)
