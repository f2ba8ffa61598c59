"""The bodies of the CPU gravity benchmark, and the float64 answer that every version is held
against.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Bodies:
    """position: (3, n) float32, one row a coordinate; mass: (n,) float32."""

    position: FloatArray
    mass: FloatArray

    @property
    def count(self) -> int:
        """n, the number of bodies."""
        return self.mass.size


def random_bodies(count: int, seed: int = 1) -> Bodies:
    """`count` bodies, normally distributed with unit width, with masses that sum to about one."""
    random = np.random.default_rng(seed)
    position = random.normal(size=(3, count)).astype(np.float32)
    mass = (random.uniform(0.5, 1.5, size=count) / count).astype(np.float32)
    return Bodies(position, mass)


def exact_acceleration(
    bodies: Bodies, softening2: float, targets: NDArray[np.int64]
) -> NDArray[np.float64]:
    """(3, len(targets)): the accelerations of `targets`, summed in float64 over all bodies."""
    position, mass = bodies.position.astype(np.float64), bodies.mass.astype(np.float64)
    result = np.empty((3, targets.size))
    for column, target in enumerate(targets):
        distance = position - position[:, target, None]
        squared = (distance**2).sum(axis=0) + softening2
        result[:, column] = distance @ (mass * squared**-1.5)
    return result


def relative_error(bodies: Bodies, acceleration: FloatArray, softening2: float) -> float:
    """The largest |a - exact| / |exact| over some hundred targets: the first, the last, and an even
    choice between.
    """
    targets = np.unique(np.linspace(0, bodies.count - 1, num=256).astype(np.int64))
    exact = exact_acceleration(bodies, softening2, targets)
    error = np.linalg.norm(acceleration[:, targets] - exact, axis=0)
    return float((error / np.linalg.norm(exact, axis=0).mean()).max())
