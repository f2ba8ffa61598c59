"""Flow between two walls. Its profile is a parabola: u(y) = 4 u_max y (H - y) / H^2 (Poiseuille).

The walls lie half a link outside the sites, so `size` sites are the height H. It is driven by a
body force in a channel that is periodic along x, g = 8 nu u_max / H^2; or by the densities of an
inlet and an outlet that make such a gradient of the pressure. Then the fluid expands on its way,
and the profile is the parabola up to the square of the Mach number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lanewise.sims.lbm.cases.registry import Case, Request, Setup, State, steps_for
from lanewise.sims.lbm.kinds import Open, Wall

WALL, INLET, OUTLET = 1, 2, 3
DRIVES = (FORCE, PRESSURE) = ("body-force", "pressure")
CROSSINGS = 400


def make(request: Request) -> Setup:
    """Re = u_max H / nu; at rest when it begins."""
    height = length = request.size
    nu = request.speed * height / request.re
    gradient = 8 * nu * request.speed / height**2  # of the pressure: force a volume
    common: dict[str, Any] = {
        "lattice": "D2Q9",
        "shape": (height, length),
        "viscosity": nu,
        "speed": request.speed,
        "length": height,
        "steps": steps_for(height, request.speed, CROSSINGS * max(1.0, request.re / 10)),
        "steady": 1e-9,
    }
    if request.drive == FORCE:
        return Setup(
            **common,
            results=lambda state, series: results(state, request.speed),
            edges={"y": "wall"},
            kinds={WALL: Wall("wall")},
            force=(gradient, 0.0),
        )
    difference = 3 * gradient * (length - 1)  # in density, between the first and the last column
    mask = np.zeros((height, length), np.uint8)
    mask[:, 0], mask[:, -1] = INLET, OUTLET
    return Setup(
        **common,
        results=lambda state, series: results(state, request.speed),
        edges={"y": "wall"},
        mask=mask,
        kinds={
            WALL: Wall("wall"),
            INLET: Open("inlet", "pressure", "x-", density=1 + difference / 2),
            OUTLET: Open("outlet", "pressure", "x+", density=1 - difference / 2),
        },
        density=np.broadcast_to(
            1 + difference * (0.5 - np.arange(length) / (length - 1)), (height, length)
        ).copy(),
    )


def results(state: State, speed: float) -> dict[str, Any]:
    """The profile in the middle of the channel against the parabola."""
    profile = np.asarray(state.velocity[:, state.velocity.shape[1] // 2, 0], np.float64)
    height = len(profile)
    y = np.arange(height) + 0.5
    exact = 4 * speed * y * (height - y) / height**2
    return {
        "profile_error": float(np.max(np.abs(profile - exact)) / speed),
        "mean_velocity": float(profile.mean()), "mean_velocity_exact": float(exact.mean()),
        "largest_velocity": float(profile.max()),
    }  # fmt: skip


CASE = Case(
    "channel",
    "flow between two walls (Poiseuille)",
    make,
    re=10,
    size=32,
    size_of="sites across the channel",
    drives=(FORCE, PRESSURE),
)
