"""Meshes from files, made by trimesh: volumes, places, orientation, and what is refused."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lanewise.sims.lbm.obstacles import Mesh, Placement, box, mesh_mask, read_mask, sphere, stl_mask
from lanewise.support.errors import InputError
from lanewise.support.installation import install
from tests.sims.lbm.obstacles.surfaces import octahedron

trimesh = pytest.importorskip("trimesh")

ONE_TO_ONE = Placement(scale=1)


def stl(path: Path, *meshes: Any, suffix: str = "stl") -> Path:
    file = path / f"mesh.{suffix}"
    trimesh.util.concatenate(list(meshes)).export(file)
    return file


def moved(mesh: Any, by: Sequence[float]) -> Any:
    copy = mesh.copy()
    copy.apply_translation(by)
    return copy


# ------------------------------------------------------------ what is right


@pytest.mark.parametrize(
    ("mesh", "shape"),
    [
        (trimesh.creation.icosphere(subdivisions=4, radius=25), (64, 64, 64)),
        (trimesh.creation.box((21.3, 33.1, 40.7), trimesh.transformations.euler_matrix(0.3, 0.5, 0.7)), (64, 64, 64)),
        (trimesh.creation.torus(30, 9), (32, 96, 96)),
        (trimesh.creation.capsule(30, 12), (64, 64, 64)),
        (trimesh.creation.annulus(10, 25, 30), (64, 64, 64)),
    ],
    ids=["sphere", "box", "torus", "capsule", "tube"],
)
def test_volumes(tmp_path: Path, mesh: Any, shape: tuple[int, ...]) -> None:
    solid = np.count_nonzero(stl_mask(stl(tmp_path, mesh), shape, placement=ONE_TO_ONE))
    # Sites near the surface are in or out at random: the error of the sum is a small part of their number.
    assert abs(solid - mesh.volume) < 0.06 * mesh.area
    assert solid == pytest.approx(mesh.volume, rel=0.03)


def test_analytic_sphere_and_torus(tmp_path: Path) -> None:
    ball = stl_mask(
        stl(tmp_path, trimesh.creation.icosphere(subdivisions=6)), (96, 96, 96), placement=Placement(length=80)
    )
    assert np.count_nonzero(ball) == pytest.approx(4 / 3 * np.pi * 40**3, rel=2e-3)
    assert (
        np.count_nonzero(ball != sphere((96, 96, 96), (47.5,) * 3, 40)) < 200
    )  # of 268,000: a polyhedron inside of the sphere
    ring = trimesh.creation.torus(3, 1, major_sections=256, minor_sections=128)
    mask = stl_mask(stl(tmp_path, ring), (64, 160, 160), placement=Placement(length=144))
    assert np.count_nonzero(mask) == pytest.approx(2 * np.pi**2 * 3 * 18**3, rel=2e-3)


@pytest.mark.slow
def test_512_sites_along_each_axis(tmp_path: Path) -> None:
    ball = stl_mask(
        stl(tmp_path, trimesh.creation.icosphere(subdivisions=7)), (512,) * 3, placement=Placement(length=480)
    )
    assert np.count_nonzero(ball) == pytest.approx(4 / 3 * np.pi * 240**3, rel=2e-4)


def test_a_box_of_whole_edges_is_exact(tmp_path: Path) -> None:
    file = stl(tmp_path, trimesh.creation.box((4, 6, 8)))
    mask = stl_mask(file, (20, 22, 24), placement=ONE_TO_ONE)
    assert (mask == box((20, 22, 24), (11.5, 10.5, 9.5), (4, 6, 8))).all()
    assert (read_mask(file, (20, 22, 24), placement=ONE_TO_ONE) == mask).all()


def test_axes_are_those_of_the_mesh(tmp_path: Path) -> None:
    # A cone stands with its base in the plane z = 0 and points up.
    cone = moved(trimesh.creation.cone(10, 20), (3, 0, 0))
    mask = stl_mask(stl(tmp_path, cone), (24, 32, 32), placement=ONE_TO_ONE)
    area = mask.sum(axis=(1, 2))
    filled = area[area > 0]
    assert (np.diff(filled) <= 0).all()
    assert filled[0] > 4 * filled[len(filled) // 2 + 1]


@pytest.mark.parametrize(
    ("rotate", "edges"),
    [
        ((0, 0, 0), (4, 6, 8)),
        ((90, 0, 0), (4, 8, 6)),
        ((0, 90, 0), (8, 6, 4)),
        ((0, 0, 90), (6, 4, 8)),
        ((90, 90, 0), (6, 8, 4)),  # about x first
    ],
)
def test_rotation(tmp_path: Path, rotate: tuple[float, ...], edges: tuple[int, ...]) -> None:
    mask = stl_mask(stl(tmp_path, trimesh.creation.box((4, 6, 8))), (20, 20, 20), placement=ONE_TO_ONE, rotate=rotate)
    assert (np.ptp(np.argwhere(mask), axis=0)[::-1] + 1).tolist() == list(edges)


def test_a_quarter_turn_about_z_takes_x_to_y(tmp_path: Path) -> None:
    # Along x the cone points to the high end after a turn of 90 degrees about y; then z takes it to the high end of y.
    file = stl(tmp_path, trimesh.creation.cone(6, 12))
    for rotate, axis in (((0, 90, 0), 2), ((0, 90, 90), 1)):
        mask = stl_mask(file, (16, 16, 16), placement=ONE_TO_ONE, rotate=rotate)
        sections = mask.sum(axis=tuple(a for a in range(3) if a != axis))
        filled = sections[sections > 0]
        assert (np.diff(filled) <= 0).all()


def test_inside_out_and_mirrored_meshes_are_the_same_body(tmp_path: Path) -> None:
    part = trimesh.creation.cone(10, 20)
    plain = stl_mask(stl(tmp_path, part), (24, 25, 25), placement=ONE_TO_ONE)
    inverted = part.copy()
    inverted.invert()
    assert (stl_mask(stl(tmp_path, inverted), (24, 25, 25), placement=ONE_TO_ONE) == plain).all()
    # Mirrored at z, triangles left as they were: they face inwards now.
    mirrored = trimesh.Trimesh(part.vertices * (1, 1, -1), part.faces, process=False)
    upside_down = stl_mask(stl(tmp_path, mirrored), (24, 25, 25), placement=ONE_TO_ONE)
    assert mirrored.volume < 0
    assert (upside_down.sum(axis=(1, 2)) == plain.sum(axis=(1, 2))[::-1]).all()


def test_several_bodies(tmp_path: Path) -> None:
    cube = trimesh.creation.box((4, 4, 4))
    file = stl(tmp_path, cube, moved(cube, (10, 0, 0)), moved(cube, (10, 2, 0)))
    mask = stl_mask(file, (8, 8, 20), placement=ONE_TO_ONE)
    assert np.count_nonzero(mask) == 64 + 64 + 32  # what overlaps is counted once
    assert np.count_nonzero(stl_mask(file, (8, 8, 20), placement=ONE_TO_ONE, rule="parity")) == 64 + 32 + 32


def test_several_named_solids_of_an_ascii_file(tmp_path: Path) -> None:
    cube = trimesh.creation.box((4, 4, 4))
    texts: list[Any] = [m.export(file_type="stl_ascii") for m in (cube, moved(cube, (10, 0, 0)))]
    path = tmp_path / "two.stl"
    path.write_text("\n".join(texts).replace("solid", "solid Körper"), encoding="latin-1")
    assert np.count_nonzero(stl_mask(path, (8, 8, 20), placement=ONE_TO_ONE)) == 128


def test_cavities_stay_hollow(tmp_path: Path) -> None:
    hole = trimesh.creation.box((4, 4, 4))
    hole.invert()
    file = stl(tmp_path, trimesh.creation.box((8, 8, 8)), hole)
    assert np.count_nonzero(stl_mask(file, (12, 12, 12), placement=ONE_TO_ONE)) == 512 - 64


def test_a_mesh_at_the_faces_of_the_box_and_beyond(tmp_path: Path) -> None:
    file = stl(tmp_path, trimesh.creation.box((6, 4, 2)))
    whole = stl_mask(file, (2, 4, 6), placement=Placement(fraction=1.0))
    assert whole.all()  # from -0.5 to n - 0.5
    corner = stl_mask(file, (10, 10, 10), placement=Placement(scale=1, at=(0, 0, 1)))
    assert np.argwhere(corner).min(axis=0).tolist() == [9, 0, 0]
    assert np.count_nonzero(corner) == 3 * 2 * 1
    wide = stl_mask(file, (10, 10, 10), placement=Placement(scale=10))
    assert wide.all()


@pytest.mark.parametrize("suffix", ["stl", "obj", "ply", "off"])
def test_other_files(tmp_path: Path, suffix: str) -> None:
    file = stl(tmp_path, trimesh.creation.icosphere(subdivisions=2, radius=8), suffix=suffix)
    assert np.count_nonzero(read_mask(file, (20, 20, 20), placement=ONE_TO_ONE)) == pytest.approx(2100, rel=0.05)


def test_units_do_not_matter(tmp_path: Path) -> None:
    ball = trimesh.creation.icosphere(subdivisions=3)
    masks: list[Any] = []
    for unit in (1e-9, 1.0, 1e6):
        scaled = ball.copy()
        scaled.apply_scale(unit)
        masks.append(stl_mask(stl(tmp_path, scaled), (24, 24, 24), placement=Placement(length=19.7)))
    assert np.count_nonzero(masks[0] != masks[1]) <= 2  # float32 in the file
    assert np.count_nonzero(masks[2] != masks[1]) <= 2


def test_what_was_done_is_said(tmp_path: Path) -> None:
    said: list[str] = []
    stl_mask(stl(tmp_path, trimesh.creation.box((1, 1, 2))), (16, 32, 64), report=said.append)
    assert said == [
        "mesh.stl: 12 triangles scaled by 4 to 4 x 4 x 8 sites, from (29.5, 13.5, 3.5) to (33.5, 17.5, 11.5), in 64 x 32 x 16 sites; "
        "0.391 % of the sites are solid"
    ]


def test_rounded_vertices_are_welded() -> None:
    vertices, faces = octahedron((0, 0, 0), 1.0)
    soup = vertices[faces].reshape(-1, 3)
    soup = soup + np.random.default_rng(0).uniform(-1e-9, 1e-9, soup.shape)
    mesh = Mesh.of(soup, np.arange(len(soup)).reshape(-1, 3))
    assert len(mesh.vertices) == 6
    assert mesh_mask(mesh, (9, 9, 9)).any()


# ------------------------------------------------------------ what is refused


def refused(message: str) -> Any:
    return pytest.raises(InputError, match=f"^{re.escape(message)}$")


def test_a_hole_is_counted_and_located(tmp_path: Path) -> None:
    opened = trimesh.creation.box((2, 2, 2))
    top = opened.triangles_center[:, 2] > 0.9
    opened.update_faces(~top)
    file = stl(tmp_path, opened)
    with refused(
        f"{file}: the mesh is not closed: 4 open edges of 10 triangles, the first from (-1, -1, 1) to (-1, 1, 1), all within "
        "(-1, -1, 1) to (1, 1, 1); wanted a closed surface: fill its holes (trimesh.repair.fill_holes, or Make Manifold in Blender)"
    ):
        stl_mask(file, (8, 8, 8))
    with pytest.raises(InputError, match="the mesh is not closed"):
        stl_mask(file, (8, 8, 8), rule="parity")


def test_one_missing_triangle_of_many(tmp_path: Path) -> None:
    ball = trimesh.creation.icosphere(subdivisions=4)
    ball.update_faces(np.arange(len(ball.faces)) != 77)
    with pytest.raises(
        InputError, match=r"not closed: 3 open edges of 5,119 triangles, the first from \(.*\) to \(.*\), all within"
    ):
        stl_mask(stl(tmp_path, ball), (32, 32, 32))


def test_triangles_turned_inside_out(tmp_path: Path) -> None:
    faces = trimesh.creation.box((2, 2, 2)).faces.copy()
    vertices = trimesh.creation.box((2, 2, 2)).vertices
    faces[0] = faces[0, ::-1]
    mesh = Mesh.of(vertices, faces)
    with pytest.raises(InputError) as error:
        mesh_mask(mesh, (8, 8, 8), name="part")
    assert str(error.value).startswith(
        "part: triangles are turned inside out: 3 edges of 12 triangles, the first from ("
    )
    assert str(error.value).endswith(
        " between triangles of opposite orientation; repair it (trimesh.repair.fix_normals), "
        'or take rule="parity" when no bodies overlap'
    )
    assert np.count_nonzero(mesh_mask(mesh, (8, 8, 8), rule="parity")) == 64


def test_places_and_sizes_that_leave_nothing(tmp_path: Path) -> None:
    file = stl(tmp_path, trimesh.creation.box((1, 1, 1)))
    with refused(
        f"{file}: the mesh lies outside of the box: from (20, 0, 0) to (22, 2, 2), and the box is from (-0.5, -0.5, -0.5) to "
        "(7.5, 7.5, 7.5); choose another place"
    ):
        stl_mask(file, (8, 8, 8), placement=Placement(length=2, centre=(21, 1, 1)))
    with refused(
        f"{file}: no site lies inside the mesh, which is 0.2 x 0.2 x 0.2 sites in the box; make it larger, or take more sites"
    ):
        stl_mask(file, (8, 8, 8), placement=Placement(length=0.2))
    with refused(f"{file}: a mesh needs a box of shape (nz, ny, nx), found (8, 8)"):
        stl_mask(file, (8, 8))
    with refused("stl_mask(rule='even'): wanted 'winding' or 'parity'"):
        stl_mask(file, (8, 8, 8), rule="even")  # pyright: ignore[reportArgumentType]
    with refused("the rotation is (90, 0); wanted finite numbers (x, y, z)"):
        stl_mask(file, (8, 8, 8), rotate=(90, 0))


@pytest.mark.parametrize(
    ("vertices", "faces", "message"),
    [
        (np.zeros((3, 2)), [[0, 1, 2]], "the vertices have shape (3, 2); wanted (n, 3)"),
        (
            np.zeros((3, 3)),
            np.zeros((0, 3), int),
            "the faces have shape (0, 3) and dtype int64; wanted (m, 3) integers, three vertices for each of at least one triangle",
        ),
        (np.zeros((3, 3)), [[0, 1, 3]], "a face names vertex 3; wanted 0 to 2"),
        (np.zeros((3, 3)), [[0, 1, -1]], "a face names vertex -1; wanted 0 to 2"),
        ([[0, 0, 0], [1, np.nan, 0], [0, 1, 0]], [[0, 1, 2]], "vertex 1 is not finite; wanted numbers"),
    ],
)
def test_arrays_that_are_no_mesh(vertices: Any, faces: Any, message: str) -> None:
    with refused(message):
        Mesh.of(vertices, faces)


def test_a_mesh_of_one_point() -> None:
    with refused("mesh: all vertices of the mesh are one point; wanted a body"):
        mesh_mask(Mesh.of(np.ones((3, 3)), [[0, 1, 2]]), (8, 8, 8))


NOTHING = "no triangle was found; wanted a mesh: the file may be cut off, or of another format"


@pytest.mark.parametrize(
    "content",
    [b"hello world, this is no mesh", bytes(50), bytes(84), b"solid x\nendsolid x\n", b"solid \xe4" + b" " * 99],
    ids=["text", "short", "no triangles", "ascii without triangles", "another encoding"],
)
def test_files_without_triangles(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "mesh.stl"
    file.write_bytes(content)
    with refused(f"{file}: {NOTHING}"):
        stl_mask(file, (8, 8, 8))


def test_a_binary_file_that_is_cut_off(tmp_path: Path) -> None:
    file = stl(tmp_path, trimesh.creation.box((1, 1, 1)))
    file.write_bytes(file.read_bytes()[:400])
    with refused(f"{file}: damaged STL file: it has 400 bytes, and its 12 triangles need 684: it may be cut off"):
        stl_mask(file, (8, 8, 8))


@pytest.mark.parametrize("suffix", ["ply", "off"])
def test_damaged_files(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"mesh.{suffix}"
    file.write_bytes(b"hello world")
    with pytest.raises(InputError, match=f"^{re.escape(str(file))}: damaged mesh file: "):
        stl_mask(file, (8, 8, 8))


def test_cut_off_files_never_give_a_body(tmp_path: Path) -> None:
    for kind in ("stl", "stl_ascii"):
        content: Any = trimesh.creation.icosphere(subdivisions=1).export(file_type=kind)
        whole = content if isinstance(content, bytes) else content.encode()
        for part in (0.3, 0.5, 0.9):
            (tmp_path / "mesh.stl").write_bytes(whole[: int(part * len(whole))])
            with pytest.raises(InputError, match=r"mesh\.stl: (the mesh is not closed|no triangle was found|damaged)"):
                stl_mask(tmp_path / "mesh.stl", (8, 8, 8))


def test_without_trimesh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = stl(tmp_path, trimesh.creation.box((1, 1, 1)))
    monkeypatch.setitem(sys.modules, "trimesh", None)
    with refused(f"{file}: reading meshes needs trimesh; install it: {install('flow')}"):
        stl_mask(file, (8, 8, 8))


def test_another_suffix(tmp_path: Path) -> None:
    (tmp_path / "mesh.step").write_text("x")
    with refused(f"{tmp_path / 'mesh.step'}: unknown suffix .step; wanted a mesh (.stl .obj .ply .off)"):
        stl_mask(tmp_path / "mesh.step", (8, 8, 8))
