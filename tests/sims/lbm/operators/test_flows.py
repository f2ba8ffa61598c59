"""Small flows by NumPy: the viscosity of every operator, and Poiseuille flow of a body force."""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.language.lattices.base import Lattice
from lanewise.sims.lbm.operators import OPERATORS
from tests.sims.lbm.operators.arrays import Array, Vectors, equilibrium, moments, on_arrays, stream
from tests.sims.lbm.operators.test_conservation import each_lattice


def box(lattice: Lattice, width: int, height: int) -> tuple[int, ...]:
    return (height, width) if lattice.dimension == 2 else (1, height, width)


@pytest.mark.grid(every=40)
@each_lattice
@pytest.mark.parametrize("name", list(OPERATORS))
@pytest.mark.parametrize("omega", [0.8, 1.6])
def test_shear_waves_decay_with_the_viscosity(lattice: Lattice, name: str, omega: float) -> None:
    """A wave oblique to the axes, exp(-nu k^2 t), to 1 %, about the error of second order at this length."""
    sites, steps = 40, 60
    shape = box(lattice, sites, sites)
    y, x = np.meshgrid(np.arange(sites), np.arange(sites), indexing="ij")
    k = 2 * pi / sites
    wave = 1e-3 * np.sin(k * (x + y)).reshape(shape)
    u = np.zeros((lattice.dimension, *shape))
    u[0], u[1] = wave, -wave
    collide = on_arrays(OPERATORS[name].make(lattice, "f64"))
    f = equilibrium(lattice, np.zeros(shape), u)
    sizes: list[float] = []
    for step in range(steps + 1):
        if step in (20, steps):
            sizes.append(float((moments(lattice, f)[1][0] * wave).sum()))
        collide(f, omega, **OPERATORS[name].parameters)
        f = stream(f, lattice)
    viscosity = -log(sizes[1] / sizes[0]) / (2 * k * k * (steps - 20))
    assert viscosity == pytest.approx((1 / omega - 0.5) / 3, rel=0.01)


def walled(f: Array, lattice: Lattice) -> Array:
    """Stream with half-way bounce-back at both faces of y: what left through one comes back."""
    result = stream(f, lattice)
    for q in lattice:
        if q.y:
            face = 0 if q.y > 0 else -1
            result[q.index][..., face, :] = f[q.opposite.index][..., face, :]
    return result


@pytest.mark.grid(every=40)
@each_lattice
@pytest.mark.parametrize("name", [*OPERATORS])
def test_a_body_force_drives_poiseuille_flow(lattice: Lattice, name: str) -> None:
    """u = g / (2 nu) y (H - y) with walls half a link outside; TRT has it exactly, the others to their order."""
    height, omega, g = 5, 1 / 0.9, 1e-6
    viscosity = (1 / omega - 0.5) / 3
    shape, force = box(lattice, 1, height), np.zeros(lattice.dimension)
    force[0] = g
    collide = on_arrays(OPERATORS[name].make(lattice, "f64", forced=True))
    f = np.zeros((lattice.size, *shape))
    parameters: dict[str, Any] = dict(OPERATORS[name].parameters)
    for _ in range(330):
        collide(f, omega, force=Vectors(force), **parameters)
        f = walled(f, lattice)
    y = np.arange(height) + 0.5
    u = (moments(lattice, f)[1][0] + 0.5 * g).reshape(height)
    exact = g / (2 * viscosity) * y * (height - y)
    error = np.abs(u / exact - 1).max()
    assert error < (1e-6 if name == "trt" else 0.03)


@pytest.mark.slow
def test_single_precision_keeps_the_mass_of_a_closed_box() -> None:
    """Deviations in float32 for 500 steps: the mean density changes by less than 1e-7."""
    lattice, shape = lw.D3Q19, (8, 8, 8)
    random = np.random.default_rng(1)
    f = equilibrium(lattice, 0.01 * random.standard_normal(shape), 0.05 * random.standard_normal((3, *shape)))
    collide = on_arrays(OPERATORS["bgk"].make(lattice, "f32"))
    f = f.astype(np.float32)
    before = f.sum(dtype=np.float64)
    for _ in range(500):
        collide(f, np.float32(1.5))
        f = stream(f, lattice)
    assert f.dtype == np.float32
    assert abs(f.sum(dtype=np.float64) - before) / f[0].size < 1e-7
