"""What is painted, a moment of a flock, and how it is looked at."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.errors import InputError
from lanewise.sims.boids.obstacles import Obstacle
from lanewise.sims.boids.view.camera import check_camera
from lanewise.sims.boids.view.colours import check_colouring
from lanewise.sims.boids.view.scene import Edge

PICTURE, FILM = (1080, 1920), (720, 1280)
"""Height and width in pixels."""


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """Agents: vectors (n, 3), speed (n,), ids (n,). numbers: what is said about them, a line each."""

    time: float
    position: NDArray[Any]
    forward: NDArray[Any]
    up: NDArray[Any]
    speed: NDArray[Any]
    ids: NDArray[np.int64]
    numbers: tuple[str, ...] = ()
    polarisation: float = 0.0


@dataclass(frozen=True, slots=True)
class View:
    """How a flock is looked at.

    title: above the numbers. world, edge: the radius of the world, and what its end looks like. colour: "heading", "speed" or
    "cluster". cluster_radius: agents nearer than this are of one cluster. camera: see `flock_camera`. select: the number (id) of the
    agent that the camera goes with, and that is marked; None: nobody, or the one in the middle of the largest cluster where the
    camera needs one. max_speed: at the end of the colours of speed. size: height and width in pixels.
    """

    title: str
    world: float
    edge: Edge = "sphere"
    obstacles: tuple[Obstacle, ...] = ()
    colour: str = "heading"
    cluster_radius: float = 5.0
    camera: str = "fixed"
    select: int | None = None
    max_speed: float = 9.0
    size: tuple[int, int] = PICTURE


def check_view(view: View, ids: NDArray[np.int64]) -> None:
    """Refuse what cannot be shown. Raises `InputError`."""
    check_camera(view.camera)
    check_colouring(view.colour)
    if not (np.isfinite(view.cluster_radius) and view.cluster_radius > 0):
        raise InputError(f"the radius of clusters is {view.cluster_radius:g}; wanted a finite number above zero")
    if view.select is not None and view.select not in ids:
        raise InputError(f"agent {view.select} is to be followed, and there is none with this number")


def shown_numbers(step: int, time: float, agents: int, statistics: Any) -> tuple[str, ...]:
    """The lines that a frame shows. `statistics`: of `lanewise.sims.boids.statistics`."""
    s = statistics
    nearest = f"nearest flockmate {s.nearest_min:.2f} at least, {s.nearest_mean:.2f} on average"
    if math.isnan(s.nearest_mean):
        nearest = "no flockmate near"
    return (
        f"step {step:,}, t = {time:.2f}",
        f"polarisation {s.polarisation:.3f}",
        f"speed {s.speed_min:.2f} to {s.speed_max:.2f}, mean {s.speed_mean:.2f}",
        nearest,
        f"{s.cells:,} cell{'' if s.cells == 1 else 's'} with {s.cell_min:,} to {s.cell_max:,} agents",
    )
