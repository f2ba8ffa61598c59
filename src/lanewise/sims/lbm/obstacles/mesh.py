"""A surface of triangles: read by trimesh, and checked to be closed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lanewise.errors import InputError
from lanewise.io.source import FilePath, reading
from lanewise.sims.lbm.obstacles.sources import existing

SUFFIXES = (".stl", ".obj", ".ply", ".off")
DAMAGE = (ValueError, KeyError, IndexError, TypeError, AttributeError, EOFError, ArithmeticError, NotImplementedError)
"""What trimesh has been seen to raise on files with wrong bytes, besides its own Exception subclasses."""

SAME = 8
"""Vertices that agree in this many digits of the mesh's extent are one: far below the spacing of STL's float32."""


@dataclass(frozen=True, slots=True)
class Mesh:
    """`vertices` (n, 3) float64, finite, in the mesh's own unit; `faces` (m, 3) int64, numbers of vertices, m > 0."""

    vertices: NDArray[np.float64]
    faces: NDArray[np.int64]

    @classmethod
    def of(cls, vertices: ArrayLike, faces: ArrayLike) -> Mesh:
        """A mesh of any arrays. Equal vertices become one. Raises InputError for wrong shapes, NaN and wrong numbers."""
        points, triangles = np.asarray(vertices, np.float64), np.asarray(faces)
        if points.ndim != 2 or points.shape[1] != 3:
            raise InputError(f"the vertices have shape {points.shape}; wanted (n, 3)")
        if triangles.ndim != 2 or triangles.shape[1] != 3 or len(triangles) == 0 or triangles.dtype.kind not in "iu":
            raise InputError(
                f"the faces have shape {triangles.shape} and dtype {triangles.dtype}; wanted (m, 3) whole numbers, "
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


def read_mesh(path: FilePath) -> Mesh:
    """The mesh in an STL (or OBJ, PLY, OFF) file; several bodies become one mesh.

    Raises InputError, naming the file, for what cannot be read, holds no triangle, or when trimesh is not installed.
    """
    file = existing(path, "a mesh (STL)")
    if file.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: unknown suffix {file.suffix or '(none)'}; wanted a mesh ({' '.join(SUFFIXES)})")
    loaded = _loaded(path, file)
    with reading(path, "mesh", ()):
        if len(loaded.faces) == 0:
            raise InputError("the mesh holds no triangle")
        return Mesh.of(loaded.vertices, loaded.faces)


def check_closed(mesh: Mesh, name: str = "mesh", *, oriented: bool = True) -> None:
    """Refuse a mesh with edges that do not belong to an even number of triangles: it has no inside.

    With `oriented`, refuse neighbours of opposite orientation too: of such a surface only parity tells the inside. The
    InputError counts the edges and says where they are, in the mesh's own unit.
    """
    edges, odd, unbalanced = _edges(mesh)
    if odd.any():
        raise InputError(
            f"{name}: the mesh is not closed: {_where(mesh, edges[odd], 'open edge')}; wanted a closed surface: fill its "
            "holes (trimesh.repair.fill_holes, or Make Manifold in Blender)"
        )
    if oriented and unbalanced.any():
        raise InputError(
            f"{name}: triangles are turned inside out: {_where(mesh, edges[unbalanced], 'edge')} between triangles of opposite "
            'orientation; repair it (trimesh.repair.fix_normals), or take rule="parity" when no bodies overlap'
        )


def _loaded(path: FilePath, file: Path) -> Any:
    try:
        trimesh = import_module("trimesh")
    except ImportError as error:
        raise InputError(f'{path}: reading meshes needs trimesh; install it: pip install "lanewise[flow]"') from error
    own = (import_module("trimesh.exchange.stl").HeaderError,)
    with reading(path, "mesh", (*DAMAGE, *own)), file.open("rb") as stream:
        return trimesh.load_mesh(stream, file_type=file.suffix.lower()[1:], process=False)


def _merged(points: NDArray[np.float64], faces: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Vertices that are the same one to `SAME` digits, kept once: an STL file repeats them for every triangle."""
    low, extent = points.min(axis=0), float(np.ptp(points, axis=0).max())
    digits = np.rint((points - low) * (10**SAME / extent if extent > 0 else 1)).astype(np.int64)
    # Three numbers of up to 27 bits: two of them fit into one key of 64.
    order = np.lexsort((digits[:, 2], digits[:, 1] * (10**SAME + 1) + digits[:, 0]))
    first = np.concatenate([[True], (np.diff(digits[order], axis=0) != 0).any(axis=1)])
    number = np.empty(len(points), np.int64)
    number[order] = np.cumsum(first) - 1
    return points[order[first]], number[faces]


def _edges(mesh: Mesh) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Edges (e, 2), whether an odd number of triangles has each, and whether they pass it more often one way than the other."""
    start, end = mesh.faces.reshape(-1), mesh.faces[:, [1, 2, 0]].reshape(-1)
    proper = start != end  # two corners of a triangle without area may be one vertex
    start, end = start[proper], end[proper]
    keys = np.minimum(start, end) * len(mesh.vertices) + np.maximum(start, end)
    unique, inverse, count = np.unique(keys, return_inverse=True, return_counts=True)
    balance = np.bincount(inverse, weights=np.where(start < end, 1, -1), minlength=len(unique))
    return np.stack(np.divmod(unique, len(mesh.vertices)), axis=1), count % 2 == 1, balance != 0


def _where(mesh: Mesh, edges: NDArray[np.int64], what: str) -> str:
    places = mesh.vertices[edges]
    first = f"from {_point(places[0, 0])} to {_point(places[0, 1])}"
    if len(edges) == 1:
        return f"1 {what} of {len(mesh.faces):,} triangles, {first}"
    low, high = places.min(axis=(0, 1)), places.max(axis=(0, 1))
    return f"{len(edges):,} {what}s of {len(mesh.faces):,} triangles, the first {first}, all within {_point(low)} to {_point(high)}"


def _point(values: Sequence[float] | NDArray[np.float64]) -> str:
    return f"({', '.join(f'{float(v):.6g}' for v in values)})"
