"""A Plummer sphere in equilibrium: the standard model of a star cluster.

Sampling: Aarseth, Henon and Wielen, Astronomy and Astrophysics 37, 183 (1974), appendix, with
random numbers drawn for all bodies at once. Units: Henon (Heggie and Mathieu 1986): G = M = 1, E =
-1/4, hence a = 3 pi / 16 and a half-mass radius of 0.7686.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lanewise.io.particles import Particles
from lanewise.sims.gravity.initial.registry import (
    InitialCondition,
    at_rest,
    directions,
    half_distance,
)

SCALE = 3.0 * np.pi / 16.0
"""The scale radius a that makes the total energy -3 pi G M^2 / (64 a) equal to -1/4."""

PEAK = 0.1
"""An upper bound of q^2 (1 - q^2)^(7/2) on 0..1 (its maximum is 0.0922), from the paper."""


def plummer(bodies: int, seed: int) -> Particles:
    """`bodies` equal masses 1/n. The sphere has no edge: a few bodies lie tens of radii out, as
    they should.

    It brings a softening, half the mean distance at its centre, where the density is 3 n / (4 pi
    a^3): 0.019 for 16,384 bodies.
    """
    position, velocity = plummer_sphere(bodies, np.random.default_rng(seed))
    softening = half_distance(3.0 * bodies / (4.0 * np.pi * SCALE**3))
    return at_rest(
        Particles.of(SCALE * position, velocity / np.sqrt(SCALE), 1.0 / bodies, softening=softening)
    )


def plummer_sphere(
    bodies: int, random: np.random.Generator, within: float = 1.0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Positions and velocities, (n, 3) each, for G = M = a = 1; `within` keeps only the inner part
    of the mass.
    """
    mass_inside = within * random.random(bodies)
    # r = (m^(-2/3) - 1)^(-1/2), the paper's eq. (A2), in the form that is exact at m = 0.
    radius = np.cbrt(mass_inside) / np.sqrt(1.0 - np.cbrt(mass_inside) ** 2)
    escape = np.sqrt(2.0) * (1.0 + radius**2) ** -0.25
    speed = escape * _speed_fractions(bodies, random)
    return radius[:, None] * directions(bodies, random), speed[:, None] * directions(bodies, random)


def _speed_fractions(bodies: int, random: np.random.Generator) -> NDArray[np.float64]:
    """(n,) samples of q = v / v_escape, density proportional to q^2 (1 - q^2)^(7/2), by
    rejection.
    """
    accepted = np.empty(0)
    while len(accepted) < bodies:
        q = random.random(bodies)
        accepted = np.append(accepted, q[PEAK * random.random(bodies) < q**2 * (1.0 - q**2) ** 3.5])
    return accepted[:bodies]


CONDITION = InitialCondition(
    "plummer", "Plummer sphere in equilibrium, Henon units (a star cluster)", plummer
)
