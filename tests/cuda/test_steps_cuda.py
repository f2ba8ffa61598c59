"""`lw.steps` on a GPU: the bits of plain calls for all patterns, in graphs where these are possible."""

from __future__ import annotations

import math
import signal
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.runtime.device import get_device
from tests.loops.loop_problems import DT, PROBLEMS, grains, move, press, push
from tests.loops.test_steps import same

pytestmark = pytest.mark.cuda

IN_GRAPHS = {"by_step", "pairs", "grid", "gradients", "sites", "sites_in_place", "coupled"}


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_bits_are_those_of_plain_calls(name: str) -> None:
    plain, looped = PROBLEMS[name]("cuda"), PROBLEMS[name]("cuda")
    for n in range(150):
        plain.step(n)
    loop = looped.loop()
    for steps in (7, 0, 1, 33, 109):
        loop.run(steps)
    assert same(looped.state(), plain.state())


@pytest.mark.parametrize("name", sorted(IN_GRAPHS & PROBLEMS.keys()))
def test_steps_are_graphs(name: str) -> None:
    rows = PROBLEMS[name]("cuda").loop().explain().calls
    assert {row.runs for row in rows} == {"graphs"}


def test_functions_stand_between_graphs() -> None:
    rows = {row.name: row.runs for row in PROBLEMS["functions"]("cuda").loop().explain().calls}
    assert rows == {"attract": "graphs, single launches", "halve": "Python", "move": "graphs, single launches"}


@pytest.mark.parametrize("name", ["pairs", "grid", "by_step", "functions", "sites"])
def test_profiles_change_no_bits(name: str) -> None:
    plain, profiled, profile = PROBLEMS[name]("cuda"), PROBLEMS[name]("cuda"), lw.Profile()
    plain.loop().run(150)
    profiled.loop(profile=profile).run(150)
    assert same(plain.state(), profiled.state())
    assert profile.summary()["steps"]["count"] == 150


def test_values_by_step_of_all_types_and_in_all_divisions() -> None:
    """Rows of graphs, single launches between them, values of other types, and one that is refused."""
    values: list[Any] = [0, np.float64(0.25), np.float32(0.5), np.int32(1), 0.125]
    bodies, other = grains(40, "cuda"), grains(40, "cuda")
    still = get_device("cuda").arrays.zeros((40, 2), np.float32)

    def value(n: int) -> Any:
        return "no" if n == 2500 else values[n % 5]

    call = move.bind(bodies, still, DT, lw.by_step(value))
    seen: list[int] = []
    loop = lw.steps([call, lw.every(100, lambda: seen.append(loop.step), at=7)])
    for steps in (1, 31, 700, 3, 1400):
        loop.run(steps)
    with pytest.raises(lw.ArgumentError, match="step 2500"):
        loop.run(1000)
    assert loop.step == 2500
    assert seen == list(range(7, 2500, 100))
    for n in range(2500):
        move(other, still, DT, values[n % 5])
    assert same([bodies.position.get()], [other.position.get()])


def test_structures_are_kept_in_graphs() -> None:
    problem = PROBLEMS["open_grid"]("cuda")
    loop = problem.loop(structures="keep")
    assert {row.runs for row in loop.explain().calls} == {"graphs"}
    loop.run(100)
    assert all(np.isfinite(x).all() for x in problem.state())


def test_preparing_captures_and_changes_nothing() -> None:
    problem = PROBLEMS["pairs"]("cuda")
    before = problem.state()
    loop = problem.loop()
    loop.prepare()
    assert same(problem.state(), before)


@pytest.mark.parametrize("kernel", [press, push])
def test_positions_of_no_use_are_found(kernel: Any) -> None:
    """In graphs between which steps they came; call by call in their step."""
    world = lw.Periodic((1, 1)) if kernel is press else lw.Open()
    bodies = grains(300, "cuda")
    force = kernel.using(lw.StaticGrid(radius=0.1, world=world)).bind(bodies, bodies, 5.0)
    kick = move.bind(bodies, force.results[0], DT, 0.0)
    spoil = move.bind(bodies, force.results[0], DT, math.nan)
    loop = lw.steps([force, kick, lw.every(100, spoil, at=57)])
    with pytest.raises(lw.ArgumentError, match="a search needs finite numbers") as raised:
        loop.run(90)
    where = "found between step" if kernel is press else "found in step 58"
    assert where in str(raised.value)
    with pytest.raises(lw.StateError, match="the loop was stopped"):
        loop.run(1)
    fresh = grains(300, "cuda")
    bodies.position, bodies.velocity = fresh.position, fresh.velocity
    loop.step = 0
    loop.run(50)
    assert loop.step == 50


def test_ctrl_c_ends_with_whole_steps() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        problem, whole = PROBLEMS["pairs"]("cuda"), PROBLEMS["pairs"]("cuda")
        loop = problem.loop()
        pressed: list[int] = []

        def press_it(loop: Any) -> None:
            if not pressed:
                pressed.append(loop.step)
                signal.raise_signal(signal.SIGINT)

        with pytest.raises(KeyboardInterrupt):
            loop.run(200, callback=press_it, every=50)
        whole.loop().run(loop.step)
        assert same(problem.state(), whole.state())
    finally:
        signal.signal(signal.SIGINT, before)


def test_results_are_there_when_a_run_returns() -> None:
    """Whatever stream the caller reads on."""
    bodies = grains(4096, "cuda")
    still = get_device("cuda").arrays.zeros((4096, 2), np.float32)
    loop = lw.steps([move.bind(bodies, still, 0.0, 0.5)])
    module = __import__("cupy")
    with module.cuda.Stream(non_blocking=True):
        loop.run(64)
        found = bodies.velocity.get()
    start = grains(4096).velocity
    for _ in range(64):
        start = start + np.float32(0.5) * np.array([1, 0], np.float32)
    assert np.array_equal(found, start)


def test_calls_on_two_devices_are_refused() -> None:
    here, there = grains(8), grains(8, "cuda")
    with pytest.raises(lw.ArgumentError, match="the calls run on cpu and cuda"):
        lw.steps([move.bind(b, b.velocity.copy(), DT, 0.0) for b in (here, there)])


def test_arrays_that_grew_are_bound_again() -> None:
    bodies = grains(8, "cuda")
    still = get_device("cuda").arrays.zeros((8, 2), np.float32)
    loop = lw.steps([move.bind(bodies, still, DT, 0.0)])
    loop.run(40)
    bodies.append(grains(1, "cuda"))
    with pytest.raises(lw.ArgumentError, match="bind the call again"):
        loop.run(40)
    assert loop.step == 40
