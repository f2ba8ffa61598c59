"""Simulations of the standard problems, and the slow oracle that they are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.io.particles import Particles
from lanewise.layouts import Layout
from lanewise.sims.gravity import Simulation, make_bodies, make_initial_conditions

Array = NDArray[np.float64]


def simulate(
    problem: str | Particles,
    bodies: int | None = None,
    *,
    precision: str = "f64",
    layout: Layout | None = None,
    seed: int | None = None,
    **options: Any,
) -> Simulation:
    """A simulation of a named initial condition or of particles; `options` go to `Simulation`."""
    particles = make_initial_conditions(problem, bodies, seed) if isinstance(problem, str) else problem
    return Simulation(make_bodies(particles, precision=precision, layout=layout, device="cpu"), **options)


def state(simulation: Simulation) -> tuple[Array, Array]:
    """Copies of positions and velocities, (n, 3) float64."""
    fields = simulation.bodies.numpy()
    return fields["position"].astype(np.float64), fields["velocity"].astype(np.float64)


def bits(simulation: Simulation) -> bytes:
    """All bits of positions and velocities."""
    fields = simulation.bodies.numpy()
    return fields["position"].tobytes() + fields["velocity"].tobytes()


def brute_force_acceleration(position: Array, mass: Array, softening: float) -> Array:
    """a_i = sum over j != i of m_j d / (d^2 + eps^2)^(3/2), with a matrix of all pairs, G = 1."""
    d = position[None] - position[:, None]
    r2 = (d**2).sum(axis=2) + softening**2
    np.fill_diagonal(r2, np.inf)
    return (mass[None, :, None] * d / r2[:, :, None] ** 1.5).sum(axis=1)


def brute_force_potential(position: Array, mass: Array, softening: float) -> float:
    """W = -sum over pairs of m_i m_j / sqrt(d^2 + eps^2), G = 1."""
    d = position[None] - position[:, None]
    r = np.sqrt((d**2).sum(axis=2) + softening**2)
    np.fill_diagonal(r, np.inf)
    return -0.5 * float((mass[:, None] * mass[None] / r).sum())
