"""One step of an integrator as bound calls, by the stages of profiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lanewise as lw
from lanewise.profiling.staged_call import Staged
from lanewise.sims.gravity.forces import Force
from lanewise.sims.gravity.integrators import Integrator
from lanewise.sims.gravity.physics import Physics


def step_calls(
    physics: Physics,
    integrator: Integrator,
    bodies: lw.RecordArray,
    gravity: lw.Call,
    forces: Sequence[Force],
    counts: Any,
    dt: float,
    g: float,
) -> list[Staged]:
    """The kicks, drifts and forces of a step of `dt`, in order; `g` is the gravitational constant.

    `gravity` has the accelerations of the current positions for G = 1 in its result, before the
    step and after it, and `forces` theirs; `counts`: see `Watch`.
    """
    acceleration, kicks = gravity.results[0], integrator.kicks
    own = [force.acceleration for force in forces]

    def pushes(kick: float) -> list[Staged]:
        return [
            Staged("integrate", physics.push.bind(bodies, call.results[0], kick * dt))
            for call in own
        ]

    calls: list[Staged] = []
    # there is one kick more than drifts
    for kick, drift in zip(kicks, integrator.drifts, strict=False):
        calls += pushes(kick)
        calls.append(
            Staged(
                "integrate",
                physics.kick_drift.bind(bodies, acceleration, kick * dt * g, drift * dt),
            )
        )
        calls += [Staged("forces", call) for call in (gravity, *own)]
    last = physics.kick.bind(bodies, acceleration, counts, kicks[-1] * dt * g, out=counts)
    return [*calls, *pushes(kicks[-1]), Staged("integrate", last)]
