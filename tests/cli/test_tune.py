"""`lanewise tune`: measures, remembers, tells; mistakes end with code 2 and one text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lanewise as lw
from lanewise.launch import tuned_plans as store
from lanewise.plan import Plan
from lanewise.sims.gravity import Simulation, make_bodies, make_initial_conditions
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
    outcome = lanewise("tune", "gravity", "--bodies", 300, "--seconds", 4, "--json")
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
    assert Simulation(bodies, softening=0.01)._law.force.compiled.plan.targets == 2
    assert Simulation(bodies, softening=0.01, plan=lw.Plan(targets=1))._law.force.compiled.plan.targets == 1
    make_physics.cache_clear()


def test_a_kernel_of_a_file_as_text(lanewise: Command, file: Path) -> None:
    outcome = lanewise("tune", f"{file}:fade", "--bodies", 2000, "--seconds", 4, "--set", "rate=0.5")
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
        ("boids", "nothing is known of 'boids'; wanted gravity, or a kernel of a file as in path/to/file.py:name"),
        ("kernels.py:fade --precision f64", "--precision belongs to gravity; the types of kernels.py:fade are those of its file"),
        ("missing.py:fade", "missing.py: there is no such file"),
    ],
)  # fmt: skip
def test_mistakes(lanewise: Command, arguments: str, message: str) -> None:
    assert_refused(lanewise("tune", *arguments.split()), message)


def test_values_of_the_store_that_are_none(lanewise: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANEWISE_TUNED", "maybe")
    assert_refused(lanewise("tune", "gravity", "--bodies", 10), "LANEWISE_TUNED='maybe': wanted on or off")
