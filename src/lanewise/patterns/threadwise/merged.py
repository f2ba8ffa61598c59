"""The passes that make a good kernel of the naive one, in their order."""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.ir import nodes as ir
from lanewise.ir.pattern import Checked
from lanewise.passes import even_loops
from lanewise.passes.points import joining, lengths, merging, sharing, staging, unrolling
from lanewise.passes.points.shape import Shape, shape_of
from lanewise.planning.plan import NEUTRAL, CompletePlan
from lanewise.support.errors import PlanError

FIELDS = (
    "targets",
    "rows",
    "layers",
    "across",
    "down",
    "adjacent",
    "neighbours",
    "order",
    "tile",
    "prefetch",
    "unroll",
)


def is_naive(plan: CompletePlan) -> bool:
    """Whether a plan asks for a thread for each point, and nothing else."""
    return all(getattr(plan, name) == getattr(NEUTRAL, name) for name in FIELDS)


@dataclass(frozen=True, slots=True)
class StagedKernel:
    """A kernel before the rounds of its tiles are written out. joined: blocks in the inside share
    them with those at edges.
    """

    kernel: ir.Kernel
    shape: Shape
    indices: tuple[str, ...]
    joined: bool

    def most_length(self, unroll: int) -> int:
        """What `written_out` gives is no longer than that."""
        return lengths.most_length(self.kernel, unroll, joined=self.joined)

    def written_out(self, unroll: int, checked: Checked) -> ir.Kernel:
        """The rounds of a tile so many times, and wide accesses."""
        kernel = self.kernel
        if unroll != 1:  # after staging, which makes the loops over rounds
            kernel = checked("unrolling", unrolling.apply(kernel, unroll, joined=self.joined))
        return checked(
            "wide accesses", sharing.apply(kernel, self.shape, self.indices, joined=self.joined)
        )


def merged(kernel: ir.Kernel, plan: CompletePlan, checked: Checked) -> ir.Kernel:
    """Blocks whose threads have several points, tiles in shared memory, wide accesses."""
    return staged(kernel, plan, checked).written_out(plan.unroll, checked)


def staged(
    kernel: ir.Kernel, plan: CompletePlan, checked: Checked, most_bytes: int | None = None
) -> StagedKernel:
    """The same before rounds are written out. most_bytes: of all tiles; more raise `PlanError` as
    soon as they are met.
    """
    loops, _ = merging.nest(kernel)
    indices = tuple(loop.variable for loop in loops)
    shape = shape_of(plan, len(loops))
    if plan.tile:  # threads of a block fill it in rounds that they share
        kernel = even_loops.apply(kernel, shape)
    kernel = checked(
        "thread merging",
        merging.apply(kernel, shape, plan.order, plan.min_blocks, early=not plan.tile),
    )
    if plan.tile:
        kernel = checked(
            "shared-memory tiles",
            staging.apply(kernel, shape, indices, plan.tile, plan.prefetch, most_bytes),
        )
    elif plan.prefetch != "none":
        raise PlanError(
            f"Plan(prefetch={plan.prefetch!r}): only tiles are loaded ahead; choose a tile"
        )
    joined = None
    # loads that are made ahead would be told apart between those who compute
    if plan.tile and plan.prefetch == "none":
        joined = joining.apply(kernel)
    if joined is not None:
        kernel = checked("inside and edges together", joined)
    return StagedKernel(kernel, shape, indices, joined is not None)
