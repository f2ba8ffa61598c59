"""The passes that make a good kernel of the naive one, in their order."""

from __future__ import annotations

from lanewise.errors import PlanError
from lanewise.ir import nodes as ir
from lanewise.ir.pattern import Checked
from lanewise.passes.points import joining, merging, sharing, staging, unrolling
from lanewise.passes.points.shape import Shape
from lanewise.plan import NEUTRAL, Decisions

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
WIDE = 256  # threads of a block, beyond which 32 are neighbours


def is_naive(plan: Decisions) -> bool:
    """Whether a plan asks for a thread for each point, and nothing else."""
    return all(getattr(plan, name) == getattr(NEUTRAL, name) for name in FIELDS)


def merged(kernel: ir.Kernel, plan: Decisions, checked: Checked) -> ir.Kernel:
    """Blocks whose threads have several points, tiles in shared memory, wide accesses."""
    loops, _ = merging.nest(kernel)
    indices = tuple(loop.variable for loop in loops)
    shape = shape_of(plan, len(loops))
    kernel = checked("thread merging", merging.apply(kernel, shape, plan.order, plan.min_blocks, early=not plan.tile))
    if plan.tile:
        kernel = checked("shared-memory tiles", staging.apply(kernel, shape, indices, plan.tile, plan.prefetch))
    elif plan.prefetch != "none":
        raise PlanError(f"Plan(prefetch={plan.prefetch!r}): only tiles are loaded ahead; choose a tile")
    joined = None
    if plan.tile and plan.prefetch == "none":  # loads that are made ahead would be told apart between those who compute
        joined = joining.apply(kernel)
    if joined is not None:
        kernel = checked("inside and edges together", joined)
    if plan.unroll != 1:  # after staging, which makes the loops over rounds
        kernel = checked("unrolling", unrolling.apply(kernel, plan.unroll, joined=joined is not None))
    return checked("wide accesses", sharing.apply(kernel, shape, indices, joined=joined is not None))


def shape_of(plan: Decisions, rank: int) -> Shape:
    """How a plan divides the points of an index space; raises `PlanError` for threads that make no rows."""
    fast = 0 if plan.neighbours == "first" else rank - 1
    across = plan.across or (
        plan.block if rank == 1 else 16 if plan.block <= WIDE and rank == 2 else min(32, plan.block)
    )
    if across < 1 or plan.block % across or (rank == 1 and across != plan.block):
        raise PlanError(f"Plan(block={plan.block}, across={across}): the threads of a block make no rows of {across}")
    if (rank < 2 and plan.rows != 1) or (rank < 3 and plan.layers != 1):
        name = "layers" if plan.layers != 1 else "rows"
        raise PlanError(
            f"Plan({name}={getattr(plan, name)}): the index space has {rank} {'index' if rank == 1 else 'indices'}"
        )
    rest = plan.block // across
    down = plan.down or rest
    if down < 1 or rest % down or (rank < 3 and down != rest):
        raise PlanError(
            f"Plan(block={plan.block}, across={across}, down={down}): {rest} rows of threads are not divided by {down}"
        )
    threads, points = [1] * rank, [1] * rank
    others = [d for d in range(rank) if d != fast]
    threads[fast], points[fast] = across, plan.targets
    if rank > 1:
        threads[others[-1]], points[others[-1]] = down, plan.rows
    if rank > 2:
        threads[others[0]], points[others[0]] = rest // down, plan.layers
    adjacent = plan.adjacent or next(n for n in (4, 2, 1) if plan.targets % n == 0)
    return Shape(tuple(threads), tuple(points), fast, adjacent)
