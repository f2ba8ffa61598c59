"""From what users write in a list to the tasks of a loop; each refusal says what was wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import gcd
from typing import Any, Protocol, runtime_checkable

from lanewise.launch.compiled import Call, Compiled
from lanewise.launch.steps.rhythm import Rhythm
from lanewise.launch.steps.task import Clock, States, Task, Timed, has_graphs
from lanewise.loops.bound import Reading
from lanewise.loops.every import Every, whole
from lanewise.loops.functions import asked_by, function_task
from lanewise.loops.orders import with_orders
from lanewise.loops.searches import BUILD, Structures
from lanewise.profiling.staged_call import Staged
from lanewise.runtime.programs import NamedLaunch
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError


@runtime_checkable
class Bindable(Protocol):
    """A kernel, which makes calls of arguments."""

    def bind(self, *arguments: Any, **named: Any) -> Call: ...


@runtime_checkable
class Loop(Protocol):
    """A loop, which runs its own steps."""

    def run(self, steps: int) -> object: ...
    def prepare(self) -> None: ...


def read_lists(
    calls: Any,
    cycle: int | None,
    structures: Structures,
    clock: Clock,
    *,
    apart: bool,
    longest: int,
) -> tuple[Rhythm, str]:
    """The tasks of a loop, and the device that they run on. longest: the cycle that orders may make
    of it. Raises `ArgumentError`.
    """
    lists = [_many("lw.steps", calls)] if cycle is None else _of_cycle(calls, cycle)
    reader = _Reader(Reading(structures, clock, apart))
    made = tuple(
        tuple(reader.timed(_place(cycle, m, n), call) for n, call in enumerate(some))
        for m, some in enumerate(lists)
    )
    _refuse_never(made)
    devices = dict.fromkeys(t.device for t in reader.tasks if t.device is not None)
    if len(devices) > 1:
        raise ArgumentError(
            f"lw.steps: the calls run on {' and '.join(devices)}; wanted calls on one device, and "
            "a loop for each of them"
        )
    device = next(iter(devices), "cpu")
    return Rhythm(with_orders(made, longest), cut=has_graphs(device)), device


def _refuse_never(lists: Sequence[Sequence[Timed]]) -> None:
    """Refuse a call that no step would have."""
    cycle = len(lists)
    for m, some in enumerate(lists):
        for n, timed in enumerate(some):
            common = gcd(cycle, timed.every)
            if m % common != timed.at % common:
                raise ArgumentError(
                    f"lw.steps: call {n} of list {m} runs in no step: lw.every({timed.every}, ..., "
                    f"at={timed.at}) and cycle={cycle} have none in common"
                )


def _of_cycle(calls: Any, cycle: Any) -> list[Sequence[Any]]:
    number = whole("lw.steps: cycle", cycle)
    lists = _many(f"lw.steps: cycle={number}", calls)
    if number < 1 or len(lists) != number:
        raise ArgumentError(
            f"lw.steps: cycle={number} takes as many lists, one for each step of a cycle; found "
            f"{len(lists)}"
        )
    return [_many(f"lw.steps: list {m} of cycle={number}", some) for m, some in enumerate(lists)]


def _many(what: str, calls: Any) -> Sequence[Any]:
    if not isinstance(calls, list | tuple):
        raise ArgumentError(f"{what}: wanted a list of bound calls, found {shown(calls)}")
    if not calls:
        raise ArgumentError(f"{what}: the list is empty; wanted a bound call at least")
    return calls  # pyright: ignore[reportUnknownVariableType]


def _place(cycle: int | None, m: int, n: int) -> str:
    return f"lw.steps: call {n}" + ("" if cycle is None else f" of list {m}")


class _Reader:
    """Makes one task of every call, however often it stands in the lists."""

    def __init__(self, bound: Reading) -> None:
        self._bound = bound
        self._made: dict[int, tuple[Any, Task]] = {}

    @property
    def tasks(self) -> list[Task]:
        return [task for _, task in self._made.values()]

    def timed(self, place: str, call: Any) -> Timed:
        if isinstance(call, Every):
            return Timed(self._task(place, call.call), call.k, call.at)
        return Timed(self._task(place, call))

    def _task(self, place: str, call: Any) -> Task:
        if id(call) not in self._made:
            self._made[id(call)] = call, self._read(place, call)
        return self._made[id(call)][1]

    def _read(self, place: str, call: Any) -> Task:
        match call:
            case Task():
                return call
            case Staged():
                return _staged(self._task(place, call.call), call.stage)
            case Call(copied=()):
                return self._bound.task(call)
            case Call():
                raise _copied(
                    place, call.compiled.name, call.copied, call.compiled.executable.device
                )
            case _:
                return _other(place, call)


def _other(place: str, call: Any) -> Task:
    """What is no call of a kernel over elements, pairs or threads."""
    # forty modules, which loops without sites do without
    from lanewise.patterns.sitewise.calls import SiteCall
    from lanewise.patterns.sitewise.lattice_kernel import LatticeKernel
    from lanewise.patterns.sitewise.steppers import SiteStepper

    match call:
        case SiteStepper() if call.copied and (mesh := call.mesh) is not None:
            which = " and ".join(map(repr, call.copied))
            raise ArgumentError(
                f"{place}, {call.name}, has copies of {which} on the parts of a mesh ({mesh}): "
                "what is written there later the loop would not see; wanted a single value for all "
                "sites, or sites on one device"
            )
        case SiteStepper() if call.copied:
            raise _copied(place, call.name, call.copied, str(call.task.device))
        case SiteStepper():
            call.check_observed()
            return call.task
        case SiteCall() | LatticeKernel():
            raise ArgumentError(
                f"{place} is {shown(call)}, which counts no steps; wanted a stepper: "
                "flow.stepper(sites, ...)"
            )
        case Compiled() | Bindable():
            raise ArgumentError(
                f"{place} is {shown(call)}, which is not bound to arrays; wanted a bound call: "
                "kernel.bind(...)"
            )
        case Loop():
            raise ArgumentError(
                f"{place} is a separate loop, {shown(call)}; wanted its calls in this list"
            )
        case list() | tuple():
            raise ArgumentError(
                f"{place} is a list; with cycle=m there are m lists, one for each step of a cycle"
            )
        case _ if callable(call):
            if name := asked_by(call):
                raise ArgumentError(
                    f"{place} is {shown(call)}, which takes {name!r}, and a loop calls its "
                    "functions without arguments; wanted a function without, which can read "
                    "loop.step"
                )
            return function_task(call)
        case _:
            raise ArgumentError(
                f"{place} is {shown(call)}; wanted a bound call (kernel.bind(...)), a stepper "
                "of sites, lw.every(k, ...) or a function without arguments"
            )


def _staged(task: Task, stage: str) -> Task:
    """The task with its launches under another stage."""

    def launches(states: States) -> list[NamedLaunch]:
        return [
            x if x.stage == BUILD else NamedLaunch(stage, x.name, x.call)
            for x in task.launches(states)
        ]

    return replace(task, launches=launches)


def _copied(place: str, name: str, copied: Sequence[str], device: str) -> ArgumentError:
    """Of a call that would not see what is written to its arguments."""
    which = " and ".join(map(repr, copied))
    return ArgumentError(
        f"{place}, {name}, was bound to a copy of {which}: what is written there later the loop "
        f"would not see; wanted a contiguous array of the parameter's type on {device}"
    )
