"""What the ladder `lbm` knows of the inside of sites: how a step marks, splits and addresses them.

The one place of the ladder for it: its measurements are of decisions that no public name takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lanewise.explanation.site_facts import operations_of
from lanewise.explanation.sites import traffic_of
from lanewise.ir.names import COUNT
from lanewise.ladders.lbm_flow import SOLID
from lanewise.ladders.lbm_model import SplitKernel
from lanewise.launch.executable import Executable
from lanewise.models import DeviceModel, predicted
from lanewise.models.roofline import step_time
from lanewise.patterns.sitewise.calls import SiteCall
from lanewise.patterns.sitewise.flags import make_marks
from lanewise.patterns.sitewise.links import box_counts
from lanewise.patterns.sitewise.passes import splitting as site_splitting
from lanewise.patterns.sitewise.sites import Sites
from lanewise.primitives.copying import copy_bandwidth
from lanewise.runtime.occupancy import limits_of, occupancy
from lanewise.sims.common.devices import bring, to_host

__all__ = [
    "SiteCall",
    "Sites",
    "copy_bandwidth",
    "mark_densely",
    "occupancies",
    "parts_of",
    "predicted_seconds",
    "set_departing",
]


def set_departing(sites: Sites, populations: npt.NDArray[np.float32]) -> None:
    """As if these populations had left the sites in a step before."""
    sites.step, sites.fresh = 0, False
    for q in range(sites.lattice.size):
        line = np.ascontiguousarray(populations[q].reshape(-1)).astype(sites.storage.dtype)
        setattr(sites.current, f"q{q}", bring(line, sites.device))


def mark_densely(sites: Sites, dense: bool) -> None:
    """Have the kernel that lanewise takes where many sites are special, or the one for few: a
    smaller box stands for a larger one.
    """
    if sites.dense == dense:
        return
    sites.dense = dense
    sites.marks = None if dense else bring(make_marks(to_host(sites.flags)), sites.device)
    if sites.wall_sites:
        solid = (sites.kinds == SOLID).reshape(-1)
        sites.solids = None if dense else bring(make_marks(solid), sites.device)


def predicted_seconds(
    sites: Sites, executable: Executable, values: Mapping[str, Any], model: DeviceModel
) -> float | None:
    """The time of the next step within a graph; None for what the models do not see.

    They know how often a kernel runs, not which sites a list or a span holds; and they count
    branches both ways, which is too much where sites at walls put their populations elsewhere than
    those of the bulk. Where many sites are special, every population has a separate
    place, of which they know nothing: there the model of what sites move foresees the time.
    """
    phase, several = sites.phase, len(executable.program.kernels) > 1
    if not model.target.has_blocks or several or phase.put_links or len(sites.form.phases) > 1:
        return None
    if sites.dense:
        reference, fluid = executable.program.reference, sites.count - sites.wall_sites
        traffic = traffic_of(
            reference, sites.count, fluid, sites.special, len(sites.copies), dense=True
        )
        return step_time(traffic, *operations_of(reference), model)[2]
    return predicted(executable, environment_of(sites, values), model).seconds


def environment_of(sites: Sites, values: Mapping[str, Any]) -> dict[str, Any]:
    """All counts and values of a step by their names in the IR."""
    environment: dict[str, Any] = {COUNT: sites.count, **box_counts(sites.shape, sites.row_block)}
    for name, value in values.items():
        if np.ndim(value) == 0:
            environment[name] = value
        else:
            environment |= {
                f"{name}.{axis}": part for axis, part in zip("xyz", value, strict=False)
            }
    return environment


def occupancies(executable: Executable, arch: str | None) -> tuple[float, ...]:
    """The occupancy of every kernel by the registers that the compiler gave it; 1 on a CPU (`arch`
    None), which has none.
    """
    if arch is None:
        return (1.0,) * len(executable.program.kernels)
    limits = limits_of(arch)
    shares: list[float] = []
    for kernel, cubin in zip(executable.program.kernels, executable.cubins, strict=True):
        assert kernel.grid is not None
        r = cubin.resources
        shares.append(occupancy(limits, kernel.grid.threads, r.registers, r.shared_bytes))
    return tuple(shares)


def parts_of(sites: Sites, executable: Executable, arch: str | None) -> tuple[SplitKernel, ...]:
    """The kernels of a split step that have any sites."""
    by_label = {p.label: p for p in site_splitting.PARTS}
    present: list[SplitKernel] = []
    for kernel, rho in zip(executable.program.kernels, occupancies(executable, arch), strict=True):
        label = kernel.name.rpartition("_")[2]
        kind = by_label[label].kind
        count = sites.count - sites.special if kind is None else len(sites.part(kind))
        if count:
            present.append(SplitKernel(label, max(kind or 0, 0), count / sites.count, rho))
    return tuple(present)
