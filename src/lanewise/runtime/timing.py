"""Times of short work: many repetitions between two readings of a clock, in seconds for one
repetition.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

Work = Callable[[], object]
LEAST = 20e-3  # seconds between the two readings: far above the resolution of the clock


class Stopwatch(Protocol):
    """Times a sequence of works that take turns (the same work on several sets of arrays)."""

    def __call__(self) -> float: ...


class CpuStopwatch:
    """Wall time on the host. `once`: a first guess at the seconds of one work."""

    def __init__(self, works: Sequence[Work], once: float) -> None:
        turns = max(1, round(LEAST / max(once, 1e-7) / len(works)))
        self._works, self._turns = tuple(works), turns

    def __call__(self) -> float:
        start = time.perf_counter()
        for _ in range(self._turns):
            for work in self._works:
                work()
        return (time.perf_counter() - start) / (self._turns * len(self._works))
