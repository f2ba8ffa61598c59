"""Surfaces: where links meet circles, spheres, cylinders, signed distances and meshes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.patterns.sitewise.fractions import WallFractions
from lanewise.sims.lbm import obstacles
from lanewise.sims.lbm.obstacles import Round, SignedDistance
from lanewise.sims.lbm.obstacles.cut_links import cut_links
from lanewise.support.errors import InputError

NAMES = {1: "body"}
LATTICES = {2: lw.D2Q9, 3: lw.D3Q27}


def ends_of(found: WallFractions, shape: tuple[int, ...]) -> np.ndarray:
    """Where all links with a fraction meet the surface, x first."""
    rows, q = np.nonzero(~np.isnan(found.fractions))
    starts = np.stack(np.unravel_index(found.places[rows], shape)[::-1], axis=1)
    steps = -np.array(LATTICES[len(shape)].velocities)[q]
    return starts + found.fractions[rows, q][:, None] * steps


def count_cut(mask: np.ndarray) -> int:
    """Counted by comparing every site with every neighbour; no body reaches the faces."""
    dimension = mask.ndim
    pairs = (np.roll(mask, e[::-1], tuple(range(dimension))) & ~mask for e in LATTICES[dimension].velocities)
    return sum(int(np.count_nonzero(p)) for p in pairs)


radii = st.floats(0.8, 4.0)
places = st.tuples(*[st.floats(5.0, 6.0)] * 3)


@given(places, radii, st.sampled_from((2, 3)))
def test_links_end_on_the_sphere(middle: tuple[float, float, float], radius: float, dimension: int) -> None:
    shape, centre = (12,) * dimension, tuple(middle[:dimension])
    body = obstacles.disc if dimension == 2 else obstacles.sphere
    mask = body(shape, centre, radius)
    away = np.linalg.norm(np.indices(shape)[::-1].reshape(dimension, -1).T - centre, axis=1) - radius
    assume(mask.any() and np.abs(away).min() > 1e-4)  # of sites on a surface the surface decides, and not the mask
    found = cut_links(LATTICES[dimension], mask.astype(np.uint8), {}, {1: Round(centre, radius)}, NAMES).fractions
    assert found.links == count_cut(mask)
    np.testing.assert_allclose(np.linalg.norm(ends_of(found, shape) - centre, axis=1), radius, rtol=1e-9)
    signed = SignedDistance(lambda p: np.linalg.norm(p - np.array(centre), axis=1) - radius)
    other = cut_links(LATTICES[dimension], mask.astype(np.uint8), {}, {1: signed}, NAMES).fractions
    np.testing.assert_array_equal(other.places, found.places)
    np.testing.assert_allclose(other.fractions, found.fractions, atol=1e-6)


def test_a_pipe_has_its_wall_outside_and_is_periodic() -> None:
    """A cylinder along z in a box of one layer; links along z lead to the same layer again, and are not cut."""
    solid = ~obstacles.cylinder((1, 12, 12), (5.7, 5.2), 4.6)
    found = cut_links(lw.D3Q27, solid.astype(np.uint8), {}, {1: Round((5.7, 5.2), 4.6, "xy")}, NAMES).fractions
    ends = ends_of(found, (1, 12, 12))
    np.testing.assert_allclose(np.hypot(ends[:, 0] - 5.7, ends[:, 1] - 5.2), 4.6)
    assert found.links == count_cut(solid)


def test_bodies_go_on_through_periodic_faces_and_end_at_others() -> None:
    mask = np.zeros((5, 6), np.uint8)
    mask[2, 0] = 1
    surface = {1: Round((0.0, 2.0), 0.3)}
    periodic = cut_links(lw.D2Q9, mask, {"y": "wall"}, surface, NAMES).fractions
    assert set(periodic.places) == {6, 7, 13, 18, 19, 11, 17, 23}
    walled = cut_links(lw.D2Q9, mask, {"x": "slip", "y": "wall"}, surface, NAMES).fractions
    assert set(walled.places) == {6, 7, 13, 18, 19}


def sphere_mesh(folder: Path, radius: float) -> Path:
    trimesh = pytest.importorskip("trimesh")
    trimesh.creation.icosphere(5, radius).export(folder / "sphere.stl")
    return folder / "sphere.stl"


@pytest.mark.slow
def test_a_mesh_of_a_sphere_is_a_sphere(tmp_path: Path) -> None:
    """10,240 triangles lie within 0.05 % of the radius inside the sphere. Every link is cut."""
    centre, radius, shape = (11.3, 10.8, 12.1), 7.6, (24, 23, 22)
    place = obstacles.Placement(scale=1.0, centre=centre)
    body = obstacles.stl_solid(sphere_mesh(tmp_path, radius), shape, placement=place)
    assert body.surface is not None
    found = cut_links(lw.D3Q27, body.mask.astype(np.uint8), {}, {1: body.surface}, NAMES).fractions
    assert found.links == count_cut(body.mask)
    distance = np.linalg.norm(ends_of(found, shape) - centre, axis=1)
    np.testing.assert_allclose(distance, radius, rtol=1e-3)


def test_a_mesh_with_faces_in_sites(tmp_path: Path) -> None:
    """Of a cube from 4 to 8: the mask has its lower faces, and links are cut where the upper ones are walls instead."""
    trimesh = pytest.importorskip("trimesh")
    trimesh.creation.box((4, 4, 4)).export(tmp_path / "cube.stl")
    place = obstacles.Placement(scale=1.0, centre=(6, 6, 6))
    body = obstacles.stl_solid(tmp_path / "cube.stl", (12, 12, 12), placement=place)
    assert body.surface is not None
    assert np.count_nonzero(body.mask[4:8, 4:8, 4:8]) == np.count_nonzero(body.mask) == 4**3
    found = cut_links(lw.D3Q27, body.mask.astype(np.uint8), {}, {1: body.surface}, NAMES)
    assert np.count_nonzero(found.mask[5:9, 5:9, 5:9]) == np.count_nonzero(found.mask) == 4**3
    known = found.fractions.fractions[~np.isnan(found.fractions.fractions)]
    assert set(np.unique(known)) == {0.0, 1.0}


def test_a_mesh_in_float32_has_flat_faces(tmp_path: Path) -> None:
    """The corners of a box of 0.6 that is scaled by 10 are integers but for rounding: each face is on one side of its
    sites.
    """
    trimesh = pytest.importorskip("trimesh")
    trimesh.creation.box((1.2, 0.6, 0.6)).export(tmp_path / "box.stl")
    place = obstacles.Placement(length=12.0, centre=(10, 7, 7))
    body = obstacles.stl_solid(tmp_path / "box.stl", (14, 14, 20), placement=place)
    assert np.count_nonzero(body.mask) == 12 * 6 * 6
    assert body.mask[4:10, 4:10, 4:16].all()


def square(points: np.ndarray) -> np.ndarray:
    """Of the square from 3 to 9, in some unit: below 0 inside."""
    return 1e-3 * (np.abs(points - 6).max(axis=1) - 3)


@pytest.mark.parametrize("noise", [0.0, 1e-10, -1e-10])
def test_sites_on_upper_sides_of_a_surface_are_walls(noise: float) -> None:
    """Which of them the mask has does not matter, nor to which side rounding has brought the distance."""
    y, x = np.indices((12, 12))
    distance = square(np.stack([x.ravel(), y.ravel()], axis=1)).reshape(12, 12)
    walls = (x > 3) & (x <= 9) & (y > 3) & (y <= 9)
    surface = {1: SignedDistance(lambda p: square(p) + noise)}
    expected = cut_links(lw.D2Q9, walls.astype(np.uint8), {}, surface, NAMES).fractions
    for mask in (distance < 0, distance <= 0, obstacles.box((12, 12), (6, 6), (6, 6))):
        found = cut_links(lw.D2Q9, mask.astype(np.uint8), {}, surface, NAMES)
        np.testing.assert_array_equal(found.mask, walls)
        np.testing.assert_array_equal(found.fractions.places, expected.places)
        assert np.nanmax(np.abs(found.fractions.fractions - expected.fractions)) < 1e-6
        # Noise moves a face: lines that lie in it, at two corners, meet it or not.
        missed = np.count_nonzero(np.isnan(found.fractions.fractions) != np.isnan(expected.fractions))
        assert missed <= (4 if noise else 0)


@pytest.mark.parametrize(("high", "stays"), [(3.5, True), (4.5, False)])
def test_sites_on_a_surface_stay_fluid_in_a_narrow_gap(high: float, stays: bool) -> None:
    """Row 2 lies on the wall below: without it there would be one row, half-way to both walls, below `high`."""
    mask = np.zeros((7, 4), np.uint8)
    mask[:2] = mask[int(high + 0.5) :] = 1
    surface = {1: SignedDistance(lambda p: np.minimum(high - p[:, 1], p[:, 1] - 2))}
    found = cut_links(lw.D2Q9, mask, {}, surface, NAMES)
    assert found.mask[2].any() != stays
    np.testing.assert_array_equal(np.delete(found.mask, 2, axis=0), np.delete(mask, 2, axis=0))
    known = found.fractions.fractions[~np.isnan(found.fractions.fractions)]
    assert set(np.round(known, 9)) == ({0.0, 0.5} if stays else {0.5, 1.0})


def test_a_surface_elsewhere() -> None:
    mask = obstacles.disc((12, 12), (6, 6), 2).astype(np.uint8)
    with pytest.raises(InputError) as caught:
        cut_links(lw.D2Q9, mask, {}, {1: Round((2.0, 2.0), 0.2)}, NAMES)
    assert str(caught.value).startswith(
        "the surface of 'body' meets none of the 40 links that its sites cut; wanted the"
    )
