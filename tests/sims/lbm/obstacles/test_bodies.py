"""Bodies of a mesh that are inside out: the mask is that of all solids, or an error names the body. None makes a hole
where it overlaps another.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanewise.sims.lbm.obstacles import Mesh, Placement, mesh_mask
from lanewise.sims.lbm.obstacles.bodies import bodies
from lanewise.sims.lbm.obstacles.voxels import windings
from lanewise.support.errors import InputError
from tests.sims.lbm.obstacles.surfaces import Surface, cube_of_tetrahedra, divided, joined, octahedron

SHAPE = (16, 17, 18)
NAMED = re.compile(r"^mesh: body (\d+) of (\d+), \d+ triangles from \(.*\) to \(.*\), is inside out")


def cuboid(low: Sequence[float], edges: Sequence[float]) -> Surface:
    corners, tetrahedra = cube_of_tetrahedra(1)
    faces = np.concatenate(tetrahedra)
    keys = [tuple(sorted(f)) for f in faces.tolist()]
    outer = np.array([keys.count(key) == 1 for key in keys])  # tetrahedra share the others
    return corners * edges + low, _outwards(corners, faces[outer])


def _outwards(corners: np.ndarray, faces: np.ndarray) -> np.ndarray:
    a, b, c = (corners[faces[:, k]] for k in range(3))
    turned = (np.cross(b - a, c - a) * ((a + b + c) / 3 - corners.mean(axis=0))).sum(axis=1) < 0
    return np.where(turned[:, None], faces[:, ::-1], faces)


def ball(centre: Sequence[float], radius: float) -> Surface:
    return divided(octahedron(centre, radius))


def turned(surface: Surface) -> Surface:
    return surface[0], surface[1][:, ::-1]


def mask_of(*surfaces: Surface, shape: tuple[int, int, int] = SHAPE) -> np.ndarray:
    """Where they are: coordinates are those of sites."""
    vertices, faces = joined(*surfaces)
    centre = (vertices.min(axis=0) + vertices.max(axis=0)) / 2
    return mesh_mask(Mesh.of(vertices, faces), shape, placement=Placement(scale=1, centre=tuple(centre.tolist())))


def sites_of(surface: Surface) -> np.ndarray:
    """As `mask_of`; a small body may have none."""
    try:
        return mask_of(surface)
    except InputError as error:
        if "no site lies inside" not in str(error):
            raise
        return np.zeros(SHAPE, np.bool_)


def may_overlap(one: Surface, other: Surface) -> bool:
    """By their boxes: what bodies share may lie between sites, and beyond the box of the flow."""
    low, high = (
        np.maximum(one[0].min(axis=0), other[0].min(axis=0)),
        np.minimum(one[0].max(axis=0), other[0].max(axis=0)),
    )
    return bool((low < high).all())


def random_body(random: np.random.Generator) -> Surface:
    whole = random.random() < 0.3  # faces through sites, and shared with other bodies
    low = random.integers(1, 9, 3).astype(float) if whole else random.uniform(1, 9, 3)
    edges = random.integers(2, 8, 3).astype(float) if whole else random.uniform(1.5, 8, 3)
    if random.random() < 0.5:
        return cuboid(low.tolist(), edges.tolist())
    return ball((low + edges / 2).tolist(), float(edges.max()) / 2)


def check(seed: int, count: int) -> bool:
    """Whether it was refused."""
    random = np.random.default_rng(seed)
    solids = [random_body(random) for _ in range(count)]
    masks = [sites_of(solid) for solid in solids]
    inside_out = random.random(count) < 0.5
    try:
        found = mask_of(*(turned(s) if t else s for s, t in zip(solids, inside_out, strict=True)))
    except InputError as error:
        said = NAMED.match(str(error))
        if said is None and "no site lies inside the mesh" in str(error):  # one body twice, once turned
            return True
        if said is None:
            raise
        number, total = int(said[1]) - 1, int(said[2])
        assert total == count
        others = [s for s, t in zip(solids, inside_out, strict=True) if t != inside_out[number]]
        assert any(may_overlap(solids[number], other) for other in others)
        return True
    union = np.any(masks, axis=0)
    assert not (found & ~union).any()
    holes = union & ~found
    for kind in (inside_out, ~inside_out):  # what is missing lies in cavities: turned bodies that lie in the others
        others = np.any([m for m, t in zip(masks, kind, strict=True) if not t] or [union & False], axis=0)
        for mask, t in zip(masks, kind, strict=True):
            if t and not (mask & ~others).any():
                holes &= ~mask
    assert not holes.any()
    return False


@settings(max_examples=40)
@given(st.integers(0, 10**9), st.integers(2, 4))
def test_random_bodies_are_their_union_or_refused(seed: int, count: int) -> None:
    check(seed, count)


@pytest.mark.slow
def test_many_random_bodies_are_their_union_or_refused() -> None:
    refused = [check(seed, 2 + seed % 5) for seed in range(1500)]
    assert 300 < sum(refused) < 1400


A, B = cuboid((2, 2, 2), (6, 6, 6)), cuboid((5, 5, 5), (6, 6, 6))
AWAY = cuboid((12, 12, 11), (3, 3, 3))


def test_one_of_two_bodies_that_overlap_is_inside_out() -> None:
    with pytest.raises(InputError) as error:
        mask_of(A, turned(B))
    assert str(error.value) == (
        "mesh: body 2 of 2, 12 triangles from (5, 5, 5) to (11, 11, 11), is inside out and overlaps a body that is not: where both are "
        "there would be a hole; wanted bodies of one orientation, or a cavity that lies in its body: turn it "
        "(trimesh.repair.fix_inversion with multibody=True)"
    )


def test_what_is_turned_is_said_of_the_smaller_one_and_of_more() -> None:
    small = cuboid((7, 3, 3), (3, 2, 2))
    with pytest.raises(InputError, match=r"body 1 of 2, 12 triangles from \(7, 3, 3\) to \(10, 5, 5\)"):
        mask_of(small, turned(A))
    with pytest.raises(InputError, match=r"body 2 of 3, .* is inside out \(and so are 1 more\) and overlaps"):
        mask_of(A, turned(cuboid((5, 5, 5), (4, 4, 4))), turned(small))


def test_bodies_apart_may_face_either_way() -> None:
    wanted = mask_of(A) | mask_of(AWAY)
    assert (mask_of(A, turned(AWAY)) == wanted).all()
    assert (mask_of(turned(A), AWAY) == wanted).all()


def test_cavities_stay_hollow_whichever_way_their_body_faces() -> None:
    hole, core = cuboid((3, 3, 3), (4, 4, 4)), cuboid((4, 4, 4), (2, 2, 2))
    wanted = mask_of(A) & ~mask_of(hole) | mask_of(core) | mask_of(AWAY)
    assert (mask_of(A, turned(hole), core, turned(AWAY)) == wanted).all()
    assert (mask_of(turned(A), hole, turned(core), AWAY) == wanted).all()


def test_a_rod_from_a_wall_into_its_cavity() -> None:
    hole, rod = cuboid((3, 3, 3), (4, 4, 4)), cuboid((2.5, 4, 4), (3, 1, 1))
    wanted = mask_of(A) & ~mask_of(hole) | mask_of(rod)
    assert (mask_of(A, turned(hole), rod) == wanted).all()


@pytest.mark.parametrize("move", [(6, 6, 6), (0, 0, 7), (7, 0, 0), (0, 7, 0)])
def test_what_reaches_out_only_beyond_the_box_is_seen(move: tuple[int, int, int]) -> None:
    """The overlap is in the box, and what tells it from a cavity is not."""

    def moved(surface: Surface) -> Surface:
        return surface[0] - np.array((5, 5, 5)) + np.array([-k if k else 0 for k in move]) + np.array(
            (2, 2, 2)
        ), surface[1]

    long, other = cuboid((2, 2, 2), (12, 12, 12)), cuboid((1, 1, 1), (8, 8, 8))
    with pytest.raises(InputError, match=r"body 2 of 2, .* is inside out"):
        mask_of(moved(long), moved(turned(other)))


@pytest.mark.parametrize("touch", [(6, 0, 0), (6, 6, 0), (6, 6, 6), (6, 2, 0), (3, 0, 0), (3, 3, 0)])
def test_bodies_that_share_faces_edges_and_corners(touch: tuple[int, int, int]) -> None:
    other = cuboid((2 + touch[0], 2 + touch[1], 2 + touch[2]), (6, 6, 6))
    mesh = Mesh.of(*joined(A, other))
    face = touch == (6, 0, 0)  # a whole face is both bodies' own: they count as one
    assert bodies(mesh).tolist() == [0] * 12 + [0 if face else 1] * 12
    if max(touch) == 6:
        assert (mask_of(A, turned(other)) == mask_of(A) | mask_of(other)).all()
    else:
        with pytest.raises(InputError, match=r"body 2 of 2, .* is inside out"):
            mask_of(A, turned(other))


def test_signs_of_windings() -> None:
    assert (windings(*A, SHAPE) == mask_of(A)).all()
    assert (windings(*turned(A), SHAPE) == -mask_of(A).astype(int)).all()
