"""Random directions without preference."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def directions(count: int, random: np.random.Generator) -> NDArray[np.float64]:
    """(count, 3) unit vectors, uniform on the sphere (Archimedes: the height is uniform in -1..1)."""
    height = 2.0 * random.random(count) - 1.0
    angle = 2.0 * np.pi * random.random(count)
    across = np.sqrt(1.0 - height**2)
    return np.stack([across * np.cos(angle), across * np.sin(angle), height], axis=1)
