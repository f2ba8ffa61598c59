"""Gravity on a mesh: simulations, runs, checkpoints and their resumption have the bits of one part."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import lanewise as lw
from lanewise.sims.gravity import Body, Force, Simulation, make_bodies, make_initial_conditions
from lanewise.sims.gravity.diagnostics import to_row
from lanewise.support.errors import ArgumentError, InputError
from tests.fuzz.commands import Ended, command

BODIES = 130


@lw.elementwise
def spring(body: Body, strength: lw.f32) -> lw.vec3:
    return -strength * body.position


@lw.elementwise
def spring_energy(body: Body, strength: lw.f32) -> lw.f32:
    return 0.5 * strength * body.mass * lw.dot(body.position, body.position)


def simulation(place: Any, count: int = BODIES, precision: str = "f32", pull: float = 0.0, **chosen: Any) -> Simulation:
    bodies = make_bodies(make_initial_conditions("plummer", count, 3), precision=precision, device=place)
    forces = [Force(spring.bind(bodies, pull), spring_energy.bind(bodies, pull))] if pull else []
    return Simulation(bodies, **{"softening": 0.05, **chosen}, forces=forces)


def left(s: Simulation) -> list[bytes]:
    """Everything that a simulation can be asked for."""
    fields = [np.asarray(values) for values in s.bodies.numpy().values()]
    found = [*fields, np.asarray(s.acceleration), np.array(to_row(s.diagnostics()))]
    return [array.tobytes() for array in found]


def taken(place: Any, cuts: tuple[int, ...] = (6,), **chosen: Any) -> list[bytes]:
    s = simulation(place, **chosen)
    for steps in cuts:
        s.advance(steps, 1e-2)
    return left(s)


@pytest.mark.parametrize("integrator", ["leapfrog", "euler", "yoshida4"])
@pytest.mark.parametrize("precision", ["f32", pytest.param("f64", marks=pytest.mark.slow), "mixed"])
def test_every_number_of_parts_has_the_bits_of_one(integrator: str, precision: str) -> None:
    wanted = taken("cpu*1", integrator=integrator, precision=precision)
    for parts, cuts in ((2, (6,)), (3, (1, 5)), (5, (2, 2, 2))):
        assert taken(f"cpu*{parts}", cuts, integrator=integrator, precision=precision) == wanted


@pytest.mark.parametrize("chosen", [{"softening": 0.0}, {"pull": 0.3}, {"gravitational_constant": 2.5}], ids=str)
def test_so_have_laws_of_all_kinds(chosen: dict[str, Any]) -> None:
    wanted = taken("cpu*1", **chosen)
    for parts in (2, 5):
        assert taken(f"cpu*{parts}", **chosen) == wanted


def test_parts_may_have_no_bodies() -> None:
    assert taken("cpu*7", count=3) == taken("cpu*1", count=3)


def views(place: Any, layout: lw.Layout) -> list[bytes]:
    """What a simulation of some bodies makes of all of them."""
    bodies = make_bodies(make_initial_conditions("plummer", 60, 3), layout=layout, device=place)
    Simulation(bodies[7:40], softening=0.1).advance(3, 1e-2)
    return [np.asarray(values).tobytes() for values in bodies.numpy().values()]


@pytest.mark.parametrize("layout", [lw.SoA(), lw.AoS()], ids=str)
def test_views_of_layouts(layout: lw.Layout) -> None:
    assert views("cpu*4", layout) == views("cpu*1", layout)


def test_layouts_in_blocks() -> None:
    """A part may end within a block."""
    ends: list[list[bytes]] = []
    for parts in (1, 4):
        particles = make_initial_conditions("plummer", 77, 3)
        bodies = make_bodies(particles, layout=lw.AoSoA(8), device=f"cpu*{parts}")
        s = Simulation(bodies, softening=0.1)
        s.advance(3, 1e-2)
        ends.append(left(s))
    assert ends[0] == ends[1]


def test_plain_devices_agree_where_their_plan_is_that_of_a_mesh() -> None:
    plan = lw.Plan(reciprocity="off")
    assert taken("cpu*3") == taken("cpu", plan=plan, potential_plan=plan)


def changed(place: Any) -> list[bytes]:
    s = simulation(place)
    s.advance(2, 1e-2)
    s.bodies.velocity *= 0.5  # noticed, and forces computed anew
    s.bodies[7].position.x = 0.25
    s.advance(2, 1e-2)
    s.softening, s.integrator = 0.1, "euler"
    s.advance(2, 2e-2)
    return left(s)


def test_settings_and_writes_between_steps() -> None:
    assert changed("cpu*3") == changed("cpu*1")


def refusals(place: Any) -> list[str]:
    """What is said of bodies that are none, and of one that leaves the finite numbers."""
    said: list[str] = []
    bodies = make_bodies(make_initial_conditions("plummer", BODIES, 3), device=place)
    for name, value in (("velocity", np.nan), ("position", 1e30)):
        wrong = bodies.copy()
        getattr(wrong[101], name).y = value
        with pytest.raises(InputError) as found:
            Simulation(wrong)
        said.append(str(found.value))
    bodies[77].velocity.x = 1e20  # whose square no float32 holds
    s = Simulation(bodies, softening=0.1)
    with pytest.raises(InputError) as found:
        s.advance(9, 1e-2)
    return [*said, str(found.value)]


def test_bodies_are_named_by_their_place_in_the_whole_array() -> None:
    wanted = refusals("cpu")
    assert "velocity of body 101" in wanted[0]
    assert "position of body 101" in wanted[1]
    assert "body 77" in wanted[2]
    assert refusals("cpu*3") == wanted


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: Simulation(
            make_bodies(make_initial_conditions("plummer", 9), device="cpu*2"),
            forces=[Force(spring.bind(make_bodies(make_initial_conditions("plummer", 9), device="cpu"), 1.0))],
        ),
        r"wanted one array of shape \(9, 3\) and float32, on cpu\*2|gives an array",
    ),
]


@pytest.mark.parametrize(("attempt", "text"), REFUSED, ids=["force"])
def test_what_is_refused(attempt: Callable[[], Any], text: str) -> None:
    with pytest.raises((InputError, ArgumentError), match=text):
        attempt()


def test_it_says_where_it_is() -> None:
    assert "leapfrog, f32 on cpu*3" in repr(simulation("cpu*3"))


# ------------------------------------------------------------ runs and files


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def data_sets(path: str) -> dict[str, tuple[str, bytes]]:
    """The data sets of a file, and its attributes but where it was computed and by what."""
    found: dict[str, tuple[str, bytes]] = {}

    def add(name: str, item: Any) -> None:
        for key, value in item.attrs.items():
            if (name, key) != ("lanewise", "device"):
                found[f"{name}@{key}"] = str(type(value)), np.asarray(value).tobytes()
        if isinstance(item, h5py.Dataset):
            found[name] = str(item.dtype), np.asarray(item[...]).tobytes()

    with h5py.File(path) as file:
        file.visititems(add)
    return found


def run(*options: object) -> Ended:
    return command("gravity", "run", *options)


BEGIN = ("--bodies", 330, "--seed", 5, "--dt", 0.01, "--softening", 0.03, "--diagnostics-every", 2)


@pytest.mark.parametrize("integrator", ["leapfrog", pytest.param("yoshida4", marks=pytest.mark.slow)])
def test_files_have_no_number_of_parts_in_them(integrator: str) -> None:
    names: list[str] = []
    for parts in (1, 2, 3, 5):
        name = f"run{parts}.h5"
        options = ("--integrator", integrator, "--steps", 8, "--snapshot-every", 4, "--out", name)
        assert run(*BEGIN, *options, "--device", f"cpu*{parts}") == Ended(0, "")
        names.append(name)
    for place in ("{}.h5", "{}_00000004.h5"):
        files = [data_sets(place.format(name[:-3])) for name in names]
        for name, found in zip(names[1:], files[1:], strict=True):
            said = {n for n in found if found[n] != files[0][n]} - {"lanewise@snapshot_of"}
            assert (found.keys(), said) == (files[0].keys(), set()), name


def test_a_run_goes_on_with_other_parts() -> None:
    assert run(*BEGIN, "--steps", 9, "--out", "whole.h5", "--device", "cpu*1").code == 0
    wanted = data_sets("whole.h5")
    assert run(*BEGIN, "--steps", 3, "--out", "begun.h5", "--device", "cpu*2").code == 0
    for place in ("cpu*3", "cpu*1", "cpu"):  # from two parts on three, one, and a device
        ended = run("--resume", "begun.h5", "--steps", 6, "--out", "on.h5", "--overwrite", "--device", place)
        assert ended == Ended(0, "")
        assert data_sets("on.h5") == wanted, place
    assert run("--resume", "begun.h5", "--steps", 3, "--device", "cpu*5").code == 0
    assert run("--resume", "begun.h5", "--steps", 3) == Ended(0, "")  # on five, as before
    assert data_sets("begun.h5") == wanted


def test_plans_of_one_device_that_no_mesh_has_are_chosen_anew() -> None:
    from lanewise.sims.gravity.plans import Plans
    from lanewise.sims.gravity.runner import _plans_fit  # pyright: ignore[reportPrivateUsage]

    both, off = lw.Plan(reciprocity="ordered"), lw.Plan(reciprocity="off")
    mesh = lw.Mesh("cpu", parts=2)
    assert _plans_fit(Plans(off, off), mesh)
    assert _plans_fit(None, mesh)
    assert _plans_fit(Plans(both, off), "cpu")
    assert not _plans_fit(Plans(both, off), mesh)
    assert not _plans_fit(Plans(off, both), mesh)
    shared = lw.Plan(reciprocity="grouped")  # the plan of a mesh, on any number of parts and on one GPU
    assert _plans_fit(Plans(shared, off), mesh)
    assert _plans_fit(Plans(shared, shared), mesh)
    assert _plans_fit(Plans(shared, shared), "cpu")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--bodies", 300, "--device", "cpu*5"), "300 bodies on 5 parts (5 x cpu): a run wants at least 64 per part; take 4"),
        (("--device", "cpu*0"), "'cpu*0': a mesh has 1 to 1,024 parts"),
        (("--device", "tpu*2"), "unknown device 'tpu'"),
        (("--device", "cuda:2-1"), "GPUs are listed from the lower number to the higher"),
    ],
    ids=str,
)  # fmt: skip
def test_bad_input(options: tuple[object, ...], text: str) -> None:
    ended = run(*options)
    assert ended.code == 2
    assert ended.errors.count("error:") == 1
    assert text in ended.errors


def test_gpus_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    from lanewise.runtime import devices

    monkeypatch.setattr(devices, "missing_for_cuda", lambda: ())
    monkeypatch.setattr(devices, "cuda_device_count", lambda: 2)
    ended = run("--device", "cuda:0-9")
    assert ended.code == 2
    assert ended.errors == ("error: device 'cuda:2' does not exist: this machine has 2 GPUs, numbered from 0\n")


def test_a_gpu_that_is_named_twice_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from lanewise.runtime import devices
    from lanewise.sims.common.meshes import repeated

    monkeypatch.setattr(devices, "missing_for_cuda", lambda: ())
    monkeypatch.setattr(devices, "cuda_device_count", lambda: 2)
    assert repeated(lw.Mesh("cuda:0,1,0")) == "cuda has 2 parts, one after the other"
    assert lw.Mesh("cuda:0,1,0").spelling == "cuda:0,1,0"
    assert [repeated(p) for p in (lw.Mesh("cuda:*"), lw.Mesh("cpu*3"), "cuda")] == [""] * 3


@pytest.mark.parametrize("text", ["cpu*1", "cpu*4", "python*2"])
def test_meshes_are_read_as_they_are_spelled(text: str) -> None:
    assert lw.Mesh(text).spelling == text
    assert lw.Mesh(lw.Mesh(text).spelling) == lw.Mesh(text)


def test_profiles_have_the_parts() -> None:
    ended = run(*BEGIN, "--steps", 4, "--device", "cpu*2", "--profile")
    assert ended.code == 0
