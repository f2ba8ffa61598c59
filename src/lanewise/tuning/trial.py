"""What became of one plan: measured, or not, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from lanewise.plan import NEUTRAL, Plan

Status = Literal["measured", "illegal", "unpromising", "failed", "wrong"]
"""illegal: a pass refuses it; unpromising: the model expects too little of it; failed: it does not compile, fit or run, or
it spills; wrong: its result differs from the default plan's."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a plan that should be measured was not."""

    status: Status
    reason: str


@dataclass(slots=True)
class Trial:
    """A plan and what was found.

    score: its seconds when it was first timed, on a scale free of changes of the clock; seconds: what it takes on the
    scale of the last measurement; samples: the seconds of each round of that one, empty if the plan was not in it. All
    three are empty for a plan that was not timed.
    """

    plan: Plan
    status: Status
    reason: str = ""
    predicted: float | None = None
    score: float | None = None
    seconds: float | None = None
    samples: list[float] = field(default_factory=list[float])

    def as_dict(self) -> dict[str, Any]:
        return {
            "plan": changes(self.plan), "status": self.status, "reason": self.reason, "predicted": self.predicted,
            "seconds": self.seconds, "score": self.score, "samples": self.samples,
        }  # fmt: skip


def changes(plan: Plan) -> dict[str, Any]:
    """What differs from the neutral plan."""
    return {n: v for n, v in plan.as_dict().items() if v != getattr(NEUTRAL, n)}


def plan_from(values: Mapping[str, Any]) -> Plan:
    """The complete plan that `changes` describes; raises `ValueError` for fields or types that a plan does not have."""
    neutral = NEUTRAL.as_dict()
    for name, value in values.items():
        if name not in neutral:
            raise ValueError(f"a plan has no field {name!r}")
        if type(value) is not type(neutral[name]):
            raise ValueError(f"the field {name!r} of a plan is {value!r}")
    return Plan(**values).filled(NEUTRAL)
