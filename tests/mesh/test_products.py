"""Simulations that run on one device refuse arrays on a mesh, and meshes as devices, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.runtime.devices import cuda_device_count
from lanewise.sims import gravity
from lanewise.sims.boids import State
from lanewise.sims.lbm import Simulation

MESH = lw.Mesh("cpu", parts=2)


def on(mesh: lw.Mesh, record: Any = gravity.Body) -> lw.RecordArray:
    rng = np.random.default_rng(3)
    return record.array(position=rng.normal(size=(9, 3)), mass=np.ones(9), device=mesh)


REFUSED: dict[str, Callable[[Any], Any]] = {
    "flow": lambda d: Simulation(shape=(16, 16), viscosity=0.1, device=d),
}


@pytest.mark.parametrize("device", [MESH, "cpu,cpu", "cuda:*", ["cpu", "cpu"]], ids=str)
@pytest.mark.parametrize("product", REFUSED)
def test_a_mesh_as_a_device(product: str, device: Any) -> None:
    if product == "flow" and (isinstance(device, lw.Mesh) or (device == "cuda:*" and cuda_device_count())):
        pytest.skip("flows run there")
    with pytest.raises(lw.LanewiseError) as error:
        REFUSED[product](device)
    assert "device" in str(error.value)


def test_a_state_of_fields_on_a_mesh() -> None:
    bodies, one = on(MESH), np.zeros((9, 3))
    with pytest.raises(lw.InputError, match=r"State\(position=<float32 \(9, 3\) on a mesh"):
        State(bodies.position, one, one, np.ones(9), one, np.arange(9))
