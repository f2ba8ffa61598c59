"""What a live view shows of a flow: slices and, of three dimensions, a volume, coloured by speed,
density, or a component of the velocity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import lanewise as lw
from lanewise.live.fields import DerivedField, FieldScene
from lanewise.live.scenes import Scene
from lanewise.sims.common.devices import module_of
from lanewise.support.errors import InputError
from lanewise.support.whole_steps import WholeSteps

if TYPE_CHECKING:
    from lanewise.sims.lbm.run import SimulatedFlow
    from lanewise.sims.lbm.simulation import Simulation


@lw.threadwise
def lengths(i: lw.index, velocity: lw.Array2[lw.f32], length: lw.Array1[lw.f32]):
    """Of the rows."""
    square = 0.0
    for k in range(velocity.shape[1]):
        square += velocity[i, k] * velocity[i, k]
    length[i] = lw.sqrt(square)


def speeds(velocity: Any) -> Any:
    """(n,) of (n, 2) or (n, 3), in float32."""
    module = module_of(velocity)
    made = module.empty(len(velocity), np.float32)
    lengths(module.asarray(velocity, np.float32), made, grid=len(velocity))
    return made


def scene(simulation: Simulation) -> Scene:
    """The sites of a flow."""
    if simulation.mesh is not None:
        raise InputError("a view shows a flow on one device; this one lies on a mesh")
    shape = tuple(simulation.settings.shape)

    read = simulation._moments  # pyright: ignore[reportPrivateUsage]

    def component(axis: int) -> DerivedField:
        def one(_: Any, velocity: Any) -> Any:
            return velocity[:, axis]

        return DerivedField(read, one)

    def speed(_: Any, velocity: Any) -> Any:
        return speeds(velocity)

    def density(excess: Any, _: Any) -> Any:
        return excess + 1

    fields = {"speed": DerivedField(read, speed), "density": DerivedField(read, density)}
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
