"""Interpolated bounce-back of `lw.sitewise` against the NumPy reference, in all streaming forms, layouts and types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.patterns.sitewise.fractions import WallFractions
from tests.lbm.boxes import LID, WALL, Box, boxes
from tests.lbm.compare import NUMPY, TOLERANCE, Array, Way, motion_of, same_populations
from tests.lbm.kernels import INLET, Pair, colliding
from tests.lbm.links import OPEN
from tests.lbm.reference import Reference
from tests.lbm.reference import Wall as ReferenceWall

FORMS = ("pull", "push", "in-place")


def make_reference(pair: Pair, box: Box, way: Way, fractions: Array | None = None) -> Reference:
    walls = {WALL: ReferenceWall("wall"), LID: ReferenceWall("lid", motion_of(pair, box)["lid_velocity"])}
    return Reference(
        box.lattice, box.shape, box.mask, box.edges, {**pair.twins(pair.values), **walls}, storage=NUMPY[way.storage],
        fractions=fractions,
    )  # fmt: skip


def drawn_fractions(pair: Pair, box: Box, way: Way, seed: int) -> Array:
    """(Q, N): a fraction for about three quarters of the cut links of fluid sites."""
    plain = make_reference(pair, box, way)
    rng = np.random.default_rng(seed)
    chosen = (plain.links.wall != OPEN) & plain.fluid.ravel() & (rng.random(plain.links.wall.shape) < 0.75)
    return np.where(chosen, rng.choice([0.0, 0.1, 0.5, 0.6, 1.0], chosen.shape), np.nan)


def as_table(fractions: Array) -> WallFractions:
    rows = fractions.T
    places = np.flatnonzero(~np.isnan(rows).all(axis=1))
    return WallFractions(places, rows[places])


def check_interpolated(box: Box, way: Way, steps: int, seed: int = 0) -> None:
    """Populations, and forces from what was exchanged, after some steps."""
    pair = colliding(box.lattice, way.real)
    lid = motion_of(pair, box)
    fractions = drawn_fractions(pair, box, way, seed)
    w = np.array([float(w) for w in box.lattice.weights]).reshape(-1, *[1] * len(box.shape))
    begin = (0.2 * w * np.random.default_rng(seed).uniform(-1, 1, (len(w), *box.shape))).astype(NUMPY[way.real])
    reference = make_reference(pair, box, way, fractions)
    reference.f = np.where(reference.fluid, begin, 0.0).astype(NUMPY[way.storage]).astype(np.float64)
    reference.run(steps)
    sites = pair.flow.sites(
        box.shape, mask=box.mask, edges=dict(box.edges), storage=way.storage, streaming=way.streaming, layout=way.layout,
        device=way.device, fractions=as_table(fractions),
    )  # fmt: skip
    pair.flow.set_populations(sites, begin)
    pair.flow.run(sites, steps, plan=way.plan, **{**pair.values, **lid})
    tolerance = 2 * max(TOLERANCE[way.storage], TOLERANCE[way.real])
    same_populations(pair.flow.populations(sites, **lid), reference, tolerance, f"{way} {box}")
    for names in way.forces:
        found = pair.flow.force(sites, names, weights=True, **lid)
        expected = reference.force(names, weights=True)
        np.testing.assert_allclose(found, expected, rtol=0, atol=4 * len(w) * int(np.prod(box.shape)) * tolerance)


KINDS = (0, INLET, WALL, LID)
ANY_FORM = st.sampled_from(FORMS)


@pytest.mark.slow
@given(boxes(lattices=(lw.D2Q9,), kinds=KINDS, most=4), ANY_FORM, st.sampled_from(("f16", "f32", "f64")),
       st.integers(0, 4), st.integers(0, 99))  # fmt: skip
def test_any_plane_interpreted(box: Box, form: str, storage: str, steps: int, seed: int) -> None:
    check_interpolated(box, Way("python", form, None, storage, "f64" if storage == "f64" else "f32"), steps, seed)


@pytest.mark.slow
@settings(max_examples=4)
@given(boxes(lattices=(lw.D3Q19,), kinds=KINDS, most=3), ANY_FORM, st.integers(1, 3))
def test_any_box_interpreted(box: Box, form: str, steps: int) -> None:
    check_interpolated(box, Way("python", form), steps)


SHAPE, EDGES = (9, 11), {"x": ("slip", "wall"), "y": "periodic"}


def scattered(kinds: tuple[int, ...], lattice: lw.Lattice = lw.D2Q9, shape: tuple[int, ...] = SHAPE) -> Box:
    mask = np.random.default_rng(1).choice([0] * 6 + list(kinds), shape).astype(np.int32)
    return Box(lattice, shape, mask, EDGES)


@pytest.mark.parametrize("form", [pytest.param(f, marks=pytest.mark.slow) for f in FORMS])
def test_compiled(form: str) -> None:
    """A minute of compiling each."""
    for steps in (1, 2, 5):
        check_interpolated(scattered((WALL, LID)), Way("cpu", form, None, "f32", "f64"), steps, steps)


LAYOUTS = (None, lw.SoA(), lw.AoS(), lw.AoSoA(4))


@pytest.mark.cuda
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("types", [("f16", "f32"), ("f32", "f32"), ("f64", "f64")], ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_on_a_gpu(form: str, types: tuple[str, str], layout: Any) -> None:
    for lattice, shape in ((lw.D2Q9, SHAPE), (lw.D3Q19, (5, 6, 7))):
        box = scattered((WALL, LID), lattice, shape)
        for steps in (1, 2, 5):
            check_interpolated(box, Way("cuda", form, layout, *types), steps, steps)


def test_half_way_is_a_fraction_of_one_half() -> None:
    """To the bit: nothing is corrected."""
    pair, box = colliding(lw.D2Q9), scattered((WALL,))
    fractions = drawn_fractions(pair, box, Way("cpu"), 0)
    halves = as_table(np.where(np.isnan(fractions), np.nan, 0.5))
    sites = pair.flow.sites(SHAPE, mask=box.mask, edges=EDGES, device="cpu", fractions=halves)
    assert sites.interpolation is None
