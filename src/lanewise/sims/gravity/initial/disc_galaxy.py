"""One disc galaxy: a Plummer sphere of halo and bulge, and a thin exponential disc that turns in
their joint pull.

The disc is set up as in Hernquist, Astrophysical Journal Supplement 86, 389 (1993), simplified:
circular orbits with a small isotropic scatter, and the pull of the disc taken as if its mass inside
a radius lay at the centre (the exact curve of Freeman 1970 differs by some 10 %). The galaxy
settles within a turn or two and grows spiral arms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lanewise.io.particles import Particles, concatenate
from lanewise.sims.gravity.initial.plummer import plummer_sphere
from lanewise.sims.gravity.initial.registry import at_rest

HALO, DISC = 1, 2
"""Components: Gadget's particle types of halo and disc."""

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class DiscGalaxy:
    """Lengths and masses in units with G = 1.

    `scatter` is the velocity scatter along each axis over the speed.

    `halo_within` is the part of the halo's mass that is kept: without its far outskirts, half of it
    lies in the disc.
    """

    mass: float = 1.0
    disc_share: float = 0.2
    halo_scale: float = 0.3
    disc_scale: float = 0.25
    disc_edge: float = 1.25
    thickness: float = 0.02
    scatter: float = 0.08
    halo_within: float = 0.95

    def sample(self, bodies: int, random: np.random.Generator) -> Particles:
        """Half of the bodies halo, half disc (turning anticlockwise about +z), centre of mass at
        rest at the origin.
        """
        discs = bodies // 2
        return at_rest(concatenate([self._halo(bodies - discs, random), self._disc(discs, random)]))

    def halo_mass_inside(self, radius: FloatArray) -> FloatArray:
        """M r^3 / (r^2 + a^2)^(3/2), of the halo that is kept (Plummer 1911)."""
        whole = (1.0 - self.disc_share) * self.mass / self.halo_within
        return np.minimum(
            whole * (1.0 + (self.halo_scale / radius) ** 2) ** -1.5, whole * self.halo_within
        )

    def disc_mass_inside(self, radius: FloatArray) -> FloatArray:
        """Of an exponential disc cut off at `disc_edge`."""
        whole = self.disc_share * self.mass
        return whole * np.minimum(
            _exponential_share(radius / self.disc_scale) / self._edge_share(), 1.0
        )

    def circular_speed(self, radius: FloatArray) -> FloatArray:
        """sqrt(M(<r) / r)."""
        return np.sqrt((self.halo_mass_inside(radius) + self.disc_mass_inside(radius)) / radius)

    def _edge_share(self) -> float:
        return float(_exponential_share(np.array(self.disc_edge / self.disc_scale)))

    def _halo(self, bodies: int, random: np.random.Generator) -> Particles:
        position, velocity = plummer_sphere(bodies, random, self.halo_within)
        position *= self.halo_scale
        radius = np.linalg.norm(position, axis=1)
        # The sphere alone would be in balance with speeds for its own pull; the virial theorem 2K =
        # sum m v_c^2 says how much faster its bodies must be with the disc inside it.
        needed = np.sum(self.circular_speed(radius) ** 2)
        velocity *= np.sqrt(needed / np.sum(velocity**2))
        return Particles.of(
            position, velocity, (1.0 - self.disc_share) * self.mass / bodies, component=HALO
        )

    def _disc(self, bodies: int, random: np.random.Generator) -> Particles:
        radius = self.disc_scale * _exponential_radii(self._edge_share() * random.random(bodies))
        angle = 2.0 * np.pi * random.random(bodies)
        height = self.thickness * random.standard_normal(bodies)
        cosine, sine = np.cos(angle), np.sin(angle)
        speed = self.circular_speed(radius)[:, None]
        position = np.stack([radius * cosine, radius * sine, height], axis=1)
        tangent = np.stack([-sine, cosine, np.zeros(bodies)], axis=1)
        velocity = speed * (tangent + self.scatter * random.standard_normal((bodies, 3)))
        return Particles.of(
            position, velocity, self.disc_share * self.mass / bodies, component=DISC
        )


def _exponential_share(radius: FloatArray) -> FloatArray:
    """Mass inside `radius` of an exponential disc of mass and scale 1: 1 - (1 + x) exp(-x)."""
    return 1.0 - (1.0 + radius) * np.exp(-radius)


def _exponential_radii(share: FloatArray) -> FloatArray:
    """The inverse of `_exponential_share`, by bisection (60 halvings of 0..50: to the last bit)."""
    low, high = np.zeros_like(share), np.full_like(share, 50.0)
    for _ in range(60):
        middle = (low + high) / 2.0
        inside = _exponential_share(middle) < share
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return high
