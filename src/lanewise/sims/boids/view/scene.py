"""Lines and surfaces of the scene: the edge of the world, obstacles, trails.

They fade with the distance, as agents do.

Obstacles are solid from outside, wires where a flock is within, and of glass where they are seen
from both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lanewise.plot.triangles import Canvas, Triangles
from lanewise.sims.boids.obstacles import ALONG_Y, Box, Obstacle, Plane, Rectangle, Sphere, frame
from lanewise.sims.boids.view.camera import Camera
from lanewise.sims.boids.view.darts import AMBIENT, HAZE, LIGHT, fog

Edge: TypeAlias = Literal["sphere", "box", "none"]
"""What the end of the world looks like."""

Colour: TypeAlias = tuple[float, float, float]

WORLD: Colour = (74, 94, 140)
THINNEST = 1.25
"""Pixels; the samples of a pixel would tear thinner lines to pieces."""

ROUND = 128
"""Pieces of a circle."""


def lines(
    ends: NDArray[Any],
    colour: Colour,
    opacity: NDArray[Any] | float,
    width: float,
    camera: Camera,
    size: tuple[int, int],
) -> Triangles:
    """Segments (n, 2, 3) of `width` pixels; `opacity` of all, or of each (n,).

    Thinner ones than THINNEST are paler instead.
    """
    wide = max(width, THINNEST)
    seen = camera.project(ends, size)
    whole = (seen[..., 2] > 0).all(axis=-1)
    seen = seen[whole]
    opacities = np.broadcast_to(np.asarray(opacity, np.float32), len(ends))[whole]
    along = seen[:, 1, :2] - seen[:, 0, :2]
    length = np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-6)
    across = np.zeros_like(seen[:, 0])
    across[:, :2] = along[:, ::-1] * (-1, 1) / length * (wide / 2)
    a, b, c, d = seen[:, 0] - across, seen[:, 0] + across, seen[:, 1] - across, seen[:, 1] + across
    corners = np.stack([a, b, c, b, d, c], axis=1).reshape(-1, 3, 3)
    shown = np.repeat(opacities * (width / wide) * fog(seen[..., 2].mean(axis=1), camera), 2)
    colours = np.broadcast_to(np.array(colour, np.float32), (len(corners), 3))
    return Triangles(
        np.ascontiguousarray(corners, np.float32),
        np.ascontiguousarray(colours),
        shown.astype(np.float32),
    )


def surface(
    faces: NDArray[Any], colour: Colour, opacity: float, camera: Camera, size: tuple[int, int]
) -> Triangles:
    """Triangles (n, 3, 3) of the world, on the side that is seen, lit from above."""
    corners = camera.project(faces, size)
    whole = (corners[..., 2] > 0).all(axis=-1)
    normals = np.cross(faces[:, 1] - faces[:, 0], faces[:, 2] - faces[:, 0])
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-30)
    normals *= np.where(
        ((camera.eye - faces[:, 0]) * normals).sum(axis=1, keepdims=True) < 0, -1, 1
    )
    lit = np.array(colour) * (AMBIENT + (1 - AMBIENT) * np.clip(normals @ LIGHT, -0.8, 1))[:, None]
    left = fog(corners[..., 2].mean(axis=1), camera)[:, None]
    shades = (HAZE + left * (lit - HAZE)).astype(np.float32)[whole]
    return Triangles(
        np.ascontiguousarray(corners[whole]), shades, np.full(len(shades), opacity, np.float32)
    )


def joined(places: NDArray[Any]) -> NDArray[Any]:
    """The segments (n - 1, 2, 3) between places (n, 3)."""
    return np.stack([places[:-1], places[1:]], axis=1)


def circle(center: Any, one: Any, other: Any) -> NDArray[Any]:
    """The segments of a circle; `one`, `other`: radii at a right angle."""
    angle = np.linspace(0, 2 * np.pi, ROUND + 1)[:, None]
    return joined(
        np.asarray(center) + np.cos(angle) * np.asarray(one) + np.sin(angle) * np.asarray(other)
    )


def world_lines(edge: Edge, radius: float) -> NDArray[Any]:
    """The segments of the edge of the world: three circles, the edges of a box, or nothing."""
    match edge:
        case "sphere":
            x, y, z = np.eye(3) * radius
            return np.concatenate([circle((0, 0, 0), *pair) for pair in ((x, z), (x, y), (y, z))])
        case "box":
            return box_lines((0, 0, 0), np.eye(3) * radius)
        case _:
            return np.zeros((0, 2, 3))


def box_lines(center: Any, halves: Any) -> NDArray[Any]:
    """The twelve edges of a box, in pieces that may lie behind the eye one by one. halves: (3, 3),
    from the middle to its faces.
    """
    edges: list[NDArray[Any]] = []
    for axis in range(3):
        along, one, other = np.roll(np.asarray(halves, np.float64), -axis, axis=0)
        for s, t in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
            place = np.asarray(center) + s * one + t * other
            edges.append(joined(place + np.linspace(-1, 1, 25)[:, None] * along))
    return np.concatenate(edges)


def sphere_faces(center: Any, radius: float, parts: int = 96) -> NDArray[Any]:
    """Triangles (n, 3, 3) of a sphere."""
    u = np.linspace(0, np.pi, parts // 2 + 1)
    v = np.linspace(0, 2 * np.pi, parts + 1)
    ring = np.sin(u)[:, None]
    places = np.stack(
        [ring * np.cos(v), np.repeat(np.cos(u)[:, None], len(v), 1), ring * np.sin(v)], axis=-1
    )
    places = np.asarray(center) + radius * places
    return quads(places[:-1, :-1], places[:-1, 1:], places[1:, 1:], places[1:, :-1])


def box_faces(center: Any, halves: Any) -> NDArray[Any]:
    """Triangles (n, 3, 3) of a box."""
    faces: list[NDArray[Any]] = []
    for axis in range(3):
        out, one, other = np.roll(np.asarray(halves, np.float64), -axis, axis=0)
        for sign in (1.0, -1.0):
            middle, second = np.asarray(center) + sign * out, sign * other
            faces.append(
                quads(
                    *(
                        middle + s * one + t * second
                        for s, t in ((-1, -1), (1, -1), (1, 1), (-1, 1))
                    )
                )
            )
    return np.concatenate(faces)


def quads(a: Any, b: Any, c: Any, d: Any) -> NDArray[Any]:
    """Two triangles for each quadrilateral a, b, c, d of places (..., 3)."""
    return np.stack([a, b, c, a, c, d], axis=-2).reshape(-1, 3, 3)


SOLID: Colour = (104, 114, 140)
WIRE: Colour = (122, 142, 190)
GLASS = 0.22
CIRCLES = 5
"""Of latitude on a sphere."""

PANES = 8
"""Along each side of a plane's grid."""


def draw_obstacles(
    canvas: Canvas,
    obstacles: Sequence[Obstacle],
    world: float,
    camera: Camera,
    size: tuple[int, int],
) -> None:
    """What is solid first, so that it hides agents; call it before they are drawn."""
    for o in obstacles:
        faces = _faces(o, world)
        if o.seen == "outside" and len(faces):
            canvas.draw(surface(faces, SOLID, 1.0, camera, size))


def draw_glass(
    canvas: Canvas,
    obstacles: Sequence[Obstacle],
    world: float,
    camera: Camera,
    size: tuple[int, int],
) -> None:
    """Wires and glass; call it when the agents are drawn."""
    for o in obstacles:
        faces = _faces(o, world)
        if o.seen == "both" and len(faces):
            canvas.draw(surface(faces, SOLID, GLASS, camera, size), solid=False)
        width = 1.1 * size[0] / 1000
        canvas.draw(
            lines(
                _wires(o, world), WIRE, 0.26 if o.seen == "inside" else 0.55, width, camera, size
            ),
            solid=False,
        )


def _faces(o: Obstacle, world: float) -> NDArray[Any]:
    match o:
        case Sphere():
            return sphere_faces(o.center, o.radius)
        case Box():
            return box_faces(o.center, _halves(o))
        case Rectangle() | Plane():
            return quads(
                *(_corner(o, world, s, t) for s, t in ((-1, -1), (1, -1), (1, 1), (-1, 1)))
            )


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
                [
                    *pieces,
                    *(joined(np.array([_corner(o, world, s, t) for s in places])) for t in places),
                ]
            )


def _globe(o: Sphere) -> NDArray[Any]:
    """Circles of latitude and six of longitude, a little above the surface."""
    radius, center = 1.004 * o.radius, np.array(o.center)
    circles: list[NDArray[Any]] = []
    for angle in np.linspace(-np.pi / 2, np.pi / 2, CIRCLES + 2)[1:-1]:
        r = radius * np.cos(angle)
        circles.append(
            circle(center + np.array((0, radius * np.sin(angle), 0)), (r, 0, 0), (0, 0, r))
        )
    for angle in np.arange(6) * np.pi / 6:
        circles.append(
            circle(center, (radius * np.cos(angle), 0, radius * np.sin(angle)), (0, radius, 0))
        )
    return np.concatenate(circles)


def _halves(o: Box) -> NDArray[Any]:
    sizes = np.array((o.width, o.height, o.depth))
    return np.array(frame(o.forward, o.up)) * sizes[:, None] / 2


def _corner(o: Rectangle | Plane, world: float, s: float, t: float) -> NDArray[Any]:
    """A place of the surface, at parts s and t of its half width and height; a plane is shown as
    wide as the world.
    """
    match o:
        case Rectangle():
            side, up, _ = frame(o.forward, o.up)
            wide, high = o.width / 2, o.height / 2
        case Plane():
            side, up, _ = frame(o.normal, ALONG_Y)
            wide = high = world
    return np.array(o.center) + s * wide * np.array(side) + t * high * np.array(up)
