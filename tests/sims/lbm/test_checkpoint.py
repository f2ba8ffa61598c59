"""Checkpoints: what is resumed goes on with the same bits; what cannot be resumed says why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from lanewise.sims.lbm.cases import CASES
from lanewise.sims.lbm.checks import FlowWarning
from lanewise.sims.lbm.files import read_flow
from lanewise.sims.lbm.kinds import Wall
from lanewise.sims.lbm.obstacles import Round, disc
from lanewise.sims.lbm.settings import SiteGeometry, geometry_from_json, geometry_to_json
from lanewise.sims.lbm.simulation import Simulation
from lanewise.support.errors import InputError
from tests.io.samples import renew_sums

CAVITY: dict[str, Any] = {
    "shape": (9, 9), "viscosity": 0.05, "edges": {"x": "wall", "y": ("wall", "lid")},
    "kinds": {1: Wall("wall"), 2: Wall("lid", (0.1, 0.0))},
}  # fmt: skip


def bits(flow: Simulation) -> list[bytes]:
    return [np.ascontiguousarray(flow.engine.arriving()).tobytes(), flow.density.tobytes(), flow.velocity.tobytes()]


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("streaming", ["in-place", "pull"])
@pytest.mark.parametrize("first", [0, 1, 2, 7])
def test_resuming_gives_the_bits_of_one_run(tmp_path: Path, streaming: str, first: int) -> None:
    whole = Simulation(**CAVITY, streaming=streaming).run(20)
    part = Simulation(**CAVITY, streaming=streaming)
    if first:
        part.run(first)
    part.checkpoint(tmp_path / "a.h5")
    resumed = Simulation.resume(tmp_path / "a.h5")
    assert (resumed.step, resumed.settings) == (first, part.settings)
    assert bits(resumed.run(20 - first)) == bits(whole)
    assert resumed.step == 20


@pytest.mark.parametrize(("before", "after"), [("in-place", "pull"), ("pull", "in-place")])
def test_another_streaming_form_takes_the_populations_over(tmp_path: Path, before: str, after: str) -> None:
    flow = Simulation(**CAVITY, streaming=before).run(7)
    flow.checkpoint(tmp_path / "a.h5")
    other = Simulation.resume(tmp_path / "a.h5", streaming=after)
    assert (other.settings.streaming, other.step) == (after, 7)
    assert bits(other) == bits(flow)
    assert other.run(10).velocity == pytest.approx(flow.run(10).velocity, abs=1e-7)


def test_the_mass_is_compared_with_that_of_the_start(tmp_path: Path) -> None:
    """However often the run was cut: the drift before a checkpoint is not forgotten."""
    flow = Simulation(**CAVITY, density=1.01)
    flow.run(3)
    flow.checkpoint(tmp_path / "a.h5")
    assert flow.first_mass == pytest.approx(81 * 1.01, rel=1e-12)
    for path in (tmp_path / "a.h5", tmp_path / "b.h5"):
        resumed = Simulation.resume(path)
        assert resumed.first_mass == flow.first_mass
        resumed.checkpoint(tmp_path / "b.h5", overwrite=True)
    resumed.engine.set_arriving(resumed.engine.arriving() - 1e-3)  # of each of nine populations
    with pytest.warns(FlowWarning, match=r"the mass of this closed box has changed by -0\.89 % since the start"):
        resumed.run(1)


def test_a_file_without_the_first_mass_is_read(tmp_path: Path) -> None:
    """It was not kept at first: the mass of the checkpoint stands for it, and what is lost afterwards is warned of."""
    Simulation(**CAVITY).run(3).checkpoint(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5", "a") as file:
        del file["lanewise"].attrs["first_mass"]
    resumed = Simulation.resume(tmp_path / "a.h5")
    assert resumed.first_mass is None
    resumed.run(1)
    assert resumed.first_mass == pytest.approx(81, rel=1e-6)
    resumed.engine.set_arriving(resumed.engine.arriving() - 1e-3)
    with pytest.warns(FlowWarning, match="the mass of this closed box has changed by"):
        resumed.run(1)


@pytest.mark.slow
def test_others_read_the_fields_and_parameters(tmp_path: Path) -> None:
    mask = np.zeros((9, 9), int)
    mask[4, 4] = 1
    flow = Simulation(**CAVITY, mask=mask).run(3)
    flow.checkpoint(tmp_path / "a.h5")
    read = read_flow(tmp_path / "a.h5")
    assert read.density == pytest.approx(flow.density)
    assert read.velocity == pytest.approx(flow.velocity)
    assert read.solid is not None
    assert list(np.argwhere(read.solid)[0]) == [4, 4]
    p = read.parameters
    assert (p["lattice"], p["collision"], p["parameters.magic"], p["step"]) == ("D2Q9", "trt", 3 / 16, 3)
    assert (p["viscosity"], p["storage"]) == (pytest.approx(0.05), "f32")


@pytest.mark.parametrize("name", list(CASES))
def test_kinds_edges_and_profiles_come_back(name: str) -> None:
    setup = CASES[name].setup(size=8)
    geometry = SiteGeometry(setup.mask, setup.kinds, setup.edges)
    profiles = {n: k.profile for n, k in geometry.openings.items() if k.profile is not None}
    read = geometry_from_json(geometry_to_json(geometry), setup.mask, profiles)
    assert dict(read.edges) == dict(setup.edges)
    assert read.walls == geometry.walls
    for number, opening in geometry.openings.items():
        found = read.openings[number]
        assert (found.name, found.boundary, found.face) == (opening.name, opening.boundary, opening.face)
        assert (found.velocity, found.density) == (opening.velocity, opening.density)
        assert found.profile is opening.profile


def test_an_existing_file_is_kept(tmp_path: Path) -> None:
    (tmp_path / "a.h5").write_text("precious")
    flow = Simulation(**CAVITY)
    with pytest.raises(InputError, match="the file exists already; give --overwrite to replace it"):
        flow.checkpoint(tmp_path / "a.h5")
    assert (tmp_path / "a.h5").read_text() == "precious"
    flow.checkpoint(tmp_path / "a.h5", overwrite=True)
    assert Simulation.resume(tmp_path / "a.h5").step == 0


def test_a_file_that_is_no_checkpoint(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["density"] = np.ones((3, 3))
    with pytest.raises(
        InputError, match=r"no checkpoint of lanewise lbm; wanted a file that --out or Simulation\.checkpoint"
    ):
        Simulation.resume(tmp_path / "a.h5")
    (tmp_path / "b.h5").write_text("nothing")
    with pytest.raises(InputError, match="this is no HDF5 file"):
        Simulation.resume(tmp_path / "b.h5")


DAMAGE: dict[str, tuple[str, Any, str]] = {
    "settings": ("settings", "{", "damaged checkpoint: its settings cannot be read"),
    "geometry": ("geometry", "[]", "damaged checkpoint: its kinds cannot be read"),
    "format": ("format", 99, "a checkpoint of format 99; wanted format 2 or 1"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_checkpoint(tmp_path: Path, name: str) -> None:
    attribute, value, message = DAMAGE[name]
    Simulation(**CAVITY).checkpoint(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5", "a") as file:
        file["lanewise"].attrs[attribute] = value
    with pytest.raises(InputError) as caught:
        Simulation.resume(tmp_path / "a.h5")
    assert message in str(caught.value)


def test_populations_of_another_size(tmp_path: Path) -> None:
    Simulation(**CAVITY).checkpoint(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5", "a") as file:
        del file["lanewise/state/populations"]
        file["lanewise/state/populations"] = np.zeros(10, np.uint8)
        renew_sums(file)
    with pytest.raises(InputError, match="damaged checkpoint: it holds 10 bytes; wanted"):
        Simulation.resume(tmp_path / "a.h5")


@pytest.mark.cuda
@pytest.mark.parametrize("storage", ["f16", "f32", "f64"])
@pytest.mark.parametrize("streaming", ["in-place", "pull"])
def test_a_gpu_goes_on_with_the_same_bits(tmp_path: Path, streaming: str, storage: str) -> None:
    options = {**CAVITY, "streaming": streaming, "storage": storage, "device": "cuda"}
    whole = Simulation(**options).run(41)
    Simulation(**options).run(7).checkpoint(tmp_path / "a.h5")
    resumed = Simulation.resume(tmp_path / "a.h5").run(34)
    assert resumed.engine.arriving().tobytes() == whole.engine.arriving().tobytes()


@pytest.mark.cuda
def test_a_checkpoint_of_a_cpu_goes_on_on_a_gpu(tmp_path: Path) -> None:
    flow = Simulation(**CAVITY).run(7)
    flow.checkpoint(tmp_path / "a.h5")
    other = Simulation.resume(tmp_path / "a.h5", device="cuda")
    assert other.settings.device == "cuda"
    assert other.engine.arriving() == pytest.approx(flow.engine.arriving(), abs=1e-7)
    assert other.run(20).velocity.get() == pytest.approx(flow.run(20).velocity, abs=1e-6)


def test_what_an_outflow_keeps_is_part_of_a_checkpoint(tmp_path: Path) -> None:
    velocity = np.zeros((12, 20, 2))
    velocity[..., 0] = 0.05
    velocity[4:8, 8:12, 1] = 0.03
    make = {
        "shape": (12, 20),
        "viscosity": 0.05,
        "edges": {"x": ("slip", "outflow"), "y": "slip"},
        "velocity": velocity,
    }
    whole = Simulation(**make, outflow_speed=0.3)
    whole.run(9)
    first = Simulation(**make, outflow_speed=0.3)
    first.run(4)
    first.checkpoint(tmp_path / "half.h5")
    rest = Simulation.resume(tmp_path / "half.h5")
    rest.run(5)
    assert rest.velocity.tobytes() == whole.velocity.tobytes()
    other = Simulation(**make, outflow_speed=1.0)
    other.run(9)
    assert other.velocity.tobytes() != whole.velocity.tobytes()


def test_an_outflow_has_a_speed() -> None:
    with pytest.raises(InputError, match="the outflow speed is 0; wanted above 0 and at most 1, in sites per step"):
        Simulation(shape=(4, 4), viscosity=0.1, edges={"x": ("slip", "outflow")}, outflow_speed=0)


@pytest.mark.quick("in-place")
@pytest.mark.parametrize("streaming", ["in-place", "pull", "push"])
def test_interpolated_walls_go_on_with_the_same_bits(tmp_path: Path, streaming: str) -> None:
    body: dict[str, Any] = {
        "shape": (14, 20), "viscosity": 0.03, "mask": disc((14, 20), (7.2, 6.6), 3.1), "velocity": (0.05, 0.01),
        "surfaces": {1: Round((7.2, 6.6), 3.1)}, "streaming": streaming,
    }  # fmt: skip
    whole = Simulation(**body).run(9)
    Simulation(**body).run(4).checkpoint(tmp_path / "a.h5")
    rest = Simulation.resume(tmp_path / "a.h5")
    assert rest.interpolated_links == whole.interpolated_links > 0
    assert bits(rest.run(5)) == bits(whole)
    assert rest.force_on("wall").tobytes() == whole.force_on("wall").tobytes()
    stairs = Simulation(**body | {"surfaces": {}})
    assert stairs.interpolated_links == 0
    assert bits(stairs.run(9)) != bits(whole)


def test_a_surface_of_what_is_no_wall() -> None:
    with pytest.raises(InputError) as caught:
        Simulation(shape=(4, 4), viscosity=0.1, mask=np.eye(4, dtype=bool), surfaces={2: Round((2.0, 2.0), 1.0)})
    assert str(caught.value) == "a surface is given for kind 2, which is no wall of the mask; its walls are 1 (wall)"
