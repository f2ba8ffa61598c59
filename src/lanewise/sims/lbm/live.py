"""What a live view shows of a flow: slices and, of three dimensions, a volume, coloured by speed,
density, or a component of the velocity.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from lanewise.live.fields import FieldScene
from lanewise.live.scenes import Scene
from lanewise.sims.common.devices import module_of
from lanewise.support.errors import InputError
from lanewise.support.whole_steps import WholeSteps

if TYPE_CHECKING:
    from lanewise.sims.lbm.run import SimulatedFlow
    from lanewise.sims.lbm.simulation import Simulation


def scene(simulation: Simulation) -> Scene:
    """The sites of a flow."""
    if simulation.mesh is not None:
        raise InputError("a view shows a flow on one device; this one lies on a mesh")
    shape = tuple(simulation.settings.shape)

    def speed() -> Any:
        velocity = simulation.velocity
        # by component: a sum over an axis of two or three takes ten times as long
        squares = sum(velocity[..., k] * velocity[..., k] for k in range(len(shape)))
        return module_of(velocity).sqrt(squares)

    def component(axis: int) -> Callable[[], Any]:
        return lambda: simulation.velocity[..., axis]

    fields: dict[str, Callable[[], Any]] = {"speed": speed, "density": lambda: simulation.density}
    fields |= {f"velocity {'xyz'[k]}": component(k) for k in range(len(shape))}
    geometry = simulation.geometry
    solid = None if geometry.mask is None else np.isin(geometry.mask, list(geometry.walls))
    about = {"title": "flow", "product": "lbm", "up": [0, 1, 0]}
    moment = lambda: (simulation.step, float(simulation.step))  # noqa: E731
    return FieldScene(shape, simulation.settings.device, fields, about, moment, solid)


def scene_of(state: SimulatedFlow) -> Scene:
    """Those of a run."""
    return scene(state.simulation)


def steps_of(state: SimulatedFlow) -> WholeSteps:
    """Between which it is looked at."""
    return state.simulation.whole
