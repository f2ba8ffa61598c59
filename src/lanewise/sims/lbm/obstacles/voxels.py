"""Which sites lie inside a closed surface of triangles, by counting the surface's crossings along
z, and where links meet the surface.

The triangles are cut by the rows of sites into spans, and the spans by the columns into crossings.
The winding number of a site is the sum of the crossings below it. Whether a column passes right or
left of an edge is decided by the same numbers for both triangles of the edge, so the crossings of a
column of a closed surface always add up to nothing, however they are rounded: no column leaks.

Bodies are half-open, as `surfaces.box`: a site that lies exactly in a lower face is inside, in an
upper face outside.

For links the mesh is sheared until those of one direction are columns along z, on which the columns
of sites stay columns of sites. Triangles are then cut in the same way, so that no column leaks
between two of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lanewise.sims.lbm.obstacles.boxes import Mask
from lanewise.sims.lbm.obstacles.mesh import Mesh
from lanewise.sims.lbm.obstacles.surfaces import ROUNDING

Floats: TypeAlias = NDArray[np.float64]
Whole: TypeAlias = NDArray[np.int64]
Bits: TypeAlias = NDArray[np.bool_]
Rule: TypeAlias = Literal["winding", "parity"]

MOST_CROSSINGS = 1 << 21
"""Crossings computed at a time, about: 300 MB of temporary arrays."""


@dataclass(frozen=True, slots=True)
class Cuts:
    """Where edges meet rows of sites: whether they do, at which x and z, and whether they go up in
    y; each (rows,).
    """

    crosses: Bits
    x: Floats
    z: Floats
    up: Bits


@dataclass(frozen=True, slots=True)
class Spans:
    """Where triangles meet rows of sites: from `left` to `right` along x, each (spans,); `sign` is
    +1 or -1 by orientation.
    """

    row: Whole
    left: Floats
    left_z: Floats
    right: Floats
    right_z: Floats
    sign: Whole


@dataclass(frozen=True, slots=True)
class Crossings:
    """Where columns of sites meet triangles: the column's number y nx + x, the first plane above,
    the sign.
    """

    column: Whole
    plane: Whole
    sign: Whole


def voxelise(vertices: Floats, faces: Whole, shape: Sequence[int], rule: Rule = "winding") -> Mask:
    """Sites of a box (nz, ny, nx) inside of a closed surface.

    Args:
        vertices: (n, 3) in site coordinates, x first; they may lie outside of the box.
        faces: (m, 3) numbers of vertices. Every edge must belong to an even number of triangles;
        not checked here.
        shape: (nz, ny, nx).
        rule: "winding": inside is where the surface winds round; bodies that overlap are united,
        and a cavity has the
            opposite orientation. "parity": inside is where an odd number of crossings lies below,
            whatever the orientation.
    """
    if rule == "winding":
        return windings(vertices, faces, shape) != 0
    return _filled(_all_crossings(vertices, faces, shape), shape, odd=True) != 0


def windings(vertices: Floats, faces: Whole, shape: Sequence[int]) -> NDArray[np.int8]:
    """Which way the surface winds round the sites of a box (nz, ny, nx): 1 where it faces outwards,
    -1 where inwards, 0 outside.
    """
    return _filled(_all_crossings(vertices, faces, shape), shape, odd=False)


def _all_crossings(vertices: Floats, faces: Whole, shape: Sequence[int]) -> Crossings:
    depth, height, width = shape
    crossings = [
        _crossings(_spans(vertices, part, height), width, depth)
        for part in _parts(vertices, faces, height, width)
    ]
    column = np.concatenate([c.column for c in crossings]) if crossings else np.empty(0, np.int64)
    plane = np.concatenate([c.plane for c in crossings]) if crossings else np.empty(0, np.int64)
    sign = np.concatenate([c.sign for c in crossings]) if crossings else np.empty(0, np.int64)
    return Crossings(column, plane, sign)


def columns_cut(vertices: Floats, faces: Whole, height: int, width: int) -> tuple[Whole, Floats]:
    """The crossings of the columns y width + x of sites (x, y) with triangles: their columns, and
    their heights z.
    """
    heights = [
        _heights(_spans(vertices, part, height), width)
        for part in _parts(vertices, faces, height, width)
    ]
    if not heights:
        return np.empty(0, np.int64), np.empty(0)
    spans, x, z = zip(*((s.row[n], x, z) for s, n, x, z in heights), strict=True)
    return np.concatenate(spans) * width + np.concatenate(x), np.concatenate(z)


def _parts(vertices: Floats, faces: Whole, height: int, width: int) -> Iterator[Whole]:
    """The triangles that reach into the box seen along z, in parts of bounded work."""
    low, high = _bounds(vertices, faces)
    first = np.clip(np.ceil(low), 0, (width, height))
    stop = np.clip(np.ceil(high), 0, (width, height))
    work = (stop - first).prod(axis=1) + (stop - first)[:, 1]
    seen = np.flatnonzero((stop - first)[:, 1] > 0)
    part = (np.cumsum(work[seen]) // MOST_CROSSINGS).astype(np.int64)
    for places in np.split(seen, np.flatnonzero(np.diff(part)) + 1):
        if len(places):
            yield faces[places]


def _bounds(vertices: Floats, faces: Whole) -> tuple[Floats, Floats]:
    """Lowest and highest x and y of each triangle."""
    # a reduction over three corners takes four times as long
    a, b, c = (vertices[faces[:, k], :2] for k in range(3))
    return np.minimum(np.minimum(a, b), c), np.maximum(np.maximum(a, b), c)


def _spans(vertices: Floats, faces: Whole, height: int) -> Spans:
    low, high = _bounds(vertices, faces)
    first = np.clip(np.ceil(low[:, 1]), 0, height).astype(np.int64)
    stop = np.clip(np.ceil(high[:, 1]), 0, height).astype(np.int64)
    triangle, row = _expanded(first, stop)
    cuts = [_cut(vertices, faces[triangle, e], faces[triangle, (e + 1) % 3], row) for e in range(3)]
    # A row between the lowest and the highest corner crosses two edges; the third is left out.
    third = np.argmin([cut.crosses for cut in cuts], axis=0)
    a, b = (_chosen(cuts, (third + k) % 3) for k in (1, 2))
    swap = a.x > b.x
    left, right = _merged(swap, b, a), _merged(swap, a, b)
    return Spans(row, left.x, left.z, right.x, right.z, np.where(right.up, 1, -1))


def _cut(vertices: Floats, start: Whole, end: Whole, row: Whole) -> Cuts:
    """Computed from the corner of the lower number, whichever way a triangle passes the edge: both
    of its triangles get the same x.
    """
    a, b = vertices[np.minimum(start, end)], vertices[np.maximum(start, end)]
    crosses = (a[:, 1] <= row) != (b[:, 1] <= row)
    part = np.divide(row - a[:, 1], b[:, 1] - a[:, 1], out=np.zeros(len(row)), where=crosses)
    x, z = (a[:, axis] + part * (b[:, axis] - a[:, axis]) for axis in (0, 2))
    return Cuts(crosses, x, z, vertices[end, 1] > vertices[start, 1])


def _chosen(cuts: Sequence[Cuts], which: Whole) -> Cuts:
    """For each row, its cut of this number."""
    a, b, c = cuts
    return _merged(which == 0, a, _merged(which == 1, b, c))


def _merged(condition: Bits, one: Cuts, other: Cuts) -> Cuts:
    return Cuts(
        np.where(condition, one.crosses, other.crosses),
        np.where(condition, one.x, other.x),
        np.where(condition, one.z, other.z),
        np.where(condition, one.up, other.up),
    )


def _heights(spans: Spans, width: int) -> tuple[Spans, Whole, Whole, Floats]:
    """Where columns cut the spans: the spans, the number of each crossing's, its x and z."""
    first = np.clip(np.ceil(spans.left), 0, width).astype(np.int64)
    stop = np.clip(np.ceil(spans.right), 0, width).astype(np.int64)
    span, x = _expanded(first, stop)
    left, right = spans.left[span], spans.right[span]
    return (
        spans,
        span,
        x,
        spans.left_z[span]
        + (x - left) / (right - left) * (spans.right_z[span] - spans.left_z[span]),
    )


def _crossings(spans: Spans, width: int, depth: int) -> Crossings:
    _, span, x, z = _heights(spans, width)
    plane = np.clip(np.ceil(z), 0, depth).astype(np.int64)
    inside = plane < depth  # what lies above the box changes no site
    return Crossings((spans.row[span] * width + x)[inside], plane[inside], spans.sign[span][inside])


def _expanded(first: Whole, stop: Whole) -> tuple[Whole, Whole]:
    """Every integer of the ranges first..stop-1, with the number of its range before it."""
    count = np.maximum(stop - first, 0)
    which = np.repeat(np.arange(len(count)), count)
    return which, np.arange(len(which)) - (np.cumsum(count) - count)[which] + first[which]


def _filled(crossings: Crossings, shape: Sequence[int], *, odd: bool) -> NDArray[np.int8]:
    """The winding number of each plane from that of the plane below: its sign, or whether it is
    odd.

    A surface that faces outwards is crossed downwards first, so its winding is counted below zero.
    """
    signs = np.empty(tuple(shape), np.int8)
    order = np.argsort(crossings.plane, kind="stable")
    column, sign = crossings.column[order], crossings.sign[order]
    ends = np.searchsorted(crossings.plane[order], np.arange(shape[0] + 1))
    winding = np.zeros(shape[1] * shape[2], np.int64)
    for plane in range(shape[0]):
        here = slice(ends[plane], ends[plane + 1])
        np.add.at(winding, column[here], sign[here])
        signs[plane] = (winding % 2 if odd else -np.sign(winding)).reshape(signs.shape[1:])
    return signs


FINE = 20
"""Crossings of a column are in order to 2^-20 of a site."""


@dataclass(frozen=True, slots=True)
class MeshSurface:
    """The triangles of a mesh whose vertices are in site coordinates."""

    mesh: Mesh
    bounded: ClassVar[bool] = True

    def fractions(self, starts: Floats, step: Floats) -> Floats:
        """Where links first meet a triangle; starts are sites, and the step goes to a neighbour:
        integers.
        """
        axis = int(np.flatnonzero(step)[-1])
        up = float(step[axis])
        order = [a for a in range(3) if a != axis] + [axis]
        slope = (step / up)[order[:2]]
        vertices = _sheared(self.mesh.vertices[:, order], slope)
        begin = _sheared(starts[:, order], slope)
        low = np.floor(begin.min(axis=0))
        low[2] = min(low[2], float(np.floor(vertices[:, 2].min()))) - 1
        vertices, begin = vertices - low, begin - low
        width, height = (int(n) for n in begin[:, :2].max(axis=0) + 1)
        column, z = columns_cut(vertices, self.mesh.faces, height, width)
        own = np.rint(begin[:, 1]).astype(np.int64) * width + np.rint(begin[:, 0]).astype(np.int64)
        return _first(column, z, own, begin[:, 2], up)


def _sheared(points: Floats, slope: Floats) -> Floats:
    moved = points.copy()
    moved[:, :2] -= points[:, 2:] * slope
    return moved


def _first(column: Whole, z: Floats, own: Whole, begin: Floats, up: float) -> Floats:
    """The crossing of the wanted column next to `begin`, upwards or downwards, as a fraction; NaN
    if it is more than a link away.
    """
    if not len(z):
        return np.full(len(own), np.nan)
    bits = int(np.ceil(np.log2(max(z.max(), begin.max()) + 2))) + FINE
    key = (column << bits) + np.rint(z * 2**FINE).astype(np.int64)
    order = np.argsort(key, kind="stable")
    key, column, z = key[order], column[order], z[order]
    near = (own << bits) + np.rint(begin * 2**FINE).astype(np.int64)
    nearest = (
        np.searchsorted(key, near - 1)
        if up > 0
        else np.searchsorted(key, near + 1, side="right") - 1
    )
    inside = np.clip(nearest, 0, len(z) - 1)
    t = (z[inside] - begin) * up
    on = (
        (nearest == inside)
        & (column[inside] == own)
        & (t >= -2 * ROUNDING)
        & (t <= 1 + 2 * ROUNDING)
    )
    return np.where(on, np.clip(t, 0, 1), np.nan)
