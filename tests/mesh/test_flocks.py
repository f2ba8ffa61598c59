"""Flocks on a mesh: agents, measurements, runs and their resumption have the bits of one device."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.launch.task_verifier import verify
from lanewise.sims.boids import Flock, Sphere
from lanewise.support.errors import InputError
from tests.fuzz.commands import Ended, command
from tests.mesh.test_gravity import data_sets

FIELDS = ("position", "forward", "up", "speed", "acceleration", "ids")


def flock(place: Any, agents: int = 300, **chosen: Any) -> Flock:
    return Flock(agents=agents, device=place, seed=2, **{"world": 25.0, **chosen})


def left(f: Flock) -> list[Any]:
    """Everything that a flock can be asked for."""
    state = f.state
    arrays = [getattr(state, name) for name in FIELDS] + [np.asarray(f.position), np.asarray(f.speed), f.rows]
    return [*(array.tobytes() for array in arrays), repr(f.statistics()), f.polarisation()]


def flown(place: Any, cuts: tuple[int, ...] = (12,), **chosen: Any) -> list[Any]:
    f = flock(place, **chosen)
    for steps in cuts:
        f.run(steps)
    return left(f)


KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "static grid": {"search": "static-grid", "boundary": "open"},
    "dynamic grid": {"search": "dynamic-grid"},
    "all pairs": {"search": "all-pairs", "precision": "f64"},
    "some nearest": {"k": 7},
    "periodic": {"boundary": "periodic"},
    "thesis": {"semantics": "thesis"},
    "obstacles": {"obstacles": (Sphere((3.0, 1.0, 0.0), 4.0),)},
    "records": {"layout": "aos"},
}


QUICK = ("plain", "static grid", "dynamic grid", "periodic", "obstacles")


@pytest.mark.parametrize("kind", [k if k in QUICK else pytest.param(k, marks=pytest.mark.slow) for k in KINDS])
def test_every_number_of_parts_has_the_bits_of_one_device(kind: str) -> None:
    wanted = flown("cpu", (40,), **KINDS[kind])
    for parts, cuts in ((1, (40,)), (2, (40,)), (3, (1, 39)), (5, (4, 28, 8))):
        assert flown(f"cpu*{parts}", cuts, **KINDS[kind]) == wanted


def test_parts_may_have_no_agents_and_all_may_be_in_one_cell() -> None:
    for chosen in ({"agents": 3}, {"agents": 200, "start_radius": 0.5}):
        assert flown("cpu*7", (5,), **chosen) == flown("cpu", (5,), **chosen)


@pytest.mark.parametrize("search", ["static-grid", "dynamic-grid", "all-pairs", "cell-array"])
def test_there_may_be_no_agents(search: str) -> None:
    for place in ("cpu", "cpu*1", "cpu*3"):
        there = Flock(agents=0, search=search, device=place)  # pyright: ignore[reportArgumentType]
        there.advance(3)
        assert len(there.boids) == 0


def test_a_step_is_a_sound_sequence() -> None:
    verify(flock("cpu*3").sequence())


def changed(place: Any) -> list[Any]:
    f = flock(place)
    f.run(5)
    f.cohesion_weight = 3.0
    f.run(5)
    f.boids.speed *= 0.5
    f.search, f.world = "dynamic-grid", 40.0
    f.run(5)
    return left(f)


def test_settings_and_writes_between_steps() -> None:
    assert changed("cpu*3") == changed("cpu")


def lost(place: Any) -> str:
    f = flock(place, boundary="bounded", search="all-pairs")
    f.boids[201].position.x = 24.9
    f.boids[201].forward = (1.0, 0.0, 0.0)
    f.boids[201].speed = 9.0
    with pytest.raises(InputError) as found:
        f.run(30)
    return str(found.value)


def test_agents_are_named_by_their_place_in_the_whole_flock() -> None:
    assert "agent 201 left the world" in lost("cpu")
    assert lost("cpu*3") == lost("cpu")


def test_it_says_where_it_is() -> None:
    assert repr(flock("cpu*3")).endswith("on cpu*3>")
    assert flock(lw.Mesh("cpu", parts=2)).settings.device == "cpu*2"


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: flock("cpu*2", think_every=3), r"agents that do not think in every step are on one device, found cpu\*2"),
    (lambda: flock("cpu*2", semantics="seq"), r"semantics seq moves one agent after another, on one device, found cpu\*2"),
]  # fmt: skip


@pytest.mark.parametrize(("attempt", "text"), REFUSED, ids=["thinkers", "in turn"])
def test_what_is_refused(attempt: Callable[[], Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        attempt()


# ------------------------------------------------------------ runs and files


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*options: object) -> Ended:
    return command("boids", "run", *options)


BEGIN = ("--agents", 330, "--seed", 5, "--world", 25, "--every", 10)


def same_files(found: str, wanted: str) -> None:
    """All but the text of the settings, in which the device is."""
    one, other = data_sets(found), data_sets(wanted)
    assert one.keys() == other.keys()
    differ = {name for name in one if one[name] != other[name]}
    assert {name for name in differ if not name.endswith("@settings")} == set()


def test_files_have_no_number_of_parts_in_them() -> None:
    assert run(*BEGIN, "--steps", 40, "--out", "run.h5", "--device", "cpu") == Ended(0, "")
    for parts in (1, 2, 3, 5):
        assert run(*BEGIN, "--steps", 40, "--out", f"run{parts}.h5", "--device", f"cpu*{parts}") == Ended(0, "")
        same_files(f"run{parts}.h5", "run.h5")


def test_a_run_goes_on_with_other_parts() -> None:
    assert run(*BEGIN, "--steps", 60, "--out", "whole.h5", "--device", "cpu*1").code == 0
    assert run(*BEGIN, "--steps", 20, "--out", "begun.h5", "--device", "cpu*2").code == 0
    for place in ("cpu*3", "cpu*1"):
        ended = run("--resume", "begun.h5", "--steps", 40, "--out", "on.h5", "--overwrite", "--device", place)
        assert ended == Ended(0, "")
        same_files("on.h5", "whole.h5")
    assert run("--resume", "begun.h5", "--steps", 40) == Ended(0, "")  # on two, as before
    same_files("begun.h5", "whole.h5")


def test_a_run_goes_from_one_device_to_a_mesh_and_back() -> None:
    assert run(*BEGIN, "--steps", 60, "--out", "whole.h5", "--device", "cpu").code == 0
    assert run(*BEGIN, "--steps", 20, "--out", "one.h5", "--device", "cpu").code == 0
    assert run("--resume", "one.h5", "--steps", 20, "--out", "two.h5", "--device", "cpu*2") == Ended(0, "")
    assert run("--resume", "two.h5", "--steps", 20, "--out", "three.h5", "--device", "cpu") == Ended(0, "")
    same_files("three.h5", "whole.h5")


def test_agents_come_from_one_device_where_they_are() -> None:
    f = flock("cpu")
    f.run(40)
    f.checkpoint("one.h5")
    assert not np.array_equal(f.rows, np.arange(len(f)))
    on_two = Flock.resume("one.h5", device="cpu*2")
    np.testing.assert_array_equal(on_two.rows, f.rows)
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(on_two.state, name), getattr(f.state, name))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--agents", 300, "--device", "cpu*5"), "300 agents on 5 parts (5 x cpu): a run wants at least 64 per part; take 4"),
        (("--device", "cpu*2", "--semantics", "seq"), "semantics seq moves one agent after another, on one device"),
        (("--device", "cpu*2", "--think-every", 2), "agents that do not think in every step are on one device"),
    ],
    ids=str,
)  # fmt: skip
def test_bad_input(options: tuple[object, ...], text: str) -> None:
    ended = run(*options)
    assert ended.code == 2
    assert ended.errors.count("error:") == 1
    assert text in ended.errors
