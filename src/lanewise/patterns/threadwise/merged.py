"""The passes that make a good kernel of the naive one, in their order."""

from __future__ import annotations

from lanewise.ir import nodes as ir
from lanewise.ir.pattern import Checked
from lanewise.passes import even_loops
from lanewise.passes.points import joining, merging, sharing, staging, unrolling
from lanewise.passes.points.shape import shape_of
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


def merged(kernel: ir.Kernel, plan: CompletePlan, checked: Checked) -> ir.Kernel:
    """Blocks whose threads have several points, tiles in shared memory, wide accesses."""
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
            "shared-memory tiles", staging.apply(kernel, shape, indices, plan.tile, plan.prefetch)
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
    if plan.unroll != 1:  # after staging, which makes the loops over rounds
        kernel = checked(
            "unrolling", unrolling.apply(kernel, plan.unroll, joined=joined is not None)
        )
    return checked(
        "wide accesses", sharing.apply(kernel, shape, indices, joined=joined is not None)
    )
