"""The bodies of a mesh, and which of them are inside out.

A body that is turned and lies in others is a cavity. One that reaches out of them is a mistake:
where it overlaps them the windings cancel, and the overlap would be a hole.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lanewise.sims.lbm.obstacles.mesh import Mesh, sides_of
from lanewise.sims.lbm.obstacles.voxels import Floats, Whole, windings
from lanewise.support.connected import connected
from lanewise.support.errors import InputError

COARSE = 48
"""Sites along the longest edge of the grid that looks at what lies outside of the box."""


def check_orientation(placed: Mesh, signs: NDArray[np.int8], mesh: Mesh, name: str) -> None:
    """Refuse bodies that are inside out and reach out of those that they overlap, by their places
    in `mesh`.

    `placed` is `mesh` in site coordinates, `signs` the signs of its windings at the sites of a box.
    """
    _check_sites(placed, signs, mesh, name)
    top = np.array(signs.shape[::-1]) - 1
    if (placed.low < 0).any() or (placed.high > top).any():
        low, extent = placed.low, placed.high - placed.low
        scale = COARSE / float(extent.max())
        # Between sites at the edge: flat faces of boxes would have all or none of theirs.
        whole = Mesh((placed.vertices - low) * scale + 0.5, placed.faces)
        depth, height, width = (int(n) for n in np.ceil(extent * scale)[::-1] + 2)
        _check_sites(
            whole, windings(whole.vertices, whole.faces, (depth, height, width)), mesh, name
        )


def _check_sites(placed: Mesh, signs: NDArray[np.int8], mesh: Mesh, name: str) -> None:
    if not (signs.min() < 0 < signs.max()):
        return
    numbers = bodies(placed)
    volumes = np.asarray(np.bincount(numbers, weights=_volumes(placed)), np.float64)
    if not (volumes.min() < 0 < volumes.max()):
        return
    cluster, out = _overlaps(placed, signs, numbers, volumes)
    size = np.abs(volumes)
    largest = np.array([np.argmax(np.where(cluster == c, size, -1)) for c in cluster])
    wrong = np.flatnonzero(out & (np.sign(volumes) != np.sign(volumes[largest])))
    if len(wrong):
        raise InputError(_said(mesh, numbers, int(wrong[0]), len(wrong), name))


def _said(mesh: Mesh, numbers: Whole, first: int, count: int, name: str) -> str:
    faces = mesh.faces[numbers == first]
    corners = mesh.vertices[faces]
    place = f"from {_point(corners.min(axis=(0, 1)))} to {_point(corners.max(axis=(0, 1)))}"
    more = f" (and so are {count - 1} more)" if count > 1 else ""
    return (
        f"{name}: body {first + 1} of {numbers.max() + 1}, {len(faces):,} triangles {place}, is "
        f"inside out{more} and overlaps a body that "
        "is not: where both are there would be a hole; wanted bodies of one orientation, or a "
        "cavity that lies in its body: turn it "
        "(trimesh.repair.fix_inversion with multibody=True)"
    )


def _point(values: Floats) -> str:
    return f"({', '.join(f'{float(v):.6g}' for v in values)})"


def _volumes(mesh: Mesh) -> Floats:
    """Of the tetrahedra of triangles and the middle of the mesh: of a closed surface that faces
    outwards they add up to its volume.
    """
    a, b, c = (mesh.vertices[mesh.faces[:, k]] - (mesh.low + mesh.high) / 2 for k in range(3))
    return (a * np.cross(b, c)).sum(axis=1) / 6


def _overlaps(
    placed: Mesh, signs: NDArray[np.int8], numbers: Whole, volumes: Floats
) -> tuple[Whole, NDArray[np.bool_]]:
    """Of every body its cluster, which are bodies that share sites, and whether it reaches out of
    bodies of the other orientation.

    Then it shares a site with one of them, and has another one at which the mesh winds its way.
    """
    cluster, out = np.arange(len(volumes)), np.zeros(len(volumes), np.bool_)
    owner = np.full(signs.shape, -1, np.int64)
    covered = {
        way: windings(placed.vertices, placed.faces[np.sign(volumes)[numbers] == way], signs.shape)
        != 0
        for way in (1, -1)
    }
    order = np.argsort(numbers, kind="stable")
    ends = np.searchsorted(numbers[order], np.arange(len(volumes) + 1))
    for body in range(len(volumes)):
        faces = placed.faces[order[ends[body] : ends[body + 1]]]
        part, mask = _sites(placed.vertices, faces, signs.shape)
        met = cluster[np.unique(owner[part][mask & (owner[part] >= 0)])]
        cluster[np.isin(cluster, met)] = body
        owner[part][mask] = body
        way = 1 if volumes[body] > 0 else -1
        out[body] = covered[-way][part][mask].any() and (signs[part][mask] == way).any()
    return cluster, out


def _sites(
    vertices: Floats, faces: Whole, shape: tuple[int, ...]
) -> tuple[tuple[slice, slice, slice], NDArray[np.bool_]]:
    """The part of the box that a body may reach, and which of its sites it winds round."""
    corners = vertices[faces]
    top = np.array(shape[::-1])
    low = np.clip(np.floor(corners.min(axis=(0, 1))), 0, top).astype(np.int64)
    stop = np.clip(np.ceil(corners.max(axis=(0, 1))) + 1, low, top).astype(np.int64)
    x, y, z = (slice(int(a), int(b)) for a, b in zip(low, stop, strict=True))
    depth, height, width = (int(n) for n in (stop - low)[::-1])
    return (z, y, x), windings(vertices - low, faces, (depth, height, width)) != 0


# ------------------------------------------------------------ which triangles belong together


def bodies(mesh: Mesh) -> Whole:
    """The number of each triangle's body, from 0 on in the order of the file.

    Triangles belong together across edges that two of them have. Bodies that touch along an edge
    have four there and stay apart, unless one of them is open without it.
    """
    triangle, upward, _, edge, count = sides_of(mesh)
    order = np.argsort(edge, kind="stable")
    one, other = triangle[order][:-1], triangle[order][1:]
    same = edge[order][:-1] == edge[order][1:]
    two = same & (count[edge[order][:-1]] == 2)
    apart = connected(len(mesh.faces), [(one[two], other[two])])
    if (count > 2).any():
        keys = apart[triangle] * len(count) + edge
        _, inverse = np.unique(keys, return_inverse=True)
        balance = np.bincount(inverse, weights=upward)
        open_bodies = np.unique(apart[triangle[balance[inverse] != 0]])
        joined = same & (
            two | np.isin(apart[one], open_bodies) | np.isin(apart[other], open_bodies)
        )
        apart = connected(len(mesh.faces), [(one[joined], other[joined])])
    _, first, numbers = np.unique(apart, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[numbers]
