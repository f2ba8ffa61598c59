"""Positions as the builders on the host read them: contiguous, and within a periodic world."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.patterns.search.builders.tree import margin
from lanewise.patterns.search.points import Points
from lanewise.patterns.search.worlds import Periodic, World
from lanewise.runtime.memory import to_host


def places_of(points: Points, world: World) -> tuple[NDArray[Any], NDArray[Any]]:
    """Positions, shape (count, axes), and how far wrapping may have moved each by rounding (empty where nothing is wrapped)."""
    dtype = points.precision.dtype
    places: NDArray[Any] = np.empty((points.count, points.dimension), dtype)
    for axis, column in enumerate(points.columns()):
        places[:, axis] = to_host(column)
    if not isinstance(world, Periodic):
        return places, np.empty((0, points.dimension), dtype)
    size: NDArray[Any] = np.array(world.size, dtype)
    origin: NDArray[Any] = np.array(world.origin, dtype)
    largest = dtype.type(max(*world.size, *(abs(o) for o in world.origin)))
    margins = (np.abs(places) + largest) * dtype.type(margin(points.precision))
    places -= size * np.floor((places - origin) * (1 / size))
    return places, margins
