"""Initial conditions of gravity, in units with G = 1.

They are found in the modules of this package, so that a new one is one new file.
"""

from __future__ import annotations

import importlib
import pkgutil

from lanewise.io.particles import Particles
from lanewise.sims.common.devices import require_memory
from lanewise.sims.common.seeds import check_seed
from lanewise.sims.gravity.initial.registry import DEFAULT_BODIES, InitialCondition
from lanewise.support.attributes import unknown
from lanewise.support.checks import checked
from lanewise.support.errors import InputError

__all__ = ["DEFAULT_BODIES", "INITIAL_CONDITIONS", "InitialCondition", "make_initial_conditions"]

# a body: positions, velocities and the work space of the samplers, in float64
BYTES_TO_SAMPLE = 240


def _discovered() -> dict[str, InitialCondition]:
    names = sorted(info.name for info in pkgutil.iter_modules(__path__))
    conditions = (
        vars(importlib.import_module(f"{__name__}.{name}")).get("CONDITION") for name in names
    )
    return {
        condition.name: condition
        for condition in conditions
        if isinstance(condition, InitialCondition)
    }


INITIAL_CONDITIONS: dict[str, InitialCondition] = _discovered()
"""Name -> initial condition, in the order of the file names."""


@checked(InputError)
def make_initial_conditions(name: str, bodies: int | None = None, seed: int = 0) -> Particles:
    """The bodies of the initial condition `name`; the same arguments give the same bits.

    `bodies` None stands for the only possible number, or else for 16384. Raises InputError for an
    unknown name, a number of bodies that `name` cannot have, and a negative seed.
    """
    condition = INITIAL_CONDITIONS.get(name)
    if condition is None:
        raise InputError(unknown("initial condition", name, INITIAL_CONDITIONS))
    check_seed(seed)
    count = condition.checked_count(bodies)
    require_memory("cpu", count * BYTES_TO_SAMPLE, f"making {count:,} bodies")
    return condition.function(count, seed)
