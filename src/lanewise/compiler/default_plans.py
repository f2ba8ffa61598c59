"""The plan that a kernel gets when its user fixes nothing, or some of it.

Each pattern has rules of thumb of its own.
"""

from __future__ import annotations

from lanewise.compiler.lengths import with_fewer_copies
from lanewise.ir.pattern import Work
from lanewise.language.target import Machine
from lanewise.planning.plan import Decisions, Plan

CPU_TILE = 512  # sources that are summed in the result's precision before a float64 addition


def complete_plan(wish: Plan | None, machine: Machine, work: Work) -> Decisions:
    """What the user wishes, and defaults for the rest."""
    wish = wish or Plan()
    plan = wish.filled(work.pattern.default_plan(machine, work, wish))
    if machine.target.has_blocks:
        plan = with_fewer_copies(plan, wish, work.length)
    if wish.block is not None and wish.tile is None and plan.tile:
        plan = Plan(tile=plan.block).filled(plan)  # one source a thread stages a tile
    needs_tiles = (
        plan.accumulate == "f64"
        and plan.reciprocity == "off"
        and wish.tile is None
        and not plan.tile
    )
    return Plan(tile=CPU_TILE).filled(plan) if needs_tiles else plan
