"""Runs: neighbouring sites whose links lead alike, and the places that they lead to.

Sites of kind 0 with the same flags that lie at the same faces are a class; class 0 is the bulk.
Population q of every site of a class arrives from the site's index plus one number, `places[class,
q]`: a leaf and a distance at once, counted in scalars from the start of the memory of the
populations. So one loop without a test serves the bulk, sites at walls and sites at faces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lanewise.language.lattices.base import Lattice
from lanewise.patterns.sitewise.flags import KIND_SHIFT, LINKS
from lanewise.patterns.sitewise.kinds import Edges
from lanewise.patterns.sitewise.streaming import Phase

Whole = npt.NDArray[np.int64]
# whose places stay in a second-level cache; sites of rarer classes ask their flags
MOST_CLASSES = 4096
SHORT = 16  # sites: less than a SIMD register of them
FACE_BITS = 6  # low and high face of three axes
KINDS = np.uint32(31 << KIND_SHIFT)


@dataclass(frozen=True, slots=True)
class Classes:
    """What the sites of each class have in common; class 0 is the bulk.

    flags, faces: shape (classes,); bit 2 a of `faces` is the low face of axis a, bit 2 a + 1 the
    high one. of_site: the class of every site, shape (count,); -1 for sites of other kinds, at
    walls that move, and of rare classes.
    """

    flags: Whole
    faces: Whole
    of_site: npt.NDArray[np.int32]


def make_classes(
    flags: npt.NDArray[np.uint32],
    shape: tuple[int, ...],
    edges: Edges,
    moving: frozenset[int],
    moving_sites: bool,
) -> Classes:
    """The classes of the sites of a box, the most frequent first. `moving`: walls that move;
    `moving_sites`: sites are among them.
    """
    special = np.flatnonzero((flags != 0) & (flags & KINDS == 0))
    faces = _faces(special, shape)
    keys = flags[special].astype(np.int64) << FACE_BITS | faces
    patterns, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    still = ~_may_move(patterns, edges, moving, moving_sites)
    chosen = [n for n in np.argsort(-counts, kind="stable") if still[n]][: MOST_CLASSES - 1]
    number = np.full(len(patterns), -1, np.int32)
    number[chosen] = np.arange(1, len(chosen) + 1)
    of_site = np.where(flags == 0, 0, -1).astype(np.int32)
    of_site[special] = number[inverse]
    kept = np.concatenate([[0], patterns[chosen]])
    return Classes(kept >> FACE_BITS, kept & (1 << FACE_BITS) - 1, of_site)


def make_runs(of_site: npt.NDArray[np.int32], longest: int) -> Whole:
    """(first, after the last, class) of the runs of neighbouring sites of one class, none longer
    than `longest`; shape (runs, 3).

    In each group of `longest` sites the short runs come last: single sites at faces find their
    neighbours in the caches, and SIMD loops are not held up by them.
    """
    starts = np.concatenate([[0], np.flatnonzero(np.diff(of_site)) + 1])
    stops = np.append(starts[1:], len(of_site))
    inside = of_site[starts] >= 0
    starts, stops = starts[inside], stops[inside]
    pieces = -(-(stops - starts) // longest)
    before = np.repeat(np.cumsum(pieces) - pieces, pieces)
    first = np.repeat(starts, pieces) + longest * (np.arange(len(before)) - before)
    last = np.minimum(first + longest, np.repeat(stops, pieces))
    runs = np.stack([first, last, of_site[first]], axis=1).astype(np.int64)
    return runs[np.lexsort((first, last - first < SHORT, first // longest))]


def make_places(
    classes: Classes,
    lattice: Lattice,
    shape: tuple[int, ...],
    edges: Edges,
    phase: Phase,
    starts: Sequence[int],
) -> Whole:
    """Where population q of a site of each class arrives from, less the site's index, shape
    (classes, Q).

    `starts`: the first scalar of every leaf. The rules are those of `patterns/sitewise/links.py`.
    """
    columns: list[Whole] = []
    for q in range(lattice.size):
        leaf = lattice.opposite[q] if phase.load_opposite else q
        leaves, distance = _free(classes, lattice, shape, edges, q, leaf)
        if q:
            cut = classes.flags >> (q - 1) & 1 != 0
            leaves = np.where(cut, lattice.opposite[leaf], leaves)
            distance = np.where(cut, 0, distance)
        columns.append(np.asarray(starts)[leaves] + distance)
    return np.stack(columns, axis=1).astype(np.int64)


def _free(
    classes: Classes, lattice: Lattice, shape: tuple[int, ...], edges: Edges, q: int, leaf: int
) -> tuple[Whole, Whole]:
    """Leaf and distance of what arrives along q where no wall cuts the link: wrapped, or mirrored
    by slip faces.
    """
    leaves, distance = np.full(len(classes.flags), leaf), np.zeros(len(classes.flags), np.int64)
    stride = 1
    for axis, component in enumerate(lattice.velocities[q]):
        extent = shape[-1 - axis]
        if component:
            crossing = classes.faces >> (2 * axis + (component < 0)) & 1 != 0
            match edges.face(axis, -component):
                case "slip":
                    mirrored = np.array(
                        [lattice.mirror(i, frozenset({axis})) for i in range(lattice.size)]
                    )
                    leaves = np.where(crossing, mirrored[leaves], leaves)
                    distance += np.where(crossing, 0, -component * stride)
                case "periodic":
                    distance += np.where(
                        crossing, component * (extent - 1) * stride, -component * stride
                    )
                case _:
                    distance -= component * stride
        stride *= extent
    return leaves, distance


def _faces(sites: Whole, shape: tuple[int, ...]) -> Whole:
    """At which faces of the box sites lie."""
    bits = np.zeros(len(sites), np.int64)
    for axis, place in enumerate(reversed(np.unravel_index(sites, shape))):
        bits |= (place == 0).astype(np.int64) << 2 * axis
        bits |= (place == shape[-1 - axis] - 1).astype(np.int64) << 2 * axis + 1
    return bits


def _may_move(
    keys: Whole, edges: Edges, moving: frozenset[int], moving_sites: bool
) -> npt.NDArray[np.bool_]:
    """Whether a wall that moves may cut a link of a class: it then adds what only the moment
    knows.
    """
    cut = keys >> FACE_BITS & int(LINKS) != 0
    at = sum(
        1 << 2 * axis + high
        for axis, pair in enumerate(edges.faces)
        for high, face in enumerate(pair)
        if isinstance(face, int) and face in moving
    )
    return cut & (moving_sites | (keys & at != 0))
