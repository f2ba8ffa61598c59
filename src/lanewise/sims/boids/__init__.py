"""Flocks: Reynolds' boids as in OpenSteer, over any search structure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise.support.naming import at_first_use

if TYPE_CHECKING:  # for type checkers: what `__getattr__` imports
    from lanewise.sims.boids.boundaries import BOUNDARIES, Boundary
    from lanewise.sims.boids.checkpoint import ResumeWarning
    from lanewise.sims.boids.flock import Flock
    from lanewise.sims.boids.initial import STARTS, make_state
    from lanewise.sims.boids.obstacles import (
        Box,
        Obstacle,
        Plane,
        Rectangle,
        Sphere,
        read_obstacles,
    )
    from lanewise.sims.boids.parameters import SEMANTICS, Parameters
    from lanewise.sims.boids.rules import Boid, Boid64
    from lanewise.sims.boids.state import State, read_state, write_state
    from lanewise.sims.boids.statistics import Statistics

__all__ = [
    "BOUNDARIES",
    "SEMANTICS",
    "STARTS",
    "Boid",
    "Boid64",
    "Boundary",
    "Box",
    "Flock",
    "Obstacle",
    "Parameters",
    "Plane",
    "Rectangle",
    "ResumeWarning",
    "Sphere",
    "State",
    "Statistics",
    "make_state",
    "read_obstacles",
    "read_state",
    "write_state",
]

__getattr__, __dir__ = at_first_use(
    __name__,
    {
        "boundaries": ("BOUNDARIES", "Boundary"),
        "checkpoint": ("ResumeWarning",),
        "flock": ("Flock",),
        "initial": ("STARTS", "make_state"),
        "obstacles": ("Box", "Obstacle", "Plane", "Rectangle", "Sphere", "read_obstacles"),
        "parameters": ("SEMANTICS", "Parameters"),
        "rules": ("Boid", "Boid64"),
        "state": ("State", "read_state", "write_state"),
        "statistics": ("Statistics",),
    },
)
"""The command line is there without the compiler."""
