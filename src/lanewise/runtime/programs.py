"""Programs: parts, each a fixed sequence of launches, and schedules, which say how often each part
runs, in which order.

A simulation hands `make_program` its launches in order, each as a `NamedLaunch`, which says what
stage of a step it belongs to and what runs; that is all it has to do for `--profile`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from lanewise.support.whole_steps import LONG_GRAPH


@dataclass(frozen=True, slots=True)
class ProgramPart:
    """Launches that are repeated together, in order.

    steps: of the simulation, in one repetition; 0 for what lies between steps. long: repetitions in
    one graph. rows: values of the steps that the launches of graphs read.
    """

    calls: Sequence[Work]
    steps: int = 1
    long: int = LONG_GRAPH
    rows: StepRows | None = None


class StepRows(Protocol):
    """Values that change from step to step, in memory that graphs read: a graph holds where they
    lie, not what they are.
    """

    def capture(self) -> None:
        """A graph is captured from now on: the first launch in it reads the first row."""
        ...

    def copy(self, repetitions: int) -> None:
        """Bring the values of so many repetitions there, in order with the graphs."""
        ...


Parts = Mapping[Hashable, ProgramPart]
"""Looked into when a schedule first has the key, so parts may be added until then."""

Schedule = Sequence[tuple[Hashable, int]]
"""Keys of parts in the order in which they run, each with how often it is repeated."""


class ScheduleRunner(Protocol):
    """What runs parts by a schedule, and waits for the result."""

    def run(self, schedule: Schedule) -> None: ...


def repeat(calls: Sequence[Work], times: int) -> None:
    """All of the calls, in order, that many times."""
    for _ in range(times):
        for call in calls:
            call()


def in_graphs(repetitions: int, long: int = LONG_GRAPH) -> list[tuple[int, int]]:
    """Repetitions as graphs, of which the long ones have `long`: (repetitions in a graph, how often
    it is launched).
    """
    if long == 1:
        return [(1, repetitions)] if repetitions else []
    many, rest = divmod(repetitions, long)
    return [(size, count) for size, count in ((long, many), (1, rest)) if count]


Work = Callable[[], object]


@dataclass(frozen=True, slots=True)
class NamedLaunch:
    """A launch whose memory and numbers are bound.

    stage: what it does in a step, a word of the table of a profile ("forces", "build", "search").
    name: what runs, usually the kernel's name; launches of one stage and name are added up.
    """

    stage: str
    name: str
    call: Work

    def __call__(self) -> object:
        return self.call()


class Checks:
    """What is asked before a schedule runs: whether the memory that launches are bound to is still
    that of their arrays.

    A graph would continue with the memory of before. Which launches know is found out once for a
    part, since a schedule has a part often.
    """

    __slots__ = ("_of", "_parts")

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._of: dict[Hashable, tuple[Work, ...]] = {}

    def run(self, schedule: Schedule) -> None:
        """Raise `ArgumentError` where an array has changed in length since."""
        for key in dict.fromkeys(key for key, _ in schedule):
            checks = self._of.get(key)
            if checks is None:
                calls = bare(self._parts[key].calls)
                self._of[key] = checks = tuple(
                    call.check for call in calls if isinstance(call, Checked)
                )
            for check in checks:
                check()


@runtime_checkable
class Checked(Protocol):
    """A launch that knows whether its memory is still that of its arrays."""

    def check(self) -> None: ...


def names_of(calls: Iterable[Work]) -> tuple[tuple[str, str], ...]:
    """Stage and name of every launch; one without a name is the stage "steps"."""
    return tuple(
        (c.stage, c.name) if isinstance(c, NamedLaunch) else ("steps", "unnamed") for c in calls
    )


def bare(calls: Iterable[Work]) -> tuple[Work, ...]:
    """What the launches run, without the wrapping: a call less in loops of short steps."""
    return tuple(c.call if isinstance(c, NamedLaunch) else c for c in calls)
