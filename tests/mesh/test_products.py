"""The simulations run on one device: arrays on a mesh, and meshes as devices, are refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.sims import gravity
from lanewise.sims.boids import Flock, State
from lanewise.sims.gravity import make_bodies, make_initial_conditions
from lanewise.sims.lbm import Simulation

MESHES = {"two parts": lw.Mesh("cpu", parts=2), "one part": lw.Mesh("cpu", parts=1)}
LIE = "bodies lie on a mesh ({mesh}); wanted an array on one device: bodies.to('cpu') brings them there"


def on(mesh: lw.Mesh, record: Any = gravity.Body) -> lw.RecordArray:
    rng = np.random.default_rng(3)
    return record.array(position=rng.normal(size=(9, 3)), mass=np.ones(9), device=mesh)


@pytest.mark.parametrize("record", [gravity.Body, gravity.Body64, gravity.BodyMixed])
@pytest.mark.parametrize("layout", [lw.SoA(), lw.AoS(), None])
@pytest.mark.parametrize("mesh", MESHES.values(), ids=MESHES)
def test_bodies_on_a_mesh(mesh: lw.Mesh, layout: lw.Layout | None, record: Any) -> None:
    bodies = on(mesh, record)
    bodies = bodies if layout is None else bodies.with_layout(layout)
    with pytest.raises(lw.InputError) as error:
        gravity.Simulation(bodies, softening=0.1)
    assert str(error.value) == LIE.format(mesh=mesh)
    there = gravity.Simulation(bodies.to("cpu"), softening=0.1)  # what was proposed
    assert there.run(1, 0.01) is not None
    with pytest.raises(lw.InputError):
        gravity.Simulation(bodies[1:4], softening=0.1)


MESH = MESHES["two parts"]
REFUSED: dict[str, Callable[[Any], Any]] = {
    "gravity": lambda d: make_bodies(make_initial_conditions("plummer", 8), device=d),
    "flow": lambda d: Simulation(shape=(16, 16), viscosity=0.1, device=d),
    "flock": lambda d: Flock(agents=10, device=d),
}


@pytest.mark.parametrize("device", [MESH, "cpu,cpu", "cuda:*", ["cpu", "cpu"]], ids=str)
@pytest.mark.parametrize("product", REFUSED)
def test_a_mesh_as_a_device(product: str, device: Any) -> None:
    with pytest.raises(lw.LanewiseError) as error:
        REFUSED[product](device)
    assert "device" in str(error.value)


def test_a_state_of_fields_on_a_mesh() -> None:
    bodies, one = on(MESH), np.zeros((9, 3))
    with pytest.raises(lw.InputError, match=r"State\(position=<float32 \(9, 3\) on a mesh"):
        State(bodies.position, one, one, np.ones(9), one, np.arange(9))
