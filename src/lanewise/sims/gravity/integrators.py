"""Integrators as alternating kicks (velocities) and drifts (positions), each a fraction of the time
step.

A step is: kick k0, drift d0, forces, kick k1, drift d1, forces, ..., kick kn. The forces after the
last drift serve the first kick of the next step too, so a step costs as many force evaluations as
it has drifts. All of them are symplectic.
"""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.sims.common.checks import known
from lanewise.support.attributes import frozen
from lanewise.support.checks import check_fields
from lanewise.support.errors import InputError


@frozen
@dataclass(frozen=True, slots=True)
class Integrator:
    """Kicks and drifts as fractions of dt; one kick more than drifts.

    `order` is the order of the error after a given time.
    """

    name: str
    order: int
    kicks: tuple[float, ...]
    drifts: tuple[float, ...]

    def __post_init__(self) -> None:
        check_fields(self, InputError)


# Semi-implicit (symplectic) Euler: the new velocity moves the body.
EULER = Integrator("euler", 1, (1.0, 0.0), (1.0,))

# Leapfrog, kick-drift-kick (velocity Verlet; Verlet 1967).
LEAPFROG = Integrator("leapfrog", 2, (0.5, 0.5), (1.0,))

# Yoshida (1990), Phys. Lett. A 150, 262: three leapfrog steps of w1, w0, w1 cancel the third-order
# error.
_W1 = 1.0 / (2.0 - 2.0 ** (1.0 / 3.0))
_W0 = 1.0 - 2.0 * _W1
YOSHIDA4 = Integrator(
    "yoshida4", 4, (_W1 / 2, (_W1 + _W0) / 2, (_W0 + _W1) / 2, _W1 / 2), (_W1, _W0, _W1)
)

INTEGRATORS = {i.name: i for i in (EULER, LEAPFROG, YOSHIDA4)}


def integrator(name: str) -> Integrator:
    """The integrator of this name; raises `InputError` naming the others."""
    return known("integrator", name, INTEGRATORS)
