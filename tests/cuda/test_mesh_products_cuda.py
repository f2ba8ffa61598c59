"""Simulations on several GPUs: the bits of as many parts on one, whatever device is the current one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.sims.boids import Flock
from lanewise.sims.gravity import Simulation, make_bodies, make_initial_conditions
from lanewise.sims.gravity.diagnostics import to_row
from tests.fuzz.commands import Ended, command
from tests.mesh.test_gravity import data_sets

pytestmark = pytest.mark.cuda


@pytest.fixture
def cp() -> Any:
    cupy = pytest.importorskip("cupy")
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("needs two GPUs")
    before = cupy.cuda.runtime.getDevice()
    yield cupy
    assert cupy.cuda.runtime.getDevice() == before


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


PLACES = ("cuda:0,1", "cuda:1,0", "cuda:*")


def moved(place: str, integrator: str, precision: str, layout: lw.Layout | None) -> list[bytes]:
    particles = make_initial_conditions("plummer", 3001, 3)
    bodies = make_bodies(particles, precision=precision, layout=layout, device=place)
    s = Simulation(bodies, softening=0.05, integrator=integrator)
    left: list[Any] = []
    for steps in (1, 7, 40):
        s.advance(steps, 1e-3)
        left += [np.asarray(s.acceleration), np.array(to_row(s.diagnostics())), *s.bodies.numpy().values()]
        s.bodies.velocity = s.bodies.velocity * 0.999
    return [np.asarray(values).tobytes() for values in left]


@pytest.mark.parametrize("integrator", ["leapfrog", "euler", "yoshida4"])
@pytest.mark.parametrize(
    ("precision", "layout"), [("f32", None), ("f32", lw.AoS()), ("mixed", None), ("f64", lw.AoSoA(32))]
)
def test_gravity_has_the_bits_of_one_gpu(cp: Any, integrator: str, precision: str, layout: lw.Layout | None) -> None:
    wanted = moved("cuda:0*2", integrator, precision, layout)
    assert moved("cuda:0*3", integrator, precision, layout) == wanted
    for number, place in ((0, PLACES[0]), (1, PLACES[0]), (0, PLACES[1]), (1, PLACES[2])):
        with cp.cuda.Device(number):
            assert moved(place, integrator, precision, layout) == wanted


def flown(place: str, **chosen: Any) -> list[bytes]:
    f = Flock(agents=5000, device=place, world=60.0, seed=2, **chosen)
    for steps in (1, 39, 60):
        f.run(steps)
    state = f.state
    return [getattr(state, name).tobytes() for name in ("position", "forward", "speed")]


@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"search": "dynamic-grid"},
        {"search": "all-pairs"},
        {"k": 7},
        {"boundary": "periodic"},
        {"semantics": "thesis", "search": "static-grid"},
    ],
    ids=str,
)
def test_flocks_have_the_bits_of_one_gpu(cp: Any, chosen: dict[str, Any]) -> None:
    wanted = flown("cuda:0", **chosen)
    assert flown("cuda:0*2", **chosen) == wanted
    for number, place in ((0, PLACES[0]), (1, PLACES[0]), (0, PLACES[1])):
        with cp.cuda.Device(number):
            assert flown(place, **chosen) == wanted


@pytest.mark.parametrize("product", ["gravity", "boids"])
def test_a_run_on_two_gpus_goes_on_on_one(cp: Any, product: str) -> None:
    begin = {
        "gravity": ("--bodies", 3000, "--softening", 0.05, "--diagnostics-every", 10),
        "boids": ("--agents", 3000, "--every", 10),
    }[product]
    run = (product, "run")
    assert command(*run, *begin, "--steps", 60, "--out", "whole.h5", "--device", "cuda:0*2").code == 0
    assert command(*run, *begin, "--steps", 20, "--out", "begun.h5", "--device", "cuda:0,1") == Ended(0, "")
    for place in ("cuda:0,1", "cuda:1,0", "cuda:0*3"):
        on = ("--resume", "begun.h5", "--steps", 40, "--out", "on.h5", "--overwrite", "--device", place)
        assert command(*run, *on).code == 0
        one, other = data_sets("on.h5"), data_sets("whole.h5")
        assert one.keys() == other.keys()
        assert {n for n in one if one[n] != other[n] and not n.endswith("@settings")} == set()


def test_profiles_do_not_change_bits(cp: Any) -> None:
    run = ("gravity", "run", "--bodies", 3000, "--steps", 40, "--device", "cuda:0,1")
    assert command(*run, "--out", "plain.h5").code == 0
    assert command(*run, "--out", "profiled.h5", "--profile", "trace.json").code == 0
    assert data_sets("plain.h5") == data_sets("profiled.h5")


def test_what_is_said_of_devices(cp: Any) -> None:
    ended = command("gravity", "run", "--bodies", 256, "--steps", 2, "--device", "cuda:0,0")
    assert ended == Ended(0, "note: cuda has 2 parts, one after the other\n")
    ended = command("gravity", "run", "--device", "cuda:0-99")
    assert ended.code == 2
    assert "does not exist: this machine has" in ended.errors
    assert command("info", "--devices").code == 0
