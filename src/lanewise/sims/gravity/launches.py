"""One step of an integrator as launches whose memory and numbers are bound."""

from __future__ import annotations

from typing import Any

from lanewise.launch.compiled import Call
from lanewise.records.arrays import RecordArray
from lanewise.runtime.programs import NamedLaunch
from lanewise.sims.gravity.integrators import Integrator
from lanewise.sims.gravity.physics import Physics


def step_launches(
    physics: Physics, integrator: Integrator, bodies: RecordArray, force: Call, counts: Any, dt: float, g: float
) -> list[NamedLaunch]:
    """The kicks, drifts and forces of a step of `dt`, in order; `g` is the gravitational constant.

    `force` has the accelerations of the current positions for G = 1 in its result, before the step and after it; `counts`: see `Watch`.
    """
    acceleration, kicks = force.results[0], integrator.kicks
    launches: list[NamedLaunch] = []
    for kick, drift in zip(kicks, integrator.drifts, strict=False):  # there is one kick more than drifts
        moved = physics.kick_drift.bind(bodies, acceleration, kick * dt * g, drift * dt)
        launches.append(NamedLaunch("integrate", "kick_drift", moved.launch))
        launches.append(NamedLaunch("forces", force.compiled.name, force.launch))
    last = physics.kick.bind(bodies, acceleration, counts, kicks[-1] * dt * g, out=counts)
    launches.append(NamedLaunch("integrate", "kick", last.launch))
    return launches
