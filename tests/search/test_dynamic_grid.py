"""Dynamic grids in every order meet the same sources as all pairs; refusals; how full leaves are."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.patterns.search.base import Structure
from lanewise.patterns.search.builders.ordering import Recursive, make_parts, world_box
from lanewise.patterns.search.dynamic_grid import WAITING, DynamicGrid
from lanewise.patterns.search.points import points_of_values
from lanewise.support.errors import ArgumentError
from tests.search.clouds import CLOUDS, Array, cloud
from tests.search.numbered import KINDS, met, numbered

COUNT = 300
SEARCHES: list[dict[str, Any]] = [{"radius": 1.0}, {"radius": 1.0, "k": 4}, {"k": 4}]
WAYS: list[dict[str, Any]] = [
    {"order": "curve"},
    {"order": "curve", "leaf": 2},
    {"order": "sort", "leaf": 16},
    {"order": "1-D", "leaf": 16},
    {"order": "1-D", "leaf": 16, "leaves": "all"},
    {"order": "3-D", "leaf": 16},
]
AROUND: dict[str, Any] = {"order": "3-D", "leaf": 16, "leaves": "around"}


def check(search: Any, x: Array, y: Array | None = None, *, layout: Any = None, device: str = "cpu") -> None:
    """The sources met are those of all pairs, exactly."""
    kernel = KINDS[x.dtype.str[1:], x.shape[1]][1]

    def results(search: Any, device: str) -> Array:
        targets = numbered(x, layout, device)
        return met(kernel.using(search)(targets, targets if y is None else numbered(y, layout, device)))

    oracle = lw.AllPairs(radius=search.radius, k=search.k, world=search.world)
    np.testing.assert_array_equal(results(search, device), results(oracle, device))


def scaled(wanted: dict[str, Any], radius: float) -> dict[str, Any]:
    return {**wanted, "radius": wanted["radius"] * radius} if "radius" in wanted else wanted


def small(way: dict[str, Any]) -> dict[str, Any]:
    """The same with leaves for a few dozen elements."""
    return way | {"leaf": 4}


def built(search: DynamicGrid, x: Array) -> Structure:
    structure = search.make(points_of_values(x, "cpu"))
    for task in structure.tasks():
        task.run()
    return structure


def finds(way: dict[str, Any], radius: float) -> list[dict[str, Any]]:
    return [scaled(wanted, radius) for wanted in SEARCHES if "leaves" not in way or "radius" in wanted]


# ------------------------------------------------------------ interpreted: no compilation, so every combination is cheap


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("way", [*WAYS, AROUND], ids=str)
@pytest.mark.parametrize("name", CLOUDS)
def test_every_cloud_interpreted(name: str, way: dict[str, Any]) -> None:
    x, radius = cloud(name, 40, 3, "f4", seed=11)
    which = finds(way, 4 * radius)
    check(DynamicGrid(**which[CLOUDS.index(name) % len(which)], **small(way)), x, device="python")


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("way", [WAYS[0], WAYS[2], WAYS[3], WAYS[5]], ids=str)
@pytest.mark.parametrize(
    ("dtype", "axes"), [pytest.param(*kind, marks=() if kind[0] == "f4" else pytest.mark.slow) for kind in KINDS]
)
def test_every_world_interpreted(dtype: str, axes: int, way: dict[str, Any]) -> None:
    rng = np.random.default_rng(7)
    x = (rng.random((40, axes)) * [1.0, 2.0, 1.5][:axes] - 0.25).astype(dtype)
    fine = small(way)
    check(DynamicGrid(radius=0.4, k=4, world=lw.Bounded((-0.25,) * axes, (2.0,) * axes), **fine), x, device="python")
    world = lw.Periodic((1.0, 2.0, 1.5)[:axes], origin=-0.25)
    wanted = {"f4": {"radius": 0.45, "k": 4}, "f8": {"radius": 0.45}}[dtype] if axes == 3 else {"k": 4}
    check(DynamicGrid(**wanted, world=world, **fine), x + np.asarray(20, dtype), device="python")


@pytest.mark.parametrize("way", [WAYS[0], WAYS[2], WAYS[3], AROUND], ids=str)
def test_other_targets_interpreted(way: dict[str, Any]) -> None:
    x, _ = cloud("uniform", 12, 3, "f4", seed=2)
    y, radius = cloud("duplicates", 40, 3, "f4", seed=3)
    x = np.concatenate([x, np.array([[5, 5, 5], [-9, 0.5, 0.5], [0.5, 1e5, 0.5]], "f4")])
    for wanted in finds(way, 4 * radius):
        check(DynamicGrid(**wanted, **small(way)), x, y, device="python")


# ------------------------------------------------------------ compiled


def test_every_cloud() -> None:
    """One kernel for all clouds."""
    for name in CLOUDS:
        x, radius = cloud(name, COUNT, 3, "f4")
        check(DynamicGrid(radius=radius, k=4), x)


@pytest.mark.parametrize("wanted", SEARCHES, ids=str)
def test_leaves_that_wait_for_others(wanted: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The walk of a GPU."""

    def as_on_a_gpu(index: Any) -> int:
        del index
        return WAITING

    monkeypatch.setattr("lanewise.patterns.search.dynamic_grid.waiting_leaves", as_on_a_gpu)
    for name in CLOUDS[:4]:
        x, radius = cloud(name, 40, 3, "f4")
        check(DynamicGrid(**scaled(wanted, 6 * radius), leaf=2), x, device="python")
    if len(wanted) == 2:
        x, radius = cloud("clusters", COUNT, 3, "f4")
        check(DynamicGrid(**scaled(wanted, 3 * radius), leaf=2), x)


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 32, 33])
def test_few_elements_interpreted(count: int) -> None:
    x, radius = cloud("uniform", count, 3, "f4", seed=9)
    for way in (WAYS[0], WAYS[3], AROUND):
        check(DynamicGrid(radius=2 * radius, k=1, **way), x, device="python")


def test_lists_of_leaves_around_that_are_too_long() -> None:
    x, radius = cloud("uniform", 80, 3, "f4")
    check(DynamicGrid(radius=radius * 20, k=4, order="3-D", leaf=1, leaves="around"), x, device="python")


@pytest.mark.slow
@pytest.mark.parametrize("name", CLOUDS)
@pytest.mark.parametrize("way", [*WAYS, AROUND], ids=str)
def test_every_cloud_every_way(name: str, way: dict[str, Any]) -> None:
    x, radius = cloud(name, COUNT, 3, "f4")
    for wanted in finds(way, radius):
        check(DynamicGrid(**wanted, **way), x)


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "axes"), [("f4", 2), ("f8", 2), ("f8", 3)])
@pytest.mark.parametrize("way", [*WAYS, AROUND], ids=str)
def test_the_other_positions(dtype: str, axes: int, way: dict[str, Any]) -> None:
    for name in CLOUDS:
        x, radius = cloud(name, COUNT, axes, dtype, seed=5)
        check(DynamicGrid(radius=radius, k=4, **way), x)
        check(DynamicGrid(radius=radius, **way), x)


@pytest.mark.slow
@pytest.mark.parametrize("layout", [lw.SoA(), lw.AoS(), lw.AoSoA(8), lw.SoAoAS()], ids=str)
def test_every_layout(layout: Any) -> None:
    x, radius = cloud("clusters", COUNT, 3, "f4", seed=1)
    for way in (WAYS[0], AROUND):
        check(DynamicGrid(radius=radius, **way), x, layout=layout)


@pytest.mark.slow
@pytest.mark.parametrize("far", [1e6, 1e30])
def test_elements_that_are_very_far(far: float) -> None:
    x, radius = cloud("uniform", COUNT, 3, "f4", seed=6)
    x[::50] *= np.float32(far)
    for way in (WAYS[0], WAYS[2], WAYS[5], AROUND):
        check(DynamicGrid(radius=radius, **way), x)
    if far < 1e18:  # beyond, squares of distances are infinite
        check(DynamicGrid(k=4), x)


@pytest.mark.slow
@pytest.mark.parametrize("way", [*WAYS, AROUND], ids=str)
def test_targets_that_are_no_sources(way: dict[str, Any]) -> None:
    x, radius = cloud("uniform", 120, 3, "f4", seed=2)
    y, _ = cloud("duplicates", COUNT, 3, "f4", seed=3)
    outside = np.array([[5, 5, 5], [-9, 0.5, 0.5], [0.5, 1e5, 0.5]], "f4")
    for wanted in finds(way, radius):
        check(DynamicGrid(**wanted, **way), np.concatenate([x, outside]), y)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("outside", [0.0, 40.0])
def test_periodic_worlds(way: dict[str, Any], outside: float) -> None:
    rng = np.random.default_rng(7)
    x = (rng.random((COUNT, 3)) * [1.0, 2.0, 1.5] - 0.3 + outside * rng.integers(-1, 2, (COUNT, 3))).astype("f4")
    world = lw.Periodic((1.0, 2.0, 1.5), origin=-0.25)
    for wanted in ({"radius": 0.2}, {"radius": 0.5, "k": 4}, {"k": 4}):
        check(DynamicGrid(**wanted, world=world, **way), x)


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 7, 32])
def test_lists_longer_than_a_leaf(k: int) -> None:
    x, radius = cloud("clusters", COUNT, 3, "f4", seed=10)
    check(DynamicGrid(k=k), x)
    check(DynamicGrid(k=k, radius=radius), x)


@settings(deadline=None, max_examples=15)
@given(
    st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(1, 3), st.sampled_from([*WAYS, AROUND]), st.booleans()
)
def test_random_lattices_of_elements(seed: int, count: int, side: int, way: dict[str, Any], nearest: bool) -> None:
    """Places on a coarse lattice: many ties, many elements in one place, distances exactly at the radius."""
    x = np.random.default_rng(seed).integers(0, 2 * side, (count, 3)).astype("f4")
    search = DynamicGrid(radius=float(side), k=min(count, 3) if nearest else None, **small(way))
    check(search, x, device="python")


# ------------------------------------------------------------ how full leaves are


def test_leaves_along_the_curve_are_full() -> None:
    x, _ = cloud("clusters", 16_384 + 3, 3, "f4")
    found = built(DynamicGrid(radius=1.0, leaf=128), x).statistics()
    assert (found.cells, found.occupied, found.least, found.most, found.idle_threads) == (129, 129, 3, 128, 125)
    assert found.idle_threads / (found.cells * 128) < 0.05
    assert found.active_idle_threads == 29  # of the warp with the last three


def test_idle_threads_of_the_thesis() -> None:
    """Table 7.1: 16,384 agents, 128 threads a block: 62.5 % of threads used with the 3-D order (59.5 % with the 1-D order)."""
    rng = np.random.default_rng(0)
    v = rng.normal(size=(16_384, 3))
    x = (50 * v / np.linalg.norm(v, axis=1)[:, None] * rng.random((16_384, 1)) ** (1 / 3)).astype("f4")
    for order in ("1-D", "3-D"):
        found = built(DynamicGrid(radius=4.24, order=order), x).statistics()
        used = 16_384 / (16_384 + found.idle_threads)
        assert 0.595 <= used <= 0.64
        assert 1 <= found.least <= found.most <= 128
        assert 3_000 <= found.active_idle_threads <= 4_200  # there 3,201 and 3,878
    assert built(DynamicGrid(radius=4.24, order="sort"), x).statistics().idle_threads == 0


def test_the_thesis_divides_along_one_axis() -> None:
    """What was cut is nearest to its border along the same axis again; the axis is the one that is nearest at first."""
    x = (np.random.default_rng(1).random((2000, 3)) * [100, 100, 10]).astype("f4")
    axes: dict[Recursive, int] = {"1-D": 0, "3-D": 2}
    for order, axis in axes.items():
        planes = make_parts(x, order, 64, world_box(x)).planes
        assert set(planes[:, 0]) == {axis}


def test_descriptions() -> None:
    x, _ = cloud("uniform", 1000, 3, "f4")
    assert built(DynamicGrid(radius=0.25, k=7), x).describe() == (
        "dynamic grid along a curve: the 7 nearest within 0.25; 125 leaves of 8, 168 boxes in 5 levels"
    )
    assert built(DynamicGrid(radius=0.25, order="3-D", leaves="around"), x).describe() == (
        "dynamic grid ordered along all axes, leaves around are tested: all within 0.25; at most 128 in a leaf"
    )


def test_a_structure_follows_its_sources() -> None:
    x, _ = cloud("uniform", 500, 3, "f4")
    for way in (WAYS[0], WAYS[3]):
        moving = x.copy()
        structure = DynamicGrid(radius=0.25, **way).make(points_of_values(moving, "cpu"))
        (task,) = structure.tasks()
        task.run()
        first = structure.order.copy()
        moving[:] = x[::-1]
        task.run()
        assert (structure.order != first).any()
        moving[:] = x
        task.run()
        np.testing.assert_array_equal(structure.order, first)


# ------------------------------------------------------------ refusals

REFUSALS: list[tuple[dict[str, Any], str]] = [
    ({}, "DynamicGrid(): wanted a radius, or k nearest sources, or both"),
    ({"radius": 1.0, "order": "2-D"}, "DynamicGrid(order='2-D'): wanted one of 'curve', 'sort', '1-D', '3-D'"),
    ({"radius": 1.0, "leaf": 12}, "DynamicGrid(order='curve', leaf=12): wanted a power of two from 1 to 512"),
    ({"radius": 1.0, "leaf": 1024}, "DynamicGrid(order='curve', leaf=1024): wanted a power of two from 1 to 512"),
    ({"radius": 1.0, "leaf": True}, "DynamicGrid(order='curve', leaf=True): wanted a power of two from 1 to 512"),
    (
        {"radius": 1.0, "order": "sort", "leaf": 0},
        "DynamicGrid(order='sort', leaf=0): wanted an integer from 1 on",
    ),
    (
        {"radius": 1.0, "order": "3-D", "leaves": "some"},
        "DynamicGrid(leaves='some'): wanted 'all' or 'around'",
    ),
    (
        {"radius": 1.0, "leaves": "all"},
        "DynamicGrid(order='curve', leaves='all'): the boxes along a curve are a tree; leave out leaves",
    ),
    (
        {"k": 3, "order": "3-D", "leaves": "around"},
        "DynamicGrid(order='3-D', leaves='around'): without a radius nothing says how far around; "
        "wanted a radius or leaves='all'",
    ),
    (
        {"radius": 1.0, "order": "sort", "leaves": "around", "world": lw.Periodic((9.0, 9.0))},
        "DynamicGrid(order='sort', leaves='around'): in a periodic world every box has images; "
        "wanted leaves='all' or order='curve'",
    ),
]


@pytest.mark.parametrize(("given_", "text"), REFUSALS)
def test_refusals(given_: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError) as found:
        DynamicGrid(**given_)
    assert str(found.value) == text


def test_more_neighbours_than_sources() -> None:
    with pytest.raises(ArgumentError) as found:
        DynamicGrid(k=9).make(points_of_values(np.zeros((8, 3), "f4"), "cpu"))
    assert str(found.value) == "dynamic grid along a curve: the 9 nearest: there are only 8 sources"
