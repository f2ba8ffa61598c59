"""What a plan makes of a kernel on a CPU: lanes of SIMD registers, or loops as they are written."""

from __future__ import annotations

from lanewise.errors import PlanError
from lanewise.ir import nodes as ir
from lanewise.ir.pattern import Checked
from lanewise.passes import free_sums, loop_splitting
from lanewise.passes.points import lanes
from lanewise.passes.points.merging import nest
from lanewise.passes.points.shape import Shape
from lanewise.patterns.threadwise import mapping
from lanewise.plan import NEUTRAL, Decisions

HOST_PARTS = 64  # of a sum on a CPU, whose bits do not hang on the threads there are
SHAPING = ("targets", "rows", "layers", "tile")  # of points in lanes


def on_cpu(kernel: ir.Kernel, plan: Decisions, checked: Checked) -> tuple[ir.Kernel, ...]:
    """Blocks of lanes where a plan has some. Else the slowest index in parallel; of a sum over all, parts of it."""
    if plan.across:
        return (checked("SIMD lanes", lanes.apply(kernel, shape_of(kernel, plan), plan.tile)),)
    for name in SHAPING:
        if getattr(plan, name) != getattr(NEUTRAL, name):
            raise PlanError(
                f"Plan({name}={getattr(plan, name)}): on a CPU points are taken together in lanes; choose across=16, or {name}="
                f"{getattr(NEUTRAL, name)}"
            )
    (outer,) = kernel.body
    assert isinstance(outer, ir.Parallel)
    if not isinstance(outer.extent, ir.Literal):
        freed = free_sums.apply(kernel)
        return (checked("rows", mapping.rows(kernel if freed == kernel else checked("free sums", freed))),)
    parts = [free_sums.apply(k) for k in loop_splitting.apply(kernel, HOST_PARTS)]
    return tuple(checked("splitting of loops", mapping.rows(k)) for k in parts)


def shape_of(kernel: ir.Kernel, plan: Decisions) -> Shape:
    """How a plan divides the points of an index space; raises `PlanError` for indices that there are not."""
    rank = len(nest(kernel)[0])
    if (rank < 2 and plan.rows != 1) or (rank < 3 and plan.layers != 1):
        name = "layers" if plan.layers != 1 else "rows"
        indices = "1 index" if rank == 1 else f"{rank} indices"
        raise PlanError(f"Plan({name}={getattr(plan, name)}): the index space has {indices}")
    points = (plan.layers, plan.rows, plan.targets)[3 - rank :]
    return Shape((*(1 for _ in range(rank - 1)), plan.across), points, rank - 1, 1)
