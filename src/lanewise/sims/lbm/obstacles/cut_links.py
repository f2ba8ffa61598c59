"""The links of a box that walls with a known surface cut, and at which fraction."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from lanewise.errors import InputError
from lanewise.lattices.base import Lattice
from lanewise.sims.lbm.kinds import Edges
from lanewise.sims.lbm.obstacles.boxes import AXES
from lanewise.sims.lbm.obstacles.surfaces import Surface
from lanewise.sites.fractions import WallFractions

Whole = NDArray[np.int64]


def wall_fractions(
    lattice: Lattice, mask: NDArray[np.uint8], edges: Edges, surfaces: Mapping[int, Surface], names: Mapping[int, str]
) -> WallFractions:
    """The fractions of links between fluid sites (kind 0) and walls of the kinds in `surfaces`.

    Links of sites of other kinds, such as openings, and those through slip faces stay half-way, and so do the few that miss the
    surface by rounding. Raises InputError for a surface that meets none of its wall's links.
    """
    places, directions, fractions = [], [], []
    for number, surface in surfaces.items():
        ends = _rim(mask == number)
        cut = met = 0
        for q in range(1, lattice.size):
            starts, sites = _starts(mask, edges, ends, lattice.velocities[q])
            if not len(sites):
                continue
            found = surface.fractions(starts, -np.array(lattice.velocities[q], np.float64))
            known = ~np.isnan(found)
            cut, met = cut + len(sites), met + int(np.count_nonzero(known))
            places.append(sites[known])
            directions.append(np.full(len(places[-1]), q))
            fractions.append(found[known])
        if cut and not met:
            raise InputError(
                f"the surface of {names[number]!r} meets none of the {cut:,} links that its sites cut; wanted the surface of the "
                "same body, in site coordinates"
            )
    if not places:
        return WallFractions(np.empty(0, np.int64), np.empty((0, lattice.size)))
    sites, rows = np.unique(np.concatenate(places), return_inverse=True)
    table = np.full((len(sites), lattice.size), np.nan)
    table[rows, np.concatenate(directions)] = np.concatenate(fractions)
    return WallFractions(sites.astype(np.int64), table)


def _rim(solid: NDArray[np.bool_]) -> Whole:
    """The sites that have a neighbour outside along some axis or diagonal, (n, D), x first: faces of the box wrap."""
    inner = solid
    for axis in range(solid.ndim):
        inner = inner & np.roll(inner, 1, axis) & np.roll(inner, -1, axis)
    return np.argwhere(solid & ~inner)[:, ::-1].astype(np.int64)


def _starts(
    mask: NDArray[np.uint8], edges: Edges, ends: Whole, velocity: tuple[int, ...]
) -> tuple[NDArray[np.float64], Whole]:
    """The fluid sites a velocity away from the ends: where they would lie if the box went on, and their numbers."""
    starts = ends + np.array(velocity)
    sizes = np.array(mask.shape[::-1])
    periodic = np.array([edges.get(a, "periodic") == "periodic" for a in AXES[: mask.ndim]])
    inside = (((starts >= 0) & (starts < sizes)) | periodic).all(axis=1)
    starts = starts[inside]
    sites = np.ravel_multi_index(tuple((starts % sizes).T[::-1]), mask.shape)
    fluid = np.flatnonzero(mask.reshape(-1)[sites] == 0)
    return starts[fluid].astype(np.float64), np.asarray(sites, np.int64)[fluid]
