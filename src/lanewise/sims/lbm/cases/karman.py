"""A body in a uniform stream that sheds vortices in turn: the street of von Karman (1911).

The box slips along its sides; vortices leave it by convective outflow. `size` sites are the
diameter of the cylinder. Another body comes from a picture or an array that covers the box; its
extent across the flow is the length of the Reynolds number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lanewise.sims.lbm.cases.bodies import place
from lanewise.sims.lbm.cases.registry import Case, Request, Series, Setup, State, steps_for
from lanewise.sims.lbm.cases.stream import BODY, force_probe, shedding, stream_kinds, stream_mask
from lanewise.sims.lbm.obstacles.surfaces import disc

LENGTH, HEIGHT, UPSTREAM = 24, 12, 6  # in diameters
# of the speed: a sideways flow that the symmetric flow would wait for, long, until rounding gives
# it
TRIGGER = 0.1


def make(request: Request) -> Setup:
    """Re = speed diameter / nu; the stream is everywhere when it begins, and bent a little behind
    the body.
    """
    d = request.size
    shape = (HEIGHT * d, LENGTH * d)
    centre = (UPSTREAM * d, HEIGHT * d / 2 - 0.5)
    body = place(request.obstacle, shape, centre, d, disc)
    velocity = np.zeros((*shape, 2))
    velocity[..., 0] = request.speed * ~body.solid
    velocity[..., 1] = TRIGGER * request.speed * ~body.solid * _bump(body.solid)
    length, speed = body.width, request.speed

    def results(state: State, series: Series) -> dict[str, Any]:
        del state
        return {**shedding(series, length, speed), "diameter": length}

    return Setup(
        lattice="D2Q9",
        shape=shape,
        viscosity=speed * length / request.re,
        speed=speed,
        length=length,
        steps=steps_for(length, speed, 150),
        results=results,
        edges={"x": ("slip", "outflow"), "y": "slip"},
        outflow_speed=speed,
        mask=stream_mask(body.solid, outlet=False),
        kinds=stream_kinds((speed, 0.0), outlet=False),
        surfaces=body.surfaces(BODY),
        velocity=velocity,
        probe=force_probe(2, speed**2 * length / 2, round(length / speed / 8)),
        picture="vorticity",
    )


def _bump(solid: Any) -> Any:
    """1 just behind the body, falling off like a Gaussian of the body's size; 0 at the openings."""
    rows, columns = np.nonzero(solid)
    width = max(1.0, float(np.ptp(rows)) + 1)
    y, x = np.ogrid[: solid.shape[0], : solid.shape[1]]
    bump = np.exp(-(((x - columns.max() - width) / width) ** 2) - ((y - rows.mean()) / width) ** 2)
    bump[:, [0, -1]] = 0
    return bump


CASE = Case(
    "karman",
    "a vortex street behind a cylinder or another body (--mask)",
    make,
    re=100,
    size=16,
    size_of="sites across the cylinder",
    speed_of="the velocity of the stream",
    collision="mrt",
    obstacle=True,
)
