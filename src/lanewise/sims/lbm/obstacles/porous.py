"""A porous medium: overlapping discs or spheres at random places, up to a wanted fraction of solid sites."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lanewise.checks import checked
from lanewise.errors import InputError
from lanewise.sims.lbm.obstacles.boxes import Mask, check_length, check_shape

MOST_INDICES = 1 << 22
"""Sites marked at a time: 32 MiB of indices."""


@checked(InputError)
def porous(shape: Sequence[int], solid_fraction: float = 0.3, *, radius: float = 6.0, seed: int = 0) -> Mask:
    """Discs (ny, nx) or spheres (nz, ny, nx) of one radius that may overlap, periodic at the faces of the box.

    Grains are added at random sites until at least `solid_fraction` of the sites are solid: the excess is below one
    grain. The same arguments give the same mask. Raises InputError for a fraction outside of 0 to 1 (exclusive), a
    radius that is not positive, and a box that does not hold one grain.
    """
    sizes = check_shape(shape)
    if not 0 < solid_fraction < 1:
        raise InputError(f"the solid fraction is {solid_fraction:g}; wanted a number between 0 and 1, for example 0.3")
    check_length("radius", radius)
    if 2 * math.floor(radius) + 1 > min(sizes):
        raise InputError(
            f"grains of radius {radius:g} are {2 * math.floor(radius) + 1} sites wide; wanted at most {min(sizes)}, "
            "the shortest edge of the box"
        )
    return _packed(sizes, solid_fraction, _grain(len(sizes), radius), np.random.default_rng(seed))


def _grain(dimension: int, radius: float) -> NDArray[np.int64]:
    """The sites of a grain at the origin: (sites, dimension) offsets."""
    reach = math.floor(radius)
    offsets = np.indices((2 * reach + 1,) * dimension).reshape(dimension, -1).T - reach
    return offsets[(offsets**2).sum(axis=1) <= radius**2]


def _packed(shape: tuple[int, ...], wanted: float, grain: NDArray[np.int64], random: np.random.Generator) -> Mask:
    mask = np.zeros(shape, np.bool_)
    marked, solid = mask.reshape(-1), 0
    while solid < wanted * mask.size:
        # As many as cannot be too many, even if none overlaps another.
        count = max(1, min(int(wanted * mask.size - solid), MOST_INDICES) // len(grain))
        centres = np.stack([random.integers(n, size=count) for n in shape], axis=-1)
        sites = (centres[:, None] + grain) % np.array(shape)
        flat = np.ravel_multi_index(tuple(np.moveaxis(sites, -1, 0)), shape)
        # A single grain counts its own new sites; a batch counts the whole box once.
        new = 0 if count > 1 else int(np.count_nonzero(~marked[flat]))
        marked[flat] = True
        solid = solid + new if count == 1 else int(np.count_nonzero(mask))
    return mask
