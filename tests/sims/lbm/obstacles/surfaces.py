"""Closed surfaces for the tests, and a slow oracle of what is inside: the solid angle that a surface covers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

Surface = tuple[NDArray[np.float64], NDArray[np.int64]]


def winding_numbers(
    vertices: NDArray[np.float64], faces: NDArray[np.int64], shape: Sequence[int]
) -> NDArray[np.float64]:
    """Solid angle / 4 pi of a surface seen from every site (Van Oosterom & Strackee 1983)."""
    sites = np.stack(np.meshgrid(*(np.arange(n, dtype=float) for n in shape), indexing="ij"), axis=-1)[..., ::-1]
    total = np.zeros(shape)
    for face in faces:
        a, b, c = (vertices[v] - sites for v in face)
        la, lb, lc = (np.linalg.norm(v, axis=-1) for v in (a, b, c))
        determinant = (a * np.cross(b, c)).sum(-1)
        ab, bc, ca = (a * b).sum(-1), (b * c).sum(-1), (c * a).sum(-1)
        total += 2 * np.arctan2(determinant, la * lb * lc + ab * lc + bc * la + ca * lb)
    return total / (4 * np.pi)


def octahedron(centre: Sequence[float], radius: float) -> Surface:
    """Eight triangles that face outwards."""
    vertices = np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]], float) * radius + centre
    faces = [(0, 2, 4), (2, 1, 4), (1, 3, 4), (3, 0, 4), (2, 0, 5), (1, 2, 5), (3, 1, 5), (0, 3, 5)]
    return vertices, np.array(faces)


def divided(surface: Surface) -> Surface:
    """Every triangle as four; corners in the middle of edges are shared by both neighbours."""
    vertices, faces = surface
    points, numbers, result = list(vertices), {}, []

    def middle(i: int, j: int) -> int:
        key = (min(i, j), max(i, j))
        if key not in numbers:
            numbers[key] = len(points)
            points.append((vertices[i] + vertices[j]) / 2)
        return numbers[key]

    for a, b, c in faces.tolist():
        ab, bc, ca = middle(a, b), middle(b, c), middle(c, a)
        result += [(a, ab, ca), (b, bc, ab), (c, ca, bc), (ab, bc, ca)]
    return np.array(points), np.array(result)


def joined(*surfaces: Surface) -> Surface:
    """One mesh of several."""
    starts = np.cumsum([0, *(len(v) for v, _ in surfaces)])
    faces = [f + start for (_, f), start in zip(surfaces, starts, strict=False)]
    return np.concatenate([v for v, _ in surfaces]), np.concatenate(faces)


def cube_of_tetrahedra(edge: float) -> tuple[NDArray[np.float64], list[NDArray[np.int64]]]:
    """The corners of a cube at the origin, and the surfaces of six tetrahedra that fill it (Kuhn's)."""
    corners = np.array([[i >> 0 & 1, i >> 1 & 1, i >> 2 & 1] for i in range(8)], float) * edge
    tetrahedra: list[NDArray[np.int64]] = []
    for order in permutations((1, 2, 4)):
        a, b, c, d = 0, order[0], order[0] + order[1], 7
        tetrahedra.append(np.array([(a, b, c), (a, c, d), (a, d, b), (b, d, c)]))
    return corners, tetrahedra
