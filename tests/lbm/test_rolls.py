"""What does not change a flow: where a body is rolled to along periodic axes, and where its surface is told of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.sims.lbm import Simulation, Wall, obstacles
from lanewise.sims.lbm.obstacles.cut_links import cut_links
from lanewise.sims.lbm.obstacles.mesh import Mesh
from lanewise.sims.lbm.obstacles.stl import mesh_solid
from lanewise.sims.lbm.obstacles.voxels import MeshSurface
from tests.sims.lbm.obstacles.surfaces import octahedron

CENTRE, RADIUS, SHAPE = (9.3, 7.2), 4.4, (16, 20)


def round_body(shift: tuple[int, int]) -> Any:
    return obstacles.Round(tuple(c + s for c, s in zip(CENTRE, shift, strict=True)), RADIUS)


def plain_distance(shift: tuple[int, int]) -> Any:
    """Of the body alone, without its images."""
    centre = np.array(CENTRE) + shift
    return obstacles.SignedDistance(lambda points: np.linalg.norm(points - centre, axis=1) - RADIUS)


def periodic_distance(shift: tuple[int, int]) -> Any:
    sizes, centre = np.array(SHAPE[::-1]), np.array(CENTRE) + shift

    def distance(points: Any) -> Any:
        d = (points - centre + sizes / 2) % sizes - sizes / 2
        return np.linalg.norm(d, axis=1) - RADIUS

    return obstacles.SignedDistance(distance)


SURFACES = [round_body, plain_distance, periodic_distance]
ROLLS = [(0, 0), (-9, 0), (10, 0), (0, -7), (0, 9), (-9, -7), (11, 9), (-10, 8)]


def links(surface: Callable[..., Any], shift: tuple[int, int]) -> tuple[Any, Any]:
    """Fractions of all links, (ny, nx, Q), and the mask; rolled back."""
    mask = np.roll(obstacles.disc(SHAPE, CENTRE, RADIUS), shift[::-1], (0, 1)).astype(np.uint8)
    found = cut_links(lw.D2Q9, mask, {}, {1: surface(shift)}, {1: "body"})
    table = np.full((*SHAPE, 9), np.nan)
    table.reshape(-1, 9)[found.fractions.places] = found.fractions.fractions
    back = tuple(-s for s in shift[::-1])
    return np.roll(table, back, (0, 1)), np.roll(found.mask, back, (0, 1))


@pytest.mark.parametrize("surface", SURFACES)
def test_a_surface_gives_the_same_links_wherever_it_is_rolled_to(surface: Callable[..., Any]) -> None:
    table, mask = links(surface, (0, 0))
    assert np.count_nonzero(~np.isnan(table)) > 60
    for shift in ROLLS[1:]:
        rolled, rolled_mask = links(surface, shift)
        np.testing.assert_array_equal(rolled_mask, mask, err_msg=str(shift))
        np.testing.assert_allclose(rolled, table, rtol=0, atol=1e-9, err_msg=str(shift))


Scene = Callable[[tuple[int, ...]], tuple[Any, Any]]
"""A shift, x first -> the mask there, and the surface of its body or None."""
BOX = (9, 10, 12)
INSIDE = (5.3, 4.8, 4.15)


def rolled(mask: Any, shift: tuple[int, ...]) -> Any:
    return np.roll(mask, shift[::-1], tuple(range(mask.ndim)))


def moved(shift: tuple[int, ...], count: int) -> tuple[float, ...]:
    return tuple(c + s for c, s in zip(INSIDE, shift, strict=True))[:count]


def flat(surface: Callable[..., Any]) -> Scene:
    return lambda shift: (rolled(obstacles.disc(SHAPE, CENTRE, RADIUS), shift), surface(shift))


def masked(shape: tuple[int, ...]) -> Scene:
    """Lonely sites and clusters, half-way."""
    return lambda shift: (rolled(np.random.default_rng(4).random(shape) < 0.15, shift), None)


def cylinder(shift: tuple[int, ...]) -> tuple[Any, Any]:
    solid = obstacles.cylinder(BOX, INSIDE[:2], 3.2)
    return rolled(solid, shift), obstacles.Round(moved(shift, 2), 3.2, "xy")


def sphere(shift: tuple[int, ...]) -> tuple[Any, Any]:
    return rolled(obstacles.sphere(BOX, INSIDE, 3.2), shift), obstacles.Round(moved(shift, 3), 3.2)


def distant_sphere(shift: tuple[int, ...]) -> tuple[Any, Any]:
    centre = np.array(moved(shift, 3))
    distance = obstacles.SignedDistance(lambda points: np.linalg.norm(points - centre, axis=1) - 3.2)
    return rolled(obstacles.sphere(BOX, INSIDE, 3.2), shift), distance


def mesh(shift: tuple[int, ...]) -> tuple[Any, Any]:
    placement = obstacles.Placement(scale=3.3, centre=INSIDE)
    solid = mesh_solid(Mesh.of(*octahedron((0, 0, 0), 1)), BOX, placement=placement).mask
    return rolled(solid, shift), MeshSurface(Mesh.of(*octahedron(moved(shift, 3), 3.3)))


SCENES: dict[str, Scene] = {
    "disc": flat(round_body), "distance": flat(plain_distance), "periodic distance": flat(periodic_distance),
    "mask": masked(SHAPE), "mask of a box": masked(BOX), "cylinder": cylinder, "sphere": sphere,
    "distance of a sphere": distant_sphere, "mesh": mesh,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENES)
def test_a_flow_is_the_same_wherever_its_body_is_rolled_to(name: str) -> None:
    """By any vector, within the box and beyond it by less than a period. Where no surface is known by numbers, bits are
    requested.
    """
    flows: list[tuple[int, Any, Any]] = []
    dimension = 2 if name in ("disc", "distance", "periodic distance", "mask") else 3
    sizes = (SHAPE if dimension == 2 else BOX)[::-1]
    rng = np.random.default_rng(len(name))
    shifts = [(0,) * dimension, *(tuple(int(rng.integers(1 - n // 2, n // 2 + 2)) for n in sizes) for _ in range(3))]
    for shift in shifts:
        mask, surface = SCENES[name](shift)
        flow = Simulation(
            shape=mask.shape, viscosity=0.08, force=(2e-5, -1e-5, 3e-5)[:dimension], precision="f64", mask=mask.astype(int),
            surfaces={} if surface is None else {1: surface}, kinds={1: Wall("body")}, device="cpu",
        )  # fmt: skip
        flow.run(120)
        back = tuple(-s for s in shift[::-1])
        flows.append((flow.interpolated_links, np.roll(flow.velocity, back, range(dimension)), flow.force_on("body")))
    for count, velocity, force in flows[1:]:
        assert count == flows[0][0]
        assert (count > 0) == ("mask" not in name)
        assert np.abs(velocity).max() > 1e-4
        np.testing.assert_allclose(velocity, flows[0][1], rtol=0, atol=1e-13 if count else 0)
        np.testing.assert_allclose(force, flows[0][2], rtol=0, atol=1e-13)


@pytest.mark.parametrize("radius", [8.7, 10.4])
def test_a_body_that_overlaps_its_images_gives_the_same_links_wherever_it_is_rolled_to(radius: float) -> None:
    """The first surface on a link counts, be it the body's own or that of an image."""
    tables = []
    sizes = np.array(SHAPE[::-1])
    y, x = np.indices(SHAPE) + 0.5
    for shift in ROLLS:
        centre = np.array(CENTRE) + shift
        d = (np.stack([x, y], axis=-1) - centre + sizes / 2) % sizes - sizes / 2
        mask = (np.linalg.norm(d, axis=-1) < radius).astype(np.uint8)
        found = cut_links(lw.D2Q9, mask, {}, {1: obstacles.Round(tuple(centre), radius)}, {1: "body"})
        table = np.full((*SHAPE, 9), np.nan)
        table.reshape(-1, 9)[found.fractions.places] = found.fractions.fractions
        tables.append(np.roll(table, tuple(-s for s in shift[::-1]), (0, 1)))
    assert np.count_nonzero(~np.isnan(tables[0])) > 20
    for table in tables[1:]:
        np.testing.assert_allclose(table, tables[0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("shift", [(0, 0, 0), (12, 0, 0), (-9, 8, 0), (7, -8, 10)])
def test_spheres_and_cylinders_in_three_dimensions(shift: tuple[int, int, int]) -> None:
    shape, centre, radius = (10, 11, 12), (5.3, 4.8, 5.1), 3.2
    for axes in ("xyz", "xy"):
        solid = (
            obstacles.sphere(shape, centre, radius) if axes == "xyz" else obstacles.cylinder(shape, centre[:2], radius)
        )
        counts = []
        for s in ((0, 0, 0), shift):
            mask = np.roll(solid, s[::-1], (0, 1, 2)).astype(np.uint8)
            moved = tuple(c + d for c, d in zip(centre, s, strict=True))[: len(axes)]
            found = cut_links(lw.D3Q19, mask, {}, {1: obstacles.Round(moved, radius, axes)}, {1: "body"})
            values = found.fractions.fractions[~np.isnan(found.fractions.fractions)]
            counts.append((len(values), values.sum()))
        assert counts[0] == pytest.approx(counts[1], rel=1e-9)


MESH_SHAPE, MESH_CENTRE, MESH_RADIUS = (12, 13, 14), np.array([6.3, 5.7, 6.1]), 4.3


@pytest.mark.parametrize("shift", [(8, 0, 0), (-7, 6, 0), (0, 0, -6), (9, -7, 8)])
def test_meshes_rolled_across_periodic_faces(shift: tuple[int, int, int]) -> None:
    """The links that a mesh cuts are those of the mesh in the middle of the box."""
    mask = mesh_solid(
        Mesh.of(*octahedron((0, 0, 0), 1)), MESH_SHAPE,
        placement=obstacles.Placement(scale=MESH_RADIUS, centre=tuple(MESH_CENTRE)),
    ).mask  # fmt: skip
    tables = []
    for by in ((0, 0, 0), shift):
        surface = MeshSurface(Mesh.of(*octahedron((MESH_CENTRE + by).tolist(), MESH_RADIUS)))
        rolled = np.roll(mask, by[::-1], (0, 1, 2)).astype(np.uint8)
        found = cut_links(lw.D3Q27, rolled, {}, {1: surface}, {1: "body"})
        table = np.full((*MESH_SHAPE, 27), np.nan)
        table.reshape(-1, 27)[found.fractions.places] = found.fractions.fractions
        tables.append(np.roll(table, tuple(-s for s in by[::-1]), (0, 1, 2)))
    assert np.count_nonzero(~np.isnan(tables[0])) > 300
    np.testing.assert_allclose(tables[1], tables[0], rtol=0, atol=1e-9)
