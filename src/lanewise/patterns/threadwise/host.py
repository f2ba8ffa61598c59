"""What a plan makes of a kernel on a CPU: lanes of SIMD registers, or loops as they are written."""

from __future__ import annotations

from dataclasses import replace

from lanewise.analysis.affine import nest
from lanewise.ir import nodes as ir
from lanewise.ir.pattern import Checked
from lanewise.passes import free_sums, functions_apart, loop_sharing, loop_splitting, shared_loops
from lanewise.passes.base import refuse
from lanewise.passes.points import (
    grouping,
    hosting,
    interchange,
    lanes,
    mapping,
    overlapping,
    packing,
    squares,
)
from lanewise.passes.points.shape import Shape
from lanewise.passes.shared_loops import Sharing
from lanewise.planning.plan import NEUTRAL, CompletePlan
from lanewise.support.errors import PlanError

HOST_PARTS = 64  # of a sum on a CPU, whose bits do not depend on the threads there are
SLICES = (4, 8, 16, 32, 64)  # lanes of one register or several
NO_TILES = "on a CPU rounds go together in tiles of points, and no loop is cut into such"
SHAPING = ("targets", "rows", "layers", "tile")  # of points in lanes


def on_cpu(kernel: ir.Kernel, plan: CompletePlan, checked: Checked) -> tuple[ir.Kernel, ...]:
    """Blocks of lanes where a plan has some. Else the slowest index in parallel; of a sum over all,
    parts of it.
    """
    if plan.across:
        return (checked("SIMD lanes", _in_lanes(kernel, plan)),)
    if plan.unroll != 1:
        raise refuse("unrolling", kernel, NO_TILES)
    if plan.slices != 1:
        return _sliced(kernel, plan, checked)
    for name in SHAPING:
        if getattr(plan, name) != getattr(NEUTRAL, name):
            raise PlanError(
                f"Plan({name}={getattr(plan, name)}): on a CPU points are taken together in lanes; "
                f"choose across=16, or {name}="
                f"{getattr(NEUTRAL, name)}"
            )
    (outer,) = kernel.body
    assert isinstance(outer, ir.Parallel)
    if not isinstance(outer.extent, ir.Literal):
        return (checked("rows", mapping.rows(_as_written(kernel, checked))),)
    parts = loop_splitting.apply(kernel, HOST_PARTS, neighbours=True)
    return tuple(
        checked("splitting of loops", mapping.rows(_as_written(k, checked))) for k in parts
    )


def _as_written(kernel: ir.Kernel, checked: Checked) -> ir.Kernel:
    """A kernel whose loops run as they are written, but for what changes no bits or only how sums
    are added.
    """
    for name, change in (
        ("free sums", free_sums.apply),
        ("functions apart", functions_apart.apply),
    ):
        done = change(kernel)
        kernel = kernel if done == kernel else checked(name, done)
    return kernel


def _in_lanes(kernel: ir.Kernel, plan: CompletePlan) -> ir.Kernel:
    shape = shape_of(kernel, plan)
    if changes_places(kernel, plan):
        return interchange.apply(kernel, shape, plan.tile, plan.unroll)
    if plan.unroll != 1:
        raise refuse("unrolling", kernel, NO_TILES)
    return (
        squares.apply(kernel, shape, plan.tile)
        if lanes.turned(kernel)
        else lanes.apply(kernel, shape, plan.tile)
    )


def changes_places(kernel: ir.Kernel, plan: CompletePlan) -> bool:
    """Whether tiles of a plan are those of points around which a loop runs, and neither packed
    rounds nor squares.
    """
    if (
        not plan.across
        or not plan.tile
        or plan.rows != 1
        or plan.layers != 1
        or lanes.turned(kernel)
    ):
        return False
    return bool(interchange.loops_of(kernel)) and not packing.operands(
        kernel, shape_of(kernel, plan), plan.tile
    )


def _sliced(kernel: ir.Kernel, plan: CompletePlan, checked: Checked) -> tuple[ir.Kernel, ...]:
    """Lanes share the rounds of a point's loops, as the threads of a block do on a GPU; of a sum
    over all, those of each part.
    """
    if reason := sliced_problem(kernel, plan):
        raise refuse("slicing", kernel, reason)
    first, *rest = _parts(kernel)
    behind = plan.targets != 1 and writes_rounds(first)
    if plan.targets != 1 and not behind:
        first = checked("grouping of points", grouping.apply(first, plan.targets))
    done = [checked("SIMD lanes", sliced(first, plan.slices, plan.tile))]
    if behind:
        done = [checked("overlapping of points", overlapping.apply(done[0], plan.targets))]
    return (
        *done,
        *(checked("splitting of loops", mapping.rows(_as_written(k, checked))) for k in rest),
    )


def _parts(kernel: ir.Kernel) -> tuple[ir.Kernel, ...]:
    (outer,) = kernel.body
    assert isinstance(outer, ir.Parallel)
    return (
        loop_splitting.apply(kernel, HOST_PARTS, neighbours=True)
        if isinstance(outer.extent, ir.Literal)
        else (kernel,)
    )


def sliced(kernel: ir.Kernel, slices: int, values: int = 0) -> ir.Kernel:
    """A kernel whose points have a block of lanes each. values: rounds whose values are kept where
    several loops compute them.
    """
    # a lane takes one round
    plain = replace(kernel, arrays=tuple(replace(a, multiple=1) for a in kernel.arrays))
    return hosting.apply(
        loop_sharing.apply(plain, Sharing("row", slices, 1, values=values, warp=slices))
    )


def sliced_problem(kernel: ir.Kernel, plan: CompletePlan) -> str | None:
    """Why lanes cannot share the rounds of loops, or None."""
    for name in ("rows", "layers"):
        if getattr(plan, name) != getattr(NEUTRAL, name):
            return (
                f"lanes share the rounds of neighbours along the last index alone: {name} has to "
                f"be {getattr(NEUTRAL, name)!r}"
            )
    if plan.slices not in SLICES:
        return (
            f"a SIMD register has {', '.join(map(str, SLICES[:-1]))} or {SLICES[-1]} lanes; "
            f"{plan.slices} were requested"
        )
    if reason := loop_sharing.legal(kernel):
        return reason
    first = _parts(kernel)[0]
    behind = plan.targets != 1 and writes_rounds(first)
    if plan.targets != 1 and not behind:
        if reason := grouping.legal(first, plan.targets):
            return reason
        first = grouping.apply(first, plan.targets)
    if plan.tile and (
        reason := loop_sharing.values_problem(
            first, Sharing("row", plan.slices, 1, values=plan.tile)
        )
    ):
        return reason
    hosted = sliced(first, plan.slices, plan.tile)
    if behind and (reason := overlapping.legal(hosted, plan.targets)):
        return reason
    return hosting.lockstep(hosted)


def writes_rounds(kernel: ir.Kernel) -> bool:
    """Whether loops whose rounds lanes share write elements: points then come one after the other,
    and not side by side.
    """
    return any(x.stores for x in shared_loops.shareable_loops(kernel).values())


def shape_of(kernel: ir.Kernel, plan: CompletePlan) -> Shape:
    """How a plan divides the points of an index space; raises `PlanError` for indices that there
    are not.
    """
    rank = len(nest(kernel)[0])
    if (rank < 2 and plan.rows != 1) or (rank < 3 and plan.layers != 1):
        name = "layers" if plan.layers != 1 else "rows"
        indices = "1 index" if rank == 1 else f"{rank} indices"
        raise PlanError(f"Plan({name}={getattr(plan, name)}): the index space has {indices}")
    points = (plan.layers, plan.rows, plan.targets)[3 - rank :]
    return Shape((*(1 for _ in range(rank - 1)), plan.across), points, rank - 1, 1)
