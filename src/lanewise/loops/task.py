"""A task: what a call of the user's list is to the loop that runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from lanewise.language.target import is_gpu
from lanewise.patterns.sitewise.sites import Sites
from lanewise.runtime.programs import NamedLaunch, Work

AHEAD = 1024  # steps whose values are computed before they run

States = Mapping[int, tuple[bool, int]]
"""Of sites, by `id`: whether no step has run since their values were set, and their step."""


def has_graphs(device: str) -> bool:
    """Whether steps on a device are graphs, which the host launches and then waits for."""
    return is_gpu(device)


class Clock:
    """Which step a loop is in. begun: the step that a piece began with; done: steps of it so
    far.
    """

    __slots__ = ("begun", "done")

    def __init__(self) -> None:
        self.begun = self.done = 0

    @property
    def step(self) -> int:
        return self.begun + self.done

    def tick(self) -> None:
        """A step is over."""
        self.done += 1

    def begin(self, step: int) -> None:
        self.begun, self.done = step, 0


class Ahead(Protocol):
    """Values that are computed for the steps of a piece before it runs."""

    def clear(self) -> None: ...
    def add(self, step: int) -> None:
        """Make what the next call runs, which is that of this step."""
        ...


class Flag(Protocol):
    """What a task on a device says of itself, when a piece of steps is over."""

    def examine(self, first: int, last: int) -> None:
        """Raise `ArgumentError` for what was found between these steps."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """A call as a loop runs it.

    name: of the kernel or function. launches: those of a step, by the states of the sites. device:
    None for a function of Python. sites: those that a step of it advances. counted: whether it
    wants to know the step. alone: why no CUDA graph can hold it, and what to do; "" where one can.
    costs: whether that costs time on a CPU, too.
    checks: what is asked before every piece of steps. ahead: its values by step. flag: read after
    every piece on a GPU.
    """

    name: str
    kind: str
    launches: Callable[[States], Sequence[NamedLaunch]]
    device: str | None
    sites: tuple[Sites, ...] = ()
    counted: bool = False
    alone: str = ""
    costs: bool = False
    checks: tuple[Work, ...] = ()
    ahead: Ahead | None = None
    flag: Flag | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Timed:
    """A task in the steps n with n % every == at."""

    task: Task
    every: int = 1
    at: int = 0
