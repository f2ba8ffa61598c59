"""Flows for the tests of pictures."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np


def street(ny: int = 40, nx: int = 120, phase: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Vortices of alternating sign behind a round obstacle, in a stream: velocity (ny, nx, 2) float32, solid
    (ny, nx).
    """
    y, x = np.mgrid[:ny, :nx] + 0.5
    velocity = np.zeros((ny, nx, 2))
    velocity[..., 0] = 0.1
    radius = ny / 10
    for number, at in enumerate(np.arange(0.3, 1.1, 0.1) + 0.1 * phase):
        sign = 1 if number % 2 else -1
        dx, dy = x - at * nx, y - ny / 2 + sign * radius
        strength = 0.08 * sign * np.exp(-(dx**2 + dy**2) / (2 * radius**2)) / radius
        velocity[..., 0] -= strength * dy
        velocity[..., 1] += strength * dx
    solid = (x - 0.12 * nx) ** 2 + (y - ny / 2) ** 2 < radius**2
    velocity[solid] = 0
    return velocity.astype(np.float32), solid


def past_ball(nz: int = 20, ny: int = 24, nx: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """A stream with a wake behind a ball: velocity (nz, ny, nx, 3) float32, solid (nz, ny, nx)."""
    z, y, x = np.mgrid[:nz, :ny, :nx] + 0.5
    y, z, x = y - ny / 2, z - nz / 2, x - nx / 4
    across = np.exp(-(y**2 + z**2) / 20) * (x > 0)
    velocity = np.stack([0.1 - 0.08 * across, 0.02 * across * np.sin(x / 3), 0.01 * across], axis=-1)
    solid = x**2 + y**2 + z**2 < 16
    velocity[solid] = 0
    return velocity.astype(np.float32), solid


def png_size(path: Path) -> tuple[int, int]:
    """Width and height in pixels."""
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", head[16:24])


def pixels(path: Path) -> np.ndarray:
    """(height, width, 3) uint8 of a PNG or a GIF's first frame."""
    from PIL import Image

    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))
