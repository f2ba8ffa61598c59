"""Gravity by direct summation: star clusters, galaxies, few-body orbits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanewise.support.naming import at_first_use

if TYPE_CHECKING:  # for type checkers: what `__getattr__` imports
    from lanewise.sims.gravity.bodies import make_bodies
    from lanewise.sims.gravity.diagnostics import Diagnostics
    from lanewise.sims.gravity.forces import Force
    from lanewise.sims.gravity.initial import INITIAL_CONDITIONS, make_initial_conditions
    from lanewise.sims.gravity.integrators import INTEGRATORS, Integrator
    from lanewise.sims.gravity.physics import Body, Body64, BodyMixed
    from lanewise.sims.gravity.simulation import Simulation

__all__ = [
    "INITIAL_CONDITIONS",
    "INTEGRATORS",
    "Body",
    "Body64",
    "BodyMixed",
    "Diagnostics",
    "Force",
    "Integrator",
    "Simulation",
    "make_bodies",
    "make_initial_conditions",
]

__getattr__, __dir__ = at_first_use(
    __name__,
    {
        "diagnostics": ("Diagnostics",),
        "forces": ("Force",),
        "initial": ("INITIAL_CONDITIONS", "make_initial_conditions"),
        "integrators": ("INTEGRATORS", "Integrator"),
        "physics": ("Body", "Body64", "BodyMixed"),
        "bodies": ("make_bodies",),
        "simulation": ("Simulation",),
    },
)
"""The command line is there without the compiler."""
