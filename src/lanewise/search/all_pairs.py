"""All pairs: every target meets every source."""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.search.base import Search


@dataclass(frozen=True, slots=True)
class AllPairs(Search):
    """No structure: the loop over all sources, in order."""

    def describe(self) -> str:
        return "all pairs"
