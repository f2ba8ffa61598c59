"""Loops on a GPU, played by functions: which steps are graphs, and in which order all comes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest

from lanewise.launch.steps import loop as step_loop
from lanewise.launch.steps.loop import loop_of, take
from lanewise.launch.steps.rhythm import Rhythm
from lanewise.launch.steps.runner import Runner
from lanewise.launch.steps.task import Clock, StepState, Task, Timed
from lanewise.loops.functions import end_called, function_task
from lanewise.profiling.profile import Profile
from lanewise.runtime import stepping
from lanewise.runtime.programs import NamedLaunch
from lanewise.support.whole_steps import WholeSteps
from tests.runtime.test_profile import Clock as Time
from tests.runtime.test_profile import PlayedDevice


class Played(PlayedDevice):
    """A device whose launches also run outside of graphs."""

    def __init__(self, time: Time) -> None:
        super().__init__(time)
        self.done: list[str] = []

    def task(self, name: str, *, alone: str = "") -> Task:
        def launch() -> None:
            if self.capturing:
                assert not alone, "no graph holds it"
                self.captured.append(lambda: self.done.append(name))
            else:
                self.done.append(name if alone else f"{name} single")

        launches = (NamedLaunch("stage", name, launch),)
        return Task(name, "", lambda _: launches, "cuda", alone=alone)

    def function(self, name: str, clock: Clock) -> Task:
        return function_task(lambda: self.done.append(f"{name} {clock.step}"))


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Played:
    played = Played(Time())
    monkeypatch.setattr(stepping, "cuda", played)
    monkeypatch.setattr(stepping, "cuda_graphs", played)
    return played


def run(tasks: list[Timed], clock: Clock, runs: tuple[int, ...], profile: Any = None) -> Runner:
    rhythm = Rhythm((tuple(tasks),), cut=True)
    runner = Runner("cuda", rhythm, clock, profile)
    step = 0
    for steps in runs:
        clock.begin(step)
        runner.run(rhythm.schedule(step, step + steps))
        step += steps
    return runner


@pytest.mark.parametrize("runs", [(1,), (31, 1), (70, 0, 30)])
@pytest.mark.parametrize("profiled", [False, True])
def test_plain_steps_are_graphs(device: Played, runs: tuple[int, ...], profiled: bool) -> None:
    tasks = [Timed(device.task("a")), Timed(device.task("b"), 2, 1)]
    run(tasks, Clock(), runs, Profile() if profiled else None)
    assert device.done == [x for n in range(sum(runs)) for x in ("a", "b")[: 1 + n % 2]]


def test_functions_stand_between_graphs(device: Played) -> None:
    clock = Clock()
    tasks = [Timed(device.task("a")), Timed(device.function("f", clock), 10, 4)]
    run(tasks, clock, (25, 15))
    wanted = [x for n in range(40) for x in (("a single", f"f {n}") if n % 10 == 4 else ("a",))]
    assert device.done == wanted


def test_single_launches_are_counted(device: Played) -> None:
    clock = Clock()
    tasks = [Timed(device.task("a", alone="why")), Timed(device.function("f", clock), 3)]
    run(tasks, clock, (7,))
    assert device.done == ["a", "f 0", "a", "a", "a", "f 3", "a", "a", "a", "f 6"]
    assert clock.step == 7


def test_functions_wait_for_the_device(device: Played) -> None:
    waits: list[str] = []
    task = device.function("f", Clock())
    end_called([task], (lambda: waits.append("check"),), lambda: waits.append("wait"))
    run([Timed(task)], Clock(), (2,))
    assert waits == ["wait", "check"] * 2


def test_graphs_are_captured_before(device: Played) -> None:
    made: list[int] = []
    graph: Callable[..., Any] = device.Graph
    device.Graph = lambda *a: (made.append(1), graph(*a))[1]  # type: ignore[assignment]
    rhythm = Rhythm(((Timed(device.task("a")),),), cut=True)
    runner = Runner("cuda", rhythm, Clock(), None)
    runner.prepare(rhythm.schedule(0, 65))
    assert len(made) == 2
    runner.run(rhythm.schedule(0, 65))
    assert len(made) == 2
    assert device.done == ["a"] * 65


def test_a_row_of_many_steps_is_one_graph(device: Played) -> None:
    """Graphs hold 32 steps or so, also where a part has many: each launch of it is captured."""
    captured: list[int] = []
    graph: Callable[..., Any] = device.Graph

    def counting(name: str, work: Any) -> Any:
        made = graph(name, work)
        captured.append(len(made.work))
        return made

    device.Graph = counting  # type: ignore[assignment]
    tasks = [Timed(device.task("a"), 3), Timed(device.task("b"), 5), Timed(device.task("c"))]
    run(tasks, Clock(), (150,))
    assert max(captured) <= 2 * (32 * 3)
    assert len(captured) <= 3
    assert device.done.count("c") == 150
    assert device.done.count("a") == 50


@pytest.mark.parametrize("runs", [(1,), (64,), (7, 0, 1, 1, 90, 3), (2, 65, 129)])
@pytest.mark.parametrize("profiled", [False, True])
def test_what_is_stepped_in_cycles(
    device: Played, monkeypatch: pytest.MonkeyPatch, runs: tuple[int, ...], profiled: bool
) -> None:
    """Every step has the launches of its place in the cycle, however runs are divided."""
    monkeypatch.setattr(step_loop, "on", lambda _: nullcontext())
    state = StepState(2, WholeSteps("it", "begin again"), 3)
    contexts, counted, made = list[int](), list[int](), list[tuple[bool, int]]()

    @contextmanager
    def around(steps: int) -> Any:
        contexts.append(steps)
        yield

    def launches(stand: Any) -> list[NamedLaunch]:
        fresh, step = stand[id(state)]
        made.append((fresh, step % 2))

        def launch() -> None:
            assert device.capturing
            device.captured.append(lambda: device.done.append(f"{fresh} {step % 2}"))

        return [NamedLaunch("update", "step", launch)]

    task = Task("it", "", launches, "cuda", (state,), around=(around,))
    loop = loop_of(task, Profile() if profiled else None)
    for steps in runs:
        take(loop, steps, counted.append)
    total = sum(runs)
    assert device.done == [f"{n == 3} {n % 2}" for n in range(3, 3 + total)]
    assert (state.step, state.fresh, sum(counted), contexts) == (3 + total, total == 0, total, list(runs))
    # bound once for each place in a cycle that a part begins at
    assert len(made) <= 1 + 2 * (1 + 2)
