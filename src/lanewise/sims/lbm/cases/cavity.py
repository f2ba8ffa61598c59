"""A box whose lid moves: the benchmark of Ghia, Ghia and Shin (1982) in two dimensions, a cube in three.

The walls lie half a link outside the sites, so `size` sites are the side of the box. The lid is at the high end of y
and moves along x.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lanewise.sims.lbm.cases.ghia import deviations
from lanewise.sims.lbm.cases.registry import Case, Request, Setup, State, steps_for
from lanewise.sims.lbm.cases.series import Series
from lanewise.sims.lbm.kinds import Wall

WALL, LID = 1, 2
CROSSINGS = 200  # of the box at the lid's speed: far more than any of these flows needs to settle


def make(request: Request) -> Setup:
    """Viscosity = speed size / re; at rest when it begins."""
    n, planar = request.size, request.lattice == "D2Q9"
    edges: dict[str, Any] = {"x": "wall", "y": ("wall", "lid")}
    velocity = (request.speed, 0.0) if planar else (request.speed, 0.0, 0.0)

    def results(state: State, series: Series) -> dict[str, Any]:
        del series
        if not planar:
            return {}
        return {**vortex(state.velocity), **deviations(state.velocity, request.speed, request.re)}

    return Setup(
        lattice=request.lattice, shape=(n, n) if planar else (n, n, n), viscosity=request.speed * n / request.re,
        speed=request.speed, length=n, steps=steps_for(n, request.speed, CROSSINGS), steady=1e-6, results=results,
        edges=edges if planar else {**edges, "z": "wall"}, kinds={WALL: Wall("wall"), LID: Wall("lid", velocity)},
        streamlines=planar,
    )  # fmt: skip


def vortex(velocity: Any) -> dict[str, float]:
    """The centre of the primary vortex in units of the side: where the stream function is lowest.

    The stream function is the integral of u over y from the resting wall, d psi / d y = u, by the midpoint rule.
    """
    u = np.asarray(velocity[..., 0], np.float64)
    n = len(u)
    psi = np.cumsum(u, axis=0)  # at the upper ends of the sites
    j, i = np.unravel_index(int(np.argmin(psi)), psi.shape)
    return {"vortex_x": (int(i) + 0.5) / n, "vortex_y": (int(j) + 1) / n}


CASE = Case(
    "cavity", "a box whose lid moves (Ghia, Ghia and Shin 1982)", make, re=100, size=129, size_of="sites along a side",
    speed_of="the lid's velocity", lattices=("D2Q9", "D3Q19", "D3Q27"),
)  # fmt: skip
