"""Flows on a mesh: simulations and runs with the bits and the files of one device."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import lanewise as lw
from lanewise.sims.lbm import Open, Simulation, Wall, obstacles
from lanewise.support.errors import ArgumentError, InputError

ON_GPU = pytest.param("cuda:0", marks=pytest.mark.cuda)
Make = Callable[[Any], Simulation]


def host(value: Any) -> NDArray[Any]:
    return value.get() if hasattr(value, "get") else np.asarray(value)


def cavity(device: Any) -> Simulation:
    return Simulation(
        shape=(43, 12), omega=1.6, edges={"x": "wall", "y": ("wall", "lid")},
        kinds={1: Wall("wall"), 2: Wall("lid", velocity=(0.1, 0.0))}, device=device,
    )  # fmt: skip


def channel(device: Any) -> Simulation:
    """A round body in a channel: an inlet with a profile, an outlet of given density, and walls at a surface."""
    shape = (41, 60)
    body = obstacles.Round((20.3, 20.1), 5.7)
    yy, xx = np.indices(shape)
    mask = np.where((xx - 20.3) ** 2 + (yy - 20.1) ** 2 < 5.7**2, 3, 0)
    mask[:, 0], mask[:, -1] = 1, 2
    profile = np.zeros(shape)
    profile[:, 0] = np.sin(np.pi * (np.arange(41) + 0.5) / 41)
    return Simulation(
        shape=shape, viscosity=0.05, collision="mrt", mask=mask, edges={"y": "wall"}, surfaces={3: body},
        kinds={
            1: Open("inlet", "velocity", "x-", velocity=(0.08, 0.0), profile=profile),
            2: Open("outlet", "pressure", "x+", density=1.0), 3: Wall("body"), 4: Wall("wall"),
        },
        device=device,
    )  # fmt: skip


def blown(device: Any, shape: tuple[int, int, int] = (42, 6, 7)) -> Simulation:
    """In three dimensions, in place, with outflow across the cut, a force and eddies."""
    rng = np.random.default_rng(1)
    return Simulation(
        shape=shape, viscosity=0.02, lattice="D3Q19", collision="bgk", smagorinsky=0.15, force=(1e-4, 0.0, 1e-5),
        edges={"z": ("slip", "outflow")}, velocity=0.02 * rng.standard_normal((*shape, 3)), streaming="in-place",
        density=1 + 0.01 * rng.standard_normal(shape), device=device, outflow_speed=0.3,
    )  # fmt: skip


FLOWS: dict[str, tuple[Make, tuple[str, ...], tuple[int, ...]]] = {
    "cavity": (cavity, ("wall", "lid"), (1, 2, 5)),
    "channel": (channel, ("body",), (2,)),
    "blown": (blown, (), (5,)),
}
"""What makes each, the walls whose forces are compared, and numbers of parts."""


def seen(s: Simulation, walls: tuple[str, ...]) -> dict[str, Any]:
    found = {"density": host(s.density), "velocity": host(s.velocity), "mass": s.mass, "stagger": s.stagger()}
    return found | {f"force on {w}": s.force_on(w) for w in walls} | {"bytes": s.bytes_per_site}


def same(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], err_msg=name)


@pytest.mark.slow_cases("channel-cpu", "blown-cpu")
@pytest.mark.parametrize("device", ["cpu", ON_GPU])
@pytest.mark.parametrize("flow", FLOWS)
def test_a_simulation_has_the_bits_and_the_file_of_one_device(flow: str, device: str, tmp_path: Path) -> None:
    make, walls, numbers = FLOWS[flow]
    one = make(device)
    one.run(11)
    one.checkpoint(tmp_path / "one.h5")
    wanted = seen(one, walls)
    one.run(6)
    for parts in numbers:
        mesh = lw.Mesh(device, parts=parts)
        many = make(mesh)
        assert f"on a mesh ({mesh})" in repr(many)
        many.run(11)
        same(seen(many, walls), wanted)
        many.checkpoint(tmp_path / "many.h5", overwrite=True)
        assert (tmp_path / "many.h5").read_bytes() == (tmp_path / "one.h5").read_bytes()
        for other in (device, lw.Mesh(device, parts=3)):
            again = Simulation.resume(tmp_path / "many.h5", device=other)
            again.run(6)
            same(seen(again, walls), seen(one, walls))


def test_settings_change_and_layouts_convert_on_a_mesh(tmp_path: Path) -> None:
    def changed(device: Any) -> dict[str, Any]:
        s = cavity(device)
        s.run(4)
        s.viscosity, s.force = 0.2, (1e-4, 0.0)
        s.run(3)
        s.checkpoint(tmp_path / "x.h5", overwrite=True)
        again = Simulation.resume(tmp_path / "x.h5", device=device, streaming="pull", layout="aosoa(8)")
        again.run(3)
        return seen(again, ("lid",))

    same(changed("cpu*3"), changed("cpu"))


@pytest.mark.filterwarnings("ignore:the relaxation time")
def test_a_flow_that_blows_up_names_the_site() -> None:
    def message(device: Any) -> str:
        s = Simulation(shape=(40, 8), omega=1.99, velocity=np.random.default_rng(0).uniform(-0.12, 0.12, (40, 8, 2)),
                       collision="bgk", device=device)  # fmt: skip
        with pytest.raises(InputError) as error:
            s.run(3000)
        return str(error.value)

    assert message("cpu*4") == message("cpu")


def test_a_thin_box_is_refused() -> None:
    with pytest.raises(ArgumentError, match="20 layers along y, and a mesh of 3 parts"):
        Simulation(shape=(20, 20), omega=1.0, device="cpu*3")


def test_a_profile_has_exchanges() -> None:
    profile = lw.Profile()
    s = Simulation(shape=(40, 8), omega=1.2, device="cpu*2", streaming="pull", profile=profile)
    s.run(64)
    assert "exchange" in str(profile.summary())
    assert list(profile.summary()["devices"]) == ["cpu, part 0", "cpu, part 1"]
