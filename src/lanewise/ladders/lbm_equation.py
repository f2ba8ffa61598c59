"""Equation 1 of the paper on branch splitting, from what can be measured before anything is split."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lanewise.launch.executable import Executable
from lanewise.models.branch_splitting import Branch, branch_splitting_speedup
from lanewise.models.devices import DeviceModel
from lanewise.models.occupancy import LIMITS, occupancy
from lanewise.models.predict import ALONE_SECONDS
from lanewise.patterns.sitewise.passes import splitting as site_splitting
from lanewise.patterns.sitewise.sites import Sites
from lanewise.target import is_gpu


@dataclass(frozen=True, slots=True)
class Part:
    """A kernel that splitting makes: its name, the kind of its sites, their share of all, and its occupancy."""

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
        terms = "; ".join(f"{n}: t = {b.seconds * 1e6:.3g} us, rho = {b.occupancy:g}" for n, b in self.branches.items())
        return {
            "equation_1": self.speedup, "equation_1_T": self.branched_seconds, "equation_1_rho_min": self.branched_occupancy,
            "equation_1_sigma": self.launch_seconds, "equation_1_branches": terms,
        }  # fmt: skip


def occupancies(executable: Executable, arch: str | None) -> tuple[float, ...]:
    """The occupancy of every kernel by the registers that the compiler gave it; 1 on a CPU (`arch` None), which has none."""
    if arch is None:
        return (1.0,) * len(executable.program.kernels)
    limits = arch if arch in LIMITS else max(LIMITS, key=lambda a: int(a[3:]))
    found: list[float] = []
    for kernel, cubin in zip(executable.program.kernels, executable.cubins, strict=True):
        assert kernel.grid is not None
        r = cubin.resources
        found.append(occupancy(limits, kernel.grid.threads, r.registers, r.shared_bytes))
    return tuple(found)


def parts_of(sites: Sites, executable: Executable, arch: str | None) -> tuple[Part, ...]:
    """The kernels of a split step that have any sites."""
    known = {p.label: p for p in site_splitting.parts(tuple(sorted(sites.present)))}
    found: list[Part] = []
    for kernel, rho in zip(executable.program.kernels, occupancies(executable, arch), strict=True):
        label = kernel.name.rpartition("_")[2]
        kind = known[label].kind
        count = sites.count - sites.special if kind is None else len(sites.part(kind))
        if count:
            found.append(Part(label, max(kind or 0, 0), count / sites.count, rho))
    return tuple(found)


def equation_1(
    together: float,
    branched_occupancy: float,
    parts: tuple[Part, ...],
    only: Callable[[int], float],
    model: DeviceModel,
) -> Equation1:
    """What splitting the branches of a kernel should gain.

    together: T, the measured time of a step in one kernel. only: the measured time of that same kernel when (nearly) all sites take the
    branch of a kind; t of a branch is its share of that. rho come from registers. sigma is, by the model, a launch more for every kernel
    but the first.
    """
    launch = model.graph_launch_seconds if is_gpu(model.kind) else ALONE_SECONDS
    branches = {p.name: Branch(p.share * only(p.kind), p.occupancy) for p in parts}
    added = launch * (len(parts) - 1)
    factor = branch_splitting_speedup(list(branches.values()), branched_occupancy, added, together)
    return Equation1(factor, together, branches, branched_occupancy, added)
