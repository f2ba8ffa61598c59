"""What an initial condition is, and what several share.

A new one is one new module of this package that defines `CONDITION`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from lanewise.io.particles import Particles
from lanewise.support.errors import InputError

DEFAULT_BODIES = 16384


@dataclass(frozen=True, slots=True)
class InitialCondition:
    """A named way to place bodies.

    Attributes:
        description: one line for the user
        function: (bodies, seed) -> Particles in units with G = 1; the same arguments give the same
          bodies
        bodies: the only number of bodies that makes sense, or None for any
        minimum: the least number of bodies, where any goes
        method: settings of a run that its bodies need, by name (`dt`, `integrator`, `precision`);
          users may choose others
        random: whether bodies are drawn, so that a seed says which
    """

    name: str
    description: str
    function: Callable[[int, int], Particles]
    bodies: int | None = None
    minimum: int = 1
    method: Mapping[str, float | str] = field(default_factory=dict[str, float | str])
    random: bool = True

    def checked_count(self, bodies: int | None) -> int:
        """The number of bodies to make when `bodies` are requested (None: the default); InputError
        for a wrong one.
        """
        if bodies is None:
            return self.bodies or DEFAULT_BODIES
        if bodies <= 0:
            raise InputError(f"{bodies} bodies requested; wanted at least 1")
        if self.bodies is not None and bodies != self.bodies:
            raise InputError(f"{self.name} has exactly {self.bodies} bodies; {bodies} requested")
        if bodies < self.minimum:
            raise InputError(
                f"{self.name} needs at least {self.minimum} bodies; {bodies} requested"
            )
        return bodies

    def checked_seed(self, seed: int | None) -> int:
        """The seed of its random numbers; InputError where nothing is random."""
        if seed is not None and not self.random:
            raise InputError(
                f"{self.name} takes no seed, as nothing of it is random; leave the seed out"
            )
        return seed or 0


def at_rest(particles: Particles) -> Particles:
    """The same bodies with the centre of mass at the origin and at rest.

    The total mass must not be 0.
    """
    weight = particles.mass / particles.mass.sum()
    return replace(
        particles,
        position=particles.position - weight @ particles.position,
        velocity=particles.velocity - weight @ particles.velocity,
    )


def half_distance(density: float) -> float:
    """Half the mean distance of bodies, of which there are `density` in a unit of volume: a
    softening for collisionless bodies.

    Rodionov and Sotnikova, Astronomy Reports 49, 470 (2005): 1.5 to 2 times less than the mean
    distance in the densest region, with steps in which a body moves by less than half of the
    softening.
    """
    return 0.5 * density ** (-1.0 / 3.0)


def directions(count: int, random: np.random.Generator) -> NDArray[np.float64]:
    """(count, 3) unit vectors, uniform on the sphere (Archimedes: the height is uniform in
    -1..1).
    """
    height = 2.0 * random.random(count) - 1.0
    angle = 2.0 * np.pi * random.random(count)
    across = np.sqrt(1.0 - height**2)
    return np.stack([across * np.cos(angle), across * np.sin(angle), height], axis=1)
