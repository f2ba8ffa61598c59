"""The pattern of sums over sources that a structure finds."""

from __future__ import annotations

from lanewise.ir.pattern import HostCode, Pattern, Work
from lanewise.plan import NEUTRAL, Decisions, Plan
from lanewise.target import Machine

BLOCK = 128  # threads that walk: few enough that a slow warp holds back few others
GRAIN_TARGETS = 512  # some hundred nanoseconds each


def default_plan(machine: Machine, work: Work, wish: Plan) -> Decisions:
    """Every field decided."""
    del work, wish
    return Plan(block=BLOCK).filled(NEUTRAL) if machine.target.has_blocks else NEUTRAL


# How far a source is, no one can guess. What a search finds is met one after the other: no SIMD loop that might gather.
SEARCH = Pattern(
    "search",
    host=HostCode(branchless=True, widest_stride=None),
    default_plan=default_plan,
    grain=lambda last_count: GRAIN_TARGETS,
)
