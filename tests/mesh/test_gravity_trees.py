"""Gravity by trees on a mesh: simulations, files and runs have the bits of one device, and go from one to the other."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import lanewise as lw
from lanewise.sims.gravity import Simulation, make_bodies, make_initial_conditions, runner
from lanewise.sims.gravity.options import Settings
from lanewise.sims.gravity.trees import calibrated, with_method
from lanewise.support.errors import InputError
from tests.fuzz.commands import Ended, command
from tests.mesh.test_gravity import data_sets, left, simulation

TREE = lw.Tree(order=2, leaf=16)
COUNT = 1100  # more than one block


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def taken(place: Any, cuts: tuple[int, ...] = (45,), **chosen: Any) -> list[bytes]:
    given: dict[str, Any] = {"search": TREE, **chosen}
    s = simulation(place, COUNT, **given)
    for steps in cuts:
        s.advance(steps, 1e-2)
    errors = np.array(list(s.force_errors().as_dict().values()))
    assert s.tree_order is not None
    return [*left(s), s.tree_order.tobytes(), errors.tobytes()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("integrator", "precision", "search"),
    [
        ("leapfrog", "f32", TREE),
        pytest.param("leapfrog", "mixed", lw.Tree(accuracy=1e-2), marks=pytest.mark.slow),
        pytest.param("euler", "f64", TREE, marks=pytest.mark.slow),
        pytest.param("yoshida4", "f32", lw.Tree(order=2, method="dual"), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_every_number_of_parts_has_the_bits_of_one_device(integrator: str, precision: str, search: lw.Tree) -> None:
    chosen: dict[str, Any] = {"integrator": integrator, "precision": precision, "search": search}
    wanted = taken("cpu", **chosen)
    for parts, cuts in ((1, (45,)), (2, (44, 1)), (3, (1, 31, 13)), (5, (33, 12))):
        assert taken(f"cpu*{parts}", cuts, **chosen) == wanted


@pytest.mark.slow
def test_settings_and_writes_between_steps() -> None:
    ends: list[list[bytes]] = []
    for place in ("cpu", "cpu*3"):
        s = simulation(place, COUNT, search=TREE, pull=0.3)
        s.advance(20, 1e-2)
        s.bodies.velocity *= 0.5
        s.bodies[7].position.x = 0.25
        s.advance(20, 1e-2)
        s.softening, s.integrator = 0.1, "euler"
        s.advance(5, 2e-2)
        ends.append(left(s))
    assert ends[0] == ends[1]


def test_a_body_that_leaves_the_numbers_is_named_as_on_one_device() -> None:
    said: list[str] = []
    for place in ("cpu", "cpu*3"):
        bodies = make_bodies(make_initial_conditions("plummer", COUNT, 3), device=place)
        bodies[77].velocity.x = 1e20
        s = Simulation(bodies, softening=0.1, search=TREE)
        with pytest.raises(lw.LanewiseError) as error:
            s.advance(9, 1e-2)
        said.append(str(error.value))
    assert said[0] == said[1]


def run(*options: object) -> Ended:
    return command("gravity", "run", *options)


BEGIN = (
    "--bodies",
    COUNT,
    "--seed",
    5,
    "--dt",
    0.01,
    "--softening",
    0.03,
    "--diagnostics-every",
    10,
    "--method",
    "tree",
)


@pytest.mark.parametrize(
    "options",
    [("--theta", 0.7, "--order", 2), pytest.param(("--accuracy", 0.01), marks=pytest.mark.slow),
     pytest.param(("--walk", "dual", "--order", 2), marks=pytest.mark.slow)],
    ids=str,
)  # fmt: skip
def test_files_are_those_of_one_device_and_a_run_goes_to_a_mesh_and_back(options: tuple[object, ...]) -> None:
    whole = ("--steps", 50, "--snapshot-every", 25)
    for name, place in (("one", "cpu"), ("two", "cpu*2"), ("five", "cpu*5")):
        assert run(*BEGIN, *options, *whole, "--out", f"{name}.h5", "--device", place).code == 0
        for file in ("{}.h5", "{}_00000025.h5"):
            found, wanted = data_sets(file.format(name)), data_sets(file.format("one"))
            assert {n for n in wanted.keys() | found.keys() if wanted.get(n) != found.get(n)} <= {
                "lanewise@snapshot_of"
            }
    begin = ("--steps", 10, "--snapshot-every", 25, "--out", "on.h5")
    assert run(*BEGIN, *options, *begin, "--device", "cpu").code == 0
    for steps, place in ((15, "cpu*3"), (20, "cpu"), (5, "cpu*2")):
        assert run("--resume", "on.h5", "--steps", steps, "--device", place).code == 0
    assert data_sets("on.h5") == data_sets("one.h5")


@pytest.mark.parametrize("bodies", [100, 1_000_000])
def test_auto_chooses_as_on_one_device(bodies: int) -> None:
    one, many = (with_method(Settings(method="auto", device=place), bodies) for place in ("cpu", "cpu*3"))
    assert many[1] == one[1]
    assert many[0].method == one[0].method == ("direct" if bodies == 100 else "tree")


@pytest.mark.parametrize("calibrate", [True, False])
def test_processes_walk_the_tree_of_the_first(calibrate: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a clock and a store of tuned trees of its own, and finds another one."""
    asked = Settings(method="tree", accuracy=1e-2, calibrate=calibrate, softening=0.05)
    first = replace(asked, calibrate=False, opening=0.32, order=3), "of the first"
    found = replace(asked, calibrate=False, opening=0.95, order=2), "of this one"
    for name in ("calibrated", "calibrated_before"):
        monkeypatch.setattr(runner, name, Mock(return_value=found))
    bodies = make_bodies(make_initial_conditions("plummer", 200))
    for rank, walked in ((1, first), (0, found)):
        between = Mock(size=2, rank=rank, agree=Mock(return_value=[walked, None]))
        monkeypatch.setattr(runner, "transport_of", Mock(return_value=between))
        assert runner._with_tree(asked, bodies, None) == walked
        between.agree.assert_called_once_with(None if rank else found)


@pytest.mark.parametrize(
    "numbers", [{"theta": 0.5}, {"accuracy": 1e-2, "opening": 0.5, "walk": "dual", "order": 3, "leaf": 32}]
)
def test_bodies_are_not_brought_to_one_device_for_a_tree_that_is_chosen(
    numbers: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may only fit on several: nothing is looked up for a tree whose numbers are all there."""
    bodies = make_bodies(make_initial_conditions("plummer", 200), device="cpu*2")
    asked = Settings(method="tree", **numbers)
    monkeypatch.setattr(runner, "in_one_place", None)
    assert runner._with_tree(asked, bodies, None) == with_method(asked, len(bodies))


@pytest.mark.slow
def test_a_tree_is_calibrated_for_the_bodies_on_one_device() -> None:
    bodies = make_bodies(make_initial_conditions("plummer", 3000, 3), device="cpu*2")
    asked = Settings(method="tree", accuracy=1e-2, calibrate=True, device="cpu*2", softening=0.05)
    settings, why = calibrated(asked, with_method(asked, 3000)[0], bodies)
    assert "calibrated for an accuracy of 0.01" in why
    assert settings.opening is not None


def test_bad_input_keeps_its_messages() -> None:
    for options in (("--method", "direct", "--theta", 0.5), ("--method", "tree", "--theta", 2), ("--calibrate",)):
        one, many = (run(*BEGIN[:-2], *options, "--device", place) for place in ("cpu", "cpu*2"))
        assert one == many
        assert one.code == 2
    with pytest.raises(InputError, match="does not name each of 130 bodies once"):
        simulation("cpu*2", search=TREE).continue_from(3, 1e-2, order=np.zeros(130, np.int32))
