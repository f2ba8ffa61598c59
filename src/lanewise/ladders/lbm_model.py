"""What the model of a device says of the time of one step of a flow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lanewise.explanation.sites import operations_of, traffic_of
from lanewise.ir.names import COUNT
from lanewise.launch.executable import Executable
from lanewise.models.devices import DeviceModel
from lanewise.models.predict import predict
from lanewise.models.streaming import step_time
from lanewise.patterns.sitewise.links import box_counts
from lanewise.patterns.sitewise.sites import Sites
from lanewise.target import is_gpu


def predicted_seconds(
    sites: Sites, executable: Executable, values: Mapping[str, Any], model: DeviceModel
) -> float | None:
    """The time of the next step within a graph; None for what the models do not see.

    They know how often a kernel runs, not which sites a list or a span holds; and they count branches both ways, which is too much where
    sites at walls put their populations elsewhere than those of the bulk. Where many sites are special, every population has a place of its
    own, of which they know nothing: there the model of what sites move foresees the time.
    """
    (kernel, *more), phase = executable.program.kernels, sites.phase
    if not is_gpu(model.kind) or more or phase.put_links or len(sites.form.phases) > 1:
        return None
    if sites.dense:
        reference, fluid = executable.program.reference, sites.count - sites.wall_sites
        traffic = traffic_of(reference, sites.count, fluid, sites.special, len(sites.copies), dense=True)
        return step_time(traffic, *operations_of(reference), model)[1]
    resources = [c.resources for c in executable.cubins]
    assert kernel.grid is not None
    return predict(executable.program, environment_of(sites, values), model, resources, in_graph=True).seconds


def environment_of(sites: Sites, values: Mapping[str, Any]) -> dict[str, Any]:
    """All counts and values of a step by their names in the IR."""
    found: dict[str, Any] = {COUNT: sites.count, **box_counts(sites.shape, sites.row_block)}
    for name, value in values.items():
        if np.ndim(value) == 0:
            found[name] = value
        else:
            found |= {f"{name}.{axis}": part for axis, part in zip("xyz", value, strict=False)}
    return found
