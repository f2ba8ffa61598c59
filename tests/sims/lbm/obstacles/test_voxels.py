"""Which sites lie inside: against solid angles, and where sites lie exactly in faces, edges and corners."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.sims.lbm.obstacles import voxels
from lanewise.sims.lbm.obstacles.voxels import voxelise
from tests.sims.lbm.obstacles.surfaces import cube_of_tetrahedra, divided, joined, octahedron, winding_numbers

SHAPE = (9, 10, 12)


def crumpled(seed: int, size: float) -> tuple[np.ndarray, np.ndarray]:
    """A surface that cuts through itself and reaches out of the box here and there."""
    random = np.random.default_rng(seed)
    vertices, faces = divided(octahedron(random.uniform(2, 9, 3).tolist(), size))
    return vertices + random.normal(0, size / 3, vertices.shape), faces


@given(st.integers(0, 10**6), st.floats(1, 6), st.booleans())
def test_winding_numbers_of_crumpled_surfaces(seed: int, size: float, turned: bool) -> None:
    vertices, faces = joined(crumpled(seed, size), crumpled(seed + 1, size / 2))
    faces = faces[:, ::-1] if turned else faces  # inside out: the same body
    wanted = winding_numbers(vertices, faces, SHAPE)
    np.testing.assert_allclose(wanted, np.rint(wanted), atol=1e-6)  # no site in the surface itself
    assert (voxelise(vertices, faces, SHAPE) == (np.rint(wanted) != 0)).all()
    assert (voxelise(vertices, faces, SHAPE, "parity") == (np.rint(wanted) % 2 == 1)).all()


@given(st.integers(0, 10**6))
def test_parity_needs_no_orientation(seed: int) -> None:
    vertices, faces = crumpled(seed, 4)
    some = np.random.default_rng(seed).random(len(faces)) < 0.5
    turned = np.where(some[:, None], faces[:, ::-1], faces)
    assert (voxelise(vertices, turned, SHAPE, "parity") == voxelise(vertices, faces, SHAPE, "parity")).all()


@given(st.integers(-2, 3), st.integers(-2, 3), st.integers(-2, 3), st.integers(0, 10**6))
def test_bodies_that_share_faces_share_no_site(x: int, y: int, z: int, seed: int) -> None:
    # Six tetrahedra fill a cube, sheared by integers: faces, edges and corners go right through sites.
    corners, tetrahedra = cube_of_tetrahedra(6)
    shear = np.eye(3) + np.triu(np.random.default_rng(seed).integers(-1, 2, (3, 3)), 1)
    vertices = corners @ shear.T + (x, y, z)
    count = np.zeros(SHAPE, int)
    for faces in tetrahedra:
        count += voxelise(vertices, faces, SHAPE)
    assert count.max() <= 1
    whole = voxelise(vertices, np.concatenate(tetrahedra), SHAPE)
    assert (whole == (count == 1)).all()  # and none is lost between them


@pytest.mark.parametrize(("x", "y"), [(55, 11), (42, 14), (22, 22), (44, 22), (23, 23), (25, 25)])
def test_edges_that_rounding_puts_on_either_side_of_a_site_do_not_leak(x: int, y: int) -> None:
    # The edge from (0, 0) to (x, y) passes through sites, and what is computed from its other end differs in the last
    # bit.
    rows = np.arange(1, y)
    assert (np.ceil(rows / y * x) != np.ceil(x + (rows - y) / -y * -x)).any()
    vertices = np.array([(0, 0, 1), (x, y, 1), (x + 5, 0, 1), (x / 2, y / 2, 5)])
    mask = voxelise(vertices, np.array([(0, 2, 1), (0, 1, 3), (1, 2, 3), (2, 0, 3)]), (9, y + 2, x + 8))
    assert mask[1:5].any()
    assert not mask[5:].any()


def test_a_whole_cube_is_half_open() -> None:
    corners, tetrahedra = cube_of_tetrahedra(4)
    mask = voxelise(corners + np.array((3, 2, 1)), np.concatenate(tetrahedra), SHAPE)
    assert np.argwhere(mask).min(axis=0).tolist() == [1, 2, 3]
    assert np.argwhere(mask).max(axis=0).tolist() == [4, 5, 6]
    assert mask.sum() == 64


@pytest.mark.parametrize("move", [(-5, 0, 0), (5, 0, 0), (0, -5, 0), (0, 5, 0), (0, 0, -5), (0, 0, 5), (-4, -4, -4)])
def test_what_reaches_out_of_the_box_is_cut_off(move: tuple[int, int, int]) -> None:
    vertices, faces = octahedron((10.3, 10.2, 10.1), 6.0)
    whole = voxelise(vertices, faces, (21, 21, 21))
    x, y, z = (5 - m for m in move)
    part = voxelise(vertices - (x, y, z), faces, (11, 11, 11))
    cropped = np.zeros((31, 31, 31), bool)
    cropped[5:26, 5:26, 5:26] = whole
    assert (part == cropped[z + 5 : z + 16, y + 5 : y + 16, x + 5 : x + 16]).all()


def test_work_in_parts_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    vertices, faces = crumpled(3, 5)
    whole = voxelise(vertices, faces, SHAPE)
    assert whole.any()
    monkeypatch.setattr(voxels, "MOST_CROSSINGS", 10)
    assert (voxelise(vertices, faces, SHAPE) == whole).all()


def test_triangles_without_area_change_nothing() -> None:
    vertices, faces = octahedron((5.2, 5.1, 4.3), 3.3)
    whole = voxelise(vertices, faces, SHAPE)
    middle = len(vertices)  # a point of an edge, and the edge as a triangle with it, passed both ways
    vertices = np.concatenate([vertices, [(vertices[0] + vertices[2]) / 2]])
    slivers = np.array([(0, 2, middle), (2, 0, middle), (0, 0, 2), (2, 0, 0)])
    assert (voxelise(vertices, np.concatenate([faces, slivers]), SHAPE) == whole).all()


def test_no_triangle_gives_an_empty_box() -> None:
    assert not voxelise(np.zeros((0, 3)), np.zeros((0, 3), np.int64), SHAPE).any()
