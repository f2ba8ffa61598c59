"""What makes a flow's values dimensionless, and how they are then called."""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.errors import ArgumentError
from lanewise.sims.lbm.view.slices import Quantity


@dataclass(frozen=True, slots=True)
class Reference:
    """The speed U and the length L, in lattice units and positive: values are shown as |u| / U and ω L / U."""

    speed: float
    length: float

    def __post_init__(self) -> None:
        for name, value in (("speed", self.speed), ("length", self.length)):
            if not 0 < value < float("inf"):
                raise ArgumentError(f"the reference {name} is {value}; wanted a positive number")


def unit_of(quantity: Quantity, reference: Reference | None) -> float:
    """What a value in lattice units is divided by before it is shown."""
    if reference is None:
        return 1.0
    return reference.speed if quantity == "speed" else reference.speed / reference.length


def label(quantity: Quantity, reference: Reference | None, *, across: bool = False) -> str:
    """Name, symbol and unit. `across`: it is the vorticity's component across the plane that is seen."""
    if quantity == "speed":
        return "speed  |u|  [lattice units]" if reference is None else "speed  |u| / U"
    return f"vorticity{' across the plane' if across else ''}  " + ("ω  [1 / step]" if reference is None else "ω L / U")
