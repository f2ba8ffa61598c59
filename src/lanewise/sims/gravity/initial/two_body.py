"""Two bodies on a Kepler orbit, whose motion is known exactly."""

from __future__ import annotations

import math

import numpy as np

from lanewise.io.particles import Particles
from lanewise.sims.gravity.initial.registry import InitialCondition
from lanewise.support.errors import InputError


def two_body(
    bodies: int = 2, seed: int = 0, eccentricity: float = 0.0, mass_ratio: float = 1.0
) -> Particles:
    """Total mass 1, semi-major axis 1, hence period 2 pi and energy -m1 m2 / 2; in the x-y plane,
    at apocentre.

    `mass_ratio` is m2 / m1. Distance 1 + e and speed sqrt((1 - e) / (1 + e)) at apocentre: the
    vis-viva equation. Raises InputError unless 0 <= eccentricity < 1, mass_ratio > 0 and bodies ==
    2. Nothing is random.
    """
    if not 0.0 <= eccentricity < 1.0:
        raise InputError(f"eccentricity is {eccentricity}; wanted 0 or more and less than 1")
    if not (math.isfinite(mass_ratio) and mass_ratio > 0.0):
        raise InputError(f"mass_ratio is {mass_ratio}; wanted more than zero")
    CONDITION.checked_count(bodies)
    del seed
    mass = np.array([1.0, mass_ratio]) / (1.0 + mass_ratio)
    # Each body is as far from the centre of mass as the OTHER one is heavy.
    share = np.array([mass[1], -mass[0]])[:, None]
    distance = np.array([1.0 + eccentricity, 0.0, 0.0])
    speed = np.array([0.0, math.sqrt((1.0 - eccentricity) / (1.0 + eccentricity)), 0.0])
    return Particles.of(share * distance, share * speed, mass)


CONDITION = InitialCondition(
    "two-body", "two bodies on a Kepler orbit of period 2 pi", two_body, bodies=2, random=False
)
