"""The automatic choice: which structure it takes, why it says so, and that kernels explain it."""

import re

import numpy as np
import pytest

import lanewise as lw
from lanewise.patterns.search.automatic import FEW, choose, look
from lanewise.patterns.search.points import SAMPLE
from lanewise.patterns.search.queries import points_from
from tests.search.clouds import Array
from tests.search.numbered import KINDS, numbered

COUNT = 20_000
WITHIN = 0.05  # of 20,000 points in a unit cube about ten others lie within it


def points(x: Array, world: lw.Open | lw.Periodic = lw.Open()):  # noqa: B008
    return points_from("test", "points", x, "cpu", lw.Nearest(k=1, world=world))


def uniform(count: int = COUNT, axes: int = 3) -> Array:
    return np.random.default_rng(0).random((count, axes)).astype("f4")


def crowded() -> Array:
    x = uniform()
    x[::2] = 0.5 + 0.01 * (x[::2] - 0.5)
    return x


def scattered() -> Array:
    x = uniform()
    x[::20] = (x[::20] - 0.5) * 1e4
    return x


def chosen(search: lw.Neighbors | lw.Nearest, x: Array) -> tuple[str, str]:
    found, why = choose(search, points(x, search.world))
    assert (found.radius, found.k, found.world, found.position) == (
        search.radius,
        search.k,
        search.world,
        search.position,
    )
    return type(found).__name__, why


def test_few_sources_need_no_structure():
    few = chosen(lw.Nearest(k=3), uniform(FEW))
    assert few == ("AllPairs", "256 sources are too few for a structure to pay")
    assert chosen(lw.Nearest(k=3), uniform(FEW + 1))[0] != "AllPairs"


def test_sources_that_are_spread_go_into_a_static_grid():
    for axes, radius in ((3, WITHIN), (2, 0.01)):
        for search in (lw.Neighbors(radius=radius), lw.Nearest(k=7, radius=radius), lw.Nearest(k=7)):
            name, why = chosen(search, uniform(axes=axes))
            assert name == "StaticGrid", search
            assert why.startswith("20,000 sources, and the cell of a source holds ")
            assert why.endswith(
                " sources on average: cells are faster to build than boxes, and searched without a tree"
            )


def test_a_few_far_away_do_not_matter():
    x = uniform()
    x[::1000] *= 1e5
    assert chosen(lw.Nearest(k=7, radius=WITHIN), x)[0] == chosen(lw.Neighbors(radius=WITHIN), x)[0] == "StaticGrid"


@pytest.mark.parametrize("make", [crowded, scattered])
def test_crowds_go_into_boxes_along_a_curve(make):
    x = make()
    for search, limit in (
        (lw.Nearest(k=7, radius=0.002), 16),
        (lw.Nearest(k=20, radius=0.002), 40),
        (lw.Nearest(k=7), 4),
    ):
        name, why = chosen(search, x)
        assert name == "DynamicGrid"
        assert f" sources on average, more than {limit}: the {search.k} nearest are found with fewer looks" in why
    name, why = chosen(lw.Neighbors(radius=0.002), x)
    assert name == "DynamicGrid"
    assert why.endswith(" is more than 2 radii: boxes along a curve follow the crowd")


def test_all_that_are_near_have_to_be_met_anyway():
    """Cells as wide as the radius, and crowded: the few nearest of them are another matter."""
    assert chosen(lw.Neighbors(radius=0.3), uniform())[0] == "StaticGrid"
    assert chosen(lw.Nearest(k=7, radius=0.3), uniform())[0] == "DynamicGrid"


def test_periodic_worlds():
    world = lw.Periodic((1.0, 1.0, 1.0))
    assert chosen(lw.Nearest(k=7, radius=WITHIN, world=world), uniform() + 3)[0] == "StaticGrid"
    assert chosen(lw.Nearest(k=7, radius=0.002, world=world), crowded() - 2)[0] == "DynamicGrid"
    assert chosen(lw.Nearest(k=7, world=world), uniform()) == (
        "DynamicGrid", "without a radius, rings of cells have no end in a periodic world; boxes along a curve do",
    )  # fmt: skip


@pytest.mark.parametrize("make", [uniform, crowded, scattered])
def test_the_estimate_is_what_the_grid_becomes(make):
    x = make()
    for search in (lw.Nearest(k=7, radius=0.01), lw.Neighbors(radius=0.1), lw.Nearest(k=2)):
        p = points(x)
        structure = lw.StaticGrid(radius=search.radius, k=search.k).make(p)
        for task in structure.tasks():
            task.run()
        starts = structure.arrays["$starts"].data.view("i4")
        members = np.diff(starts).astype("f8")
        wanted, found = float((members**2).sum() / len(x)), look(search, p).members
        assert found == pytest.approx(wanted, rel=0.35, abs=2)


def test_only_some_positions_are_looked_at():
    some = points(uniform(3 * SAMPLE)).sample()
    assert SAMPLE / 2 < some.count <= SAMPLE
    assert points(uniform(5)).sample().count == 5
    assert points(uniform(SAMPLE + 1)).sample().count <= SAMPLE


@pytest.mark.parametrize("name", ["single place", "line"])
def test_degenerate_points(name):
    x = np.full((1000, 3), 0.25, "f4")
    if name == "line":
        x[:, 0] = np.linspace(0, 1, 1000)
    for search in (lw.Neighbors(radius=WITHIN), lw.Nearest(k=7, radius=WITHIN), lw.Nearest(k=7)):
        assert chosen(search, x)[0] in ("StaticGrid", "DynamicGrid")


@pytest.mark.parametrize(("axes", "near"), [(3, 2.0), (3, 20.0), (3, 80.0), (2, 2.0), (2, 20.0), (2, 80.0)])
def test_cells_of_half_the_radius_on_a_gpu_where_many_are_near(axes: int, near: float) -> None:
    """Not on a CPU, whose sums keep their order, and not for the few nearest."""
    x = uniform(axes=axes)
    ball = {2: np.pi, 3: 4 / 3 * np.pi}[axes]
    radius = float((near / (ball * COUNT)) ** (1 / axes))
    narrow, why = choose(lw.Neighbors(radius=radius), points(x), device="cuda")
    assert isinstance(narrow, lw.StaticGrid)
    assert narrow.side == (0.5 if near > 2 else None)
    assert ("in narrower ones a target meets fewer that are too far" in why) is (near > 2)
    if near > 2:
        held = float(re.search(r"as wide as the radius would hold ([0-9,.]+) sources", why)[1].replace(",", ""))  # type: ignore[index]
        assert 0.8 < held * ball / near < 1.4
    for search, device in ((lw.Neighbors(radius=radius), "cpu"), (lw.Nearest(k=20, radius=radius), "cuda")):
        found = choose(search, points(x), device=device)[0]
        assert getattr(found, "side", None) is None


@pytest.mark.parametrize("axes", [2, 3])
@pytest.mark.parametrize("radius", [1e-300, 1.5, 1e38, 1e110, 1e308])
def test_radii_of_any_size_on_a_gpu(axes: int, radius: float) -> None:
    """One that reaches across the box leaves one cell, whatever half of it would be."""
    chosen = choose(lw.Neighbors(radius=radius), points(uniform(axes=axes)), device="cuda")[0]
    assert isinstance(chosen, lw.StaticGrid)
    assert chosen.side is None


def test_cells_that_are_as_wide_as_the_radius_but_for_rounding() -> None:
    size, radius = 25.349999999999998, 1.95
    assert size / int(size / radius) < radius
    search = lw.Neighbors(radius=radius, world=lw.Periodic((size,) * 3))
    inside = points((uniform() % 1.0 * size).astype(np.float32))
    assert getattr(choose(search, inside, device="cuda")[0], "side", None) == 0.5


def test_kernels_say_which_search_was_chosen():
    kernel = KINDS["f4", 3][1]
    records = numbered(uniform(1000))
    explained = kernel.using(lw.Nearest(k=4, radius=0.1)).compile(records, records).explain()
    assert explained.as_dict()["analysis"]["search"].startswith(
        "static grid: the 4 nearest within 0.1; 9 x 9 x 9 cells of 0.11"
    )
    text = " ".join(str(explained).split())
    assert "search static grid: the 4 nearest within 0.1; " in text
    assert "(1,000 sources, and the cell of a source holds " in text
    asked = kernel.using(lw.StaticGrid(k=4, radius=0.1)).compile(records, records)
    assert asked.search.endswith("(requested)")
    assert kernel.using(lw.AllPairs()).compile(records, records).search == ""
