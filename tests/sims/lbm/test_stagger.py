"""Velocities that alternate from site to site are found, and what only looks like it is not."""

from __future__ import annotations

import numpy as np
import pytest

from lanewise.sims.lbm.checks import FlowWarning
from lanewise.sims.lbm.simulation import Simulation
from lanewise.sims.lbm.watch import MOST, PART, SITES, Stagger, find_stagger

NOTHING = np.zeros((40, 60), bool)


def stream(shape: tuple[int, ...] = (40, 60)) -> np.ndarray:
    """A uniform stream along x."""
    velocity = np.zeros((*shape, len(shape)))
    velocity[..., 0] = 0.1
    return velocity


def test_a_zebra_is_found_and_named() -> None:
    velocity = stream()
    velocity[21, 30:50, 0] += 0.01 * (-1.0) ** np.arange(20)
    found = find_stagger(velocity, NOTHING, "cpu")
    assert found.axis == 0
    assert found.site[0] == 21
    assert 30 <= found.site[1] < 50
    assert found.amplitude == pytest.approx(0.01 / 0.11)
    assert found.warning.startswith(
        "the velocity goes up and down from site to site along x, by 9.1 % of the largest speed about site (y, x) = (21, "
    )


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("component", range(3))
def test_along_every_axis(axis: int, component: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In parts of a box, too."""
    monkeypatch.setattr("lanewise.sims.lbm.watch.PART", 700)
    shape = (18, 19, 20)
    assert np.prod(shape) < PART
    velocity = stream(shape)
    line: list[slice | int] = [13, 14, 15]
    line[2 - axis] = slice(None)
    velocity[(*line, component)] += 0.02 * (-1.0) ** np.arange(shape[2 - axis])
    found = find_stagger(velocity, np.zeros(shape, bool), "cpu")
    assert found.axis == axis
    assert found.amplitude == pytest.approx(0.02 / np.linalg.norm(velocity, axis=-1).max())
    assert [n for a, n in enumerate(found.site) if a != 2 - axis] == [n for n in line if isinstance(n, int)]


def test_walls_end_a_line_of_sites() -> None:
    velocity, solid = stream(), NOTHING.copy()
    velocity[..., 0] += 0.01 * (-1.0) ** np.arange(60)
    solid[:, :: SITES + 1] = True
    assert find_stagger(velocity, solid, "cpu") == Stagger(0.0)


def test_flows_are_not_staggered() -> None:
    y, x = np.indices((40, 60))
    vortex = np.stack([np.sin(y * 0.9) * np.cos(x), np.cos(y * 0.9) * np.sin(x)], axis=-1)  # waves of six sites
    assert find_stagger(vortex, NOTHING, "cpu").amplitude == 0
    corner = stream()
    corner[..., 1] = 0.1 * (-0.6) ** x  # falls off from a corner by 0.6 a site
    assert not find_stagger(corner, NOTHING, "cpu").warned
    noisy = stream((400, 600)) + np.random.default_rng(0).normal(0, 0.001, (400, 600, 2))
    assert not find_stagger(noisy, np.zeros((400, 600), bool), "cpu").warned
    assert not find_stagger(np.zeros((9, 9, 2)), np.zeros((9, 9), bool), "cpu").warned


def staggered_flow() -> Simulation:
    """A shear wave of two sites along x in a fluid that hardly damps it."""
    velocity = np.zeros((16, 32, 2))
    velocity[..., 1] = 0.05 * (-1.0) ** np.arange(32)
    return Simulation(shape=(16, 32), viscosity=1e-3, velocity=velocity, device="cpu")


@pytest.mark.filterwarnings("ignore:the relaxation time")
def test_a_run_warns_once_and_looks_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    flow = staggered_flow()
    looks: list[int] = []

    def looked(simulation: Simulation) -> Stagger:
        looks.append(simulation.step)
        return Stagger(2 * MOST, 0, (3, 4))

    monkeypatch.setattr(Simulation, "stagger", looked)
    flow.run(255)
    assert looks == []
    with pytest.warns(FlowWarning, match="the velocity goes up and down"):
        flow.run(1)
    flow.run(300)
    assert looks == [256]
