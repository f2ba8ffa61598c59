"""Decaying vortices, an exact solution of the Navier-Stokes equations: the order of the method, measured."""

from __future__ import annotations

import numpy as np
import pytest

import lanewise as lw
from tests.physics.lbm.flows import Setup, each_solver, start

SIZES = (16, 24, 32, 48)


def vortices(shape: tuple[int, int], speed: float, viscosity: float, time: float) -> tuple[np.ndarray, np.ndarray]:
    """Density and velocity (2, ny, nx) of one vortex pair in a periodic box, kx and ky being different."""
    ny, nx = shape
    kx, ky = 2 * np.pi / nx, 2 * np.pi / ny
    x, y = np.arange(nx)[None, :], np.arange(ny)[:, None]
    decay = np.exp(-viscosity * (kx**2 + ky**2) * time)
    u = -speed * np.sqrt(ky / kx) * np.cos(kx * x) * np.sin(ky * y) * decay
    v = speed * np.sqrt(kx / ky) * np.sin(kx * x) * np.cos(ky * y) * decay
    pressure = -(speed**2) / 4 * decay**2 * (ky / kx * np.cos(2 * kx * x) + kx / ky * np.cos(2 * ky * y))
    return 1 + 3 * pressure, np.stack([u, v])


def error(solver: str, size: int, tau: float, magic: float | None) -> float:
    """The relative error of the velocity when about a fifth of it has decayed; the speed is as 1 / size (diffusive
    scaling).
    """
    shape = (3 * size // 2, size)
    speed, viscosity = 0.64 / size, (tau - 0.5) / 3
    density, velocity = vortices(shape, speed, viscosity, 0)
    flow = start(solver, Setup(lw.D2Q9, shape, tau, magic, density=density, velocity=velocity))
    steps = round(0.005 * size**2 / viscosity)
    flow.run(steps)
    _, found = flow.fields()
    _, exact = vortices(shape, speed, viscosity, steps)
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


@pytest.mark.grid(every=40)
@each_solver
@pytest.mark.parametrize("magic", [None, 3 / 16])
def test_order_two_under_diffusive_scaling(solver: str, magic: float | None) -> None:
    errors = [error(solver, size, 0.6, magic) for size in SIZES]
    slope = -np.polyfit(np.log(SIZES), np.log(errors), 1)[0]
    assert 1.9 < slope < 2.1, errors
    assert errors[-1] < 0.01


@each_solver
def test_energy_decays_with_the_viscosity(solver: str) -> None:
    """d ln E / dt = -2 nu (kx^2 + ky^2), within the error of this resolution."""
    size, tau = 48, 0.8
    density, velocity = vortices((size, size), 0.01, 0.1, 0)
    flow = start(solver, Setup(lw.D2Q9, (size, size), tau, density=density, velocity=velocity))
    energies = []
    for _ in range(3):
        flow.run(50)
        energies.append(float((flow.fields()[1] ** 2).sum()))
    rates = -np.diff(np.log(energies)) / 50
    np.testing.assert_allclose(rates, 2 * 0.1 * 2 * (2 * np.pi / size) ** 2, rtol=5e-3)
