"""Every structure meets the same sources: those of all pairs, of a float64 program, and of scipy's tree."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.patterns.search.searched_launch import structure_of
from lanewise.support.errors import ArgumentError
from tests.search.clouds import CLOUDS, cloud, neighbours
from tests.search.numbered import KINDS, expected, met, numbered

COUNT = 300
WANTED: list[dict[str, Any]] = [{"radius": 1.0}, {"radius": 1.0, "k": 4}, {"k": 4}]
LAYOUTS = [lw.SoA(), lw.AoS(), lw.AoSoA(8), lw.SoAoAS()]


def scaled(wanted: dict[str, Any], radius: float) -> dict[str, Any]:
    return {**wanted, "radius": wanted["radius"] * radius} if "radius" in wanted else wanted


def check(
    search: Any, x: Any, y: Any = None, *, layout: Any = None, size: float | None = None, device: str = "cpu"
) -> None:
    """A search against all pairs exactly, and against float64 where rounding does not decide."""
    kernel = KINDS[x.dtype.str[1:], x.shape[1]][1]
    targets = numbered(x, layout, device)
    sources = targets if y is None else numbered(y, layout, device)
    oracle = lw.AllPairs(radius=search.radius, k=search.k, world=search.world)
    found, wanted = kernel.using(search)(targets, sources), kernel.using(oracle)(targets, sources)
    np.testing.assert_array_equal(met(found), met(wanted))
    lists, doubtful = neighbours(x, x if y is None else y, search.radius, search.k, same=y is None, size=size)
    np.testing.assert_array_equal(met(found)[~doubtful], expected(lists)[~doubtful])
    assert doubtful.mean() < (0.2 if size is None else 0.4)


@pytest.mark.parametrize("name", CLOUDS)
@pytest.mark.parametrize(("dtype", "axes"), [("f4", 3), pytest.param("f8", 2, marks=pytest.mark.slow)])
def test_every_cloud(name, dtype, axes):
    x, radius = cloud(name, COUNT, axes, dtype)
    for wanted in WANTED:
        check(lw.StaticGrid(**scaled(wanted, radius)), x)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize(("dtype", "axes"), [("f4", 2), ("f8", 3), ("f8", 2)])
def test_the_other_positions(dtype, axes):
    x, radius = cloud("uniform", COUNT, axes, dtype)
    check(lw.StaticGrid(radius=radius, k=4), x)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_every_layout(layout):
    x, radius = cloud("clusters", COUNT, 3, "f4", seed=1)
    check(lw.StaticGrid(radius=radius), x, layout=layout)


@pytest.mark.parametrize("over", [((0.2, 0.6),) * 3, ((-9.0, 9.0), (0.0, 0.0), (5.0, 6.0))], ids=str)
def test_cells_over_other_ranges_than_those_of_the_sources(over):
    """Small, flat and far away: the outermost cells reach to infinity. A repeated call keeps its cells."""
    x, radius = cloud("uniform", COUNT, 3, "f4", seed=5)
    for wanted in WANTED:
        check(lw.StaticGrid(**scaled(wanted, radius), over=over), x)
    call = KINDS["f4", 3][1].using(lw.StaticGrid(radius=radius, over=over)).bind(*[numbered(x, None, "cpu")] * 2)
    assert structure_of(call).settled
    with pytest.raises(lw.ArgumentError, match="the positions have 3 axes, wanted as many ranges"):
        check(lw.StaticGrid(radius=radius, over=over[:2]), x)


@pytest.mark.parametrize("side", [0.3, 0.5, 2])
def test_cells_of_other_sides_than_the_radius(side):
    """In worlds that are open and periodic; the nearest as well."""
    x, radius = cloud("clusters", COUNT, 3, "f4", seed=6)
    for wanted in WANTED[:2]:
        check(lw.StaticGrid(**scaled(wanted, radius), side=side), x)
    y, _ = cloud("uniform", COUNT, 3, "f4", seed=7)
    check(lw.StaticGrid(radius=0.2, side=side, world=lw.Periodic((1.0, 1.0, 1.0))), y % 1.0, size=1.0)


def test_sides_are_counted_in_radii():
    x, radius = cloud("uniform", COUNT, 3, "f4", seed=5)
    records = numbered(x, None, "cpu")
    whole, half = (
        KINDS["f4", 3][1].using(lw.StaticGrid(radius=3 * radius, side=s)).compile(records, records).search
        for s in (None, 0.5)
    )
    n, m = (int(re.search(r"; (\d+) x ", text)[1]) for text in (whole, half))
    assert 2 * n <= m <= 2 * n + 1


def test_targets_that_are_no_sources():
    x, radius = cloud("uniform", 120, 3, "f4", seed=2)
    y, _ = cloud("duplicates", COUNT, 3, "f4", seed=3)
    outside = np.array([[5, 5, 5], [-9, 0.5, 0.5], [0.5, 1e5, 0.5]], "f4")
    for wanted in WANTED[:2]:
        check(lw.StaticGrid(**scaled(wanted, radius)), np.concatenate([x, outside]), y)


@pytest.mark.parametrize("cells", [1, 3, (2, 9, 4), 40])
def test_any_number_of_cells(cells):
    x, radius = cloud("uniform", COUNT, 3, "f4", seed=4)
    for wanted in WANTED:
        check(lw.StaticGrid(**scaled(wanted, radius), cells=cells), x)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("radius", [0.1, 0.31, 0.5])
@pytest.mark.parametrize("k", [None, 4])
def test_periodic_worlds(radius, k):
    x, _ = cloud("uniform", COUNT, 3, "f4", seed=5)
    x[:40] = np.random.default_rng(6).choice(
        np.array([0, 1, 0.5, 1 - 2**-24, 2**-24, 1e-3], "f4"), (40, 3)
    )  # right at the border
    check(lw.StaticGrid(radius=radius, k=k, world=lw.Periodic((1.0, 1.0, 1.0))), x, size=1.0)


def test_positions_outside_a_periodic_world_are_wrapped():
    rng = np.random.default_rng(7)
    x, _ = cloud("uniform", COUNT, 2, "f8", seed=8)
    moved = x * 0.75 - 0.25 + 0.75 * rng.integers(-3, 4, x.shape)
    search = lw.StaticGrid(radius=0.1, k=4, world=lw.Periodic((0.75, 0.75), origin=-0.25))
    check(search, moved, size=0.75)


def test_the_function_sees_the_nearest_image():
    x = np.array([[0.5, 5, 5], [9.5, 5, 5], [29.5, 5, 5]], "f4")
    world = lw.Periodic((10.0, 10.0, 10.0))
    for search in (lw.AllPairs(radius=2.0, world=world), lw.StaticGrid(radius=2.0, world=world)):
        *_, distance = KINDS["f4", 3][1].using(search)(numbered(x), numbered(x[:1]))
        np.testing.assert_allclose(distance, [0, 1, 1], atol=1e-5)


def test_what_becomes_no_number_meets_nobody_and_leads_nowhere():
    """In a graph nobody looks at positions: a flock that blew up must not read beyond its memory."""
    x, _ = cloud("uniform", COUNT, 3, "f4", seed=15)
    for wanted in ({"radius": 0.1}, {"k": 4}, {"radius": 0.1, "world": lw.Periodic((1.0, 1.0, 1.0))}):
        records = numbered(x)
        call = KINDS["f4", 3][1].using(lw.StaticGrid(**wanted)).bind(records, records)
        broken = x.copy()
        broken[:3] = np.nan
        broken[3] = (np.inf, -np.inf, 0.5)
        records.position = broken
        with pytest.raises(ArgumentError, match="a search needs finite numbers"):
            call()
        replace(call.launch, guards=())()  # as a graph does
        count, *_ = call.results
        assert count[:3].tolist() == [0, 0, 0]
        assert (count[4:] > 0).all()


def test_bounded_world():
    x, radius = cloud("uniform", COUNT, 3, "f4", seed=9)
    x[0], x[1] = 0, 1  # its borders are in it
    check(lw.StaticGrid(radius=radius, world=lw.Bounded((0, 0, 0), (1, 1, 1))), x)


def test_elements_that_leave_the_first_box_are_found():
    x, radius = cloud("uniform", COUNT, 3, "f4", seed=10)
    records = numbered(x)
    kernel = KINDS["f4", 3][1]
    calls = [kernel.using(lw.StaticGrid(radius=radius, k=k)).bind(records, records) for k in (None, 4)]
    for move in (0.7, -3.0, 40.0):
        records.position = x * np.float32(1.5) + np.float32(move)
        for call, k in zip(calls, (None, 4), strict=True):
            wanted = kernel.using(lw.AllPairs(radius=radius, k=k))(records, records)
            np.testing.assert_array_equal(met(call()), met(wanted))


@given(
    count=st.integers(1, 60), seed=st.integers(0, 10_000), k=st.sampled_from([None, 4]), radius=st.floats(0.01, 2),
    spread=st.sampled_from([1e-3, 1.0, 300.0]), digits=st.sampled_from([1, 2, 7]),
)  # fmt: skip
def test_any_points(count, seed, k, radius, spread, digits):
    """Rounded coordinates make many ties and many points right at the borders of cells."""
    x = (np.random.default_rng(seed).random((count, 3)).round(digits) * spread).astype("f4")
    k = None if k is not None and k > count else k
    kernel, records = KINDS["f4", 3][1], numbered(x)
    found = kernel.using(lw.StaticGrid(radius=radius, k=k))(records, records)
    np.testing.assert_array_equal(met(found), met(kernel.using(lw.AllPairs(radius=radius, k=k))(records, records)))


def test_against_the_tree_of_scipy():
    from scipy.spatial import cKDTree

    rng = np.random.default_rng(11)
    x = np.concatenate([rng.random((3000, 3)), rng.normal(size=(2000, 3)) * 0.02]).astype("f4")
    tree, radius, kernel, records = cKDTree(x.astype(np.float64)), 0.0731, KINDS["f4", 3][1], numbered(x)
    counts = tree.query_ball_point(x, radius, return_length=True)
    found = kernel.using(lw.Neighbors(radius=radius))(records, records)
    assert (np.abs(found[0] - counts) <= 1).all()
    assert (found[0] == counts).mean() > 0.999  # a few pairs are so near the radius that rounding decides
    distances, _ = tree.query(x, 5)
    found = kernel.using(lw.Nearest(k=4))(records, records)
    assert (found[0] == 4).all()
    np.testing.assert_allclose(found[3], distances[:, 1:].sum(axis=1), rtol=1e-4, atol=1e-5)


def test_the_sum_runs_from_the_nearest_to_the_farthest():
    rng = np.random.default_rng(12)
    x = (rng.normal(size=(50, 3)) * 10.0 ** rng.integers(-3, 4, (50, 1))).astype("f4")
    for search in (lw.AllPairs(radius=1e9, k=4), lw.StaticGrid(radius=1e9, k=4)):
        *_, total = KINDS["f4", 3][1].using(search)(numbered(x), numbered(x[:20]))
        lists, _ = neighbours(x, x[:20], None, 4, same=False)
        wanted = np.zeros(50, "f4")
        for m in range(4):
            d = x[:20][[j[m] for j in lists]] - x
            length = np.sqrt((d.astype("f4") ** 2).sum(axis=1, dtype="f4"))
            wanted += length
        np.testing.assert_allclose(total, wanted, rtol=4e-7)


def test_the_element_itself():
    x, radius = cloud("single place", 6, 3, "f4")
    records, kernel = numbered(x), KINDS["f4", 3][1]
    for search in (lw.AllPairs, lw.StaticGrid):
        assert kernel.using(search(radius=radius))(records, records)[0].tolist() == [6] * 6
        nearest = kernel.using(search(radius=radius, k=4))
        count, numbers, *_ = nearest(records, records)
        assert count.tolist() == [4] * 6
        assert numbers.tolist() == [
            10,
            9,
            8,
            7,
            6,
            6,
        ]  # of equally near ones those with the smallest indices, never itself
        assert nearest(records, numbered(x))[1].tolist() == [6] * 6
        assert nearest(numbered(x[:4]), numbered(x[:4]))[0].tolist() == [4] * 4
        few = numbered(x[:4])
        assert nearest(few, few)[0].tolist() == [3] * 4  # those that there are


def test_bits_repeat_and_the_order_is_that_of_cells():
    x, radius = cloud("clusters", 2000, 3, "f4", seed=13)
    records = numbered(x)
    call = KINDS["f4", 3][1].using(lw.StaticGrid(radius=radius)).bind(records, records)
    first = [r.copy() for r in call()]
    assert all((a == b).all() for a, b in zip(first, call(), strict=True))
    structure = structure_of(call)
    assert sorted(structure.order.tolist()) == list(range(2000))
    statistics = structure.statistics()
    assert statistics.occupied <= statistics.cells <= 4000
    assert statistics.least <= statistics.mean <= statistics.most


@pytest.mark.parametrize("wanted", WANTED, ids=str)
@pytest.mark.parametrize("world", [lw.Open(), lw.Periodic((1.0, 1.0, 1.0))], ids=str)
def test_the_interpreter_agrees(wanted, world):
    if world != lw.Open() and "radius" not in wanted:
        pytest.skip("refused")
    x, radius = cloud("uniform", 24, 3, "f4", seed=14)
    search = lw.StaticGrid(**scaled(wanted, 2 * radius), world=world)
    kernel = KINDS["f4", 3][1].using(search)
    interpreted, compiled = numbered(x, device="python"), numbered(x)
    np.testing.assert_array_equal(met(kernel(interpreted, interpreted)), met(kernel(compiled, compiled)))
