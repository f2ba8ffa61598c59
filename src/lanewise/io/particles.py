"""Particles on the host, the common form of every file format and every initial condition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lanewise.attributes import frozen
from lanewise.checks import checked, shown
from lanewise.errors import InputError
from lanewise.io import check

DARK = 1
"""The component of bodies that say nothing else: Gadget's type 1, collisionless halo matter."""


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class Particles:
    """n bodies in the units of their source. Build it with `Particles.of`, which checks; the constructor does not.

    position   (n, 3) float64, length
    velocity   (n, 3) float64, length / time
    mass       (n,)   float64, zero or more
    ids        (n,)   int64, names that follow a body through files
    component  (n,)   uint8, Gadget's particle type: 0 gas, 1 halo, 2 disc, 3 bulge, 4 stars, 5 other
    time       of the state, in units of time
    softening  length that the source recommends for all bodies, or None when it names none
    """

    position: NDArray[np.float64]
    velocity: NDArray[np.float64]
    mass: NDArray[np.float64]
    ids: NDArray[np.int64]
    component: NDArray[np.uint8]
    time: float = 0.0
    softening: float | None = None

    @classmethod
    @checked(InputError)
    def of(
        cls,
        position: ArrayLike,
        velocity: ArrayLike,
        mass: ArrayLike,
        *,
        ids: ArrayLike | None = None,
        component: ArrayLike | int = DARK,
        time: float = 0.0,
        softening: float | None = None,
    ) -> Particles:
        """Convert, fill in defaults (ids 0..n-1, component 1) and check. Arrays that fit already are not copied.

        One number for `mass` or `component` holds for all bodies.
        Raises InputError that names the field, the first bad body, the value seen and the value wanted.
        """
        places = check.vectors("position", position)
        n = len(places)
        if n == 0:
            raise InputError("there are no bodies; at least one is wanted")
        return cls(
            position=places,
            velocity=check.vectors("velocity", velocity, n),
            mass=check.masses(mass, n),
            ids=np.arange(n, dtype=np.int64) if ids is None else check.ids(ids, n),
            component=check.components(component, n),
            time=check.scalar("time", time),
            softening=None if softening is None else check.scalar("softening", softening, minimum=0.0),
        )

    def __len__(self) -> int:
        return len(self.mass)

    @checked(InputError)
    def take(self, order: NDArray[np.int64]) -> Particles:
        """The bodies at these indices, (m,) int64, in this order; raises InputError for what is no index of a body."""
        if (
            order.ndim != 1
            or order.dtype.kind not in "iu"
            or (order.size and not -len(self) <= order.min() <= order.max() < len(self))
        ):
            raise InputError(f"take: {shown(order)}: wanted indices of {len(self)} bodies")
        return Particles(
            self.position[order],
            self.velocity[order],
            self.mass[order],
            self.ids[order],
            self.component[order],
            self.time,
            self.softening,
        )


@checked(InputError)
def concatenate(parts: Sequence[Particles]) -> Particles:
    """All bodies of `parts`, in order, numbered anew from 0 (ids of different sources may coincide).

    Time is that of the first part; softening is kept when all parts agree. Raises InputError for no parts.
    """
    if not parts:
        raise InputError("there are no bodies; at least one is wanted")
    softenings = {part.softening for part in parts}
    return Particles.of(
        np.concatenate([part.position for part in parts]),
        np.concatenate([part.velocity for part in parts]),
        np.concatenate([part.mass for part in parts]),
        component=np.concatenate([part.component for part in parts]),
        time=parts[0].time,
        softening=softenings.pop() if len(softenings) == 1 else None,
    )
