"""Programs: parts, each a fixed sequence of launches, and schedules, which say how often each part runs, in which order."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from lanewise.runtime.launches import Work

LONG_GRAPH = 32  # repetitions in one graph: a graph launch costs a few microseconds, a kernel inside it half of one


@dataclass(frozen=True, slots=True)
class Part:
    """Launches that are repeated together, in order. steps: of the simulation, in one repetition; 0 for what lies between steps."""

    calls: Sequence[Work]
    steps: int = 1


Parts = Mapping[Hashable, Part]
"""Looked into when a schedule first has the key, so parts may be added until then."""

Schedule = Sequence[tuple[Hashable, int]]
"""Keys of parts in the order in which they run, each with how often it is repeated."""


class ScheduleRunner(Protocol):
    """What runs parts by a schedule, and waits for the result."""

    def run(self, schedule: Schedule) -> None: ...


def repeat(calls: Sequence[Work], times: int) -> None:
    """All of the calls, in order, so many times."""
    for _ in range(times):
        for call in calls:
            call()


def in_graphs(repetitions: int) -> list[tuple[int, int]]:
    """Repetitions as graphs: (repetitions in a graph, how often it is launched)."""
    many, rest = divmod(repetitions, LONG_GRAPH)
    return [(size, count) for size, count in ((LONG_GRAPH, many), (1, rest)) if count]
