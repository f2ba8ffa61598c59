"""What a live view shows of gravity: the bodies, coloured by mass, speed or kinetic energy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lanewise as lw
from lanewise.live.clouds import CloudScene, Shown
from lanewise.live.groups import Level, NestedGroups
from lanewise.live.scenes import Scene
from lanewise.patterns.search.tree.shape import TreeShape
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


DEPTH = 6  # of the boxes of a tree that are shown: at most 64 at the last level
ABOUT = {"title": "gravity", "product": "gravity", "up": [0, 0, 1], "flat": False}


def scene(simulation: Simulation) -> Scene:
    """The bodies of a simulation, and the boxes of its tree."""
    return CloudScene(
        simulation.bodies, BODIES, ABOUT, lambda: (simulation.step, simulation.time),
        groups=groups_of(simulation),
    )  # fmt: skip


def groups_of(simulation: Simulation) -> NestedGroups | None:
    """The groups of its tree, in the order of its last forces; None where every pair is met."""
    if simulation.search is None:
        return None
    shape, levels = TreeShape(len(simulation.bodies), simulation.search.leaf), list[Level]()
    for _, first, leaves in shape.levels():
        levels.append(shape.places(first, leaves))
        if len(levels) > DEPTH:
            break
    order = lambda: simulation._order_there  # noqa: E731  # pyright: ignore[reportPrivateUsage]
    return NestedGroups(levels, order)


def scene_of_bodies(bodies: lw.RecordArray, time: float) -> Scene:
    """Bodies that stay as they are."""
    return CloudScene(bodies, BODIES, ABOUT, lambda: (0, time))


def scene_of(state: SimulatedBodies) -> Scene:
    """Those of a run."""
    return scene(state.simulation)


def steps_of(state: SimulatedBodies) -> WholeSteps:
    """Between which it is looked at."""
    return state.simulation.whole
