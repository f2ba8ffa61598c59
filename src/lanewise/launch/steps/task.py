"""A task: what a call of the user's list is to the loop that runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

from lanewise.language.target import is_gpu
from lanewise.launch.divided import Divided
from lanewise.launch.joined import Bound
from lanewise.launch.task_list import Arrays, TaskList
from lanewise.runtime.prepared import Prepared
from lanewise.runtime.programs import NamedLaunch, Work
from lanewise.support.whole_steps import WholeSteps

AHEAD = 1024  # steps whose values are computed before they run

States = Mapping[int, tuple[bool, int]]
"""Of each `StepState`, by `id`: whether no step has run since its values were set, and its step."""


@dataclass(slots=True, eq=False)
class StepState:
    """Where something stands that launches step in cycles, such as the sites of a lattice.

    cycle: after how many of its steps the same launches come again. whole: knows of steps that were
    stopped in the middle. step: how many were taken. fresh: whether none has run since its values
    were set.
    """

    cycle: int
    whole: WholeSteps
    step: int = 0
    fresh: bool = True


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


Around = Callable[[int], AbstractContextManager[object]]
InPiece = Callable[[bool], AbstractContextManager[object]]


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

    name: of the kernel or function. launches: those of a step, by the states of what is stepped.
    device: None for a function of Python. stepped: what a step of it advances. counted: whether it
    wants to know the step. alone: why no CUDA graph can hold it, and what to do; "" where one can.
    costs: whether that costs time on a CPU as well.
    before: a task that runs before it, each `kept` times that it runs. orders: those that it makes
    and others keep for some steps.
    divided: of a call on a mesh. split: the calls of a step of sites on a mesh.
    checks: what is asked before every piece of steps. ahead: its values by step. flag: read after
    every piece on a GPU. around: contexts in which so many steps run. bound: what a step runs, as
    tasks over memory. pieces: contexts in which a piece of steps runs, each told whether all tasks
    of the loop have such.
    """

    name: str
    kind: str
    launches: Callable[[States], Sequence[NamedLaunch]]
    device: str | None
    stepped: tuple[StepState, ...] = ()
    counted: bool = False
    alone: str = ""
    costs: bool = False
    checks: tuple[Work, ...] = ()
    ahead: Ahead | None = None
    flag: Flag | None = None
    around: tuple[Around, ...] = ()
    pieces: tuple[InPiece, ...] = ()
    bound: Callable[[States], Sequence[Bound]] = lambda _: ()
    before: Task | None = None
    kept: int = 1
    orders: tuple[Any, ...] = ()
    divided: Divided | None = None
    split: Callable[[States], Sequence[Any]] = lambda _: ()


def bound_each_step(
    tasks: TaskList,
    launches: Prepared,
    others: Arrays = MappingProxyType({}),
    call: object = None,
) -> Callable[[States], Sequence[Bound]]:
    """What a bound call runs in every step. others: arrays besides those that its launches take."""
    memory = {name: b.data for name, b in others.items()}
    memory |= {name: data for piece in launches.pieces for name, data in piece.kept}
    return lambda _: (Bound(tasks.sequence, memory, call),)


@dataclass(frozen=True, slots=True, eq=False)
class Timed:
    """A task in the steps n with n % every == at."""

    task: Task
    every: int = 1
    at: int = 0
