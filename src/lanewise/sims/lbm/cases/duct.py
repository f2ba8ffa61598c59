"""Flow along a square duct. Its profile is a series (White, Viscous Fluid Flow, section 3-3.3;
Boussinesq 1868).

The walls lie half a link outside the sites, so `size` sites are the side a. A body force g = nu
u_max / (0.07367 a^2) drives it along z, where the duct is periodic and as short as is useful:
nothing changes along it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.sims.lbm.cases.registry import Case, Request, Series, Setup, State, steps_for
from lanewise.sims.lbm.kinds import Wall

WALL = 1
LENGTH = 4  # sites along the flow
TERMS = 200  # of the series: the last one is below 1e-7 of the first
CENTRE, MEAN = 0.0736713532815, 0.0351442540
"""The velocity in the middle, and the mean, of a duct with g a^2 / nu = 1."""


def make(request: Request) -> Setup:
    """Re = u_max a / nu; at rest when it begins."""
    a = request.size
    nu = request.speed * a / request.re
    g = request.speed * nu / (CENTRE * a**2)

    def results(state: State, series: Series) -> dict[str, Any]:
        del series
        return compare(np.asarray(state.velocity[..., 2], np.float64).mean(axis=0), g * a**2 / nu)

    return Setup(
        lattice=request.lattice,
        shape=(LENGTH, a, a),
        viscosity=nu,
        speed=request.speed,
        length=a,
        steps=steps_for(a, request.speed, 100 * max(1.0, request.re / 10)),
        steady=1e-9,
        results=results,
        edges={"x": "wall", "y": "wall"},
        kinds={WALL: Wall("wall")},
        force=(0.0, 0.0, g),
    )


def compare(velocity: NDArray[np.float64], scale: float) -> dict[str, float]:
    """The section (a, a) of the velocity against the series; `scale` is g a^2 / nu.

    Errors are shares of the exact maximum.
    """
    exact = scale * section(len(velocity))
    return {
        "profile_error": float(np.max(np.abs(velocity - exact)) / (CENTRE * scale)),
        "flow_rate_error": float(velocity.sum() / exact.sum() - 1),
        "largest_velocity": float(velocity.max()),
        "largest_velocity_exact": float(exact.max()),
    }


def section(n: int) -> NDArray[np.float64]:
    """The exact velocity (n, n) at sites half a link from the walls, for g a^2 / nu = 1.

    u = 4 / pi^3 sum over odd k of (1 - cosh(k pi y) / cosh(k pi / 2)) sin(k pi z) / k^3, y in
    -1/2..1/2 and z in 0..1.
    """
    z = (np.arange(n) + 0.5) / n
    y = np.abs(z - 0.5)
    total = np.zeros((n, n))
    for k in range(1, 2 * TERMS, 2):
        # cosh(k pi y) / cosh(k pi / 2) by exponentials that do not overflow
        ratio = (np.exp(k * np.pi * (y - 0.5)) + np.exp(-k * np.pi * (y + 0.5))) / (
            1 + np.exp(-k * np.pi)
        )
        total += np.outer(1 - ratio, np.sin(k * np.pi * z)) / k**3
    return 4 / np.pi**3 * total


CASE = Case(
    "duct",
    "flow along a square duct, driven by a body force",
    make,
    re=10,
    size=32,
    size_of="sites across the duct",
    lattices=("D3Q19", "D3Q27"),
)
