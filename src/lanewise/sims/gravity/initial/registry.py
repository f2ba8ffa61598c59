"""What an initial condition is. A new one is one new module of this package that defines `CONDITION`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lanewise.errors import InputError
from lanewise.io.particles import Particles

DEFAULT_BODIES = 16384


@dataclass(frozen=True, slots=True)
class InitialCondition:
    """A named way to place bodies.

    description  one line for the user
    function     (bodies, seed) -> Particles in units with G = 1; the same arguments give the same bodies
    bodies       the only number of bodies that makes sense, or None for any
    minimum      the least number of bodies, where any goes
    """

    name: str
    description: str
    function: Callable[[int, int], Particles]
    bodies: int | None = None
    minimum: int = 1

    def checked_count(self, bodies: int | None) -> int:
        """The number of bodies to make when `bodies` are asked for (None: the default); InputError for a wrong one."""
        if bodies is None:
            return self.bodies or DEFAULT_BODIES
        if bodies <= 0:
            raise InputError(f"{bodies} bodies asked for; wanted at least 1")
        if self.bodies is not None and bodies != self.bodies:
            raise InputError(f"{self.name} has exactly {self.bodies} bodies; {bodies} asked for")
        if bodies < self.minimum:
            raise InputError(f"{self.name} needs at least {self.minimum} bodies; {bodies} asked for")
        return bodies
