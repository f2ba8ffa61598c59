"""Simulations of a few bodies, and reference figures by brute force in NumPy float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from lanewise.io.particles import Particles
from lanewise.layouts import layout_by_name
from lanewise.sims.gravity import Simulation, make_bodies, make_initial_conditions


def simulate(particles: Particles, *, precision: str = "f64", layout: str | None = None, **options: Any) -> Simulation:
    """A simulation of these particles on the CPU."""
    chosen = layout_by_name(layout) if layout else None
    return Simulation(make_bodies(particles, precision=precision, layout=chosen, device="cpu"), **options)


def cluster(count: int = 256, seed: int = 5) -> Particles:
    return make_initial_conditions("plummer", count, seed)


def reference_energy(p: Particles, softening: float, gravitational_constant: float = 1.0) -> float:
    d = p.position[:, None] - p.position[None]
    r = np.sqrt((d**2).sum(-1) + softening**2)
    pairs = np.triu(np.outer(p.mass, p.mass) / np.where(r > 0, r, 1.0), 1)
    return float(0.5 * p.mass @ (p.velocity**2).sum(1) - gravitational_constant * pairs.sum())


def positions(simulation: Simulation) -> np.ndarray:
    return np.array(simulation.bodies.position, np.float64)


def velocities(simulation: Simulation) -> np.ndarray:
    return np.array(simulation.bodies.velocity, np.float64)
