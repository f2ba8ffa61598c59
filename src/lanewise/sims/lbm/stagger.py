"""Velocities that go up and down from site to site: no flow does that, but populations that walls hardly damp do.

Along every line of sites the second differences d = u(x+1) - 2 u(x) + u(x-1) of every component are looked at. Where they alternate in
sign over `SITES` neighbouring sites, all of them fluid, the stagger is the least |d| / 4 there, the amplitude of u = a (-1)^x, relative
to the largest speed. A corner of a cavity, a shock of the start or a vortex alternates over a few sites and falls off.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.runtime.memory import array_module, bring
from lanewise.sims.lbm.obstacles.boxes import AXES, site_text

SITES = 12
"""So many sites in a row have to alternate."""
MOST = 0.02
"""Of the largest speed: a stagger above it is warned of. The drag of a square was 20 % off with 0.022; outlets near a body make 0.006."""


LEAST_STEPS = 256
"""`Simulation.run` looks after so many steps: looking costs about what ten of them do."""
PART = 1 << 22
"""Sites looked at at a time."""


@dataclass(frozen=True, slots=True)
class Stagger:
    """The largest stagger of a flow. amplitude: relative to the largest speed. axis: 0 for x. site: (y, x) or (z, y, x), in its middle."""

    amplitude: float
    axis: int = 0
    site: tuple[int, ...] = ()

    @property
    def warned(self) -> bool:
        """Whether it says that the flow is not to be trusted."""
        return self.amplitude > MOST

    @property
    def warning(self) -> str:
        """One line: what, where, and what to do."""
        return (
            f"the velocity goes up and down from site to site along {AXES[self.axis]}, by {100 * self.amplitude:.2g} % of the largest "
            f"speed about site {site_text(self.site)}: forces and pictures of this run are not to be trusted; the collision operator mrt "
            "damps such waves, as do half-way walls (--walls half-way), more steps after a sudden start and a finer lattice"
        )


def find_stagger(velocity: Any, solid: NDArray[np.bool_], device: str) -> Stagger:
    """Of a velocity (..., ny, nx, D) on the device."""
    module = array_module(device)
    largest = float(module.sqrt((velocity * velocity).sum(axis=-1)).max())
    found = Stagger(0.0)
    if not largest > 0:
        return found
    walls = bring(solid, device) if solid.any() else None
    dimension = velocity.shape[-1]
    for axis in range(dimension):
        along = dimension - 1 - axis
        for component in range(dimension):
            for part, first in _slabs(solid.shape, along):
                here = None if walls is None else walls[part]
                amplitude, site = _along(module, velocity[..., component][part], here, along)
                if amplitude / largest > found.amplitude:
                    site = tuple(n + f for n, f in zip(site, first, strict=True))
                    found = Stagger(amplitude / largest, axis, site)
    return found


def _slabs(shape: tuple[int, ...], along: int) -> Iterator[tuple[tuple[slice, ...], tuple[int, ...]]]:
    """Parts of a box that are whole along an axis and small enough to be looked at beside a flow, with their first sites."""
    across = 0 if along else 1
    rows = max(1, PART * shape[across] // math.prod(shape))
    for start in range(0, shape[across], rows):
        part, first = [slice(None)] * len(shape), [0] * len(shape)
        part[across], first[across] = slice(start, start + rows), start
        yield tuple(part), tuple(first)


def _least(module: Any, values: Any, count: int) -> Any:
    """The least of `SITES` values in a row from each of the first `count` on: of twice as many at a time."""
    width = 1
    while 2 * width <= SITES:
        values = module.minimum(values[:-width], values[width:])
        width *= 2
    return module.minimum(values[:count], values[SITES - width : SITES - width + count])


def _along(module: Any, values: Any, walls: Any, along: int) -> tuple[float, tuple[int, ...]]:
    """The largest stagger along one axis of an array of numbers, and its site."""
    values = module.moveaxis(values, along, 0)
    count = len(values) - 2 - (SITES - 1)
    if count < 1:
        return 0.0, ()
    d = (values[2:] - 2 * values[1:-1] + values[:-2]) / 4
    d[1::2] *= -1  # one sign where it alternates
    if walls is not None:
        w = module.moveaxis(walls, along, 0)
        d[w[2:] | w[1:-1] | w[:-2]] = 0
    least = module.maximum(_least(module, d, count), _least(module, -d, count))
    place = [int(n) for n in np.unravel_index(int(least.argmax()), least.shape)]
    first = place.pop(0) + 1 + SITES // 2
    place.insert(along, first)
    return float(least.max()), tuple(place)
