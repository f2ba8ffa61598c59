"""A channel with a cylinder: the benchmark of Schaefer and Turek (1996), 2D-1 at Re = 20 and 2D-2
at Re = 100.

Benchmark units: the channel is 2.2 x 0.41, the cylinder has its centre at (0.2, 0.2) and the
diameter D = 0.1, and nu = 0.001. The inflow is a parabola whose mean U is 2/3 of its maximum; Re =
U D / nu. `size` sites are about D: the channel is a whole number of sites high, and its walls
lie half a link outside them. The density falls along the channel with the pressure; at the outlet
it is by so much below 1 that it is about 1 at the cylinder, whose coefficients are for 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lanewise.sims.common.devices import to_host
from lanewise.sims.lbm.cases.oscillation import oscillation
from lanewise.sims.lbm.cases.registry import (
    Case,
    Flow,
    Request,
    Series,
    Setup,
    State,
    interpolate,
    steps_for,
)
from lanewise.sims.lbm.cases.stream import (
    BODY,
    INLET,
    OBSTACLE,
    OUTLET,
    WALL,
    force_probe,
    shedding,
    stream_mask,
)
from lanewise.sims.lbm.kinds import Kind, Open, Wall
from lanewise.sims.lbm.obstacles.surfaces import Round, disc

HEIGHT, LENGTH, CENTRE, DIAMETER, VISCOSITY = 0.41, 2.2, 0.2, 0.1, 1e-3
FRONT, BACK = (0.15, 0.2), (0.25, 0.2)  # where the difference in pressure is taken
SHEDDING = 47  # the Reynolds number from which vortices are shed, in an unbounded flow
PRESSURE = "pressure_difference"


@dataclass(frozen=True, slots=True)
class CylinderScale:
    """Sites of one benchmark unit, and the mean velocity in both units."""

    sites: float
    speed: float
    re: float

    @property
    def pressure(self) -> float:
        """A lattice pressure in benchmark units: rho is 1 in both, so pressures go with the
        velocity squared.
        """
        return (self.re * VISCOSITY / DIAMETER / self.speed) ** 2

    def site(self, place: tuple[float, float]) -> tuple[float, float]:
        """The coordinates (x, y) of a point in sites: the lower wall is at -1/2, the inflow at the
        first column.
        """
        return place[0] * self.sites, place[1] * self.sites - 0.5


def make(request: Request) -> Setup:
    """The flow begins with the parabola, and the density that belongs to it, everywhere but in the
    cylinder.
    """
    ny = round(request.size * HEIGHT / DIAMETER)
    sites = ny / HEIGHT
    nx = round(LENGTH * sites) + 1
    scale = CylinderScale(sites, request.speed * 2 / 3, request.re)
    diameter = DIAMETER * sites
    viscosity = scale.speed * diameter / request.re
    # of the density along x, in Poiseuille's flow
    falling = 3 * 12 * viscosity * scale.speed / ny**2
    density = 1 - falling * (np.arange(nx) - CENTRE * sites)
    solid = disc((ny, nx), scale.site((CENTRE, CENTRE)), diameter / 2)
    y = (np.arange(ny) + 0.5) / ny
    profile = 4 * y * (1 - y)
    velocity = np.zeros((ny, nx, 2))
    velocity[..., 0] = request.speed * profile[:, None] * ~solid
    unsteady = request.re > SHEDDING
    steps = steps_for(diameter, scale.speed, 120 if unsteady else 400)
    # an oscillation takes about 3 diameters: 40 samples
    every = max(1, round(diameter / scale.speed / 12))

    def results(state: State, series: Series) -> dict[str, Any]:
        measured = {**shedding(series, diameter, scale.speed), "diameter": diameter}
        return {
            **measured,
            PRESSURE: _later_pressure(series, pressure_difference(state.density, scale)),
        }

    return Setup(
        lattice="D2Q9",
        shape=(ny, nx),
        viscosity=viscosity,
        speed=request.speed,
        length=diameter,
        steps=steps,
        steady=0.0 if unsteady else 1e-7,
        results=results,
        edges={"y": "wall"},
        mask=stream_mask(solid),
        kinds=_kinds(
            request.speed, np.broadcast_to(profile[:, None], (ny, nx)), float(density[-1])
        ),
        surfaces={BODY: Round(scale.site((CENTRE, CENTRE)), diameter / 2)},
        density=np.broadcast_to(density, (ny, nx)).copy(),
        velocity=velocity,
        probe=force_probe(
            2,
            scale.speed**2 * diameter / 2,
            every,
            lambda flow: (_pressure_now(flow, scale),),
            (PRESSURE,),
        ),
        picture="vorticity" if unsteady else "speed",
    )


def _kinds(speed: float, profile: Any, density: float) -> dict[int, Kind]:
    """An inlet with the parabola, an outlet of this density, walls and a cylinder at rest."""
    return {
        WALL: Wall("wall"), BODY: Wall(OBSTACLE),
        INLET: Open("inlet", "velocity", "x-", velocity=(speed, 0.0), profile=profile),
        OUTLET: Open("outlet", "pressure", "x+", density=density),
    }  # fmt: skip


def _pressure_now(flow: Flow, scale: CylinderScale) -> float:
    return pressure_difference(flow.density, scale)


def pressure_difference(density: Any, scale: CylinderScale) -> float:
    """The pressure before the cylinder less that behind it, in benchmark units.

    Both points lie on the cylinder, so the nearest fluid sites along x extrapolate to them.
    """
    front, back = (
        _pressure_at(density, scale, place, side) for place, side in ((FRONT, -1), (BACK, 1))
    )
    return (front - back) * scale.pressure


def _pressure_at(
    density: Any, scale: CylinderScale, place: tuple[float, float], side: int
) -> float:
    """From the three fluid sites next to the point, in the two rows around it."""
    x, y = scale.site(place)
    first = int(np.floor(x)) if side < 0 else int(np.ceil(x))
    columns = np.sort(first + side * np.arange(1, 4))  # one site off: the next one may be solid
    low = int(np.floor(y))
    rows = [np.asarray(to_host(density[row, columns]), np.float64) / 3 for row in (low, low + 1)]
    values = [float(interpolate(columns, row, [x])[0]) for row in rows]
    return values[0] + (y - low) * (values[1] - values[0])


def _later_pressure(series: Series, last: float) -> float:
    """In a steady flow the last value; in an oscillating one that half a period after the last peak
    of the lift.
    """
    cycles = oscillation(series.steps, series.column("lift")) if len(series) else None
    if cycles is None:
        return last
    lift, pressure = series.column("lift"), series.column(PRESSURE)
    period = 1 / cycles.frequency
    within = (series.steps <= cycles.stop) & (series.steps >= cycles.stop - period)
    peak = series.steps[within][int(np.argmax(lift[within]))]
    return float(np.interp(peak + period / 2, series.steps, pressure))


CASE = Case(
    "cylinder",
    "a cylinder in a channel (Schaefer and Turek 1996: 2D-1 at Re 20, 2D-2 at Re 100)",
    make,
    re=20,
    size=20,
    speed=0.05,
    size_of="sites across the cylinder",
    speed_of="the largest velocity of the inflow",
    collision="mrt",
)
