"""The plan that a kernel gets when its user fixes nothing, or some of it.

Each pattern has its own rules of thumb.
"""

from __future__ import annotations

from lanewise.compiler.lengths import with_fewer_copies
from lanewise.ir.pattern import Work
from lanewise.language.target import Machine
from lanewise.planning.decisions import Decisions
from lanewise.planning.plan import FIELDS, CompletePlan, Plan
from lanewise.support.errors import PlanError

CPU_TILE = 512  # sources that are summed in the result's precision before a float64 addition


def complete_plan(requested: Plan | None, machine: Machine, work: Work) -> CompletePlan:
    """What the user requests, and defaults for the rest."""
    return decide(requested, machine, work).plan


def decide(requested: Plan | None, machine: Machine, work: Work) -> Decisions:
    """The same with the reasons.

    Raises `PlanError` for a plan that work of this size cannot have.
    """
    requested = requested or Plan()
    made = Decisions.of(requested, work.pattern.default_plan(machine, work, requested))
    if machine.target.has_blocks:
        fewer = with_fewer_copies(made.plan, requested, work.length)
        changed = {n: v for n in FIELDS if (v := getattr(fewer, n)) != getattr(made.plan, n)}
        if changed:
            made = made.but("fewer copies, as the function is long", **changed)
    if requested.block is not None and requested.tile is None and made.plan.tile:
        made = made.but("every thread of the block stages one source", tile=made.plan.block)
    plan = made.plan
    if reason := work.pattern.unfit(machine, work, plan):
        raise PlanError(reason)
    if (
        plan.accumulate == "f64"
        and plan.reciprocity == "off"
        and requested.tile is None
        and not plan.tile
    ):
        made = made.but("tiles are summed in the type of the result, and added", tile=CPU_TILE)
    return made
