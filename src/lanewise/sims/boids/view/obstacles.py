"""Obstacles as a flock sees them: solid from outside, as wires where it is within, and of glass where they are seen from both sides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.sims.boids.obstacles import ALONG_Y, Box, Obstacle, Plane, Rectangle, Sphere, frame
from lanewise.sims.boids.view.camera import Camera
from lanewise.sims.boids.view.lines import (
    Colour,
    box_faces,
    box_lines,
    circle,
    joined,
    lines,
    quads,
    sphere_faces,
    surface,
)
from lanewise.sims.boids.view.raster import Canvas

SOLID: Colour = (104, 114, 140)
WIRE: Colour = (122, 142, 190)
GLASS = 0.22
CIRCLES = 5
"""Of latitude on a sphere."""

PANES = 8
"""Along each side of a plane's grid."""


def draw_obstacles(
    canvas: Canvas, obstacles: Sequence[Obstacle], world: float, camera: Camera, size: tuple[int, int]
) -> None:
    """What is solid first, so that it hides agents; call it before they are drawn."""
    for o in obstacles:
        faces = _faces(o, world)
        if o.seen == "outside" and len(faces):
            canvas.draw(surface(faces, SOLID, 1.0, camera, size))


def draw_glass(
    canvas: Canvas, obstacles: Sequence[Obstacle], world: float, camera: Camera, size: tuple[int, int]
) -> None:
    """Wires and glass; call it when the agents are drawn."""
    for o in obstacles:
        faces = _faces(o, world)
        if o.seen == "both" and len(faces):
            canvas.draw(surface(faces, SOLID, GLASS, camera, size), solid=False)
        width = 1.1 * size[0] / 1000
        canvas.draw(
            lines(_wires(o, world), WIRE, 0.26 if o.seen == "inside" else 0.55, width, camera, size), solid=False
        )


def _faces(o: Obstacle, world: float) -> NDArray[Any]:
    match o:
        case Sphere():
            return sphere_faces(o.center, o.radius)
        case Box():
            return box_faces(o.center, _halves(o))
        case Rectangle() | Plane():
            return quads(*(_corner(o, world, s, t) for s, t in ((-1, -1), (1, -1), (1, 1), (-1, 1))))


def _wires(o: Obstacle, world: float) -> NDArray[Any]:
    match o:
        case Sphere():
            return _globe(o)
        case Box():
            return box_lines(o.center, _halves(o) * 1.002)
        case Rectangle() | Plane():
            places = np.linspace(-1, 1, PANES + 1)
            pieces = [joined(np.array([_corner(o, world, s, t) for t in places])) for s in places]
            return np.concatenate(
                [*pieces, *(joined(np.array([_corner(o, world, s, t) for s in places])) for t in places)]
            )


def _globe(o: Sphere) -> NDArray[Any]:
    """Circles of latitude and six of longitude, a little above the surface."""
    radius, center = 1.004 * o.radius, np.array(o.center)
    found: list[NDArray[Any]] = []
    for angle in np.linspace(-np.pi / 2, np.pi / 2, CIRCLES + 2)[1:-1]:
        r = radius * np.cos(angle)
        found.append(circle(center + np.array((0, radius * np.sin(angle), 0)), (r, 0, 0), (0, 0, r)))
    for angle in np.arange(6) * np.pi / 6:
        found.append(circle(center, (radius * np.cos(angle), 0, radius * np.sin(angle)), (0, radius, 0)))
    return np.concatenate(found)


def _halves(o: Box) -> NDArray[Any]:
    sizes = np.array((o.width, o.height, o.depth))
    return np.array(frame(o.forward, o.up)) * sizes[:, None] / 2


def _corner(o: Rectangle | Plane, world: float, s: float, t: float) -> NDArray[Any]:
    """A place of the surface, at parts s and t of its half width and height; a plane is shown as wide as the world."""
    match o:
        case Rectangle():
            side, up, _ = frame(o.forward, o.up)
            wide, high = o.width / 2, o.height / 2
        case Plane():
            side, up, _ = frame(o.normal, ALONG_Y)
            wide = high = world
    return np.array(o.center) + s * wide * np.array(side) + t * high * np.array(up)
