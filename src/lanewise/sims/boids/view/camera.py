"""Where a flock is seen from: OpenSteerDemo's cameras, and one that flies around it.

fixed: from one side, far enough to see the flock. orbit: around it, once a minute of its time.
offset: next to one agent, always in the same direction. follow: behind one agent. pov: from its
nose (point of view).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lanewise.sims.common.checks import check_known

CAMERAS = ("fixed", "orbit", "offset", "follow", "pov")
WITH_AGENT = ("offset", "follow", "pov")
"""Those that go with an agent."""

ANGLE = math.radians(42)
"""From the lower to the upper edge of the picture."""

NEAREST = 0.3
"""What is nearer to the eye is not drawn, as a rule."""

BEFORE = 4.0
"""Nor are agents between an eye that goes with an agent and that agent, so that they do not hide
it.
"""

AZIMUTH, ELEVATION = math.radians(35), math.radians(16)
MARGIN = 1.04
MINUTE = 60.0
UP = np.array((0.0, 1.0, 0.0))


@dataclass(frozen=True, slots=True, eq=False)
class Camera:
    """An eye.

    right, up, ahead: unit vectors at right angles. focus: how far away is what it looks at; depth:
    of the scene around. near: what is nearer is not drawn.
    """

    eye: NDArray[np.float64]
    right: NDArray[np.float64]
    up: NDArray[np.float64]
    ahead: NDArray[np.float64]
    focus: float
    depth: float
    near: float = NEAREST

    def scale(self, height: int) -> float:
        """Pixels of one unit of length at distance one."""
        return height / (2 * math.tan(ANGLE / 2))

    def project(self, places: NDArray[np.floating], size: tuple[int, int]) -> NDArray[np.float32]:
        """Of places (..., 3): x and y in pixels of a picture of `size` (height, width), and one
        over the distance; 0 behind the eye.
        """
        away = places - self.eye
        distance = away @ self.ahead
        seen = distance > self.near
        nearness = np.where(seen, 1 / np.where(seen, distance, 1), 0)
        factor = self.scale(size[0]) * nearness
        x = size[1] / 2 + (away @ self.right) * factor
        y = size[0] / 2 - (away @ self.up) * factor
        return np.stack([x, y, nearness], axis=-1).astype(np.float32)


def check_camera(name: str) -> None:
    """Refuse an unknown one."""
    check_known("camera", name, CAMERAS)


def looking(
    eye: NDArray[np.float64],
    target: NDArray[np.float64],
    depth: float,
    up: NDArray[np.float64] = UP,
    near: float = NEAREST,
) -> Camera:
    """From `eye` to `target`, upright towards `up`."""
    ahead = target - eye
    focus = float(np.linalg.norm(ahead))
    ahead = ahead / focus
    right = np.cross(ahead, up)
    if np.linalg.norm(right) < 1e-6:
        right = np.cross(ahead, (1.0, 0.0, 0.0))
    right /= np.linalg.norm(right)
    return Camera(eye, right, np.cross(right, ahead), ahead, focus, depth, near)


def around(middle: NDArray[np.float64], radius: float, time: float, *, turning: bool) -> Camera:
    """So that a ball of this radius fills the picture; `turning` by the time."""
    azimuth = AZIMUTH + (2 * math.pi * time / MINUTE if turning else 0.0)
    level = math.cos(ELEVATION)
    out = np.array((level * math.sin(azimuth), math.sin(ELEVATION), level * math.cos(azimuth)))
    return looking(middle + out * (MARGIN * radius / math.sin(ANGLE / 2)), middle, radius)


def beside(
    name: str, position: NDArray[np.float64], forward: NDArray[np.float64], up: NDArray[np.float64]
) -> Camera:
    """With an agent: at a constant offset, behind it, or on its nose."""
    match name:
        case "offset":
            return looking(position + np.array((7.0, 4.0, 7.0)), position, 40.0, near=BEFORE)
        case "pov":
            return looking(position + 0.6 * forward, position + 12 * forward, 40.0, up)
        case _:
            level = forward - 0.35 * forward[1] * UP  # not straight from above an agent that dives
            level = level / np.linalg.norm(level)
            return looking(
                position - 7.5 * level + 2.2 * UP, position + 4 * forward, 40.0, near=BEFORE
            )
