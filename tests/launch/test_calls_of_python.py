"""How many functions of Python a call takes on the host: a number that no other program of the machine changes, unlike a
time. A most may be lowered, and raised by what is worth the time of every short call.
"""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from tests.launch.stand_in_gpu import DEVICE, Array, Launches, put_in

pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")

HOMES = (str(Path(lw.__file__).parent), contextlib.__file__)
WARM = 70  # calls before one is counted: kinds of calls, handlers and graphs are there


class Body(lw.Record):
    """A point mass."""

    position: lw.vec3
    velocity: lw.vec3
    mass: lw.f32


@pytest.fixture(autouse=True)
def gpu(monkeypatch: pytest.MonkeyPatch) -> Launches:
    return put_in(monkeypatch)


def functions_of(call: Callable[[], object]) -> Counter[str]:
    """The functions of lanewise that a call enters, and contexts, with how often. Comprehensions are functions until
    Python 3.11 alone.
    """
    for _ in range(WARM):
        call()
    found = Counter[str]()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        del argument
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(HOMES) and not code.co_name.startswith("<"):
            found[f"{Path(code.co_filename).stem}.{code.co_name}"] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return found


def bodies(layout: lw.Layout | None = None) -> Any:
    rng = np.random.default_rng(1)
    return Body.array(
        position=rng.random((300, 3)), velocity=rng.random((300, 3)), mass=rng.random(300), layout=layout, device=DEVICE
    )


def make_gravity() -> Any:
    @lw.pairwise
    def gravity(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
        d = source.position - target.position
        return source.mass * lw.rsqrt(lw.dot(d, d) + softening2) ** 3 * d

    return gravity


def make_drift() -> Any:
    @lw.elementwise
    def drift(body: Body, dt: lw.f32):
        body.position += dt * body.velocity

    return drift


def make_axpy() -> Any:
    @lw.elementwise
    def axpy(a: lw.f32, x: lw.f32, y: lw.f32) -> lw.f32:
        return a * x + y

    return axpy


def plain_pairs(layout: lw.Layout | None = None) -> Callable[[], object]:
    gravity, array = make_gravity(), bodies(layout)
    return lambda: gravity(array, array, 1e-4)


def plain_elements(layout: lw.Layout | None = None) -> Callable[[], object]:
    drift, array = make_drift(), bodies(layout)
    return lambda: drift(array, 1e-3)


def plain_values() -> Callable[[], object]:
    axpy, x = make_axpy(), Array(np.ones(300, np.float32))
    return lambda: axpy(2.0, x, x)


def bound_pairs() -> Callable[[], object]:
    array = bodies()
    return make_gravity().bind(array, array, 1e-4)


def loop() -> Callable[[], object]:
    array = bodies()
    steps = lw.steps([make_gravity().bind(array, array, 1e-4), make_drift().bind(array, 1e-3)])
    return lambda: steps.run(8)


def flow() -> Callable[[], object]:
    from lanewise.sims.lbm import Simulation

    made = Simulation(shape=(16, 16), lattice="D2Q9", omega=1.7, edges={"y": "wall"}, device=DEVICE)
    return lambda: made.run(8)


MOST: dict[str, tuple[Callable[[], Callable[[], object]], int]] = {
    "pairs": (lambda: plain_pairs(lw.SoA()), 30),
    "pairs, open layout": (plain_pairs, 32),
    "elements": (lambda: plain_elements(lw.SoA()), 19),
    "elements, open layout": (plain_elements, 21),
    "values": (plain_values, 26),
    "bound pairs": (bound_pairs, 16),
    "a loop": (loop, 66),
    "a flow": (flow, 207),
}
"""By what is called: the most functions that it may enter."""


@pytest.mark.parametrize("name", MOST)
def test_a_call_takes_no_more_functions_of_python(name: str) -> None:
    make, most = MOST[name]
    with lw.device(DEVICE):
        found = functions_of(make())
    assert found.total() <= most, sorted(found.items())
