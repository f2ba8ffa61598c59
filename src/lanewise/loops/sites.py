"""Steppers of lattice sites as tasks: what they launch depends on where the sites are in a
cycle.
"""

from __future__ import annotations

from collections.abc import Sequence

from lanewise.loops.task import States, Task
from lanewise.patterns.sitewise.calls import SiteStepper, looks
from lanewise.patterns.sitewise.couple import CoupledStepper
from lanewise.runtime.programs import NamedLaunch


def stepper_task(stepper: SiteStepper) -> Task:
    """One step of some sites, behind what is observed of them."""
    stepper.check_observed()
    sites = stepper.sites

    def launches(states: States) -> Sequence[NamedLaunch]:
        fresh, step = states[id(sites)]
        return [*looks(stepper.observed, step, fresh), *stepper.launches(step, fresh)]

    return Task(stepper.name, "sitewise", launches, sites.device, (sites,))


def coupled_task(coupled: CoupledStepper) -> Task:
    """One step of several sites, all observed first."""

    def launches(states: States) -> Sequence[NamedLaunch]:
        return coupled.launches([states[id(sites)] for sites in coupled.sites])

    return Task(coupled.name, "sitewise", launches, coupled.sites[0].device, coupled.sites)
