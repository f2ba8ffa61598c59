"""Values by step in graphs: each launch of a graph reads the row of its step, on a device that is played."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.language.types import F32, F64
from lanewise.launch.by_step import StepArguments, SteppedLaunch, by_step
from lanewise.launch.slots import ValueSlot
from lanewise.launch.steps import rows
from lanewise.launch.steps.rhythm import Rhythm
from lanewise.launch.steps.rows import InRows, rows_of
from lanewise.launch.steps.runner import Runner
from lanewise.launch.steps.task import Clock, Task, Timed
from lanewise.loops.functions import function_task
from lanewise.passes.uniform_parameters import UNIFORMS
from lanewise.planning.plan import Plan
from lanewise.runtime import stepping
from lanewise.runtime.prepared import Piece, Places, Prepared
from lanewise.runtime.programs import NamedLaunch
from tests.corpus import case
from tests.harness import program
from tests.loops.test_graphs import Played
from tests.runtime.test_profile import Clock as Time


class Bytes(np.ndarray):
    """An array of the device."""

    def set(self, source: Any) -> None:
        self[...] = source


class Device(Played):
    """A device whose memory is that of the host."""

    name = "cuda"
    arrays = property(lambda self: self)

    def zeros(self, count: int, kind: str) -> Any:
        return np.zeros(count, kind).view(Bytes)

    def pinned(self, nbytes: int, what: str) -> Any:
        return np.zeros(nbytes, np.uint8)

    def use(self) -> Any:
        return nullcontext()

    def is_capturing(self) -> bool:
        return self.capturing

    def copy_to_graphs(self, device: str, to: int, source: int, nbytes: int) -> None:
        assert not self.capturing
        ctypes.memmove(to, source, nbytes)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    played = Device(Time())
    monkeypatch.setattr(stepping, "cuda", played)
    monkeypatch.setattr(stepping, "cuda_graphs", played)

    def get_device(name: str) -> Device:
        return played

    monkeypatch.setattr(rows, "get_device", get_device)
    return played


def stepped_task(device: Device, name: str, scale: float, *, often: int = 1) -> Task:
    """A call of two kernels: one reads sigma2 and cutoff2 from a row, of which sigma2 changes; one has no values."""
    kernels = program(case("lennard_jones"), lw.SoA(), Plan(uniforms="global", parts=2), "cuda").kernels
    pairs, combine = kernels
    array = next(a for a in pairs.arrays if a.name == UNIFORMS)
    at = {x.name: array.arrangement.address(x.name, 0, 1) for x in array.leaves}
    kinds = {x.name: x.type for x in array.leaves}

    def read(address: int) -> str:
        found = {n: _number(address + a, kinds[n]) for n, a in at.items()}
        return f"{name} {found['sigma2']:g} {found['cutoff2']:g}"

    def run(arguments: Any) -> None:
        _, address = arguments
        if device.capturing:
            device.captured.append(lambda: device.done.append(read(address)))
        else:
            device.done.append(read(address))

    def ends(arguments: Any) -> None:
        work: Callable[[], None] = lambda: device.done.append("combine")  # noqa: E731
        device.captured.append(work) if device.capturing else work()

    places = Places((0,), (array.arrangement.nbytes(1),), (np.uint8,))
    pieces = (Piece(run, (7, 0), ((UNIFORMS, places, slice(1, 2)),), ()), Piece(ends, (), (), ()))
    launch = Prepared(pieces, None, (), True)
    given: Any = (by_step(lambda n: scale * n), 9.0)
    arguments = StepArguments(name, ("sigma2", "cutoff2"), given, {})
    numbers = {"sigma2": 0.0, "cutoff2": 9.0}
    slots = {"sigma2": ValueSlot("sigma2", kinds["sigma2"], False)}
    stepped = SteppedLaunch(arguments, launch, slots, numbers, None, _never)

    packed = rows_of(_call((pairs, combine)), launch)
    assert packed is not None
    coming = InRows(stepped, packed, "cuda", launch)
    launches = (NamedLaunch("stage", name, coming),) * often
    return Task(name, "", lambda _: launches[:1], "cuda", ahead=coming)


def _call(kernels: Any) -> Any:
    """What is asked of a bound call: its kernels, and the values of step 0."""
    executable = SimpleNamespace(program=SimpleNamespace(kernels=kernels))
    values = {"sigma2": 0.0, "cutoff2": 9.0}
    return SimpleNamespace(compiled=SimpleNamespace(environment=values, executable=executable))


def _never(*arguments: Any, **named: Any) -> Any:
    raise AssertionError("numbers are all that is new")


def _number(address: int, kind: Any) -> float:
    assert kind in (F32, F64)
    return (ctypes.c_float if kind == F32 else ctypes.c_double).from_address(address).value


def run(tasks: list[Timed], clock: Clock, runs: tuple[int, ...], profile: Any = None) -> None:
    """As a loop does: the values of a run are computed first, then it is taken in pieces."""
    rhythm = Rhythm((tuple(tasks),), cut=True)
    runner = Runner("cuda", rhythm, clock, profile)
    runner.prepare(rhythm.schedule(0, 70))
    step = 0
    for steps in runs:
        for task in rhythm.tasks:
            if task.ahead is not None:
                task.ahead.clear()
        for n in range(step, step + steps):
            for ahead in rhythm.ahead_in(n):
                ahead.add(n)
        middle = step + steps // 3
        for begin, end in ((step, middle), (middle, step + steps)):
            clock.begin(begin)
            runner.run(rhythm.schedule(begin, end))
        step += steps


@pytest.mark.parametrize("runs", [(1,), (33, 1), (100, 0, 7)])
@pytest.mark.parametrize("profiled", [False, True])
def test_every_step_reads_its_values(device: Device, runs: tuple[int, ...], profiled: bool) -> None:
    a, b = stepped_task(device, "a", 0.5), stepped_task(device, "b", 3.0)
    tasks = [Timed(a), Timed(device.task("c")), Timed(b, 3, 1), Timed(a)]
    run(tasks, Clock(), runs, lw.Profile() if profiled else None)
    wanted: list[str] = []
    for n in range(sum(runs)):
        wanted += [f"a {0.5 * n:g} 9", "combine", "c"]
        if n % 3 == 1:
            wanted += [f"b {3 * n:g} 9", "combine"]
        wanted += [f"a {0.5 * n:g} 9", "combine"]
    assert device.done == wanted


def test_single_steps_between_graphs_read_theirs(device: Device) -> None:
    clock = Clock()
    function = function_task(lambda: device.done.append("f"))
    run([Timed(stepped_task(device, "a", 0.5)), Timed(function, 10, 4)], clock, (25, 15))
    wanted: list[str] = []
    for n in range(40):
        wanted += [f"a {0.5 * n:g} 9", "combine", *(["f"] if n % 10 == 4 else [])]
    assert device.done == wanted
    assert clock.step == 40


def test_rows_are_for_kernels_that_read_values(device: Device) -> None:
    kernels = program(case("lennard_jones"), lw.SoA(), Plan(parts=2), "cuda").kernels
    pieces = tuple(Piece(lambda arguments: None, (), (), ()) for _ in kernels)

    call = _call(kernels)
    assert rows_of(call, Prepared(pieces)) is None
    assert rows_of(call, Prepared(pieces[:1])) is None
    assert rows_of(call, lambda: None) is None
