"""What became of one plan: measured, or not, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from lanewise.planning.plan import NEUTRAL, CompletePlan, Plan

Status = Literal["measured", "illegal", "unpromising", "failed", "wrong"]
"""illegal: a pass refuses it; unpromising: the model expects too little of it; failed.

It does not compile, fit or run, or
it spills; wrong: its result differs from the default plan's.
"""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a plan that should be measured was not."""

    status: Status
    reason: str


@dataclass(slots=True)
class Trial:
    """A plan and what was found.

    score: its seconds when it was first timed, on a scale free of changes of the clock; seconds:
    what it takes on the scale of the last measurement; samples: the seconds of each round of that
    one, empty if the plan was not in it. All three are empty for a plan that was not timed.
    structure: that it ran through, as `search.tuning.Configuration` writes it; empty for kernels
    without a search.
    """

    plan: CompletePlan
    status: Status
    reason: str = ""
    predicted: float | None = None
    score: float | None = None
    seconds: float | None = None
    samples: list[float] = field(default_factory=list[float])
    structure: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {
            "plan": changes(self.plan),
            "status": self.status,
            "reason": self.reason,
            "predicted": self.predicted,
            "seconds": self.seconds,
            "score": self.score,
            "samples": self.samples,
            **({"structure": self.structure} if self.structure else {}),
        }

    def short(self) -> str:
        """What was tried: the structure, if there is one, and what differs from the neutral
        plan.
        """
        return f"{self.structure}: {self.plan.short()}" if self.structure else self.plan.short()


def trial_from(data: Mapping[str, Any]) -> Trial:
    """The trial of `Trial.as_dict`."""
    return Trial(
        plan_from(data["plan"]),
        data["status"],
        data["reason"],
        data["predicted"],
        data["score"],
        data["seconds"],
        data["samples"],
        data.get("structure", ""),
    )


def duration(seconds: float | None) -> str:
    """A time with four digits and a unit; nothing for none."""
    if seconds is None:
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.4g} {unit}"
    return f"{seconds * 1e6:.4g} µs"


def changes(plan: CompletePlan) -> dict[str, Any]:
    """What differs from the neutral plan."""
    return {n: v for n, v in plan.as_dict().items() if v != getattr(NEUTRAL, n)}


def plan_from(values: Mapping[str, Any]) -> CompletePlan:
    """The complete plan that `changes` describes; raises `ValueError` for fields or types that a
    plan does not have.
    """
    neutral = NEUTRAL.as_dict()
    for name, value in values.items():
        if name not in neutral:
            raise ValueError(f"a plan has no field {name!r}")
        if type(value) is not type(neutral[name]):
            raise ValueError(f"the field {name!r} of a plan is {value!r}")
    return Plan(**values).filled(NEUTRAL)
