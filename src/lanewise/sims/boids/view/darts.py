"""Agents as paper darts, in perspective.

A dart has two wings along the heading, banked as the agent is, lit from above and paler with the
distance.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.plot.triangles import Triangles
from lanewise.sims.boids.view.camera import Camera

NOSE, TAIL, NOTCH = 0.60, -0.40, -0.22
"""Along the heading, in lengths of a dart."""

SPAN, RISE = 0.31, 0.08
"""Half the width at the tail, and how much higher the tips of the wings are."""

LENGTH = 1.0
"""Of a dart in units of the world: twice the radius of an agent of OpenSteer."""

SMALLEST, LARGEST, CROWDING = 5.6, 25.0, 0.42
"""In pixels, of a dart at the middle of the scene that would be smaller in truth.

And how much of its share of the picture it may take.
"""

LIGHT = np.array((0.30, 0.90, 0.32), np.float32)
AMBIENT = 0.66
FOG = 0.70
"""How much of its colour the farthest agent has lost."""

HAZE = np.array((13, 20, 34), np.float32)
"""What distant things fade to."""


def dart_length(agents: int, camera: Camera, size: tuple[int, int]) -> float:
    """In units of the world: true, unless agents would be too small to see for a picture of `size`
    (height, width) with that many.
    """
    share = CROWDING * math.sqrt(size[0] * size[1] / agents)
    unit = size[0] / 1000  # large pictures have larger darts
    pixels = min(max(share, SMALLEST * unit), LARGEST * unit)
    return max(LENGTH, pixels * camera.focus / camera.scale(size[0]))


def fog(nearness: NDArray[Any], camera: Camera) -> NDArray[np.float32]:
    """How much is left of a colour at one over the distance: 1 at the front of the scene, 1 - FOG
    at its back.
    """
    front, back = max(camera.focus - camera.depth, 0.0), camera.focus + camera.depth
    distance = 1 / np.maximum(nearness, 1e-9)
    return np.asarray(
        1 - FOG * np.clip((distance - front) / (back - front), 0, 1) ** 1.2, np.float32
    )


def darts(
    position: NDArray[Any],
    forward: NDArray[Any],
    up: NDArray[Any],
    colours: NDArray[np.float32],
    camera: Camera,
    size: tuple[int, int],
    length: float,
) -> Triangles:
    """Two triangles an agent that is in the picture. All arrays (n, 3); colours from 0 to 255."""
    shown = _in_sight(camera.project(position, size), size, length * camera.scale(size[0]))
    p, f, u = (np.asarray(a[shown], np.float64) for a in (position, forward, up))
    side = np.cross(f, u)
    nose, notch = p + NOSE * length * f, p + NOTCH * length * f
    tail = p + TAIL * length * f + RISE * length * u
    left, right = tail - SPAN * length * side, tail + SPAN * length * side
    # (n, 2, 3, 3)
    places = np.stack([np.stack([nose, left, notch], 1), np.stack([nose, notch, right], 1)], 1)
    corners = camera.project(places, size)
    whole = (corners[..., 2] > 0).all(axis=-1)
    normals = _unit(np.cross(places[:, :, 1] - places[:, :, 0], places[:, :, 2] - places[:, :, 0]))
    bright = AMBIENT + (1 - AMBIENT) * np.abs(normals @ LIGHT)
    lit = colours[shown][:, None] * bright[..., None]
    left_of = fog(corners[..., 2].mean(axis=-1), camera)[..., None]
    shades = (HAZE + left_of * (lit - HAZE)).astype(np.float32)
    count = int(whole.sum())
    return Triangles(
        np.ascontiguousarray(corners[whole]), shades[whole], np.ones(count, np.float32)
    )


def _in_sight(seen: NDArray[np.float32], size: tuple[int, int], pixels: float) -> NDArray[np.bool_]:
    """Agents before the eye of which some may be in the picture."""
    x, y, nearness = seen.T
    room = pixels * nearness
    inside = (x > -room) & (x < size[1] + room) & (y > -room) & (y < size[0] + room)
    return np.asarray((nearness > 0) & inside, np.bool_)


def _unit(v: NDArray[Any]) -> NDArray[Any]:
    return v / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), 1e-30)
