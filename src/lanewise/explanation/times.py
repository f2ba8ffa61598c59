"""Measured times of plans, wherever they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lanewise.plan import Decisions


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of one call by plan; where they come from ("tune()", "now" or nothing); the plan that tune() chose."""

    seconds: Mapping[Decisions, float] = field(default_factory=dict[Decisions, float])
    source: str = ""
    tuned: Decisions | None = None

    def factor(self, slow: Decisions, fast: Decisions) -> float | None:
        """How many times faster the second plan was; None unless both were measured."""
        before, after = self.seconds.get(slow), self.seconds.get(fast)
        return before / after if before and after else None
