"""Flows along straight walls, whose profiles are known exactly: Poiseuille, Couette, a square duct."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lanewise as lw
from tests.lbm.reference import Wall
from tests.physics.lbm.flows import Setup, each_solver_slowly, start

LATTICES = (lw.D2Q9, lw.D3Q19, lw.D3Q27)
WALL, LID = 2, 3

each_lattice = pytest.mark.parametrize("lattice", LATTICES, ids=lambda a: a.name)


def across(lattice: lw.Lattice, height: int) -> tuple[int, ...]:
    """A box of one column of sites along y: nothing changes along the other axes."""
    return (height, 1) if lattice.dimension == 2 else (1, height, 1)


def along_x(lattice: lw.Lattice, value: float) -> tuple[float, ...]:
    return (value, *[0.0] * (lattice.dimension - 1))


def settled(height: float, viscosity: float, decimals: int, axes: int = 1) -> int:
    """Steps until the slowest mode, exp(-nu pi^2 axes t / H^2), has lost that many decimal places."""
    return math.ceil(decimals * math.log(10) * height**2 / (viscosity * math.pi**2 * axes))


def poiseuille(
    solver: str, lattice: lw.Lattice, tau: float, magic: float | None, height: int = 6
) -> tuple[np.ndarray, float]:
    """The velocity across a channel, and g/nu."""
    nu = (tau - 0.5) / 3
    g = 8 * nu * 0.01 / height**2
    flow = start(solver, Setup(
        lattice, across(lattice, height), tau, magic, along_x(lattice, g), {"y": "wall"}, {WALL: Wall("wall")},
    ))  # fmt: skip
    flow.run(settled(height, nu, 13))
    density, velocity = flow.fields()
    np.testing.assert_allclose(density, 1, atol=1e-13)
    np.testing.assert_allclose(velocity[1:], 0, atol=1e-13)
    return velocity[0].ravel(), g / nu


@pytest.mark.grid(every=40)
@each_solver_slowly
@each_lattice
@pytest.mark.parametrize("tau", [0.7, 2.0])
def test_poiseuille_with_the_magic_parameter_is_exact(solver: str, lattice: lw.Lattice, tau: float) -> None:
    """TRT with 3/16 puts half-way walls exactly half-way, whatever the viscosity: u = g/(2 nu) y (H - y)."""
    u, ratio = poiseuille(solver, lattice, tau, 3 / 16)
    y = np.arange(len(u)) + 0.5
    np.testing.assert_allclose(u, ratio / 2 * y * (len(u) - y), rtol=1e-10)


def test_poiseuille_compiled() -> None:
    test_poiseuille_with_the_magic_parameter_is_exact("cpu", lw.D2Q9, 0.7)


@pytest.mark.grid(every=40)
@each_solver_slowly
@each_lattice
@pytest.mark.parametrize("tau", [0.7, 2.0])
def test_poiseuille_with_bgk_slips_as_is_known(solver: str, lattice: lw.Lattice, tau: float) -> None:
    """One relaxation time is Lambda = (tau - 1/2)^2, so the walls slip by g/(8 nu) (16 Lambda / 3 - 1).

    He, Zou, Luo and Dembo, J. Stat. Phys. 87 (1997) 115; Ginzburg and d'Humieres, Phys. Rev. E 68 (2003) 066614.
    """
    u, ratio = poiseuille(solver, lattice, tau, None)
    y = np.arange(len(u)) + 0.5
    slip = ratio / 8 * (16 / 3 * (tau - 0.5) ** 2 - 1)
    assert abs(slip) > 0.005 * u.max()
    np.testing.assert_allclose(u, ratio / 2 * y * (len(u) - y) + slip, rtol=1e-10)


@pytest.mark.grid(every=40)
@each_solver_slowly
@each_lattice
@pytest.mark.parametrize("magic", [None, 3 / 16])
def test_couette_is_exact(solver: str, lattice: lw.Lattice, magic: float | None) -> None:
    """A moving wall drags u = U y / H, and the force on it is that of Newton's law, nu U / H an area."""
    height, speed = 5, 0.1
    walls = {WALL: Wall("wall"), LID: Wall("lid", along_x(lattice, speed))}
    setup = Setup(lattice, across(lattice, height), 0.9, magic, None, {"y": ("wall", "lid")}, walls)
    flow = start(solver, setup)
    flow.run(settled(height, setup.viscosity, 15))
    _, velocity = flow.fields()
    np.testing.assert_allclose(velocity[0].ravel(), speed * (np.arange(height) + 0.5) / height, atol=1e-15)
    shear = setup.viscosity * speed / height
    np.testing.assert_allclose(flow.force("lid")[0], -shear, rtol=1e-12)
    np.testing.assert_allclose(flow.force("wall")[0], shear, rtol=1e-12)
    np.testing.assert_allclose(flow.force("wall", "lid"), 0, atol=1e-14)


@each_solver_slowly
@pytest.mark.parametrize("lattice", [lw.D3Q19, lw.D3Q27], ids=lambda a: a.name)
def test_square_duct(solver: str, lattice: lw.Lattice) -> None:
    """The series solution within 0.5 %: u_max = 0.07367135 g a^2 / nu, mean 0.03514425 g a^2 / nu."""
    side, tau = 21, 1.0  # an odd side has a site in the middle
    nu = (tau - 0.5) / 3
    g = 0.01 * nu / (0.07367135 * side**2)
    edges = {"y": "wall", "z": "wall"}
    flow = start(solver, Setup(lattice, (side, side, 1), tau, 3 / 16, (g, 0.0, 0.0), edges, {WALL: Wall("wall")}))
    flow.run(settled(side, nu, 5, axes=2))
    _, velocity = flow.fields()
    scale = g * side**2 / nu
    assert velocity[0].max() == pytest.approx(0.07367135 * scale, rel=5e-3)
    assert velocity[0].mean() == pytest.approx(0.03514425 * scale, rel=5e-3)
    assert np.unravel_index(int(np.argmax(velocity[0])), velocity[0].shape) == (side // 2, side // 2, 0)
    # In a steady flow the walls take what the body force gives.
    np.testing.assert_allclose(flow.force("wall"), [g * side**2, 0, 0], rtol=1e-4, atol=1e-10)
