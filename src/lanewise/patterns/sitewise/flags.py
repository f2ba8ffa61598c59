"""Flags: what is special about a site, in 32 bits, made once from the kinds and the edges.

    bits 0..25   links q = 1..26 that a wall cuts where they ARRIVE at the site
    bits 26..30  the kind of the site
    bit 31       the site lies at a face whose links wrap or are mirrored
Where many sites are special, all links of a wall site are cut: what computes it along with
its neighbours stays where it is. There bit 31 says that it shares a sector of memory with a site
that is updated. A flags of 0 belongs to a bulk site: kind 0, all links lead to the neighbours at
their fixed distances. The marks are one bit a site.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanewise.language.lattices.base import Lattice
from lanewise.patterns.sitewise.kinds import Edges

KIND_SHIFT, KIND_MASK, FACE = 26, 31, np.uint32(1 << 31)
LINKS = np.uint32((1 << KIND_SHIFT) - 1)
SHARES = FACE
SECTOR = 32  # bytes: what a GPU's memory moves at least
Kinds = npt.NDArray[np.uint8]


def make_flags(
    lattice: Lattice, kinds: Kinds, edges: Edges, walls: frozenset[int], *, placed: bool = False
) -> npt.NDArray[np.uint32]:
    """The flags of all sites, x fastest, shape (count,). `walls` are the kinds that are walls.

    Sites that compute where they lie (`placed`) need not be told of faces that wrap.
    """
    flags = np.zeros(kinds.shape, np.uint32)
    if kinds.any():
        np.left_shift(kinds, np.uint32(KIND_SHIFT), out=flags, dtype=np.uint32)
    solid = _framed(np.isin(kinds, sorted(walls)), edges) if kinds.any() else None
    for q in range(1, lattice.size):
        _mark_cut(flags, lattice.velocities[q], np.uint32(1 << (q - 1)), edges, solid)
    for axis in range(lattice.dimension):
        for face, end in zip(edges.faces[axis], (0, -1), strict=True):
            if face == "slip" or (face == "periodic" and not placed):
                flags[_layer(lattice.dimension, axis, end)] |= FACE
    return flags.reshape(-1)


def _framed(solid: npt.NDArray[np.bool_], edges: Edges) -> npt.NDArray[np.bool_]:
    """With what lies beyond each face: the other end of a periodic axis, else the same layer
    again.
    """
    for axis, (face, _) in enumerate(edges.faces[: solid.ndim]):
        width = [(int(a == solid.ndim - 1 - axis),) * 2 for a in range(solid.ndim)]
        solid = np.pad(solid, width, mode="wrap" if face == "periodic" else "edge")
    return solid


def _mark_cut(
    flags: npt.NDArray[np.uint32],
    velocity: tuple[int, ...],
    bit: np.uint32,
    edges: Edges,
    framed: npt.NDArray[np.bool_] | None,
) -> None:
    """Set the bit of every site where a face or a solid site cuts the link that arrives with this
    velocity.
    """
    dimension = len(velocity)
    for axis, component in enumerate(velocity):
        face = edges.face(axis, -component) if component else "periodic"
        if isinstance(face, int):
            flags[_layer(dimension, axis, 0 if component > 0 else -1)] |= bit
    if framed is not None:
        begins = (1 - component for component in reversed(velocity))
        comes_from = tuple(slice(b, b + size) for b, size in zip(begins, flags.shape, strict=True))
        flags |= np.multiply(framed[comes_from], bit, dtype=np.uint32)


def _layer(dimension: int, axis: int, end: int) -> tuple[slice, ...]:
    """The sites next to a face."""
    layer = slice(0, 1) if end == 0 else slice(-1, None)
    return tuple(layer if a == dimension - 1 - axis else slice(None) for a in range(dimension))


def mixed_sectors(
    solid: npt.NDArray[np.bool_], sites: int, first: int = 0
) -> npt.NDArray[np.bool_]:
    """Of each site, whether its sector, a number of sites that lie together, holds one that is
    updated. first: how far in its sector the first site lies.
    """
    padded = np.ones(-(-(first + len(solid)) // sites) * sites, np.bool_)
    padded[first : first + len(solid)] = solid
    return np.repeat(~padded.reshape(-1, sites).all(axis=1), sites)[first : first + len(solid)]


def mark_shared_sectors(
    flags: npt.NDArray[np.uint32], solid: npt.NDArray[np.bool_], sites: int, first: int = 0
) -> None:
    """`mark_mixed` with the sectors of these sites' own memory."""
    mark_mixed(flags, solid, mixed_sectors(solid, sites, first))


def mark_mixed(
    flags: npt.NDArray[np.uint32], solid: npt.NDArray[np.bool_], mixed: npt.NDArray[np.bool_]
) -> None:
    """Say at each wall site whether its sector holds a site that is updated (`mixed`).

    Such a wall site is written along with its neighbours: a sector written in part has to be read
    first.
    """
    flags[solid] = flags[solid] & ~SHARES | LINKS
    flags[solid & mixed] |= SHARES


def make_marks(sites: npt.NDArray[np.uint32] | npt.NDArray[np.bool_]) -> npt.NDArray[np.uint32]:
    """One bit a site, 32 sites a flags: whether a site's entry is not 0, such as the flags of
    special sites.
    """
    bits = np.zeros(-(-len(sites) // 32) * 32, np.uint8)
    bits[: len(sites)] = sites != 0
    return np.packbits(bits, bitorder="little").view(np.uint32)


def make_spans(chosen: npt.NDArray[np.bool_], longest: int) -> npt.NDArray[np.int64]:
    """(first, after the last) of the runs of neighbouring chosen sites, none longer than
    `longest`; shape (spans, 2).
    """
    padded = np.concatenate([[False], chosen, [False]])
    edges = np.flatnonzero(padded[1:] != padded[:-1])
    starts, stops = edges[::2], edges[1::2]
    pieces = -(-(stops - starts) // longest)
    first = np.repeat(starts, pieces) + longest * _counting(pieces)
    return np.stack([first, np.minimum(first + longest, np.repeat(stops, pieces))], axis=1).astype(
        np.int64
    )


def _counting(pieces: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """0, 1, .. for each run of pieces."""
    total = int(pieces.sum())
    return np.arange(total) - np.repeat(np.cumsum(pieces) - pieces, pieces)
