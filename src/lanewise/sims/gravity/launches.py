"""One step of an integrator as launches whose memory and numbers are bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lanewise as lw
from lanewise.runtime.programs import NamedLaunch
from lanewise.sims.gravity.forces import Force
from lanewise.sims.gravity.integrators import Integrator
from lanewise.sims.gravity.physics import Physics


def step_launches(
    physics: Physics, integrator: Integrator, bodies: lw.RecordArray, gravity: lw.Call, forces: Sequence[Force], counts: Any,
    dt: float, g: float,
) -> list[NamedLaunch]:  # fmt: skip
    """The kicks, drifts and forces of a step of `dt`, in order; `g` is the gravitational constant.

    `gravity` has the accelerations of the current positions for G = 1 in its result, before the step and after it, and
    `forces` theirs; `counts`: see `Watch`.
    """
    acceleration, kicks = gravity.results[0], integrator.kicks
    own = [force.acceleration for force in forces]

    def pushes(kick: float) -> list[NamedLaunch]:
        calls = [physics.push.bind(bodies, call.results[0], kick * dt) for call in own]
        return [NamedLaunch("integrate", "push", call.launch) for call in calls]

    launches: list[NamedLaunch] = []
    for kick, drift in zip(kicks, integrator.drifts, strict=False):  # there is one kick more than drifts
        moved = physics.kick_drift.bind(bodies, acceleration, kick * dt * g, drift * dt)
        launches += pushes(kick)
        launches.append(NamedLaunch("integrate", "kick_drift", moved.launch))
        launches += [NamedLaunch("forces", call.compiled.name, call.launch) for call in (gravity, *own)]
    last = physics.kick.bind(bodies, acceleration, counts, kicks[-1] * dt * g, out=counts)
    return [*launches, *pushes(kicks[-1]), NamedLaunch("integrate", "kick", last.launch)]
