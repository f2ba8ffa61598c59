"""Running loops: what callbacks see, what is raised where, and what a loop is afterwards."""

from __future__ import annotations

import copy
import math
import pickle
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.support.whole_steps import LONG_GRAPH
from tests.loops.loop_problems import (
    DT,
    PROBLEMS,
    attract,
    flow,
    full_of,
    grains,
    move,
    push,
    shake,
)


@pytest.fixture(autouse=True)
def ctrl_c() -> Iterator[None]:
    """Ctrl-C arrives: where tests run in the background of a shell it would be ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def small(**values: Any) -> tuple[Any, list[Any]]:
    """Bodies, and the calls of a step."""
    bodies = grains(8)
    force = attract.bind(bodies, bodies, 0.01)
    given: dict[str, Any] = {"dt": DT, "shake": 0.0, **values}
    return bodies, [force, move.bind(bodies, force.results[0], **given)]


def state(bodies: Any) -> bytes:
    return bodies.position.tobytes() + bodies.velocity.tobytes()


def after(steps: int, **values: Any) -> bytes:
    bodies, calls = small(**values)
    lw.steps(calls).run(steps)
    return state(bodies)


# ------------------------------------------------------------ callbacks


def test_callbacks_see_whole_steps_and_may_write() -> None:
    bodies, calls = small()
    seen: list[int] = []

    def look(loop: Any) -> None:
        seen.append(loop.step)
        bodies.velocity *= np.float32(0.5)

    loop = lw.steps(calls)
    assert loop.run(10, look, 4) is loop
    assert seen == [4, 8, 10]
    other, again = small()
    loop = lw.steps(again)
    for steps in (4, 4, 2):
        loop.run(steps)
        other.velocity *= np.float32(0.5)
    assert state(bodies) == state(other)


def test_a_callback_that_raises_leaves_a_whole_step() -> None:
    bodies, calls = small()
    loop = lw.steps(calls)

    def stop(loop: Any) -> None:
        if loop.step == 6:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        loop.run(10, callback=stop, every=3)
    assert loop.step == 6
    loop.run(4)
    assert state(bodies) == after(10)


def test_a_bar_shows_the_steps(capsys: pytest.CaptureFixture[str]) -> None:
    bodies, calls = small()
    lw.steps(calls).run(12, progress=True)
    assert "steps" in capsys.readouterr().err
    assert state(bodies) == after(12)


def test_a_loop_does_not_run_within_itself() -> None:
    _, calls = small()
    loop = lw.steps(calls)
    with pytest.raises(lw.ArgumentError, match="this loop is running: a callback or a function"):
        loop.run(2, callback=lambda loop: loop.run(1))
    assert loop.step == 1
    loop.run(1)


def test_a_second_thread_waits() -> None:
    bodies, calls = small()
    loop = lw.steps(calls)
    threads = [threading.Thread(target=lambda: [loop.run(5) for _ in range(20)]) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert loop.step == 300
    assert state(bodies) == after(300)


# ------------------------------------------------------------ functions


def test_functions_see_the_step_that_they_are_in() -> None:
    _, calls = small()
    seen: list[int] = []
    loop = lw.steps([*calls, lw.every(7, lambda: seen.append(loop.step), at=3)])
    loop.run(2).run(30).run(0).run(8)
    assert seen == [3, 10, 17, 24, 31, 38]


def test_a_function_that_raises_leaves_no_step() -> None:
    bodies, (force, kick) = small()

    def fail() -> None:
        if loop.step == 5:
            raise ValueError("five")

    loop = lw.steps([force, fail, kick])
    with pytest.raises(ValueError, match="five") as raised:
        loop.run(9)
    assert raised.value.__notes__ == ["raised in step 5 of a loop of lw.steps"]
    with pytest.raises(lw.StateError, match="the loop was stopped within step") as refused:
        loop.run(1)
    assert "say which step they are of with loop.step = n" in str(refused.value)
    bodies.position, bodies.velocity = grains(8).position, grains(8).velocity
    loop.step = 20
    loop.run(9)
    assert loop.step == 29
    assert state(bodies) == after(9)


@flow.observer
def momentum(f: lw.populations) -> lw.f32:
    total = lw.f32(0)
    for q in lw.D2Q9:
        total += f[q] * q.x
    return total


def uses_of_sites(sites: Any) -> dict[str, Callable[[], object]]:
    values = flow.populations(sites)
    stepper, other = flow.stepper(sites, omega=0.5), lw.steps([flow.stepper(sites, omega=0.5)])
    return {
        "observer": lambda: momentum(sites),
        "populations": lambda: flow.populations(sites),
        "set_populations": lambda: flow.set_populations(sites, values),
        "plain step": lambda: flow(sites, omega=0.5),
        "stepper": lambda: stepper.run(1),
        "another loop": lambda: other.run(1),
    }


@pytest.mark.parametrize("streaming", ["pull", "in-place"])
@pytest.mark.parametrize("use", ["observer", "populations", "set_populations", "plain step", "stepper", "another loop"])
def test_what_is_called_within_a_step_is_told_that_it_runs(use: str, streaming: str) -> None:
    """Not that it was stopped: a callback, which sees whole steps, may do the same."""
    sites = full_of(streaming, "cpu")
    call = uses_of_sites(sites)[use]
    seen: list[str] = []

    def within() -> None:
        with pytest.raises(lw.StateError) as error:
            call()
        seen.append(str(error.value))

    loop = lw.steps([flow.stepper(sites, omega=0.5), within])
    loop.run(3)
    assert len(seen) == 3
    for n, text in enumerate(seen):
        assert re.fullmatch(
            r"these sites are running, within steps? \d( to \d)?: their arrays are of no step before they are done; "
            "use a callback of the run, which sees whole steps, or wait for its end", text
        ), (n, text)  # fmt: skip
    wanted = full_of(streaming, "cpu")
    flow.stepper(wanted, omega=0.5).run(3)
    np.testing.assert_array_equal(flow.populations(sites), flow.populations(wanted))
    loop.run(1, callback=lambda loop: call())
    # set populations begin anew, and who steps in a callback steps once more
    assert sites.step == {"observer": 4, "populations": 4, "set_populations": 0}.get(use, 5)


def test_another_thread_is_told_that_sites_run() -> None:
    sites = full_of("pull", "cpu")
    seen: list[str] = []

    def beside() -> None:
        try:
            flow.populations(sites)
        except lw.StateError as error:
            seen.append(str(error))

    def within() -> None:
        thread = threading.Thread(target=beside)
        thread.start()
        thread.join()

    lw.steps([flow.stepper(sites, omega=0.5), within]).run(1)
    assert "these sites are running, within step 1" in seen[0]
    assert flow.populations(sites).shape == (9, 6, 8)


def test_a_loop_is_not_prepared_within_itself() -> None:
    _, calls = small()
    loop = lw.steps([*calls, lambda: loop.prepare()])
    with pytest.raises(lw.StateError, match="the loop is running, within step 1"):
        loop.run(2)
    with pytest.raises(lw.StateError, match="the loop was stopped within step 1"):
        loop.run(1)


def test_a_function_cannot_set_the_step() -> None:
    _, calls = small()
    loop = lw.steps([*calls, lambda: setattr(loop, "step", 7)])
    with pytest.raises(lw.ArgumentError, match="cannot set the step of its loop"):
        loop.run(1)
    loop.step = 0
    with pytest.raises(lw.ArgumentError, match="wanted"):
        lw.steps(calls).run(-1)

    def value(n: int) -> float:
        if n == 1:
            stepped.step = 7
        return DT

    bodies = grains(4)
    stepped = lw.steps([move.bind(bodies, np.zeros((4, 2), np.float32), lw.by_step(value), 0.0)])
    with pytest.raises(lw.ArgumentError, match=r"or of lw.by_step, cannot set the step of its loop"):
        stepped.run(3)
    assert stepped.step == 1
    lw.steps(calls).run(3, callback=lambda loop: setattr(loop, "step", 0))


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_loop_is_not_copied(how: Callable[[Any], object]) -> None:
    _, calls = small()
    with pytest.raises(lw.ArgumentError, match="cannot be copied or pickled: save the arrays"):
        how(lw.steps(calls))


# ------------------------------------------------------------ values by step


def test_values_are_asked_for_once_a_step() -> None:
    asked: list[int] = []

    def value(n: int) -> float:
        asked.append(n)
        return shake(n)

    _, calls = small(shake=lw.by_step(value))
    assert asked == [0]
    loop = lw.steps(calls)
    loop.run(1500)
    loop.step = 5
    loop.run(2)
    assert asked == [0, *range(1500), 5, 6]


def test_values_of_other_types_are_looked_at_like_any() -> None:
    """Integers, numbers of NumPy, and then one that is none."""
    values: list[Any] = [0, np.float64(0.25), np.float32(0.5), np.int32(1), True, 0.125]
    bodies, calls = small(shake=lw.by_step(lambda n: values[n % 6]))
    lw.steps(calls).run(12)
    other, (force, _) = small()
    for n in range(12):
        force()
        move(other, force.results[0], DT, values[n % 6])
    assert state(bodies) == state(other)


def test_a_value_that_is_refused_names_its_step() -> None:
    bodies, calls = small(shake=lw.by_step(lambda n: "no" if n == 40 else 0.0))
    loop = lw.steps(calls)
    with pytest.raises(lw.ArgumentError, match="'shake' must be one f32 for all") as raised:
        loop.run(100)
    assert str(raised.value).endswith("(lw.by_step, step 40)")
    assert loop.step == 40
    assert state(bodies) == after(40)


def test_a_function_of_values_that_raises_names_its_step() -> None:
    bodies, calls = small(shake=lw.by_step(lambda n: 1 / (1030 - n) * 0))
    loop = lw.steps(calls)
    with pytest.raises(ZeroDivisionError) as raised:
        loop.run(2000)
    (note,) = raised.value.__notes__
    assert note == ("move: 'shake' is lw.by_step(...), whose function raised this for step 1030")
    assert loop.step == 1030
    assert state(bodies) == after(1030)


def test_a_call_by_step_does_not_run_alone() -> None:
    _, (_, kick) = small(shake=lw.by_step(shake))
    with pytest.raises(lw.ArgumentError) as raised:
        kick()
    assert str(raised.value) == (
        "move was bound with lw.by_step(...), and a call alone is no step of a loop: wanted lw.steps([...]).run(n)"
    )


def test_a_plain_call_is_no_step() -> None:
    bodies = grains(8)
    with pytest.raises(lw.ArgumentError) as raised:
        move(bodies, np.zeros((8, 2), np.float32), DT, shake=lw.by_step(shake))
    assert str(raised.value) == (
        "move: lw.by_step(...) gives a value for each step of a loop, and a plain call is none; "
        "wanted lw.steps([move.bind(...)]).run(n)"
    )


def test_arrays_do_not_come_by_step() -> None:
    bodies = grains(8)
    rows = np.zeros((8, 2), np.float32)
    with pytest.raises(lw.ArgumentError, match=r"'force' is lw\.by_step") as raised:
        move.bind(bodies, lw.by_step(lambda n: rows), DT, 0.0)
    assert "what differs between elements lies in an array" in str(raised.value)
    with pytest.raises(lw.ArgumentError, match=r"lw\.by_step takes a function"):
        lw.by_step(3.0)  # pyright: ignore[reportArgumentType]


def test_values_by_step_are_proved() -> None:
    """An index that a value leads out of a table is refused in the step that has it."""

    @lw.elementwise
    def pick(x: lw.f32, table: lw.Array1[lw.f32], row: lw.i32) -> lw.f32:
        return x + table[row]

    x, table = np.zeros(5, np.float32), np.arange(4, dtype=np.float32)
    call = pick.bind(x, table, lw.by_step(lambda n: n))
    loop = lw.steps([call])
    loop.run(4)
    assert call.results[0].tolist() == [3.0] * 5
    with pytest.raises(lw.ArgumentError, match=r"outside(.|\n)*step 4\)"):
        loop.run(1)
    assert loop.step == 4


# ------------------------------------------------------------ Ctrl-C


@pytest.mark.parametrize("where", [0, 1, LONG_GRAPH, 70, 71])
def test_ctrl_c_ends_with_whole_steps(where: int) -> None:
    bodies, (force, kick) = small()

    def press() -> None:
        if loop.step == where and not pressed:
            pressed.append(where)
            signal.raise_signal(signal.SIGINT)

    pressed: list[int] = []
    loop = lw.steps([force, press, kick])
    with pytest.raises(KeyboardInterrupt):
        loop.run(72)
    assert where < loop.step <= 72
    assert state(bodies) == after(loop.step)
    loop.run(90 - loop.step)
    assert state(bodies) == after(90)


def test_ctrl_c_twice_stops_within_a_step() -> None:
    sites = full_of("pull", "cpu")
    stepper = flow.stepper(sites, omega=0.5)

    def press() -> None:
        if loop.step == 3:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    loop = lw.steps([stepper, press])
    with pytest.raises(KeyboardInterrupt):
        loop.run(9)
    with pytest.raises(lw.StateError, match="the loop was stopped"):
        loop.run(1)
    loop.step = 0
    with pytest.raises(lw.StateError, match="these sites"):
        loop.run(1)
    with pytest.raises(lw.StateError):
        stepper.run(1)


HOME = str(Path(lw.__file__).parent)


def pressed_at(number: int, call: Callable[[], object]) -> bool | None:
    """Make a call, with Ctrl-C as its function of that number begins: whether it was interrupted; None where it has
    fewer.
    """
    left = number

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal left
        del argument
        if event == "call" and frame.f_code.co_filename.startswith(HOME):
            left -= 1
            if not left:
                sys.setprofile(None)
                signal.raise_signal(signal.SIGINT)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(before)
    return None if left > 0 else False


@pytest.mark.parametrize("kind", ["calls", "callback", "bar", "stepper", "nested"])
def test_wherever_ctrl_c_comes_a_loop_runs_on_from_a_whole_step(kind: str) -> None:
    def looped() -> tuple[Any, Callable[[], bytes]]:
        if kind == "stepper":
            sites = full_of("pull", "cpu")
            return lw.steps([flow.stepper(sites, omega=1.2)]), lambda: flow.populations(sites).tobytes()
        bodies, calls = small()
        if kind != "nested":
            return lw.steps(calls), lambda: state(bodies)
        inner = lw.steps(calls)
        return lw.steps([lambda: inner.run(1)]), lambda: state(bodies)

    options: dict[str, Any] = {}
    if kind == "callback":
        options["callback"] = lambda loop: None  # pyright: ignore[reportUnknownLambdaType]
    elif kind == "bar":
        options["progress"] = True
    loop, seen = looped()
    for _ in range(3):  # what only first runs do is done
        loop.run(2, **options)
    number, interrupted, states = 0, 0, {loop.step: seen()}
    while (ended := pressed_at(number := number + 1, lambda: loop.run(2, **options))) is not None:
        interrupted += ended
        states[loop.step] = seen()
    assert interrupted > 10
    loop.run(1, **options)
    last = loop.step
    states[last] = seen()
    loop, seen = looped()
    while loop.step < last:
        loop.run(1)
        assert states.get(loop.step, seen()) == seen(), loop.step


# ------------------------------------------------------------ arrays and positions


def test_arrays_that_grew_are_bound_again() -> None:
    bodies, calls = small()
    loop = lw.steps(calls)
    loop.run(3)
    bodies.append(grains(1))
    with pytest.raises(lw.ArgumentError, match="bind the call again"):
        loop.run(1)
    assert loop.step == 3


def test_arrays_that_grow_within_a_step_are_found() -> None:
    bodies, calls = small()
    loop = lw.steps([lw.every(5, lambda: bodies.append(grains(1)), at=4), *calls])
    with pytest.raises(lw.ArgumentError, match="bind the call again"):
        loop.run(9)


def test_results_that_may_not_be_written_are_refused() -> None:
    bodies = grains(8)
    out = np.zeros((8, 2), np.float32)
    loop = lw.steps([attract.bind(bodies, bodies, 0.01, out=out)])
    loop.run(2)
    out.flags.writeable = False
    with pytest.raises(lw.ArgumentError, match="read-only"):
        loop.run(1)


@pytest.mark.parametrize("structures", ["follow", "keep"])
@pytest.mark.parametrize("profiled", [False, True])
def test_positions_of_no_use_are_found_in_their_step(structures: Any, profiled: bool) -> None:
    bodies = grains(300)
    force = push.using(lw.StaticGrid(radius=0.1)).bind(bodies, bodies, 5.0)
    broken = move.bind(bodies, force.results[0], DT, lw.by_step(lambda n: math.nan if n == 12 else 0.0))
    profile = lw.Profile() if profiled else None
    loop = lw.steps([force, broken], structures=structures, profile=profile)
    with pytest.raises(lw.ArgumentError, match=r"'target'|'source'") as raised:
        loop.run(100)
    assert str(raised.value).endswith("a search needs finite numbers; found in step 13 of the loop")
    with pytest.raises(lw.StateError):
        loop.run(1)


def test_structures_are_kept_where_that_is_asked_for() -> None:
    """The cells of bind stay, so that the order of a sum is another one than that of a plain call."""
    bits: list[list[bytes]] = []
    for structures in ("follow", "keep"):
        problem = PROBLEMS["open_grid"]("cpu")
        problem.loop(structures=structures).run(60)
        bits.append([x.tobytes() for x in problem.state()])
    bound = PROBLEMS["open_grid"]("cpu")
    loop: Any = bound.loop(structures="keep")
    assert not any(row.note for row in loop.explain().calls)
    assert bits[0] != bits[1]
    followed = PROBLEMS["open_grid"]("cpu").loop().explain()
    assert "lw.StaticGrid in lw.Periodic(...)" in str(followed)


# ------------------------------------------------------------ profiles, explanations


def test_a_profile_sees_every_launch() -> None:
    bodies = grains(300)
    world = lw.StaticGrid(radius=0.1, world=lw.Bounded((-9, -9), (9, 9)))
    force = push.using(world).bind(bodies, bodies, 5.0)
    kick = move.bind(bodies, force.results[0], DT, lw.by_step(shake))
    profile = lw.Profile()
    lw.steps([force, kick, lw.every(2, _nothing)], profile=profile).run(50)
    stages = profile.summary()["stages"]
    rows = {(stage, name) for stage, row in stages.items() for name in row["parts"]}
    assert {
        ("build", "look at positions"), ("build", "cells"), ("search", "push"),
        ("elementwise", "move"), ("host", "_nothing"),
    } <= rows  # fmt: skip
    assert profile.summary()["steps"]["count"] == 50


@pytest.mark.cuda
def test_a_profile_tells_count_scan_and_fill_of_a_grid_apart() -> None:
    bodies = grains(300).to("cuda")
    world = lw.StaticGrid(radius=0.1, world=lw.Bounded((-9, -9), (9, 9)))
    profile = lw.Profile()
    lw.steps([push.using(world).bind(bodies, bodies, 5.0)], profile=profile).run(50)
    parts = profile.summary()["stages"]["build"]["parts"]
    assert {"cells_count", "cells_scan", "cells_fill", "cells_rank"} <= {*parts}


def _nothing() -> None: ...


def test_profiles_change_no_bits() -> None:
    for name in ("grid", "by_step", "sites", "threads", "functions"):
        plain, profiled = PROBLEMS[name]("cpu"), PROBLEMS[name]("cpu")
        plain.loop().run(70)
        profiled.loop(profile=lw.Profile()).run(70)
        assert [x.tobytes() for x in plain.state()] == [x.tobytes() for x in profiled.state()]


def test_explanations_name_every_call() -> None:
    _, calls = small(shake=lw.by_step(shake))
    loop = lw.steps([*calls, lw.every(4, _nothing, at=1)])
    calls_of, _, launches = str(loop.explain()).partition("\n\nlaunches of a step\n")
    *rows, last = launches.splitlines()
    assert [row.split()[0] for row in rows] == ["attract", "move"]
    assert last == "how far predictions for single launches are off has not been measured"
    assert calls_of == (
        "a loop on cpu; the same launches come again after 4 steps\n"
        "call      pattern      steps       runs\n"
        "attract   pairwise     all         compiled\n"
        "move      elementwise  all         compiled\n"
        "_nothing  function     n % 4 == 1  Python"
    )
    assert loop.explain().json()["cycle"] == loop.cycle == 4
    html: Any = loop.explain()
    assert "<td" in html._repr_html_()
    assert repr(loop) == "<loop of attract, move, _nothing on cpu, step 0>"


def test_preparing_changes_nothing() -> None:
    problem = PROBLEMS["sites"]("cpu")
    before = [x.tobytes() for x in problem.state()]
    loop = problem.loop()
    loop.prepare()
    assert [x.tobytes() for x in problem.state()] == before
    assert loop.step == 0
