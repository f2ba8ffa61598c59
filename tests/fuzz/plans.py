"""Random legal plans: some decisions of the catalogue at a time, those that a kernel refuses left out again."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from lanewise.compiler.optimisations import LAYOUT, OPTIMISATIONS, Optimisation
from lanewise.compiler.pipeline import Program
from lanewise.patterns.elements import ELEMENTWISE
from lanewise.patterns.pairwise.build import PAIRWISE
from lanewise.planning.plan import Plan
from lanewise.support.errors import PlanError

# What the interpreter can run: it steps every thread of every block.
SMALL = {
    "block": (32, 64), "tile": (0, 32, 64, 7, 16), "targets": (1, 2, 3, 4), "slices": (1, 2), "parts": (1, 2, 3), "unroll": (0, 1, 2, 4),
}  # fmt: skip
PATTERNS = {p.name: p for p in (ELEMENTWISE, PAIRWISE)}
CHOICES = [o for o in OPTIMISATIONS if o.field not in (LAYOUT, "fast_math")]


def values_of(o: Optimisation, kind: str, pattern: str) -> tuple[Any, ...]:
    """The values of an optimisation that random plans may take."""
    values = o.values(kind, PATTERNS[pattern])
    return SMALL.get(o.field, values) if len(values) > 1 else values


def draw_plan(
    rng: Random, kind: str, pattern: str, build: Callable[[Plan], Program], most: int = 5
) -> tuple[Plan, Program, list[str]]:
    """A plan with up to `most` decisions, what it builds, and the decisions that the kernel refused."""
    open_choices = [o for o in CHOICES if len(values_of(o, kind, pattern)) > 1]
    plan, refused = Plan(), list[str]()
    program = build(plan)
    for o in rng.sample(open_choices, min(len(open_choices), rng.randint(1, most))):
        value = rng.choice(values_of(o, kind, pattern))
        changes = {o.field: value} if value == o.neutral else o.start(value)
        wanted = Plan(**{**plan.as_dict(), **changes})
        try:
            program = build(wanted)
            plan = wanted
        except PlanError:
            refused.append(f"{o.field}={value}")
    return plan, program, refused
