"""A homogeneous sphere, cold or warm: the classic collapse."""

from __future__ import annotations

import math

import numpy as np

from lanewise.io.particles import Particles
from lanewise.sims.gravity.initial.registry import (
    InitialCondition,
    at_rest,
    directions,
    half_distance,
)
from lanewise.support.errors import InputError

POTENTIAL_ENERGY = -3.0 / 5.0
"""W = -(3/5) G M^2 / R of a homogeneous sphere."""


def uniform_sphere(bodies: int, seed: int, virial_ratio: float = 0.0) -> Particles:
    """`bodies` equal masses 1/n within radius 1; collapses in pi / (2 sqrt 2) = 1.11 when cold.

    `virial_ratio` is 2K/|W|: 0 cold, 1 in balance. Velocities are Gaussian and isotropic, with the
    expected kinetic energy K. It brings a softening, half the mean distance of its bodies at the
    start: 0.032 for 16,384 bodies. Raises InputError for a negative ratio.
    """
    if not (math.isfinite(virial_ratio) and virial_ratio >= 0.0):
        raise InputError(f"virial_ratio is {virial_ratio}; wanted zero or more")
    random = np.random.default_rng(seed)
    radius = np.cbrt(random.random(bodies))
    position = radius[:, None] * directions(bodies, random)
    # K = (3/2) M sigma^2 for a dispersion sigma along each axis.
    sigma = math.sqrt(virial_ratio * abs(POTENTIAL_ENERGY) / 3.0)
    velocity = sigma * random.standard_normal((bodies, 3))
    softening = half_distance(3.0 * bodies / (4.0 * math.pi))
    return at_rest(Particles.of(position, velocity, 1.0 / bodies, softening=softening))


CONDITION = InitialCondition(
    "uniform-sphere", "homogeneous sphere at rest, which collapses", uniform_sphere
)
