"""What may be assigned of a flock besides its settings' own properties, and what may not."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lanewise.sims.boids.parameters import NUMBERS, make_parameters
from lanewise.support.attributes import near
from lanewise.support.errors import InputError

if TYPE_CHECKING:
    from lanewise.sims.boids.flock import Flock


class Constant:
    """One of the `Parameters` of the rules as an attribute of a flock."""

    def __set_name__(self, owner: type[Flock], name: str) -> None:
        self._name = name

    def __get__(self, flock: Flock | None, owner: type[Flock]) -> Any:
        return self if flock is None else getattr(flock.settings.parameters, self._name)

    def __set__(self, flock: Flock, value: float) -> None:
        s = flock.settings
        parameters = make_parameters(s.semantics, {self._name: value}, s.parameters)
        flock._change(parameters=parameters)  # pyright: ignore[reportPrivateUsage]


FIXED = {
    "boids": "write to its fields, flock.boids.position[...] = ..., or make a new Flock with "
    "state=...",
    "step": "it counts the steps that were taken",
    "time": "it follows from the steps",
    "settings": "assign the setting itself, as in flock.cohesion_weight = 4",
    "state": "write to flock.boids, or make a new Flock with state=...",
    "position": "write to flock.boids.position (rows in the order of flock.rows), or make a new "
    "Flock with state=...",
    "forward": "write to flock.boids.forward (rows in the order of flock.rows), or make a new "
    "Flock with state=...",
    "speed": "write to flock.boids.speed (rows in the order of flock.rows), or make a new Flock "
    "with state=...",
}
ANEW = "it is chosen when a flock is made: Flock(state=flock.state, ...) continues with another one"


def check_names(flock: type[Flock], constants: Mapping[str, float]) -> None:
    """Refuse a name that is neither a constant of the rules nor another setting of a flock."""
    named = [n for n in inspect.signature(flock).parameters if n != "constants"]
    known = (*named, *NUMBERS)
    for name in constants:
        if name not in NUMBERS:
            raise InputError(
                f"Flock has no setting {name!r}{near(name, known) or ';'} wanted some of "
                f"{', '.join(known)}"
            )
