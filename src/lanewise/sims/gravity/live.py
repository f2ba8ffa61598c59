"""What a live view shows of gravity: the bodies, coloured by mass, speed or kinetic energy."""

from __future__ import annotations

from lanewise.live.clouds import CloudScene, Shown
from lanewise.live.scenes import Scene
from lanewise.sims.gravity.run import SimulatedBodies
from lanewise.sims.gravity.simulation import Simulation
from lanewise.support.whole_steps import WholeSteps

BODIES = Shown(
    position="e.position",
    values={
        "speed": "length(e.velocity)",
        "mass": "e.mass",
        "kinetic energy": "0.5 * e.mass * dot(e.velocity, e.velocity)",
    },
)


def scene(simulation: Simulation) -> Scene:
    """The bodies of a simulation."""
    about = {"title": "gravity", "product": "gravity", "up": [0, 0, 1], "flat": False}
    return CloudScene(simulation.bodies, BODIES, about, lambda: (simulation.step, simulation.time))


def scene_of(state: SimulatedBodies) -> Scene:
    """Those of a run."""
    return scene(state.simulation)


def steps_of(state: SimulatedBodies) -> WholeSteps:
    """Between which it is looked at."""
    return state.simulation.whole
