"""The two patterns of a walk: targets that take their own ways, and groups that take one."""

from __future__ import annotations

from dataclasses import replace

from lanewise.analysis.affine import nest
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.pattern import Checked, HostCode, Pattern, Work
from lanewise.ir.spreading import spread_in_lanes
from lanewise.language.target import WARP, Machine, Target
from lanewise.passes import thread_merging
from lanewise.planning.plan import NEUTRAL, CompletePlan, Plan
from lanewise.support.errors import PlanError

BLOCK = 128  # threads that walk: few enough that a slow warp holds back few others
GRAIN_TARGETS, GRAIN_GROUPS = 512, 8  # of a CPU's piece of work


def default_plan(machine: Machine, work: Work, wish: Plan) -> CompletePlan:
    """Every field decided."""
    del work, wish
    if machine.target.has_blocks:
        return Plan(block=BLOCK).filled(NEUTRAL)
    return Plan(vector_bits=512 if machine.vector_bits == 512 else 0).filled(NEUTRAL)


def _targets(sources: int) -> int:
    del sources
    return GRAIN_TARGETS


def _groups(sources: int) -> int:
    del sources
    return GRAIN_GROUPS


WALK = Pattern(
    "tree walk",
    host=HostCode(inline=True, widest_stride=None),
    default_plan=default_plan,
    grain=_targets,
)
"""One target per element."""


def group_size(kernel: ir.Kernel) -> int:
    """How many targets a group of a walk in groups has.

    Its loops are over groups, and over the targets of one, or the threads that walk for them.
    """
    (_, inner), _ = nest(kernel)
    assert isinstance(inner.extent, ir.Literal)
    return int(inner.extent.value)


def _merged(kernel: ir.Kernel) -> ir.Kernel:
    """Groups of more targets than a warp has threads for warps, with several of them a thread: a
    node, and a source, is loaded once for all of them.
    """
    (outer, inner), _ = nest(kernel)
    index, targets = inner.extent.type, group_size(kernel) // WARP
    varying = spread_in_lanes(inner.body, {inner.variable})
    body = thread_merging.merged(inner.body, inner.variable, index, targets, varying)
    threads = ir.Parallel(inner.variable, ir.Literal(WARP, index), body)
    return replace(kernel, body=(replace(outer, body=(threads,)),))


def _shape(
    kernel: ir.Kernel, plan: CompletePlan, target: Target, checked: Checked
) -> tuple[ir.Kernel, ...]:
    """The groups of a walk as warps of a GPU; on a CPU they are lanes as they are."""
    if not target.has_blocks:
        return (kernel,)
    if plan.block % WARP:
        raise PlanError(
            f"Plan(block={plan.block}): the groups of {kernel.name} are warps; wanted a multiple "
            f"of {WARP}"
        )
    if group_size(kernel) > WARP:
        kernel = checked("thread merging", _merged(kernel))
    (outer, inner), _ = nest(kernel)
    index = outer.extent.type
    first = build.multiply(ir.Builtin("block", index), plan.block)
    place = ir.Local(own("place"), index)
    body = (
        ir.Assign(place.name, build.add(first, ir.Builtin("thread", index))),
        ir.Assign(outer.variable, build.divide(place, WARP)),
        ir.Assign(inner.variable, build.remainder(place, WARP)),
        ir.If(build.less(ir.Local(outer.variable, index), outer.extent), inner.body),
    )
    threads = build.multiply(outer.extent, WARP)
    grid = ir.Grid(threads, plan.block, plan.block, min_blocks=plan.min_blocks)
    return (checked("mapping to threads", replace(kernel, body=body, grid=grid)),)


GROUP_WALK = replace(WALK, name="tree walk in groups", grain=_groups, shape=_shape)
"""One group of targets per element: a warp, or lanes of SIMD registers."""
