"""What is expected of one step of a flow: by the model of a device, and by equation 1 of the paper
on branch splitting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lanewise.explanation.site_facts import operations_of
from lanewise.explanation.sites import traffic_of
from lanewise.ir.names import COUNT
from lanewise.launch.executable import Executable
from lanewise.models.devices import DeviceModel
from lanewise.models.formulas import Branch, branch_splitting_speedup
from lanewise.models.predict import ALONE_SECONDS, predict
from lanewise.models.roofline import step_time
from lanewise.patterns.sitewise.links import box_counts
from lanewise.patterns.sitewise.passes import splitting as site_splitting
from lanewise.patterns.sitewise.sites import Sites
from lanewise.runtime.occupancy import LIMITS, occupancy


def predicted_seconds(
    sites: Sites, executable: Executable, values: Mapping[str, Any], model: DeviceModel
) -> float | None:
    """The time of the next step within a graph; None for what the models do not see.

    They know how often a kernel runs, not which sites a list or a span holds; and they count
    branches both ways, which is too much where sites at walls put their populations elsewhere than
    those of the bulk. Where many sites are special, every population has a place of its
    own, of which they know nothing: there the model of what sites move foresees the time.
    """
    (kernel, *more), phase = executable.program.kernels, sites.phase
    if not model.target.has_blocks or more or phase.put_links or len(sites.form.phases) > 1:
        return None
    if sites.dense:
        reference, fluid = executable.program.reference, sites.count - sites.wall_sites
        traffic = traffic_of(
            reference, sites.count, fluid, sites.special, len(sites.copies), dense=True
        )
        return step_time(traffic, *operations_of(reference), model)[2]
    resources = [c.resources for c in executable.cubins]
    assert kernel.grid is not None
    return predict(
        executable.program, environment_of(sites, values), model, resources, in_graph=True
    ).seconds


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


@dataclass(frozen=True, slots=True)
class SplitKernel:
    """A kernel that splitting makes: its name, the kind of its sites, their share of all, and its
    occupancy.
    """

    name: str
    kind: int
    share: float
    occupancy: float


@dataclass(frozen=True, slots=True)
class Equation1:
    """Equation 1 with its terms: T; t and rho by branch; rho_min; sigma. Times in seconds."""

    speedup: float
    branched_seconds: float
    branches: Mapping[str, Branch]
    branched_occupancy: float
    launch_seconds: float

    def as_extra(self) -> dict[str, float | int | str | None]:
        """The keys of a rung."""
        terms = "; ".join(
            f"{n}: t = {b.seconds * 1e6:.3g} us, rho = {b.occupancy:g}"
            for n, b in self.branches.items()
        )
        return {
            "equation_1": self.speedup,
            "equation_1_T": self.branched_seconds,
            "equation_1_rho_min": self.branched_occupancy,
            "equation_1_sigma": self.launch_seconds,
            "equation_1_branches": terms,
        }


def occupancies(executable: Executable, arch: str | None) -> tuple[float, ...]:
    """The occupancy of every kernel by the registers that the compiler gave it; 1 on a CPU (`arch`
    None), which has none.
    """
    if arch is None:
        return (1.0,) * len(executable.program.kernels)
    limits = arch if arch in LIMITS else max(LIMITS, key=lambda a: int(a[3:]))
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


def equation_1(
    together: float,
    branched_occupancy: float,
    parts: tuple[SplitKernel, ...],
    only: Callable[[int], float],
    model: DeviceModel,
) -> Equation1:
    """What splitting the branches of a kernel should gain.

    together: T, the measured time of a step in one kernel. only: the measured time of that same
    kernel when (nearly) all sites take the branch of a kind; t of a branch is its share of that.
    rho come from registers. sigma is, by the model, a launch more for every kernel but the first.
    """
    launch = model.graph_launch_seconds if model.target.has_blocks else ALONE_SECONDS
    branches = {p.name: Branch(p.share * only(p.kind), p.occupancy) for p in parts}
    added = launch * (len(parts) - 1)
    factor = branch_splitting_speedup(list(branches.values()), branched_occupancy, added, together)
    return Equation1(factor, together, branches, branched_occupancy, added)
