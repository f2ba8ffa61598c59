"""The pattern of sums over pairs: on a CPU sources in SIMD lanes, on a GPU tiles of them, or each pair computed once for both sides."""

from __future__ import annotations

from lanewise.ir.pattern import HostCode, Pattern
from lanewise.patterns.pairwise.plans import default_plan

GRAIN_WORK = 262_144  # element-source pairs worth handing to another thread: about 70 microseconds


def grain(sources: int) -> int:
    """Targets worth handing to another thread."""
    return max(1, GRAIN_WORK // sources)


PAIRWISE = Pattern("pairwise", over_pairs=True, host=HostCode(reassociate=True), default_plan=default_plan, grain=grain)
