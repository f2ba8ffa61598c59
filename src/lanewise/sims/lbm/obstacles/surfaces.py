"""Round and square bodies, porous media of many, and their surfaces.

A site is solid when its centre lies in a body.

A surface says where a link from a fluid site to a solid one meets the wall, as a fraction of the
link: with it walls lie where they are, not half-way between sites
(`patterns/sitewise/fractions.py`). Coordinates are those of sites, x first. Bodies may reach out of
the box; what lies outside is left out. Masks are combined by `|`, `&` and `~`. A porous medium is
made of overlapping discs or spheres at random places, up to a fraction of solid sites.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from lanewise.sims.common.seeds import check_seed
from lanewise.sims.lbm.obstacles.boxes import (
    AXES,
    Mask,
    check_length,
    check_point,
    check_shape,
    coordinates,
)
from lanewise.support.checks import check_fields, checked
from lanewise.support.errors import InputError

Floats = NDArray[np.float64]
ROUNDING = 1e-6
"""Of a link: a site that lies in the surface itself is solid or not by rounding, and its links end
a little before it or after it.
"""
SINGLE = 2.0**-22
"""Coordinates that went through float32, as those of STL files do, are known to this part of the
largest of them.
"""
HALVINGS = 50


def rounding(extent: float) -> float:
    """Of a link: how well it is known where coordinates as large as `extent` lie."""
    return max(ROUNDING, SINGLE * extent)


class Surface(Protocol):
    """The surface of a body.

    One that is `bounded` (an attribute that is true) is repeated along periodic axes of the box.
    """

    def fractions(self, starts: Floats, step: Floats) -> Floats:
        """Where lines from `starts`, (n, D), to `starts + step`, (D,), first meet the surface: 0 to
        1, (n,); NaN where they do not.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Solid:
    """A body: its sites, and its surface if it is known more exactly."""

    mask: Mask
    surface: Surface | None = None


@dataclass(frozen=True, slots=True)
class Round:
    """A circle or a sphere about `centre`, or with fewer `axes` than the box a cylinder along the
    others.

    The body may be inside it or outside.
    """

    centre: tuple[float, ...]
    radius: float
    axes: str = ""
    bounded: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fields(self, InputError)

    def fractions(self, starts: Floats, step: Floats) -> Floats:
        """The smaller solution of |start + t step - centre| = radius that lies on the link."""
        axes = [AXES.index(a) for a in self.axes] if self.axes else list(range(len(step)))
        p, e = starts[:, axes] - np.array(self.centre), step[axes]
        a, b, c = float(e @ e), p @ e, (p * p).sum(axis=1) - self.radius**2
        if a == 0:  # along the axis of a cylinder
            return np.full(len(starts), np.nan)
        root = b * b - a * c
        root = np.sqrt(
            np.where((root < 0) & (root > -ROUNDING), 0.0, np.where(root < 0, np.nan, root))
        )
        return first_on_link((-b - root) / a, (-b + root) / a)


@dataclass(frozen=True, slots=True)
class SignedDistance:
    """The surface where `distance(points)`, (n, D) to (n,), is 0.

    It is negative in the body, and need not be a distance elsewhere. A site with 0, up to rounding,
    is on the surface, in whichever way the mask has it.
    """

    distance: Callable[[Floats], Floats]

    def __post_init__(self) -> None:
        check_fields(self, InputError)

    def fractions(self, starts: Floats, step: Floats) -> Floats:
        """By bisection between a start outside and an end inside; NaN for other lines."""
        outside, inside = np.zeros(len(starts)), np.ones(len(starts))
        start, end = self.distance(starts), self.distance(starts + step)
        least = rounding(float(np.abs(starts).max(initial=0))) * np.abs(start - end)
        crossed = (start >= -least) & (end <= least)
        for _ in range(HALVINGS):
            middle = (outside + inside) / 2
            out = self.distance(starts + middle[:, None] * step) > 0
            outside, inside = np.where(out, middle, outside), np.where(out, inside, middle)
        return np.where(crossed, (outside + inside) / 2, np.nan)


def repeated_fractions(
    surface: Surface, starts: Floats, step: Floats, periods: Sequence[int]
) -> Floats:
    """`surface.fractions` with the images of the body along periodic axes, whose lengths are
    `periods`: 0 along the others.

    Of a bounded body the nearest image counts. Another surface, such as a distance that the user
    defines everywhere, is requested an image only where it meets no link itself: it may be periodic
    already, or continue as it likes.
    """
    found = surface.fractions(starts, step)
    bounded = bool(getattr(surface, "bounded", False))
    for image in product(*((0, 1, -1) if n else (0,) for n in periods)):
        rows = np.arange(len(starts)) if bounded else np.flatnonzero(np.isnan(found))
        if any(image) and len(rows):
            shift = np.array([k * n for k, n in zip(image, periods, strict=True)], np.float64)
            found[rows] = np.fmin(found[rows], surface.fractions(starts[rows] + shift, step))
    return found


def first_on_link(*fractions: Floats) -> Floats:
    """The smallest of these that lies between 0 and 1, but for rounding; NaN where none does."""
    on = [
        np.where((t >= -ROUNDING) & (t <= 1 + ROUNDING), np.clip(t, 0, 1), np.nan)
        for t in fractions
    ]
    first = on[0]
    for other in on[1:]:
        first = np.fmin(first, other)
    return first


def as_solid_body(body: Mask | Solid) -> Solid:
    """A body of which only the sites are known stays as it is."""
    return body if isinstance(body, Solid) else Solid(body)


def point(values: Sequence[float]) -> tuple[float, ...]:
    """A centre as a tuple of floats."""
    return tuple(float(v) for v in values)


@checked(InputError)
def disc(shape: Sequence[int], centre: Sequence[float], radius: float) -> Mask:
    """Sites of a box (ny, nx) at most `radius` from `centre` = (x, y).

    Half-way walls lie between solid and fluid sites, so the disc in the flow has a radius of about
    `radius`. Raises InputError for a box of another dimension, an invalid centre, and a radius that
    is not positive.
    """
    _check_axes("disc", shape, 2, "cylinder")
    return _ball(shape, check_point("centre", centre, "xy"), radius, "xy")


@checked(InputError)
def sphere(shape: Sequence[int], centre: Sequence[float], radius: float) -> Mask:
    """Sites of a box (nz, ny, nx) at most `radius` from `centre` = (x, y, z).

    Raises InputError as `disc`.
    """
    _check_axes("sphere", shape, 3, "disc")
    return _ball(shape, check_point("centre", centre, AXES), radius, AXES)


@checked(InputError)
def cylinder(shape: Sequence[int], centre: Sequence[float], radius: float, axis: str = "z") -> Mask:
    """Sites of a box (nz, ny, nx) at most `radius` from the line along `axis` through `centre`.

    `centre` has the two other coordinates, in the order x, y, z. The cylinder is as long as the
    box. Raises InputError as `disc`.
    """
    _check_axes("cylinder", shape, 3, "disc")
    if axis not in tuple(AXES):
        raise InputError(f"the axis of the cylinder is {axis!r}; wanted 'x', 'y' or 'z'")
    across = AXES.replace(axis, "")
    section = _ball(shape, check_point("centre", centre, across), radius, across)
    return np.broadcast_to(section, shape).copy()


@checked(InputError)
def box(shape: Sequence[int], centre: Sequence[float], size: Sequence[float]) -> Mask:
    """Sites in the box of edges `size` = (x, y) or (x, y, z) about `centre`.

    An edge of integer length n holds n sites wherever it lies: if two opposite faces go through
    centres of sites, those on the lower face are solid. Raises InputError for points of another
    dimension than the shape.
    """
    sizes = check_shape(shape)
    axes = AXES[: len(sizes)]
    middle = check_point("centre", centre, axes)
    edges = [
        check_length(f"edge along {axis}", e)
        for axis, e in zip(axes, check_point("size", size, axes), strict=True)
    ]
    mask = np.ones(sizes, np.bool_)
    for x, c, edge in zip(reversed(coordinates(sizes).values()), middle, edges, strict=True):
        mask &= (x >= c - edge / 2) & (x < c + edge / 2)
    return mask


def _ball(shape: Sequence[int], centre: Sequence[float], radius: float, axes: str) -> Mask:
    """Sites at most `radius` from the centre, in the axes named; of size 1 along the others."""
    check_length("radius", radius)
    x = coordinates(check_shape(shape))
    squares = [(x[axis] - c) ** 2 for axis, c in zip(axes, centre, strict=True)]
    distance2 = squares[0] + squares[1]
    for square in squares[2:]:
        distance2 = distance2 + square
    return distance2 <= radius * radius  # infinite for radii whose square no number holds


def _check_axes(what: str, shape: Sequence[int], axes: int, other: str) -> None:
    if len(shape) != axes:
        box = "(ny, nx)" if axes == 2 else "(nz, ny, nx)"
        raise InputError(
            f"a {what} needs a box of shape {box}, found {tuple(shape)}; use {other} there"
        )


MOST_INDICES = 1 << 22
"""Sites marked at a time: 32 MiB of indices."""


@checked(InputError)
def porous(
    shape: Sequence[int], solid_fraction: float = 0.3, *, radius: float = 6.0, seed: int = 0
) -> Mask:
    """Discs (ny, nx) or spheres (nz, ny, nx) of one radius that may overlap, periodic at the faces
    of the box.

    Grains are added at random sites until at least `solid_fraction` of the sites are solid: the
    excess is below one grain. The same arguments give the same mask. Raises InputError for a
    fraction outside of 0 to 1 (exclusive), a radius that is not positive, a negative seed, and a
    box smaller than one grain.
    """
    sizes = check_shape(shape)
    if not 0 < solid_fraction < 1:
        raise InputError(
            f"the solid fraction is {solid_fraction:g}; wanted a number between 0 and 1, for "
            "example 0.3"
        )
    check_length("radius", radius)
    if 2 * math.floor(radius) + 1 > min(sizes):
        raise InputError(
            f"grains of radius {radius:g} are {2 * math.floor(radius) + 1} sites wide; wanted at "
            f"most {min(sizes)}, "
            "the shortest edge of the box"
        )
    return _packed(
        sizes, solid_fraction, _grain(len(sizes), radius), np.random.default_rng(check_seed(seed))
    )


def _grain(dimension: int, radius: float) -> NDArray[np.int64]:
    """The sites of a grain at the origin: (sites, dimension) offsets."""
    reach = math.floor(radius)
    offsets = np.indices((2 * reach + 1,) * dimension).reshape(dimension, -1).T - reach
    return offsets[(offsets**2).sum(axis=1) <= radius**2]


def _packed(
    shape: tuple[int, ...], share: float, grain: NDArray[np.int64], random: np.random.Generator
) -> Mask:
    mask = np.zeros(shape, np.bool_)
    marked, solid = mask.reshape(-1), 0
    while solid < share * mask.size:
        # As many as cannot be too many, even if none overlaps another.
        count = max(1, min(int(share * mask.size - solid), MOST_INDICES) // len(grain))
        centres = np.stack([random.integers(n, size=count) for n in shape], axis=-1)
        sites = (centres[:, None] + grain) % np.array(shape)
        flat = np.ravel_multi_index(tuple(np.moveaxis(sites, -1, 0)), shape)
        # A single grain counts its own new sites; a batch counts the whole box once.
        new = 0 if count > 1 else int(np.count_nonzero(~marked[flat]))
        marked[flat] = True
        solid = solid + new if count == 1 else int(np.count_nonzero(mask))
    return mask
