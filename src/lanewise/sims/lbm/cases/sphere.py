"""A sphere, or a body from a mesh, in a uniform stream. `size` sites are the diameter.

The drag coefficient stands next to the correlation of Schiller and Naumann (1935), good to about 5
% in an unbounded
flow: 24 / Re (1 + 0.15 Re^0.687), for Re below about 800. A sphere of so few sites is rough, and
has more drag than that: at Re 20 and 8 sites 2.9 to 3.1 by the size of the box, against 2.6.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lanewise.sims.lbm.cases.bodies import place
from lanewise.sims.lbm.cases.registry import Case, Request, Series, Setup, State, steps_for
from lanewise.sims.lbm.cases.stream import BODY, force_probe, shedding, stream_kinds, stream_mask
from lanewise.sims.lbm.obstacles.surfaces import sphere

# in diameters: a narrower box holds the stream together, and the drag grows
LENGTH, ACROSS, UPSTREAM = 12, 8, 4


def make(request: Request) -> Setup:
    """Re = speed diameter / nu; the stream is everywhere when it begins."""
    d, speed = request.size, request.speed
    shape = (ACROSS * d, ACROSS * d, LENGTH * d)
    middle = ACROSS * d / 2 - 0.5
    centre = (UPSTREAM * d, middle, middle)
    body = place(request.obstacle, shape, centre, d, sphere)
    own = request.obstacle is None
    area = np.pi * d**2 / 4 if own else body.frontal_area
    velocity = np.zeros((*shape, 3))
    velocity[..., 0] = speed * ~body.solid

    def results(state: State, series: Series) -> dict[str, Any]:
        del state
        measured = {
            **shedding(series, body.width, speed),
            "diameter": body.width,
            "frontal_area": area,
        }
        return (
            {**measured, "drag_schiller_naumann": schiller_naumann(request.re)} if own else measured
        )

    return Setup(
        lattice=request.lattice,
        shape=shape,
        viscosity=speed * body.width / request.re,
        speed=speed,
        length=body.width,
        steps=steps_for(body.width, speed, 60),
        steady=1e-5,
        results=results,
        edges={"y": "slip", "z": "slip"},
        mask=stream_mask(body.solid),
        kinds=stream_kinds((speed, 0.0, 0.0)),
        surfaces=body.surfaces(BODY),
        velocity=velocity,
        probe=force_probe(3, speed**2 * area / 2, round(body.width / speed / 4)),
    )


def schiller_naumann(re: float) -> float:
    """The drag coefficient of a sphere by the correlation."""
    return 24 / re * (1 + 0.15 * re**0.687)


CASE = Case(
    "sphere",
    "a sphere, or a body from a mesh (--stl), in a stream",
    make,
    re=20,
    size=10,
    size_of="sites across the sphere",
    speed_of="the velocity of the stream",
    collision="mrt",
    lattices=("D3Q19", "D3Q27"),
    obstacle=True,
)
