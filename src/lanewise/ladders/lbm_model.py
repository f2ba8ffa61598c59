"""What the models say of one step of a flow: its time, and equation 1 of the paper for branches in kernels of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lanewise.ir import nodes as ir
from lanewise.ir.names import COUNT
from lanewise.models.branch_splitting import Branch, branch_splitting_speedup
from lanewise.models.devices import DeviceModel, device_model
from lanewise.models.predict import Prediction, predict
from lanewise.passes import site_splitting
from lanewise.patterns.links import EXTENTS, PLANE
from lanewise.runtime.executable import Executable
from lanewise.runtime.nvrtc import Resources
from lanewise.sites.array import Sites


@dataclass(frozen=True, slots=True, eq=False)
class SiteModel:
    """A compiled step and the numbers that its kernels run over; `device` is what it is predicted for."""

    executable: Executable
    environment: Mapping[str, Any]
    device: DeviceModel

    @property
    def kernels(self) -> tuple[tuple[ir.Kernel, Resources], ...]:
        """The kernels that have any work, and what the compiler says of them."""
        pairs = zip(self.executable.program.kernels, self.executable.cubins, strict=True)
        return tuple((k, c.resources) for k, c in pairs if self.environment[k.counts[0].name])

    def seconds(self) -> float:
        """The time of a step within a graph."""
        return sum(self.kernel(k, r).seconds for k, r in self.kernels)

    def kernel(self, kernel: ir.Kernel, resources: Resources) -> Prediction:
        """The time of one of the kernels, if it took these resources."""
        program = replace(self.executable.program, kernels=(kernel,))
        return predict(program, self.environment, self.device, [resources], in_graph=True)


def site_model(sites: Sites, executable: Executable, values: Mapping[str, Any]) -> SiteModel | None:
    """The model of a step; None on a CPU, whose model knows no spans of sites."""
    if not sites.device.startswith("cuda"):
        return None
    return SiteModel(executable, environment_of(sites, values), device_model(sites.device))


def environment_of(sites: Sites, values: Mapping[str, Any]) -> dict[str, Any]:
    """All counts and values of a step by their names in the IR."""
    found: dict[str, Any] = {COUNT: sites.count, PLANE: sites.shape[-1] * sites.shape[-2]}
    found |= dict(zip(EXTENTS, reversed(sites.shape), strict=False))
    found |= {p.count: len(sites.part(p.kind)) for p in site_splitting.parts(tuple(sorted(sites.present)))}
    for name, value in values.items():
        parts = [value] if np.ndim(value) == 0 else list(value)
        names = [name] if np.ndim(value) == 0 else [f"{name}.{axis}" for axis in "xyz"]
        found |= dict(zip(names, parts, strict=False))
    return found


@dataclass(frozen=True, slots=True)
class Equation1:
    """Equation 1 with its terms: T, the t_i in seconds and rho_i by branch, rho_min, sigma."""

    speedup: float
    branched_seconds: float
    branches: tuple[tuple[str, Branch], ...]
    branched_occupancy: float
    launch_seconds: float


def equation_1(together: SiteModel, apart: SiteModel) -> Equation1 | None:
    """What splitting should gain, before anything has run.

    T and t_i are the model's times, t_i of a branch's kernel with the registers of the branched one: as it is before it is split. rho
    are occupancies by the registers that the compiler gave. sigma is a launch within a graph for each kernel. None when a kernel has
    no occupancy, or nothing was split.
    """
    (branched, resources), *more = together.kernels
    whole, launch = together.kernel(branched, resources), together.device.graph_launch_seconds
    if more or whole.occupancy is None or len(apart.kernels) < 2:
        return None
    branches: list[tuple[str, Branch]] = []
    for kernel, own in apart.kernels:
        alone = apart.kernel(kernel, own).occupancy
        if alone is None:
            return None
        before = replace(own, registers=max(own.registers, resources.registers))
        branches.append((kernel.name, Branch(apart.kernel(kernel, before).seconds - launch, alone.share)))
    added = launch * len(branches)
    factor = branch_splitting_speedup([b for _, b in branches], whole.occupancy.share, added, whole.seconds)
    return Equation1(factor, whole.seconds, tuple(branches), whole.occupancy.share, added)
