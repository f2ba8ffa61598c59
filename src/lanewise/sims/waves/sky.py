"""Grids of directions: uniform in right ascension and declination, and isotropic, of the whole sky
or of a region.

They are what LALPulsar calls flat and isotropic. The isotropic one has rings of constant
declination, a step apart, each with as many directions as its area is larger than that of a square
of one step, rounded up: each direction stands for the same area but for that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from lanewise.sims.waves.ranges import check_setting
from lanewise.sims.waves.timing.arrival import sky_vectors
from lanewise.support.attributes import frozen
from lanewise.support.checks import check_fields, checked
from lanewise.support.errors import InputError
from lanewise.support.numerals import numeral, numerals

Floats = NDArray[np.float64]
ROUNDING = 1e-9  # of a step: a band that is a whole number of steps has no step more
REACH = 0.75  # of the isotropic grid's step: no direction is farther from the grid
MOST = 20_000_000  # directions: a gigabyte of a search's own lists
TURN, QUARTER = 2 * math.pi, math.pi / 2


@frozen
@dataclass(frozen=True, slots=True)
class Cap:
    """All directions at most `radius` from a centre, radians."""

    alpha: float
    delta: float
    radius: float

    def __post_init__(self) -> None:
        check_fields(self, InputError)
        check_setting("alpha", self.alpha)
        _check_delta("cap", self.delta)
        if not 0 < self.radius <= math.pi:
            raise InputError(
                f"the radius of the cap is {numerals(self.radius, math.pi)[0]}; wanted above 0 and "
                "at most pi radians"
            )


@frozen
@dataclass(frozen=True, slots=True)
class Rectangle:
    """Right ascensions from `west` on to `east`, declinations from `south` to `north`, radians."""

    west: float
    east: float
    south: float
    north: float

    def __post_init__(self) -> None:
        check_fields(self, InputError)
        for alpha in (self.west, self.east):
            check_setting("alpha", alpha)
        for delta in (self.south, self.north):
            _check_delta("rectangle", delta)
        if not (self.west < self.east <= self.west + TURN + ROUNDING and self.south < self.north):
            west, east, south, north = numerals(self.west, self.east, self.south, self.north)
            raise InputError(
                f"the rectangle is alpha {west} to {east}, delta {south} to {north}; wanted "
                "rising values, and at most a turn"
            )


Region = Cap | Rectangle


def _check_delta(what: str, delta: float) -> None:
    if not abs(delta) <= QUARTER + ROUNDING:
        raise InputError(
            f"the {what} has the declination {numerals(delta, QUARTER, -QUARTER)[0]}; wanted -pi/2 "
            "to pi/2 radians"
        )


@checked(InputError)
def uniform_sky(alpha_step: float, delta_step: float, region: Region | None = None) -> Floats:
    """(n, 2) alpha and delta, radians: centres of cells of these steps in both, made smaller so
    that an integer fits.

    Every direction of the region is in a cell: it differs by at most half a step in alpha and half
    a step in delta.
    """
    _check_steps(alpha_step, delta_step)
    box = _box(region)
    _check_number((box.east - box.west) / alpha_step * (box.north - box.south) / delta_step)
    deltas = _centres(box.south, box.north, delta_step)
    alphas = _centres(box.west, box.east, alpha_step)
    grid = np.stack(np.meshgrid(alphas, deltas), axis=-1).reshape(-1, 2)
    return _ordered(grid, region, math.hypot(alpha_step, delta_step) / 2)


@checked(InputError)
def isotropic_sky(step: float, region: Region | None = None) -> Floats:
    """(n, 2) alpha and delta, radians: the centres of cells of about step x step radians on the
    sphere.

    Every direction of the region is within 3/4 step of a direction of the grid: the corners of a
    cell are step / sqrt(2) from its centre, and a little more where rings are curved, next to the
    poles. No cell is larger than a square of the step.
    """
    _check_steps(step)
    if step > QUARTER:
        raise InputError(
            f"the step of an isotropic grid is {numerals(step, QUARTER)[0]}; wanted at most "
            "pi/2 radians"
        )
    box = _box(region)
    _check_number((box.east - box.west) * (math.sin(box.north) - math.sin(box.south)) / step**2)
    rings: list[Floats] = []
    edges = np.linspace(box.south, box.north, _count(box.north - box.south, step) + 1)
    for low, high in pairwise(edges.tolist()):
        # of the cosine, which is the width of the ring
        mean = (math.sin(high) - math.sin(low)) / (high - low)
        alphas = _centres(box.west, box.east, step / max(mean, ROUNDING))
        rings.append(np.stack([alphas, np.full(len(alphas), (low + high) / 2)], axis=1))
    return _ordered(np.concatenate(rings), region, REACH * step)


def _check_steps(*steps: float) -> None:
    for step in steps:
        if not (math.isfinite(step) and step > 0):
            raise InputError(
                f"a step of the grid of the sky is {numeral(step)}; wanted above zero, in radians"
            )


def _check_number(about: float) -> None:
    if about > MOST:
        raise InputError(
            f"the grid of the sky has about {about:.2g} directions; wanted at most {MOST:,}: a "
            "larger step, or a part of the sky"
        )


def _count(width: float, step: float) -> int:
    return max(1, math.ceil(width / step - ROUNDING))


def _centres(low: float, high: float, step: float) -> Floats:
    """The middles of as many equal parts as make each a step wide or less."""
    count = _count(high - low, step)
    return low + (high - low) / count * (np.arange(count, dtype=np.float64) + 0.5)


def _box(region: Region | None) -> Rectangle:
    """The rectangle that a grid is made for."""
    match region:
        case None:
            return Rectangle(0.0, TURN, -QUARTER, QUARTER)
        case Rectangle():
            return region
        case Cap(alpha, delta, radius):
            south, north = max(-QUARTER, delta - radius), min(QUARTER, delta + radius)
            # Over a pole a cap has all right ascensions; else its sides touch circles of the
            # sphere.
            half = (
                math.pi
                if abs(delta) + radius >= QUARTER
                else math.asin(math.sin(radius) / math.cos(delta))
            )
            return Rectangle(alpha - half, alpha + half, south, north)
        case _:
            assert_never(region)


def _ordered(grid: Floats, region: Region | None, reach: float) -> Floats:
    """Alpha within 0 to 2 pi; of a cap those cells that may hold a direction of it."""
    if isinstance(region, Cap):
        centre = sky_vectors(np.array(region.alpha), np.array(region.delta))
        distance = np.arccos(np.clip(sky_vectors(grid[:, 0], grid[:, 1]) @ centre, -1, 1))
        grid = grid[distance <= region.radius + reach]
    points: Floats = np.array(grid, np.float64)
    points[:, 0] %= TURN
    return points
