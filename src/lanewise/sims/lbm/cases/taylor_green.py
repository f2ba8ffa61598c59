"""Vortices that decay in a periodic box: an exact solution of the Navier-Stokes equations in two
dimensions.

In two dimensions (Taylor and Green 1937), with k = 2 pi / size and rho = 1: u_x = -u0 cos(k x)
sin(k y) E, u_y = u0 sin(k x) cos(k y) E, p = -u0^2 / 4 (cos 2kx + cos 2ky) E^2, E = exp(-2 nu k^2
t). In three dimensions the vortices stretch and break; there the kinetic energy and its dissipation
are followed (Brachet et al., J. Fluid Mech. 130, 411 (1983)).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.sims.common.devices import to_host
from lanewise.sims.lbm.cases.registry import Case, Flow, Probe, Request, Series, Setup, State

MEASUREMENTS = 100
PLANAR_TIME = 1.0  # in units of the time in which the velocity falls to 1/e
STRETCHED_TIME = 10.0  # in units of 1 / (k u0): the dissipation is highest at about 9


def make(request: Request) -> Setup:
    """Re = u0 size / nu in two dimensions, u0 / (k nu) in three, as in the literature."""
    return _planar(request) if request.lattice == "D2Q9" else _stretched(request)


def _planar(request: Request) -> Setup:
    n, u0 = request.size, request.speed
    k, nu = 2 * np.pi / n, u0 * n / request.re
    y, x = np.meshgrid(k * np.arange(n), k * np.arange(n), indexing="ij")
    velocity, gradient, density = planar_fields(x, y, k, u0)
    rate = 2 * nu * k**2
    steps = max(1, round(PLANAR_TIME / rate))

    def results(state: State, series: Series) -> dict[str, Any]:
        del series
        exact = velocity * np.exp(-rate * state.step)
        computed = np.asarray(state.velocity, np.float64)
        energy = float(np.sum(computed**2) / np.sum(velocity**2))
        measured = -np.log(energy) / (2 * state.step) if state.step and energy > 0 else float("nan")
        return {
            "velocity_error": float(np.sqrt(np.sum((computed - exact) ** 2) / np.sum(exact**2))),
            "decay_rate": float(measured),
            "decay_rate_exact": rate,
            "decay_rate_error": float(measured / rate - 1),
        }

    return Setup(
        lattice="D2Q9",
        shape=(n, n),
        viscosity=nu,
        speed=u0,
        length=n,
        steps=steps,
        results=results,
        density=density,
        velocity=velocity,
        gradient=gradient,
        probe=_energy(steps),
        picture="vorticity",
    )


def planar_fields(
    x: Any, y: Any, k: float, u0: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], Any]:
    """Velocity (n, n, 2), its gradient d u_b / d x_a in [..., a, b], and the density 1 + 3 p, at
    phases x and y.
    """
    cx, sx, cy, sy = np.cos(x), np.sin(x), np.cos(y), np.sin(y)
    velocity = u0 * np.stack([-cx * sy, sx * cy], axis=-1)
    gradient = (
        u0
        * k
        * np.stack([np.stack([sx * sy, cx * cy], -1), np.stack([-cx * cy, -sx * sy], -1)], -2)
    )
    return velocity, gradient, 1 - 0.75 * u0**2 * (np.cos(2 * x) + np.cos(2 * y))


def _stretched(request: Request) -> Setup:
    n, u0 = request.size, request.speed
    k = 2 * np.pi / n
    nu = u0 / (k * request.re)
    phases = k * np.arange(n)
    z, y, x = np.meshgrid(phases, phases, phases, indexing="ij", sparse=True)
    velocity = np.zeros((n, n, n, 3))
    velocity[..., 0] = u0 * np.sin(x) * np.cos(y) * np.cos(z)
    velocity[..., 1] = -u0 * np.cos(x) * np.sin(y) * np.cos(z)
    gradient = np.zeros((n, n, n, 3, 3))
    scale = u0 * k
    gradient[..., 0, 0] = scale * np.cos(x) * np.cos(y) * np.cos(z)
    gradient[..., 1, 0] = -scale * np.sin(x) * np.sin(y) * np.cos(z)
    gradient[..., 2, 0] = -scale * np.sin(x) * np.cos(y) * np.sin(z)
    gradient[..., 0, 1] = scale * np.sin(x) * np.sin(y) * np.cos(z)
    gradient[..., 1, 1] = -scale * np.cos(x) * np.cos(y) * np.cos(z)
    gradient[..., 2, 1] = scale * np.cos(x) * np.sin(y) * np.sin(z)
    density = 1 + 3 * u0**2 / 16 * (np.cos(2 * x) + np.cos(2 * y)) * (np.cos(2 * z) + 2)
    steps = max(1, round(STRETCHED_TIME / (k * u0)))
    start = u0**2 / 8  # the mean kinetic energy of the initial field

    def results(state: State, series: Series) -> dict[str, Any]:
        energy = float(np.mean(np.sum(np.asarray(state.velocity, np.float64) ** 2, -1)) / 2)
        result = {"kinetic_energy": energy / u0**2, "kinetic_energy_share": energy / start}
        return {**result, **peak_dissipation(series, k * u0, u0)}

    return Setup(
        lattice=request.lattice,
        shape=(n, n, n),
        viscosity=nu,
        speed=u0,
        length=1 / k,
        steps=steps,
        results=results,
        density=density,
        velocity=velocity,
        gradient=gradient,
        probe=_energy(steps),
        picture="vorticity",
    )


def peak_dissipation(series: Series, rate: float, u0: float) -> dict[str, float]:
    """The largest -dE/dt of the mean kinetic energy in units of k u0^3 (k u0 is `rate`), and its
    time in units of 1 / (k u0).
    """
    if len(series) < 3:
        return {}
    times = series.steps * rate
    dissipation = -np.gradient(series.column("kinetic_energy") / u0**2, times)
    top = int(np.argmax(dissipation))
    return {"peak_dissipation": float(dissipation[top]), "peak_dissipation_time": float(times[top])}


def _energy(steps: int) -> Probe:
    """The mean kinetic energy of a unit of mass, in lattice units."""

    def measure(flow: Flow) -> tuple[float, ...]:
        velocity = np.asarray(to_host(flow.velocity), np.float64)
        return (float(np.mean(np.sum(velocity**2, axis=-1))) / 2,)

    return Probe(("kinetic_energy",), measure, max(1, steps // MEASUREMENTS))


CASE = Case(
    "taylor-green",
    "vortices that decay in a periodic box",
    make,
    re=100,
    size=64,
    size_of="sites along a side",
    speed=0.05,
    speed_of="the amplitude of the initial velocity",
    lattices=("D2Q9", "D3Q19", "D3Q27"),
    collision="bgk",
)
