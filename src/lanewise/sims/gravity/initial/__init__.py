"""Initial conditions of gravity, in units with G = 1.

They are found in the modules of this package, so that a new one is one new file; users' own are
functions (see `scripts`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lanewise.io.particles import Particles
from lanewise.sims.common.devices import require_memory
from lanewise.sims.common.discovered import discovered
from lanewise.sims.common.seeds import check_seed
from lanewise.sims.gravity.initial.registry import DEFAULT_BODIES, InitialCondition
from lanewise.sims.gravity.initial.scripts import bodies_of, bodies_of_script, names_script
from lanewise.support.attributes import unknown
from lanewise.support.checks import checked
from lanewise.support.errors import InputError
from lanewise.support.numerals import counted

__all__ = ["DEFAULT_BODIES", "INITIAL_CONDITIONS", "InitialCondition", "make_initial_conditions"]

# a body: positions, velocities and the work space of the samplers, in float64
BYTES_TO_SAMPLE = 240


INITIAL_CONDITIONS: dict[str, InitialCondition] = {
    condition.name: condition
    for condition in discovered(__name__, __path__, "CONDITION", InitialCondition)
}
"""Name -> initial condition, in the order of the file names."""


@checked(InputError)
def make_initial_conditions(
    name: str | Callable[..., Any],
    bodies: int | None = None,
    seed: int | None = None,
    **arguments: Any,
) -> Particles:
    """The bodies of an initial condition; the same arguments give the same bits.

    name: one of `INITIAL_CONDITIONS`, `script.py:function`, or a function that returns positions
    and velocities (n, 3) and masses (n,), by name or in this order; `arguments` are those of the
    function. bodies: None is the only possible number, the function's own default, or 16384.
    seed: None is 0. Raises `InputError` for an unknown name, a number of bodies that `name` cannot
    have, a negative seed, a seed if nothing is random, and a function that does not return bodies.
    """
    check_seed(seed or 0)
    if bodies is not None and bodies <= 0:
        raise InputError(f"{bodies} bodies requested; wanted at least 1")
    if not isinstance(name, str):
        return bodies_of(name, bodies, seed, arguments)
    if arguments:
        raise InputError(
            f"{name} takes no {', '.join(arguments)}: arguments of a script stand in its name, "
            "script.py:function(name=value), and those of a function next to the function"
        )
    if names_script(name):
        return bodies_of_script(name, bodies, seed)
    condition = INITIAL_CONDITIONS.get(name)
    if condition is None:
        raise InputError(unknown("initial condition", name, INITIAL_CONDITIONS))
    count = condition.checked_count(bodies)
    drawn = condition.checked_seed(seed)
    require_memory("cpu", count * BYTES_TO_SAMPLE, f"making {counted(count, 'body', 'bodies')}")
    return condition.function(count, drawn)
