"""The pattern of a thread for each index: blocks of neighbours on a GPU, rows of the slowest index
on the threads of a CPU.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lanewise.ir import nodes as ir
from lanewise.ir.pattern import Checked, HostCode, Pattern, Work
from lanewise.language.target import Machine, Target
from lanewise.passes import independent_loops
from lanewise.passes.points import mapping, sides
from lanewise.patterns.sums_in_order import described, parts_of, unfit
from lanewise.patterns.threadwise.host import on_cpu
from lanewise.patterns.threadwise.merged import is_naive, merged
from lanewise.patterns.threadwise.panelled import panelled
from lanewise.patterns.threadwise.plans import default_plan, suggested
from lanewise.patterns.threadwise.shared import is_shared, shared
from lanewise.patterns.threadwise.work import describe
from lanewise.planning.plan import CompletePlan, Plan

GRAIN = 4_096  # turns of inner loops worth handing to another thread of a CPU


def grain(work: int) -> int:
    """Values of the slowest index worth handing to another thread, where each is that many turns of
    inner loops.
    """
    return max(1, GRAIN // max(1, work))


def shape(
    kernel: ir.Kernel, plan: CompletePlan, target: Target, checked: Checked
) -> Iterable[ir.Kernel]:
    """Blocks of threads on a GPU, a loop over rows on a CPU: one kernel, or several for parts and
    panels.
    """
    if not target.has_blocks:
        return on_cpu(kernel, plan, checked)
    if plan.panel:
        return panelled(kernel, plan, checked)
    if is_shared(plan):
        return shared(kernel, plan, checked)
    if is_naive(plan):
        return (checked("mapping to threads", mapping.blocks(kernel, plan.block, plan.min_blocks)),)
    return (merged(kernel, plan, checked),)


def divide(
    kernel: ir.Kernel, target: Target, checked: Checked, fast_math: bool
) -> tuple[ir.Kernel, ...]:
    """A kernel for the points on each side of a thread's branch."""
    return tuple(checked(sides.NAME, k) for k in sides.apply(kernel, fast_math=fast_math))


def _plan_in_order(machine: Machine, work: Work, requested: Plan) -> CompletePlan:
    return replace(default_plan(machine, work, requested), parts=parts_of(machine, work))


def _described(reference: ir.Kernel, work: Work) -> Work:
    return described(reference, describe(reference, work))


THREADWISE = Pattern(
    "threadwise",
    over_points=True,
    inlined=True,
    host=HostCode(inline=True, widest_stride=None, separate=True),
    grain=grain,
    shape=shape,
    divide=divide,
    whole=independent_loops.legal,
    default_plan=default_plan,
    suggest=suggested,
    describe=describe,
    no_sums="its sums are variables of the function: declare them as lw.f64",
)

IN_ORDER = replace(
    THREADWISE, in_order=True, default_plan=_plan_in_order, describe=_described, unfit=unfit
)
"""Of kernels that add floats to elements one after the other on a CPU."""
