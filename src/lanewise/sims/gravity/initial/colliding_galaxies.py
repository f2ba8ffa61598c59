"""Two disc galaxies that fall towards each other on a parabola, tilted: tails, bridges, and in the
end one galaxy.

After Toomre and Toomre, Astrophysical Journal 178, 623 (1972), with self-gravitating galaxies.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lanewise.io.particles import Particles, concatenate
from lanewise.sims.gravity.initial.disc_galaxy import HALO, DiscGalaxy
from lanewise.sims.gravity.initial.registry import InitialCondition, at_rest, half_distance

LARGE = DiscGalaxy()
SMALL = DiscGalaxy(mass=0.5, halo_scale=0.21, disc_scale=0.175, disc_edge=0.875, thickness=0.014)
"""Half the mass at the same surface density, so 0.7 of the size."""

SOFTENING = 0.02
"""About the thickness of the discs, which a larger one would blur."""

SEPARATION, PERICENTRE = 3.0, 0.5
"""Distance at the start, and at the closest approach (after 2.4 units of time) if the galaxies were
points.
"""

TILTS = (math.radians(25.0), math.radians(-50.0))
"""Of the discs against the plane of the orbit (x-y).

Both turn in the sense of the orbit, which draws long tails.
"""


def colliding_galaxies(bodies: int, seed: int) -> Particles:
    """Masses 1 and 1/2, bodies in the same ratio; half of each is halo (component 1), half disc
    (component 2).

    They bring a softening of `SOFTENING`, and where bodies are few half their mean distance at the
    densest place, the middle of the smaller galaxy. A good time step is 0.002. Raises InputError
    for fewer than 6 bodies.
    """
    bodies = CONDITION.checked_count(bodies)
    random = np.random.default_rng(seed)
    larger = round(bodies * LARGE.mass / (LARGE.mass + SMALL.mass))
    offset, drift = _parabola(LARGE.mass + SMALL.mass)
    first = _tilted(LARGE.sample(larger, random), TILTS[0])
    second = _tilted(SMALL.sample(bodies - larger, random), TILTS[1])
    moved = replace(second, position=second.position + offset, velocity=second.velocity + drift)
    halo = np.count_nonzero(second.component == HALO)
    apart = half_distance(3.0 * halo / (4.0 * math.pi * SMALL.halo_scale**3))
    return at_rest(replace(concatenate([first, moved]), softening=max(SOFTENING, apart)))


def _parabola(mass: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Relative place and velocity, (3,) each, on an incoming parabola: v^2 = 2 M / r, angular
    momentum^2 = 2 M r_p.
    """
    across = math.sqrt(2.0 * mass * PERICENTRE) / SEPARATION
    inward = math.sqrt(2.0 * mass / SEPARATION - across**2)
    return np.array([SEPARATION, 0.0, 0.0]), np.array([-inward, across, 0.0])


def _tilted(galaxy: Particles, angle: float) -> Particles:
    """Turned about the x axis, the line between the galaxies at the start."""
    cosine, sine = math.cos(angle), math.sin(angle)
    turn = np.array([[1.0, 0.0, 0.0], [0.0, cosine, -sine], [0.0, sine, cosine]])
    return replace(galaxy, position=galaxy.position @ turn.T, velocity=galaxy.velocity @ turn.T)


CONDITION = InitialCondition(
    "galaxies", "two disc galaxies that collide", colliding_galaxies, minimum=6
)
