"""Initial conditions of gravity, one a file, in units with G = 1."""

from __future__ import annotations

from lanewise.errors import InputError
from lanewise.io.particles import Particles
from lanewise.sims.gravity.initial.discovery import INITIAL_CONDITIONS
from lanewise.sims.gravity.initial.registry import DEFAULT_BODIES, InitialCondition

__all__ = ["DEFAULT_BODIES", "INITIAL_CONDITIONS", "InitialCondition", "make_initial_conditions"]

LARGEST_SEED = 2**63 - 1  # what a checkpoint can keep


def make_initial_conditions(name: str, bodies: int | None = None, seed: int = 0) -> Particles:
    """The bodies of the initial condition `name`; the same arguments give the same bits.

    `bodies` None stands for the only possible number, or else for 16384. Raises InputError for an unknown name, a
    number of bodies that `name` cannot have, and a negative seed.
    """
    condition = INITIAL_CONDITIONS.get(name)
    if condition is None:
        raise InputError(f"unknown initial condition {name!r}; wanted one of {', '.join(INITIAL_CONDITIONS)}")
    if seed < 0:
        raise InputError(f"the seed is {seed}; wanted zero or more")
    if seed > LARGEST_SEED:
        raise InputError(f"the seed is {seed}; wanted at most {LARGEST_SEED}")
    return condition.function(condition.checked_count(bodies), seed)
