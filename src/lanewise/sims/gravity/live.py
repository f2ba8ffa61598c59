"""What a live view shows of gravity: the bodies, coloured by mass, speed or kinetic energy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lanewise as lw
from lanewise.live.clouds import CloudScene, Shown
from lanewise.live.scenes import Scene
from lanewise.support.whole_steps import WholeSteps

if TYPE_CHECKING:
    from lanewise.sims.gravity.run import SimulatedBodies
    from lanewise.sims.gravity.simulation import Simulation

BODIES = Shown(
    position="e.position",
    values={
        "speed": "length(e.velocity)",
        "mass": "e.mass",
        "kinetic energy": "0.5 * e.mass * dot(e.velocity, e.velocity)",
    },
)


ABOUT = {"title": "gravity", "product": "gravity", "up": [0, 0, 1], "flat": False}


def scene(simulation: Simulation) -> Scene:
    """The bodies of a simulation."""
    return CloudScene(simulation.bodies, BODIES, ABOUT, lambda: (simulation.step, simulation.time))


def scene_of_bodies(bodies: lw.RecordArray, time: float) -> Scene:
    """Bodies that stay as they are."""
    return CloudScene(bodies, BODIES, ABOUT, lambda: (0, time))


def scene_of(state: SimulatedBodies) -> Scene:
    """Those of a run."""
    return scene(state.simulation)


def steps_of(state: SimulatedBodies) -> WholeSteps:
    """Between which it is looked at."""
    return state.simulation.whole
