"""Gravity by direct summation: star clusters, galaxies, few-body orbits."""

from lanewise.sims.gravity.diagnostics import Diagnostics
from lanewise.sims.gravity.initial import INITIAL_CONDITIONS, make_initial_conditions
from lanewise.sims.gravity.integrators import INTEGRATORS, Integrator
from lanewise.sims.gravity.physics import Body, Body64, BodyMixed
from lanewise.sims.gravity.simulation import Simulation, make_bodies

__all__ = [
    "INITIAL_CONDITIONS", "INTEGRATORS", "Body", "Body64", "BodyMixed", "Diagnostics", "Integrator", "Simulation", "make_bodies",
    "make_initial_conditions",
]  # fmt: skip
