"""What a live view shows of a flock: its agents as arrows, coloured by speed or the angle of their
flight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lanewise.live.clouds import CloudScene, Shown
from lanewise.live.scenes import Scene
from lanewise.support.whole_steps import WholeSteps

if TYPE_CHECKING:
    from lanewise.sims.boids.flock import Flock
    from lanewise.sims.boids.run import SimulatedFlock

AGENTS = Shown(
    position="e.position",
    heading="e.forward",
    values={"speed": "e.speed", "climb": "e.forward.z"},
)
LENGTH = 1.5  # of an arrow, in radii of an agent


def scene(flock: Flock) -> Scene:
    """The agents of a flock."""
    world = flock.settings.world
    domain = [[-world] * 3, [world] * 3]
    about: dict[str, Any] = {
        "title": "flock", "product": "boids", "up": [0, 0, 1], "flat": False, "domain": domain,
        "arrow": LENGTH * flock.settings.parameters.agent_radius,
    }  # fmt: skip
    return CloudScene(
        flock.boids, AGENTS, about, lambda: (flock.step, flock.time), lambda: flock.places
    )


def scene_of(state: SimulatedFlock) -> Scene:
    """Those of a run."""
    return scene(state.flock)


def steps_of(state: SimulatedFlock) -> WholeSteps:
    """Between which it is looked at."""
    return state.flock.whole
