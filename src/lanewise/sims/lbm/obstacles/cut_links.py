"""The links of a box that walls with a known surface cut, and at which fraction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

import lanewise as lw
from lanewise.sims.lbm.kinds import Edges
from lanewise.sims.lbm.obstacles.boxes import AXES
from lanewise.sims.lbm.obstacles.surfaces import Surface, repeated_fractions, rounding
from lanewise.support.errors import InputError

Kinds = NDArray[np.uint8]
Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class CutLinks:
    """What surfaces cut. mask: the kinds of sites, where those on an upper side of a surface are
    walls. fractions: of links to walls.
    """

    mask: Kinds
    fractions: lw.WallFractions


@dataclass(frozen=True, slots=True, eq=False)
class _Links:
    """One row a link: the number of its site, the direction along which it arrives there, the
    fraction, and the wall's kind.
    """

    site: Whole
    direction: Whole
    fraction: NDArray[np.float64]
    kind: Kinds

    @staticmethod
    def joined(parts: Sequence[_Links]) -> _Links:
        if not parts:
            none = np.empty(0, np.int64)
            return _Links(none, none, np.empty(0), np.empty(0, np.uint8))
        return _Links(
            *(
                np.concatenate([getattr(p, f) for p in parts])
                for f in ("site", "direction", "fraction", "kind")
            )
        )

    def chosen(self, which: NDArray[np.bool_]) -> _Links:
        return _Links(
            self.site[which], self.direction[which], self.fraction[which], self.kind[which]
        )


def cut_links(
    lattice: lw.Lattice,
    mask: Kinds,
    edges: Edges,
    surfaces: Mapping[int, Surface],
    names: Mapping[int, str],
) -> CutLinks:
    """The links between fluid sites (kind 0) and walls of the kinds in `surfaces`, named in `names`
    with all other walls.

    Of sites on a surface (see `on_surface`) those on an upper side of the body are walls and those
    on a lower one fluid, whatever the mask or rounding says: links are cut at 1 before an upper
    side and at 0 on a lower one. So a body has as many sites as one that lies a little further. A
    site stays fluid if the other fluid next to it were a gap of one site, in which nothing can be
    interpolated. Links of sites of other kinds, such as openings, and those through slip faces stay
    half-way, and so do the few that miss the surface by rounding. Raises InputError for a surface
    that meets none of its wall's links.
    """
    links = _all_met(lattice, mask, edges, surfaces, names)
    near = on_surface(mask.shape)
    if (on := links.fraction >= 1 - near).any():
        released = _lower_ends(lattice, mask, links.chosen(on))
        mask = _changed(mask, released, np.zeros(len(released), np.uint8))
        links = _all_met(lattice, mask, edges, surfaces, names)
    touching, first = np.unique(links.site[on := links.fraction <= near], return_index=True)
    if len(touching):
        upper = ~_lower(lattice, links.chosen(on), touching)
        kinds = links.kind[on][first]
        mask, links = _with_sites(
            lattice, mask, edges, links, touching, upper, kinds, frozenset(names)
        )
    return CutLinks(mask, _table(lattice, links))


def _all_met(
    lattice: lw.Lattice,
    mask: Kinds,
    edges: Edges,
    surfaces: Mapping[int, Surface],
    names: Mapping[int, str],
) -> _Links:
    return _Links.joined(
        [_met(lattice, mask, edges, n, surface, names[n]) for n, surface in surfaces.items()]
    )


def on_surface(shape: Sequence[int]) -> float:
    """A site is on a surface that cuts one of its links before this fraction.

    2^-22 of the box's longest edge, the rounding of coordinates in float32; at least 1e-6.
    """
    return rounding(max(shape))


def _met(
    lattice: lw.Lattice, mask: Kinds, edges: Edges, number: int, surface: Surface, name: str
) -> _Links:
    """The links that walls of a kind cut and that meet their surface."""
    ends, parts, cut = _rim(mask == number), list[_Links](), 0
    periods = [
        n if edges.get(a, "periodic") == "periodic" else 0
        for a, n in zip(AXES, mask.shape[::-1], strict=False)
    ]
    for q in range(1, lattice.size):
        starts, sites, _ = _starts(mask, edges, ends, lattice.velocities[q])
        if not len(sites):
            continue
        fractions = repeated_fractions(
            surface, starts, -np.array(lattice.velocities[q], np.float64), periods
        )
        every = _Links(
            sites, np.full(len(sites), q), fractions, np.full(len(sites), number, np.uint8)
        )
        parts.append(every.chosen(~np.isnan(fractions)))
        cut += len(sites)
    links = _Links.joined(parts)
    if cut and not len(links.site):
        raise InputError(
            f"the surface of {name!r} meets none of the {cut:,} links that its sites cut; wanted "
            "the surface of the "
            "same body, in site coordinates"
        )
    return links


def _with_sites(
    lattice: lw.Lattice,
    mask: Kinds,
    edges: Edges,
    links: _Links,
    touching: Whole,
    upper: NDArray[np.bool_],
    kinds: Kinds,
    walls: frozenset[int],
) -> tuple[Kinds, _Links]:
    """The mask in which the upper ones of the touching sites are walls of these kinds, and its
    links.
    """
    places = np.stack(np.unravel_index(touching[upper], mask.shape)[::-1], axis=1)
    roomy = _roomy(lattice, _changed(mask, touching[upper], kinds[upper]), edges, places, walls)
    solid, places, kinds = touching[upper][roomy], places[roomy], kinds[upper][roomy]
    mask = _changed(mask, solid, kinds)
    parts = [links.chosen(~np.isin(links.site, solid))]
    for q in range(1, lattice.size):
        _, sites, ends = _starts(mask, edges, places, lattice.velocities[q])
        fractions = np.where(np.isin(sites, touching), 0.0, 1.0)
        parts.append(_Links(sites, np.full(len(sites), q), fractions, kinds[ends]))
    return mask, _Links.joined(parts)


def _lower(lattice: lw.Lattice, links: _Links, sites: Whole) -> NDArray[np.bool_]:
    """Whether a lower side of the body goes through these sites on its surface, by the sum of their
    links that lead into it.
    """
    inward = np.zeros((len(sites), lattice.dimension))
    np.add.at(
        inward,
        np.searchsorted(sites, links.site),
        -np.array(lattice.velocities, np.float64)[links.direction],
    )
    # Of a face near an edge some links are missing, which tilts the sum by less than half.
    return (inward > 0.5 * np.abs(inward).max(axis=1, keepdims=True)).any(axis=1)


def _lower_ends(lattice: lw.Lattice, mask: Kinds, links: _Links) -> Whole:
    """The walls at which these links end, which lie on a surface, where that is a lower side of the
    body.
    """
    starts = np.stack(np.unravel_index(links.site, mask.shape)[::-1], axis=1)
    ends = (starts - np.array(lattice.velocities)[links.direction]) % np.array(mask.shape[::-1])
    numbers = np.ravel_multi_index(tuple(ends.T[::-1]), mask.shape).astype(np.int64)
    sites = np.unique(numbers)
    return sites[_lower(lattice, replace(links, site=numbers), sites)]


def _changed(mask: Kinds, sites: Whole, kinds: Kinds) -> Kinds:
    changed = mask.copy()
    changed.reshape(-1)[sites] = kinds
    return changed


def _roomy(
    lattice: lw.Lattice, mask: Kinds, edges: Edges, places: Whole, walls: frozenset[int]
) -> NDArray[np.bool_]:
    """Whether the fluid next to a place, along every axis, is two sites wide or more."""
    solid = np.isin(mask, sorted(walls)).reshape(-1)
    roomy = np.ones(len(places), np.bool_)
    for velocity in lattice.velocities:
        if sum(map(abs, velocity)) == 1:
            _, _, rows = _starts(mask, edges, places, velocity)
            inside, sites = _numbers(mask, edges, places[rows] + 2 * np.array(velocity))
            roomy[rows] &= inside & ~solid[sites]
    return roomy


def _table(lattice: lw.Lattice, links: _Links) -> lw.WallFractions:
    sites, rows = np.unique(links.site, return_inverse=True)
    table = np.full((len(sites), lattice.size), np.nan)
    table[rows, links.direction] = links.fraction
    return lw.WallFractions(sites.astype(np.int64), table)


def _rim(solid: NDArray[np.bool_]) -> Whole:
    """The sites that have a neighbour outside along some axis or diagonal, (n, D), x first: faces
    of the box wrap.
    """
    inner = solid
    for axis in range(solid.ndim):
        inner = inner & np.roll(inner, 1, axis) & np.roll(inner, -1, axis)
    return np.argwhere(solid & ~inner)[:, ::-1].astype(np.int64)


def _starts(
    mask: Kinds, edges: Edges, ends: Whole, velocity: tuple[int, ...]
) -> tuple[NDArray[np.float64], Whole, Whole]:
    """The fluid sites a velocity away from ends: where they would lie if the box went on, their
    numbers, and the rows of their ends.
    """
    starts = ends + np.array(velocity)
    inside, sites = _numbers(mask, edges, starts)
    rows = np.flatnonzero(inside & (mask.reshape(-1)[sites] == 0))
    return starts[rows].astype(np.float64), sites[rows], rows


def _numbers(mask: Kinds, edges: Edges, places: Whole) -> tuple[NDArray[np.bool_], Whole]:
    """Whether places, (n, D), lie in the box, which continues behind periodic faces, and the
    numbers of the sites there.
    """
    sizes = np.array(mask.shape[::-1])
    periodic = np.array([edges.get(a, "periodic") == "periodic" for a in AXES[: mask.ndim]])
    inside = np.asarray((((places >= 0) & (places < sizes)) | periodic).all(axis=1), np.bool_)
    sites = np.ravel_multi_index(tuple((places % sizes).T[::-1]), mask.shape)
    return inside, np.asarray(sites, np.int64)
