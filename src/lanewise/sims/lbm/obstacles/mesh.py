"""A surface of triangles, the check that it is closed, and meshes from files.

The files are read by trimesh, which is imported at first use and needed for nothing else.
"""

from __future__ import annotations

import struct
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from io import BytesIO
from itertools import product
from logging import Logger
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lanewise.io.source import FilePath, reading
from lanewise.sims.lbm.obstacles.arrays import existing
from lanewise.support.checks import host_array
from lanewise.support.errors import InputError
from lanewise.support.installation import install

BITS = 21
"""Vertices closer than 2^-22 of the mesh's extent along every axis are one.

In a mesh 1,000 sites long, 0.0002 sites.
"""


@dataclass(frozen=True, slots=True)
class Mesh:
    """`vertices` (n, 3) float64, finite, in the mesh's own unit; `faces` (m, 3) int64, numbers of
    vertices, m > 0.
    """

    vertices: NDArray[np.float64]
    faces: NDArray[np.int64]

    @classmethod
    def of(cls, vertices: ArrayLike, faces: ArrayLike) -> Mesh:
        """A mesh of any arrays. Equal vertices become one.

        Raises InputError for wrong shapes, NaN and wrong numbers.
        """
        points = host_array("the vertices", vertices, InputError)
        triangles = host_array("the faces", faces, InputError)
        if points.dtype.kind not in "fiu":
            raise InputError(f"the vertices have dtype {points.dtype}; wanted numbers")
        points = points.astype(np.float64)
        if points.ndim != 2 or points.shape[1] != 3:
            raise InputError(f"the vertices have shape {points.shape}; wanted (n, 3)")
        if (
            triangles.ndim != 2
            or triangles.shape[1] != 3
            or len(triangles) == 0
            or triangles.dtype.kind not in "iu"
        ):
            raise InputError(
                f"the faces have shape {triangles.shape} and dtype {triangles.dtype}; wanted (m, "
                "3) integers, "
                "three vertices for each of at least one triangle"
            )
        if triangles.min() < 0 or triangles.max() >= len(points):
            wrong = int(triangles.max() if triangles.min() >= 0 else triangles.min())
            raise InputError(f"a face names vertex {wrong}; wanted 0 to {len(points) - 1}")
        if not (finite := np.isfinite(points).all(axis=1)).all():
            raise InputError(f"vertex {int(np.argmin(finite))} is not finite; wanted numbers")
        return cls(*_merged(points, triangles.astype(np.int64)))

    @property
    def low(self) -> NDArray[np.float64]:
        """The low corner of the bounding box of the triangles."""
        return self.vertices[self.faces].min(axis=(0, 1))

    @property
    def high(self) -> NDArray[np.float64]:
        """The high corner of the bounding box of the triangles."""
        return self.vertices[self.faces].max(axis=(0, 1))


def check_closed(mesh: Mesh, name: str = "mesh", *, oriented: bool = True) -> None:
    """Refuse a mesh with edges that do not belong to an even number of triangles: it has no inside.

    With `oriented`, refuse neighbours of opposite orientation too: of such a surface only parity
    tells the inside. The InputError counts the edges and says where they are, in the mesh's own
    unit.
    """
    edges, odd, unbalanced = _edges(mesh)
    if odd.any():
        raise InputError(
            f"{name}: the mesh is not closed: {_where(mesh, edges[odd], 'open edge')}; wanted a "
            "closed surface: fill its "
            "holes (trimesh.repair.fill_holes, or Make Manifold in Blender)"
        )
    if oriented and unbalanced.any():
        raise InputError(
            f"{name}: triangles are turned inside out: {_where(mesh, edges[unbalanced], 'edge')} "
            "between triangles of opposite "
            'orientation; repair it (trimesh.repair.fix_normals), or take rule="parity" when no '
            "bodies overlap"
        )


def _merged(
    points: NDArray[np.float64], faces: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Vertices that are the same one but for rounding, kept once: an STL file repeats them for
    every triangle.
    """
    low, extent = points.min(axis=0), float(np.ptp(points, axis=0).max())
    scale = (2**BITS - 2) / extent if extent > 0 else 0.0
    # Eight grids, shifted by half a cell: for any two vertices this close, one of them has both in
    # one cell.
    for shift in product((0.0, 0.5), repeat=3):
        cell = ((points - low) * scale + shift).astype(np.int64)
        keys = (cell[:, 0] << 2 * BITS) | (cell[:, 1] << BITS) | cell[:, 2]
        _, first, number = np.unique(keys, return_index=True, return_inverse=True)
        points, faces = points[first], number[faces]
    return points, faces


def sides_of(mesh: Mesh) -> tuple[NDArray[Any], ...]:
    """Of each side of a triangle: its triangle, 1 or -1 for the way that it passes its edge, the
    keys of the edges (smaller vertex times the number of vertices, plus the larger one), the edge
    of each side, and how many sides each edge has.
    """
    start, end = mesh.faces.reshape(-1), mesh.faces[:, [1, 2, 0]].reshape(-1)
    proper = start != end  # two corners of a triangle without area may be one vertex
    triangle = np.repeat(np.arange(len(mesh.faces)), 3)[proper]
    start, end = start[proper], end[proper]
    keys = np.minimum(start, end) * len(mesh.vertices) + np.maximum(start, end)
    found = np.unique(keys, return_inverse=True, return_counts=True)
    return triangle, np.where(start < end, 1, -1), *found


def _edges(mesh: Mesh) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Edges (e, 2), whether an odd number of triangles has each, and whether they pass it more
    often one way than the other.
    """
    _, upward, unique, edge, count = sides_of(mesh)
    balance = np.bincount(edge, weights=upward, minlength=len(unique))
    return np.stack(np.divmod(unique, len(mesh.vertices)), axis=1), count % 2 == 1, balance != 0


def _where(mesh: Mesh, edges: NDArray[np.int64], what: str) -> str:
    places = mesh.vertices[edges]
    first = f"from {_point(places[0, 0])} to {_point(places[0, 1])}"
    if len(edges) == 1:
        return f"1 {what} of {len(mesh.faces):,} triangles, {first}"
    low, high = places.min(axis=(0, 1)), places.max(axis=(0, 1))
    return (
        f"{len(edges):,} {what}s of {len(mesh.faces):,} triangles, the first {first}, all within "
        f"{_point(low)} to {_point(high)}"
    )


def _point(values: Sequence[float] | NDArray[np.float64]) -> str:
    return f"({', '.join(f'{float(v):.6g}' for v in values)})"


SUFFIXES = (".stl", ".obj", ".ply", ".off")
TEXT = (".obj", ".off")
DAMAGE = (
    ValueError,
    KeyError,
    IndexError,
    TypeError,
    AttributeError,
    EOFError,
    ArithmeticError,
    NotImplementedError,
    DeprecationWarning,
)
"""What trimesh raises on files with wrong bytes."""

HEADER, TRIANGLE = 84, 50
"""Bytes of a binary STL file: 80 of any text and the number of triangles; then these for each."""


def read_mesh(path: FilePath) -> Mesh:
    """The mesh in an STL (or OBJ, PLY, OFF) file; several bodies become one mesh.

    Raises InputError, naming the file, for what cannot be read, is cut off, holds no triangle, or
    when trimesh is not installed.
    """
    file = existing(path, "a mesh (STL)")
    kind = file.suffix.lower()
    if kind not in SUFFIXES:
        raise InputError(
            f"{path}: unknown suffix {file.suffix or '(none)'}; wanted a mesh "
            f"({' '.join(SUFFIXES)})"
        )
    try:
        trimesh = import_module("trimesh")
    except ImportError as error:
        raise InputError(
            f"{path}: reading meshes needs trimesh; install it: {install('flow')}"
        ) from error
    with reading(path, "mesh", DAMAGE):
        with _strictly(trimesh.util.log):
            loaded = trimesh.load_mesh(
                BytesIO(_content(file, kind)), file_type=kind[1:], process=False
            )
        if len(loaded.faces) == 0:
            raise InputError(
                "no triangle was found; wanted a mesh: the file may be cut off, or of another "
                "format"
            )
        return Mesh.of(loaded.vertices, loaded.faces)


@contextmanager
def _strictly(log: Logger) -> Generator[None]:
    """Numbers that NumPy reads in part are damage, and what trimesh makes of broken normals, which
    are not used is not reported.
    """
    before = log.disabled
    log.disabled = True
    try:
        with warnings.catch_warnings():
            # NaN and infinity are refused afterwards
            warnings.simplefilter("ignore", RuntimeWarning)
            warnings.simplefilter("error", DeprecationWarning)
            yield
    finally:
        log.disabled = before


def _content(file: Path, kind: str) -> bytes:
    """The bytes for trimesh, text as UTF-8: names of bodies come in any encoding."""
    content = file.read_bytes()
    if kind in TEXT or (kind == ".stl" and not _is_binary_stl(content)):
        return content.decode("latin-1").encode()
    return content


def _is_binary_stl(content: bytes) -> bool:
    """Whether it is binary, for sure or (by a zero byte, which no text has) by intent; cut off
    files are refused.
    """
    if len(content) < HEADER:
        return False
    (triangles,) = struct.unpack_from("<I", content, HEADER - 4)
    if len(content) == (size := HEADER + TRIANGLE * triangles):
        return True
    if b"\0" in content[:HEADER]:
        raise InputError(
            f"damaged STL file: it has {len(content):,} bytes, and its {triangles:,} triangles "
            f"need {size:,}: it may be cut off"
        )
    return False
