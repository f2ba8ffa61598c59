"""What is watched in a flow that runs: that it stays finite, whether it has settled, and velocities
that alternate from site to site.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.sims.common.devices import array_module, bring, on
from lanewise.sims.lbm.obstacles.boxes import AXES, site_text
from lanewise.support.errors import InputError

LEAST_EXCESS, MOST_EXCESS = -0.9, 9.0
"""Of the density over 1. A flow below Mach 0.3 stays within a few hundredths of 1."""

MOST_SPEED = 1.0  # in sites per step: populations are no faster

UPDATES = 1 << 28
MOST_INTERVAL = 2048  # however small the box: the error names this interval
"""So many updates of sites lie between two looks: a look then costs a fraction of a percent."""

LEAST_INTERVAL = 16


def check_interval(sites: int) -> int:
    """The steps between two looks."""
    return min(MOST_INTERVAL, max(LEAST_INTERVAL, UPDATES // sites))


def check_fields(
    excess: Any, velocity: Any, shape: tuple[int, ...], device: str, last_good: int, step: int
) -> None:
    """Raise `InputError` for a density that is no number or far from 1, or a speed above one site a
    step.

    excess: the density less 1, (count,); velocity: (count, D). The error names the first such site
    (in the order of the array).
    """
    module = array_module(device)
    square = module.zeros_like(excess)
    for axis in range(velocity.shape[1]):
        square += velocity[:, axis] * velocity[:, axis]
    # False for NaN
    good = (excess >= LEAST_EXCESS) & (excess <= MOST_EXCESS) & (square <= MOST_SPEED**2)
    if bool(good.all()):
        return
    place = int(module.argmin(good))
    density, speed = 1 + float(excess[place]), float(square[place]) ** 0.5
    bad = int(np.prod(shape)) - int(module.count_nonzero(good))
    mean = float(module.mean(excess))
    lost = math.isfinite(mean) and abs(mean) > LEAST_LOST
    raise InputError(
        f"the flow blew up between step {last_good:,} and step {step:,}: "
        f"{_what_ran_out(density, speed, mean, lost=lost)}: site "
        f"{site_text(np.unravel_index(place, shape))} has density {density:.4g} and speed "
        f"{speed:.4g} ({bad:,} such site{'s' if bad > 1 else ''}); {_advice(lost=lost)}"
    )


LEAST_LOST = 0.3
"""Of the mean density.

A flow that is merely unstable keeps its mass, and is not finite or too fast long before it has lost
so much.
"""


def _what_ran_out(density: float, speed: float, mean: float, *, lost: bool) -> str:
    if lost:
        change = "ran out" if mean < 0 else "grew without end"
        return f"the mass {change}, to {1 + mean:.3g} per site"
    if not (math.isfinite(density) and math.isfinite(speed)):
        return "it holds numbers that are not finite"
    if speed > MOST_SPEED:
        return f"the speed is above {MOST_SPEED:g} site per step"
    return f"the density is {'close to nothing' if density < 1 else 'many times 1'}"


def _advice(*, lost: bool) -> str:
    if lost:
        return (
            "look for what takes mass out of the box or puts it in, such as openings that do not "
            "belong together or walls that move; "
            "the Reynolds number and the collision operator have no part in it"
        )
    return (
        "a lower Reynolds number, more sites, a lower velocity, or another collision operator "
        "(--collision) keeps it stable; where "
        "the relaxation time is above 2, a lower velocity or fewer sites"
    )


DRIFTS = {"f16": 1e-2, "f32": 1e-4, "f64": 1e-9}
"""How far the mass of a closed box may be from that at the start before it is warned of.

Rounding stays far below.
"""
INTERPOLATED_DRIFT = 1e-2
"""With interpolated walls, which keep mass up to the error of the interpolation."""
UNHELD_DRIFT = 0.05
"""Where no opening holds a density: that of a flow below Mach 0.2 varies by less."""


def drift_warning(mass: float, first: float, storage: str, interpolated: int) -> str | None:
    """One line about a closed box whose mass is not what it was; None where it is."""
    drift = mass / first - 1
    if abs(drift) <= (INTERPOLATED_DRIFT if interpolated else DRIFTS[storage]):
        return None
    cause = (
        "interpolated walls keep it only up to their error: half-way walls (without surfaces) or "
        "more sites keep it better"
        if interpolated
        else "nothing flows in or out, so this run is not to be trusted: look at its walls that "
        "move"
    )
    return (
        f"the mass of this closed box has changed by {100 * drift:.2g} % since the start; {cause}"
    )


def unheld_warning(mass: float, first: float) -> str | None:
    """One line about a box without an opening of given density, whose mass has run away; None where
    it has not.

    Populations that have all grown by one factor are the same flow: only an opening of given
    density tells them apart.
    """
    drift = mass / first - 1
    if abs(drift) <= UNHELD_DRIFT:
        return None
    return (
        f"the mean density has changed by {100 * drift:.2g} % since the start: no opening of this "
        'box holds it, and forces go with it; an outlet of given density ("pressure") holds it'
    )


FLOORS = {"f16": 1e-3, "f32": 2e-6, "f64": 1e-12}
"""Changes that rounding alone keeps up, for each storage type.

No tolerance below them can be met.
"""


class Steadiness:
    """Compares the velocity with the one that it was shown before.

    `change` is the last result, `step` that of the velocity `before`, which is None at first.
    """

    def __init__(self, tolerance: float, every: int, device: str) -> None:
        self.tolerance, self.every, self.change = tolerance, max(1, every), float("nan")
        self.step = -1
        self.before: Any = None
        self._device, self._module = device, array_module(device)

    def go_on(self, step: int, before: Any, change: float) -> None:
        """From what another one was shown, an array of the host."""
        with on(self._device):
            self.step, self.before, self.change = step, self._module.asarray(before), change

    def settled(self, velocity: Any, step: int) -> bool:
        """Whether no component has changed by more than the tolerance, relative to the largest one.

        A step is compared once.
        """
        if step == self.step:
            return False
        if self.before is not None:
            with on(self._device):
                largest = float(self._module.abs(velocity).max())
                difference = float(self._module.abs(velocity - self.before).max())
            self.change = difference / largest if largest else 0.0
        self.step, self.before = step, velocity
        return self.change < self.tolerance


SITES = 12
"""So many sites in a row have to alternate."""
MOST = 0.02
"""Of the largest speed: a stagger above it is warned of.

The drag of a square was 20 % off with 0.022; outlets near a body make 0.006.
"""


LEAST_STEPS = 256
"""`Simulation.run` looks after that many steps: looking costs about what ten of them do."""
PART = 1 << 22
"""Sites looked at at a time."""


@dataclass(frozen=True, slots=True)
class Stagger:
    """The largest stagger of a flow. amplitude: relative to the largest speed. axis: 0 for x. site:
    (y, x) or (z, y, x), in its middle.
    """

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
            f"the velocity goes up and down from site to site along {AXES[self.axis]}, by "
            f"{100 * self.amplitude:.2g} % of the largest "
            f"speed about site {site_text(self.site)}: forces and pictures of this run are not to "
            "be trusted; the collision operator mrt "
            "damps such waves, as do half-way walls (--walls half-way), more steps after a sudden "
            "start and a finer lattice"
        )


def find_stagger(velocity: Any, solid: NDArray[np.bool_], device: str) -> Stagger:
    """Of a velocity (..., ny, nx, D) on the device."""
    with on(device):
        return _stagger_of(velocity, solid, device)


def _stagger_of(velocity: Any, solid: NDArray[np.bool_], device: str) -> Stagger:
    module = array_module(device)
    largest = float(module.sqrt((velocity * velocity).sum(axis=-1)).max())
    stagger = Stagger(0.0)
    if not largest > 0:
        return stagger
    walls = bring(solid, device) if solid.any() else None
    dimension = velocity.shape[-1]
    for axis in range(dimension):
        along = dimension - 1 - axis
        for component in range(dimension):
            for part, first in _slabs(solid.shape, along):
                here = None if walls is None else walls[part]
                amplitude, site = _along(module, velocity[..., component][part], here, along)
                if amplitude / largest > stagger.amplitude:
                    site = tuple(n + f for n, f in zip(site, first, strict=True))
                    stagger = Stagger(amplitude / largest, axis, site)
    return stagger


def _slabs(
    shape: tuple[int, ...], along: int
) -> Iterator[tuple[tuple[slice, ...], tuple[int, ...]]]:
    """Parts of a box that are whole along an axis and small enough to be checked during a flow,
    with their first sites.
    """
    across = 0 if along else 1
    rows = max(1, PART * shape[across] // math.prod(shape))
    for start in range(0, shape[across], rows):
        part, first = [slice(None)] * len(shape), [0] * len(shape)
        part[across], first[across] = slice(start, start + rows), start
        yield tuple(part), tuple(first)


def _least(module: Any, values: Any, count: int) -> Any:
    """The least of `SITES` values in a row from each of the first `count` on: of twice as many at a
    time.
    """
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
