"""Flow by the lattice Boltzmann method: channels, cavities, bodies in a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise.support.naming import at_first_use

if TYPE_CHECKING:
    from lanewise.sims.lbm.cases import CASES, Case, Setup
    from lanewise.sims.lbm.checks import FlowWarning
    from lanewise.sims.lbm.kinds import Open, Wall
    from lanewise.sims.lbm.simulation import Simulation
    from lanewise.sims.lbm.units import Units

__all__ = ["CASES", "Case", "FlowWarning", "Open", "Setup", "Simulation", "Units", "Wall"]

__getattr__, __dir__ = at_first_use(
    __name__,
    {
        "cases": ("CASES", "Case", "Setup"),
        "checks": ("FlowWarning",),
        "kinds": ("Open", "Wall"),
        "simulation": ("Simulation",),
        "units": ("Units",),
    },
)
"""The command line is there without the compiler."""
