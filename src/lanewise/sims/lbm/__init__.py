"""Flow by the lattice Boltzmann method: channels, cavities, bodies in a stream."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lanewise.sims.lbm.cases import CASES, Case, Setup
    from lanewise.sims.lbm.kinds import Open, Wall
    from lanewise.sims.lbm.simulation import Simulation
    from lanewise.sims.lbm.units import Units

__all__ = ["CASES", "Case", "Open", "Setup", "Simulation", "Units", "Wall"]

_HOMES = {
    "CASES": "cases", "Case": "cases", "Open": "kinds", "Setup": "cases", "Simulation": "simulation", "Units": "units",
    "Wall": "kinds",
}  # fmt: skip


def __getattr__(name: str) -> object:
    """Names are imported when they are first used: obstacles and units are there without the compiler."""
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
