"""Ctrl-C in the Python interface of all products: the step ends and is counted, then KeyboardInterrupt comes.

The signal is raised by a launch, so it comes within a step however fast or slow the machine is.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.runtime import cuda_graphs, stepping
from lanewise.runtime.memory import to_host
from lanewise.sims import boids, gravity, lbm
from lanewise.support import whole_steps
from lanewise.support.whole_steps import PIECE_SECONDS

STEPS = 75  # of a whole run: more than two graphs, and an odd number
DT = 1e-3


@pytest.fixture(autouse=True)
def ctrl_c() -> Iterator[None]:
    """Ctrl-C arrives: where tests run in the background of a shell it would be ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


@dataclass(frozen=True)
class Product:
    """How to make a simulation, run it, and see all of its state. uses: what needs a state that is one."""

    name: str
    make: Callable[[str], Any]
    run: Callable[..., Any]
    state: Callable[[Any], list[bytes]]
    uses: tuple[Callable[[Any], Any], ...]


def _bytes(*arrays: Any) -> list[bytes]:
    return [np.ascontiguousarray(to_host(a)).tobytes() for a in arrays]


def _gravity(device: str) -> Any:
    particles = gravity.make_initial_conditions("plummer", 24, 2)
    return gravity.Simulation(gravity.make_bodies(particles, device=device), softening=0.05, integrator="yoshida4")


def _by_tree(device: str) -> Any:
    bodies = gravity.make_bodies(gravity.make_initial_conditions("plummer", 70, 2), device=device)
    return gravity.Simulation(bodies, softening=0.05, search=lw.Tree(theta=0.7, order=1, leaf=8))


def _flow(device: str) -> Any:
    walls = {1: lbm.Wall("wall"), 2: lbm.Wall("lid", velocity=(0.1, 0.0))}
    edges: Any = {"x": "wall", "y": ("wall", "lid")}
    return lbm.Simulation(shape=(9, 8), viscosity=0.05, edges=edges, kinds=walls, device=device)


def _flock(device: str) -> Any:
    return boids.Flock(40, world=20.0, seed=3, device=device)


GRAVITY = Product(
    "gravity", _gravity, lambda s, n, *more, **named: s.run(n, DT, *more, **named),
    lambda s: [*(_bytes(*s.bodies.numpy().values())), repr((s.step, s.time, s.energy())).encode()],
    (lambda s: s.run(1, DT), lambda s: s.diagnostics(), lambda s: s.acceleration, lambda s: setattr(s, "softening", 0.1)),
)  # fmt: skip
BY_TREE = replace(GRAVITY, name="gravity by tree", make=_by_tree)
"""It has an order of its bodies, made anew in every 32nd step, which is part of its state."""

FLOW = Product(
    "lbm", _flow, lambda s, n, *more, **named: s.run(n, *more, **named),
    lambda s: [*_bytes(s.engine.arriving(), s.velocity), repr((s.step, s.mass)).encode()],
    (
        lambda s: s.run(1), lambda s: s.velocity, lambda s: s.density, lambda s: s.force_on("lid"),
        lambda s: s.checkpoint("a.h5"), lambda s: setattr(s, "viscosity", 0.1),
    ),
)  # fmt: skip
FLOCK = Product(
    "boids", _flock, lambda s, n, *more, **named: s.run(n, DT, *more, **named),
    lambda s: [*_bytes(s.position, s.forward, s.speed), repr((s.step, s.time, s.polarisation())).encode()],
    (
        lambda s: s.run(1, DT), lambda s: s.state, lambda s: s.position, lambda s: s.polarisation(), lambda s: s.checkpoint("a.h5"),
        lambda s: setattr(s, "cohesion_weight", 1.0),
    ),
)  # fmt: skip


@pytest.fixture(params=[GRAVITY, BY_TREE, FLOW, FLOCK], ids=lambda p: p.name)
def product(request: pytest.FixtureRequest) -> Product:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@contextmanager
def pressed(*at: int, then: Callable[[], Any] | None = None) -> Iterator[None]:
    """Ctrl-C, or what `then` does, after the launches of these numbers, counted from 1: kernels on a CPU, graphs on a
    GPU.
    """
    seen, launch = 0, cuda_graphs.Graph.launch

    def launched() -> None:
        nonlocal seen
        seen += 1
        if seen in at:
            (then or press)()

    def repeat(calls: Any, times: int) -> None:
        for _ in range(times):
            for call in calls:
                call()
                launched()

    def replay(graph: cuda_graphs.Graph) -> None:
        launch(graph)
        launched()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(stepping, "repeat", repeat)
        patched.setattr(cuda_graphs.Graph, "launch", replay)
        yield
    assert seen >= max(at)


def press(times: int = 1) -> None:
    for _ in range(times):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("seconds", [0.0, PIECE_SECONDS], ids=["one by one", "in pieces"])
def test_steps_end_and_are_counted_before_it_is_raised(
    product: Product, device: str, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the bit: what was interrupted is a run of that many steps, and goes on as one that was not."""
    simulation = product.make(device)
    monkeypatch.setattr(whole_steps, "PIECE_SECONDS", seconds)
    with pressed(3), pytest.raises(KeyboardInterrupt):
        product.run(simulation, STEPS)
    steps = simulation.step
    assert 0 < steps <= (STEPS if seconds else 3)
    assert product.state(simulation) == product.state(product.run(product.make(device), steps))
    if steps < STEPS:
        product.run(simulation, STEPS - steps)
    assert product.state(simulation) == product.state(product.run(product.make(device), STEPS))


def test_it_may_be_pressed_at_any_launch(product: Product, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the first steps, one after the other, in one simulation."""
    simulation = product.make("cpu")
    monkeypatch.setattr(whole_steps, "PIECE_SECONDS", 0.0)
    product.run(simulation, 1)
    for at in range(1, 12):
        with pressed(at), pytest.raises(KeyboardInterrupt):
            product.run(simulation, 100)
    steps = simulation.step
    assert 12 <= steps < 200
    assert product.state(simulation) == product.state(product.run(product.make("cpu"), steps))


def test_pressed_twice_it_stops_at_once_and_the_state_is_used_no_more(
    product: Product, device: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    simulation = product.make(device)
    product.run(simulation, 4)
    time = getattr(simulation, "time", None)
    with pressed(1, then=lambda: press(2)), pytest.raises(KeyboardInterrupt):
        product.run(simulation, STEPS)
    assert (simulation.step, getattr(simulation, "time", None)) == (4, time)
    for use in product.uses:
        with pytest.raises(lw.StateError) as error:
            use(simulation)
        assert " was stopped within step" in str(error.value) or " were stopped within step" in str(error.value)
        assert "arrays are of no step, and nothing computed from them holds;" in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_an_error_within_a_step_is_remembered_too(
    product: Product, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise MemoryError("no more")

    simulation = product.make(device)
    product.run(simulation, 4)
    with pressed(1, then=fail), pytest.raises(MemoryError):
        product.run(simulation, 3)
    with pytest.raises(lw.StateError, match="stopped within step"):
        product.run(simulation, 1)
    assert simulation.step == 4


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_callbacks_may_end_a_run(product: Product, device: str, error: type[BaseException]) -> None:
    """Within a callback nothing is half done, so Ctrl-C is raised there and then."""
    seen: list[int] = []

    def callback(s: Any) -> None:
        seen.append(s.step)
        if s.step == 6:
            if error is KeyboardInterrupt:
                press()
                seen.append(-1)
            raise error

    simulation = product.make(device)
    with pytest.raises(error):
        product.run(simulation, 20, callback, every=2)
    assert (seen, simulation.step) == ([2, 4, 6], 6)
    assert product.state(product.run(simulation, 5)) == product.state(product.run(product.make(device), 11))


def test_while_kernels_compile(product: Product, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it is raised there and then or after the step: the state is whole, and the next run compiles what is
    missing.
    """
    simulation = product.make("cpu")
    make_program = stepping.make_program

    def compiling(*arguments: Any, **named: Any) -> Any:
        press()
        return make_program(*arguments, **named)

    for module in list(sys.modules.values()):
        if getattr(module, "make_program", None) is make_program:
            monkeypatch.setattr(module, "make_program", compiling)
    with pytest.raises(KeyboardInterrupt):
        product.run(simulation, 5)
    monkeypatch.undo()
    product.run(simulation, 5 - simulation.step)
    assert product.state(simulation) == product.state(product.run(product.make("cpu"), 5))


def test_in_another_thread_runs_go_on(product: Product, device: str) -> None:
    """Python runs handlers in the main thread: there KeyboardInterrupt is raised, and the simulation is not
    disturbed.
    """
    simulation = product.make(device)
    product.run(simulation, 1)  # compiles
    thread = threading.Thread(target=lambda: product.run(simulation, STEPS - 1))

    def wait() -> None:
        thread.start()
        while thread.is_alive():
            thread.join(0.05)
        thread.join()

    with pressed(1):
        with pytest.raises(KeyboardInterrupt):
            wait()
        thread.join()
    assert product.state(simulation) == product.state(product.run(product.make(device), STEPS))


@pytest.mark.parametrize("raises", [False, True])
def test_handlers_of_a_host_program_are_called_after_the_step(product: Product, device: str, raises: bool) -> None:
    simulation = product.make(device)
    seen: list[tuple[int, int]] = []

    def handler(number: int, frame: object) -> None:
        seen.append((number, simulation.step))
        if raises:
            raise TimeoutError("the host's own")

    before = signal.signal(signal.SIGINT, handler)
    try:
        with pressed(1):
            if raises:
                with pytest.raises(TimeoutError, match="the host's own"):
                    product.run(simulation, STEPS)
            else:
                product.run(simulation, STEPS)
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [(signal.SIGINT, seen[0][1])]
    assert simulation.step == (seen[0][1] if raises else STEPS)
    assert product.state(simulation) == product.state(product.run(product.make(device), simulation.step))
