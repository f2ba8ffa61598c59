"""A steady flow is steady at every site, whatever number of steps lies between two looks: odd or even."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lanewise.runtime.memory import to_host
from lanewise.sims.lbm import Open, Simulation, Wall
from lanewise.sims.lbm.operators import OPERATORS

LATTICES = ("D2Q9", "D3Q19", "D3Q27")
KINDS = ("", "-zou-he")


def opened(lattice: str, collision: str, inlet: str, kind: str, device: str = "cpu") -> Simulation:
    """A channel between walls, from an inlet of given velocity or density to an outlet of given density."""
    height, length = 8, 16
    shape = (height, length) if lattice == "D2Q9" else (2, height, length)
    y = (np.arange(height) + 0.5) / height
    profile = np.broadcast_to((4 * y * (1 - y))[:, None], shape)
    mask = np.zeros(shape, np.int32)
    mask[..., 0], mask[..., -1] = 2, 3
    along = (0.03, *[0.0] * (len(shape) - 1))
    first = (
        Open("in", f"velocity{kind}", "x-", velocity=along, profile=profile)
        if inlet == "velocity"
        else Open("in", f"pressure{kind}", "x-", density=1.02)
    )
    return Simulation(
        shape=shape, lattice=lattice, viscosity=0.04, collision=collision, precision="f64", mask=mask, edges={"y": "wall"},
        kinds={1: Wall("wall"), 2: first, 3: Open("out", f"pressure{kind}", "x+", density=1.0)}, device=device,
    )  # fmt: skip


def changes(flow: Simulation, intervals: tuple[int, ...]) -> list[float]:
    """How much the velocity changes anywhere within so many steps, relative to the largest."""
    before, found = to_host(flow.velocity), []
    for steps in intervals:
        flow.run(steps)
        now = to_host(flow.velocity)
        found.append(float(np.abs(now - before).max() / np.abs(now).max()))
        before = now
    return found


def check_steady(flow: Simulation, steps: int = 6000) -> None:
    flow.run(steps)
    found = changes(flow, (1, 2, 7, 10))
    assert max(found) < 1e-7, found


def test_an_outlet_does_not_alternate() -> None:
    check_steady(opened("D2Q9", "bgk", "velocity", ""))


EVERY: list[Any] = [(n, c, i, k) for n in LATTICES for c in OPERATORS for i in ("velocity", "pressure") for k in KINDS]


@pytest.mark.slow
@pytest.mark.parametrize(("lattice", "collision", "inlet", "kind"), EVERY)
def test_every_opening_collision_and_lattice_is_steady(lattice: str, collision: str, inlet: str, kind: str) -> None:
    check_steady(opened(lattice, collision, inlet, kind))


@pytest.mark.cuda
@pytest.mark.parametrize("kind", KINDS)
def test_an_outlet_does_not_alternate_on_a_gpu(kind: str) -> None:
    check_steady(opened("D3Q19", "mrt", "velocity", kind, "cuda"))
