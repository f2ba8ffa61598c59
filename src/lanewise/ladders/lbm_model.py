"""Equation 1 of the paper on branch splitting: what splitting should gain, and from which terms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lanewise.models import ALONE_SECONDS, Branch, DeviceModel, branch_splitting_speedup


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
