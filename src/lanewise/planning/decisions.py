"""What was decided about a kernel, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lanewise.planning.plan import FIELDS, CompletePlan, Plan

ASKED, DEFAULT = "requested", "by default"
LIFTED = "so that the compiler spills fewer registers to memory"


@dataclass(frozen=True, slots=True)
class Decisions:
    """A complete plan, and the reasons of its fields; those without one are as they are by
    default.
    """

    plan: CompletePlan
    reasons: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def of(cls, asked: Plan, defaults: CompletePlan) -> Decisions:
        """What is requested, and defaults for the rest."""
        given = dict.fromkeys((n for n in FIELDS if getattr(asked, n) is not None), ASKED)
        return cls(asked.filled(defaults), given)

    def but(self, reason: str, **fields: Any) -> Decisions:
        """The same with other values of some fields, for that reason."""
        reasons = {**self.reasons, **dict.fromkeys(fields, reason)}
        return Decisions(Plan(**fields).filled(self.plan), reasons)

    def why(self, field: str) -> str:
        """The reason of one field."""
        return self.reasons.get(field, DEFAULT)
