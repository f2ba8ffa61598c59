"""The reference solver itself: conservation, reversal, mirror images, and paths that are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from tests.lbm.boxes import FACES, LATTICES, LID, WALL, Box, boxes, edges_of, numbered, populations
from tests.lbm.operators import Moments, bgk, trt
from tests.lbm.reference import Operator, Reference, Wall

SEEDS = st.integers(0, 2**16)


def solver(box: Box, operator: Operator, lid: tuple[float, ...] | None = None) -> Reference:
    kinds = {0: operator, 1: operator, WALL: Wall("wall"), LID: Wall("lid", lid)}
    return Reference(box.lattice, box.shape, box.mask, box.edges, kinds)


def nothing(f: Any) -> None:
    """Pure streaming."""


def masses(reference: Reference) -> tuple[float, np.ndarray]:
    density, momentum = reference.moments()
    inside = reference.fluid
    return density[inside].sum(), momentum[:, inside].sum(axis=1)


@given(boxes(), SEEDS)
def test_mass_is_conserved_for_any_mask_and_edges(box: Box, seed: int) -> None:
    for operator in (nothing, bgk(box.lattice, 1.3), trt(box.lattice, 0.7)):
        reference = solver(box, operator)
        reference.f = populations(box, seed)
        before, _ = masses(reference)
        reference.run(3)
        assert masses(reference)[0] == pytest.approx(before, rel=1e-13)


@given(boxes(faces=("periodic",), kinds=(0, 1)), SEEDS)
def test_momentum_is_conserved_in_periodic_boxes(box: Box, seed: int) -> None:
    reference = solver(box, bgk(box.lattice, 1.3))
    reference.f = populations(box, seed)
    _, before = masses(reference)
    reference.run(3)
    np.testing.assert_allclose(masses(reference)[1], before, atol=1e-13 * reference.sites)


@given(boxes())
def test_streaming_moves_every_population_to_a_place_of_its_own(box: Box) -> None:
    reference = solver(box, nothing)
    reference.f = numbered(box)
    before = reference.f[:, reference.fluid]
    reference.step()
    np.testing.assert_array_equal(np.sort(reference.f[:, reference.fluid], axis=None), np.sort(before, axis=None))


@given(boxes(), st.integers(1, 4))
def test_streaming_runs_backwards_along_its_own_path(box: Box, steps: int) -> None:
    """Reversed populations go back, step by step, when walls are at rest or move the other way."""
    forward, backward = (
        solver(box, nothing, tuple(s * v for v in (0.5, 0.25, 0.125))[: len(box.shape)]) for s in (1, -1)
    )
    forward.f = begin = numbered(box)
    forward.run(steps)
    backward.f = forward.f[forward.opposite]
    backward.run(steps)
    inside = forward.fluid
    np.testing.assert_allclose(backward.f[backward.opposite][:, inside], begin[:, inside], atol=1e-9)


@given(boxes(kinds=(0, 1, WALL, LID)), st.data())
def test_slip_faces_are_mirrors(box: Box, data: st.DataObject) -> None:
    """A box with slip faces along an axis is half of a periodic box of twice the size, also where faces meet."""
    axis = data.draw(st.sampled_from(range(len(box.shape))))
    name, where = "xyz"[axis], len(box.shape) - 1 - axis
    others = data.draw(edges_of(box.axes, FACES))
    half = Box(box.lattice, box.shape, box.mask, others | {name: "slip"})
    shape = tuple(n * (2 if a == where else 1) for a, n in enumerate(box.shape))
    whole = Box(
        box.lattice, shape, np.concatenate([box.mask, np.flip(box.mask, where)], where), others | {name: "periodic"}
    )
    lid = tuple(
        0.0 if a == axis else u for a, u in enumerate((0.05, -0.03, 0.02)[: len(box.shape)])
    )  # its own mirror image
    a, b = (solver(x, bgk(box.lattice, 1.3), lid) for x in (half, whole))
    a.f = populations(half, 3)
    mirrored = [box.lattice.mirror(q, frozenset({axis})) for q in range(len(box.lattice))]
    b.f = np.concatenate([a.f, np.flip(a.f[mirrored], where + 1)], where + 1)
    a.run(4)
    b.run(4)
    inside = a.fluid
    np.testing.assert_allclose(a.f[:, inside], np.split(b.f, 2, axis=where + 1)[0][:, inside], rtol=1e-12)


@pytest.mark.parametrize("lattice", LATTICES, ids=lambda a: a.name)
def test_a_population_in_a_box_of_walls_comes_home(lattice: lw.Lattice) -> None:
    """Half-way walls send it back along its line: after twice as many steps as the line has sites."""
    shape = (3, 5, 4)[: lattice.dimension]
    reference = Reference(
        lattice, shape, edges=dict.fromkeys("xyz"[: lattice.dimension], "wall"), kinds={0: nothing, 2: Wall("wall")}
    )
    start = (1, 2, 1)[: lattice.dimension]
    for q, e in enumerate(reference.velocities):
        if not e.any():
            continue
        line = 1
        for sign in (1, -1):
            place = np.array(start) + sign * e[::-1]
            while all(0 <= p < n for p, n in zip(place, shape, strict=True)):
                line, place = line + 1, place + sign * e[::-1]
        reference.f[...] = 0
        reference.f[(q, *start)] = 1
        homes = []
        for step in range(1, 2 * line + 1):
            reference.step()
            assert reference.f.sum() == 1
            if reference.f[(q, *start)] == 1:
                homes.append(step)
        assert homes == [2 * line]


@given(boxes(faces=("periodic", "wall", "lid")), SEEDS)
def test_the_momentum_that_a_box_loses_is_the_force_on_its_walls(box: Box, seed: int) -> None:
    velocity = (0.05, -0.03, 0.02)[: len(box.shape)]
    reference = solver(box, bgk(box.lattice, 1.3), velocity)
    reference.f = populations(box, seed)
    for _ in range(3):
        mass, before = masses(reference)
        reference.step()
        new_mass, after = masses(reference)
        np.testing.assert_allclose(reference.force(galilean=False), before - after, atol=1e-12)
        gained = reference.force() - reference.force(galilean=False)
        if not (box.mask == LID).any() and "lid" not in str(box.edges):
            assert not gained.any()
        elif "wall" not in str(box.edges) and not (box.mask == WALL).any() and not _mixed(reference):
            # Every wall moves alike: what the form of Wen et al. adds is the mass that came through, times u.
            np.testing.assert_allclose(gained, (new_mass - mass) * np.array(velocity), atol=1e-12)


def _mixed(reference: Reference) -> bool:
    return bool((reference.links.wall == -3).any())


@given(boxes(faces=("wall", "lid", "slip")), SEEDS)
def test_forces_of_deviations_are_those_of_the_whole(box: Box, seed: int) -> None:
    whole, deviations = (solver(box, nothing, (0.05, -0.03, 0.02)[: len(box.shape)]) for _ in range(2))
    whole.f = populations(box, seed)
    deviations.f = whole.f - whole.weights.reshape(-1, *[1] * len(box.shape))
    np.testing.assert_allclose(deviations.force(weights=True), whole.force(), atol=1e-12)


@pytest.mark.parametrize("lattice", LATTICES, ids=lambda a: a.name)
def test_uniform_flow_between_walls_that_move_with_it_feels_no_force(lattice: lw.Lattice) -> None:
    """Galilean invariance: a wall that drifts along with the fluid drags nothing."""
    u = (0.08, *[0.0] * (lattice.dimension - 1))
    reference = Reference(
        lattice, (3, 4, 5)[: lattice.dimension], edges={"y": "lid"}, kinds={0: bgk(lattice, 1.6), 3: Wall("lid", u)}
    )
    moments = Moments.of(lattice)
    reference.f = moments.equilibrium(
        1.0, np.array(u).reshape(-1, *[1] * lattice.dimension) * np.ones((1, *reference.shape))
    )
    for _ in range(20):
        reference.step()
        force = reference.force(["lid"])
        assert abs(force[0]) < 1e-14
    np.testing.assert_allclose(reference.moments()[1][0], u[0], rtol=1e-13)


def test_masks_edges_and_kinds_meet_as_the_contract_says() -> None:
    """One site with each face of another kind: every rule for links that cross two faces, by hand."""
    kinds = {0: nothing, 2: Wall("wall"), 3: Wall("lid", (1.0, 0.5))}
    reference = Reference(lw.D2Q9, (1, 1), edges={"x": ("slip", "wall"), "y": ("wall", "lid")}, kinds=kinds)
    reference.f[:, 0, 0] = np.arange(9)
    reference.step()
    arrived = {tuple(int(c) for c in e): reference.f[q, 0, 0] for q, e in enumerate(reference.velocities)}
    east, west, north, south = 1, 2, 3, 4
    assert arrived[0, 0] == 0
    assert arrived[1, 0] == west  # mirrored by the slip face in the west
    assert arrived[-1, 0] == east  # the wall in the east
    assert arrived[0, 1] == south  # the wall in the south
    assert arrived[0, -1] == pytest.approx(north - 6 / 9 * 0.5)  # the lid in the north
    assert arrived[1, 1] == 6  # slip and wall: a wall
    assert arrived[-1, -1] == 5  # two kinds of walls: at rest
    assert arrived[1, -1] == pytest.approx(8 + 6 / 36 * 0.5)  # slip and lid: the lid
    assert arrived[-1, 1] == 7  # the same wall twice
