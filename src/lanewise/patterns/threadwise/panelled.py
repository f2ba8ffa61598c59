"""Plans with panels: a recurrence as panels of rounds, which are divided into smaller panels, each
with a kernel ahead of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lanewise.ir import nodes as ir
from lanewise.ir.pattern import Checked
from lanewise.passes import kept_rounds, panels
from lanewise.passes.points import mapping
from lanewise.patterns.threadwise.merged import is_naive, merged
from lanewise.patterns.threadwise.shared import is_shared
from lanewise.planning.plan import CompletePlan
from lanewise.support.errors import PlanError

# rounds of a panel that is not divided again: their values fit the registers of a thread
SMALLEST = 32
DIVISION = 4  # panels within a panel
SOLVING = 64  # threads of a block that go through the rounds of the smallest panels


def panelled(kernel: ir.Kernel, plan: CompletePlan, checked: Checked) -> Iterator[ir.Kernel]:
    """The kernels of such a plan, mapped to threads, in the order of their launches, each made as
    it is requested.

    Raises `PlanError` where the plan does not fit.
    """
    if is_shared(plan):
        raise PlanError(
            f"Plan(panel={plan.panel}, slices={plan.slices}, parts={plan.parts}): the threads of a "
            "panel have their own rounds; "
            "choose slices=1 and parts=1"
        )
    rest, panel = kernel, plan.panel
    while True:
        ahead, rest = (checked("blocking of recurrences", k) for k in panels.apply(rest, panel))
        yield _mapped(ahead, plan, checked)
        plan = _smaller(plan)
        if panel <= SMALLEST:
            break
        panel = max(SMALLEST, panel // DIVISION)
    if kept_rounds.legal(rest, panel) is None:
        rest = checked("keeping of rounds", kept_rounds.apply(rest, panel))
    yield checked("mapping to threads", mapping.blocks(rest, SOLVING, 0))


def _mapped(ahead: ir.Kernel, plan: CompletePlan, checked: Checked) -> ir.Kernel:
    if is_naive(plan):
        return checked("mapping to threads", mapping.blocks(ahead, plan.block, plan.min_blocks))
    return merged(ahead, plan, checked)


def _smaller(plan: CompletePlan) -> CompletePlan:
    """Half as many points of a thread in both directions: small panels have few points, and need
    many blocks.
    """
    halves = {
        n: max(1, getattr(plan, n) // 2)
        for n in ("rows", "targets", "adjacent")
        if getattr(plan, n) > 1
    }
    return replace(plan, **halves)
