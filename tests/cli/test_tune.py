"""`lanewise tune`: measures, remembers, tells; mistakes end with code 2 and one text."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lanewise as lw
from lanewise.cli.products import job_of
from lanewise.launch import tuned_plans as store
from lanewise.planning.plan import Plan
from lanewise.sims import boids
from lanewise.sims.gravity import Simulation, make_bodies, make_initial_conditions
from lanewise.sims.lbm.cases import find_case
from lanewise.sims.lbm.options import End, Method, Output
from lanewise.sims.lbm.runner import start
from lanewise.tuning import replay
from tests.cli.command import Command
from tests.cli.test_user_errors import assert_refused

KERNELS = """
import lanewise as lw

print("this goes to standard error")

@lw.record
class Point:
    position: lw.vec3
    weight: lw.f32

@lw.elementwise
def fade(point: Point, rate: lw.f32):
    point.weight *= rate

@lw.pairwise
def closeness(target: Point, source: Point, softening2: lw.f32) -> lw.f32:
    d = source.position - target.position
    return source.weight * lw.rsqrt(lw.dot(d, d) + softening2)
"""


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tuned"
    monkeypatch.setattr(store, "store_directory", lambda: folder)
    return folder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS)
    return path


def test_gravity_as_json(lanewise: Command) -> None:
    outcome = lanewise("tune", "gravity", "--bodies", 300, "--seconds", 2, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.count("\n") == 1
    found = outcome.last_json
    assert (found["kernel"], found["device"], found["elements"], found["wanted"]) == (
        "gravity", "cpu", "300 target, 300 source", "parts=1",
    )  # fmt: skip
    assert found["factor"] == found["default_seconds"] / found["seconds"] >= 1
    assert found["tried"] == sum(c["status"] == "measured" for c in found["candidates"]) >= 1
    assert found["plan"].keys() == Plan().as_dict().keys()
    assert replay(found["path"]).plan == Plan(**found["plan"])


def test_a_simulation_uses_what_was_tuned_for_it(lanewise: Command) -> None:
    lanewise("tune", "gravity", "--bodies", 300, "--seconds", 1, "--json")
    (path,) = store.store_directory().iterdir()
    data = json.loads(path.read_text())
    data["plan"] = {"targets": 2}  # as if this plan had won
    path.write_text(json.dumps(data))
    bodies = make_bodies(make_initial_conditions("plummer", 300))
    # Kernels remember what they looked up: another process would begin without.
    from lanewise.sims.gravity.physics import make_physics

    make_physics.cache_clear()
    assert Simulation(bodies, softening=0.01)._law.gravity.compiled.plan.targets == 2
    assert Simulation(bodies, softening=0.01, plan=lw.Plan(targets=1))._law.gravity.compiled.plan.targets == 1
    make_physics.cache_clear()


def rewritten(**changed: Any) -> None:
    """The one entry of the store, as if something else had won."""
    (path,) = store.store_directory().iterdir()
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))


@pytest.mark.slow
def test_a_flock_flies_as_it_was_tuned(lanewise: Command, tmp_path: Path) -> None:
    options = ("--bodies", 600, "--set", "world=20", "--seconds", 1.5)
    found = lanewise("tune", "boids", *options, "--json").last_json
    assert (found["kernel"], found["device"], found["elements"]) == ("steer", "cpu", "600 target, 600 source")
    assert found["tried"] >= 1
    rewritten(structure="DynamicGrid(leaf=16)", plan={"vector_bits": 256})
    run = ("boids", "run", "--agents", 620, "--world", 20, "--steps", 3, "--quiet")
    outcome = lanewise(*run, "--json", "--out", "flock.h5")
    assert outcome.last_json["search_chosen"].startswith("dynamic grid")
    assert outcome.last_json["search_reason"].startswith("measured: ")
    assert boids.Flock(620, world=20, search="static-grid").choice.plan is None
    flock = boids.Flock(620, world=20)
    assert flock.choice.plan is not None
    assert flock.choice.plan.vector_bits == 256
    # Who thinks now and then is another call; a checkpoint keeps what its flock flew with, whatever is tuned later.
    assert boids.Flock(620, world=20, think_every=2).choice.plan is None
    rewritten(structure="StaticGrid", plan={"vector_bits": 0})
    resumed = boids.Flock.resume("flock.h5")
    assert resumed.choice == replace(flock.choice, why=resumed.choice.why)
    assert resumed.run(2).position.tobytes() == flock.run(5).position.tobytes()


@pytest.mark.slow
def test_a_flow_runs_as_it_was_tuned(lanewise: Command) -> None:
    found = lanewise("tune", "lbm", "--case", "cavity", "--bodies", 1000, "--seconds", 30, "--json").last_json
    assert (found["kernel"], found["elements"]) == ("trt", "1,024 sites")
    assert found["tried"] in (
        4,
        6,
    )  # branches by registers of the CPU's own width, 256 and, where it has them, 512 bits
    assert found["note"] == "for steps like those of: lanewise lbm run cavity --size 32"
    other = "apart" if found["plan"]["branches"] == "together" else "together"
    ends: list[Any] = []
    for plan in (found["plan"], {**found["plan"], "branches": other}):
        rewritten(plan=plan)
        run = start(find_case("cavity"), find_case("cavity").request(size=32), Method(), End(steps=20), Output())
        assert run.state.simulation.advance(2) is None
        engine: Any = run.state.simulation.engine
        tuned = engine._bound.flow.kernels.tuned_plan(engine._sites, job_of(engine.tuned_call()).values)
        assert tuned.branches == plan["branches"]
        run.state.simulation.advance(18)
        ends.append(run.state.simulation.velocity.tobytes())
    assert ends[0] == ends[1]


def test_waves_as_text(lanewise: Command) -> None:
    outcome = lanewise("tune", "waves", "--bodies", 300, "--seconds", 1, "--set", "sfts=8")
    assert outcome.code == 0
    assert outcome.out.startswith("amplitudes on cpu (")
    assert ", 300 elements\n" in outcome.out


def test_a_kernel_of_a_file_as_text(lanewise: Command, file: Path) -> None:
    outcome = lanewise("tune", f"{file}:fade", "--bodies", 2000, "--seconds", 2, "--set", "rate=0.5")
    assert outcome.code == 0
    assert outcome.err == "this goes to standard error\n"
    assert outcome.out.startswith("fade on cpu (")
    assert ", 2,000 elements\n" in outcome.out
    assert "plans measured in " in outcome.out
    assert "kept in " in outcome.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("gravity --seconds 0", "seconds=0.0: wanted a positive number, the time that tuning may take"),
        ("gravity --seconds nan", "seconds=nan: wanted a positive number, the time that tuning may take"),
        ("gravity --set mass=1", "gravity has no value 'mass' to set; it has softening2"),
        ("gravity --set softening2=-1", "--set softening2=-1.0: the square of a softening is zero or more"),
        ("gravity --set softening2", "--set softening2: wanted NAME=NUMBER, as in --set softening2=1e-4"),
        ("gravity --precision f16", "unknown precision 'f16'; did you mean 'f64'? wanted one of f32, f64, mixed"),
        ("gravity --device gpu", "unknown device 'gpu'; wanted 'cpu', 'cuda', 'cuda:1' (a number for each GPU) or 'python' (the interpreter)"),
        (
            "gravity --device python --bodies 4",
            "gravity: the device 'python' interprets kernels and has no plans to compare; move the arrays to 'cpu' or 'cuda'",
        ),
        ("boyds", "unknown kernel 'boyds'; did you mean 'boids'? wanted boids, gravity, lbm, waves, or a kernel of a file as in path/to/file.py:name"),
        ("boids --set think_every=2", "--set think_every: structures are measured for flocks whose agents think in every step; leave it out"),
        ("boids --set k=1.5", "--set k=1.5: wanted an integer"),
        ("boids --set wurld=3", "boids has no value 'wurld' to set; did you mean 'world'? it has k, world, think_every, start_radius, seed, radius, near_radius, separation_radius, "
            "separation_cosine, separation_weight, alignment_radius, alignment_cosine, alignment_weight, cohesion_radius, cohesion_cosine, "
            "cohesion_weight, max_force, max_speed, mass, agent_radius, avoid_time"),
        ("boids --precision mixed", "unknown precision 'mixed'; wanted one of f32, f64"),
        ("lbm --case karmann", "unknown case 'karmann'; did you mean 'karman'? wanted one of cavity, channel, cylinder, duct, karman, sphere, taylor-green"),
        ("lbm --set sizes=3", "lbm has no value 'sizes' to set; did you mean 'size'? it has size"),
        ("lbm --precision f16", "unknown precision 'f16'; did you mean 'f64'? wanted one of f32, f64"),
        ("gravity --case karman", "--case karman belongs to lbm; gravity has no cases"),
        ("boids --device python", "boids: the device 'python' interprets kernels and has no plans to compare; move the arrays to 'cpu' or 'cuda'"),
        ("lbm --device python", "lbm: the device 'python' interprets kernels and has no plans to compare; move the arrays to 'cpu' or 'cuda'"),
        ("waves --device python", "waves: the device 'python' interprets kernels and has no plans to compare; move the arrays to 'cpu' or 'cuda'"),
        ("kernels.py:fade --precision f64", "--precision belongs to gravity, boids and lbm; the types of kernels.py:fade are those of its file"),
        ("missing.py:fade", "missing.py: there is no such file"),
    ],
)  # fmt: skip
def test_mistakes(lanewise: Command, arguments: str, message: str) -> None:
    assert_refused(lanewise("tune", *arguments.split()), message)


def test_values_of_the_store_that_are_none(lanewise: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANEWISE_TUNED", "maybe")
    assert_refused(lanewise("tune", "gravity", "--bodies", 10), "LANEWISE_TUNED='maybe': wanted on or off")
