"""The kernels of the curve, run on a CPU as C++: the same order and the same leaves as those of the host, and a tree
that holds them.
"""

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.patterns.search.builders import curve
from lanewise.patterns.search.builders.curve import Grains, kernel_texts
from lanewise.patterns.search.builders.curve_host import HostCurve
from lanewise.patterns.search.builders.tree import BoxTree, columns_of, margin
from lanewise.patterns.search.points import Points, points_of
from lanewise.primitives.curve_order import THREADS
from lanewise.runtime.nvrtc import compile_cubin
from tests.search.clouds import CLOUDS, Array, cloud
from tests.search.emulated_builds import curve_of
from tests.search.emulated_cuda import COMPILER
from tests.search.numbered import numbered

NEEDS_COMPILER = pytest.mark.skipif(COMPILER is None, reason="no g++")
PERIODIC = lw.Periodic((0.5, 0.75, 1.0), origin=-0.25)


def compare(points: Points, world: Any, leaf: int) -> None:
    """Two builds by the kernels, one on the host: one order, the same leaves, the same links, and boxes that hold what
    is below.
    """
    there = curve_of(points, world, leaf)
    for _ in range(2):
        for task in there.tasks():
            task.run()
    here = HostCurve(points, world, leaf)
    here.build()
    np.testing.assert_array_equal(there.order, here.order)
    leaves, links = here.tree.places()[0], here.tree.links()
    found, wanted = (columns_of(b.nodes, b.arrangement, b.tree.nodes) for b in (there, here))
    np.testing.assert_array_equal(found["link"], links)
    rounding = (
        0.0 if isinstance(world, lw.Open) else 1e-5
    )  # by how much wrapping is off: of each element, or of the leaf
    for name, values in wanted.items():
        np.testing.assert_allclose(found[name][leaves], values[leaves], rtol=0, atol=rounding, err_msg=name)
    for columns in (found, wanted):
        check_boxes(here.tree, columns, points.dimension)
    if isinstance(world, lw.Open):
        for columns in (found, wanted):
            check_elements(points, here, columns)


def check_boxes(tree: BoxTree, columns: dict[str, Any], axes: int) -> None:
    """Every box has those of the nodes below it in it, and none is much larger than they are together."""
    places = tree.places()
    for level in range(1, len(places)):
        parents = places[level][np.arange(len(places[level - 1])) // tree.fan]
        for axis in "xyz"[:axes]:
            centre, half = (columns[f"{c}.{axis}"].astype("f8") for c in ("centre", "half"))
            below, above = (centre - half, centre + half)
            children = places[level - 1]
            rounding = 1e-6 if columns["link"].dtype == np.float32 else 1e-14
            room = rounding * (np.abs(centre[parents]) + half[parents])
            assert (below[parents] <= below[children] + room).all()
            assert (above[parents] >= above[children] - room).all()
            lowest = np.full(tree.nodes, np.inf)
            np.minimum.at(lowest, parents, below[children])
            assert (lowest[parents] - below[parents] <= 4 * room).all()


def check_elements(points: Points, built: HostCurve, columns: dict[str, Any]) -> None:
    """Every box of every level has its elements in it, with room round them for what a walk rounds."""
    tree = built.tree
    for level, places in enumerate(tree.places()):
        at = places[np.arange(points.count) // (tree.leaf * tree.fan**level)]
        for axis, column in zip("xyz", points.columns(), strict=False):
            centre, half = (columns[f"{c}.{axis}"][at].astype("f8") for c in ("centre", "half"))
            apart = np.abs(np.asarray(column)[built.order].astype("f8") - centre)
            room = margin(points.precision) * (np.abs(centre) + half)
            assert (apart + 0.2 * room <= half).all()


@pytest.mark.quick("single place")
@NEEDS_COMPILER
@pytest.mark.parametrize("name", CLOUDS)
def test_every_cloud(name: str) -> None:
    x, _ = cloud(name, 1500, 3, "f4")
    compare(points_of(numbered(x), "position"), lw.Open(), 8)


@NEEDS_COMPILER
@pytest.mark.parametrize("count", [1, 9, 2049, *(pytest.param(n, marks=pytest.mark.slow) for n in (8, 33, 513, 2048))])
def test_every_size_of_the_tree(count: int) -> None:
    x, _ = cloud("uniform", count, 3, "f4")
    compare(points_of(numbered(x), "position"), lw.Open(), 8)


@pytest.mark.slow
@NEEDS_COMPILER
def test_large_grains(monkeypatch: pytest.MonkeyPatch) -> None:
    def coarse(count: int) -> Grains:
        del count
        return Grains(8, 8)

    monkeypatch.setattr(curve, "grains", coarse)
    x, _ = cloud("clusters", 5000, 3, "f4")
    compare(points_of(numbered(x), "position"), lw.Open(), 8)


@pytest.mark.slow
@NEEDS_COMPILER
@pytest.mark.parametrize("leaf", [1, 2, 4, 16, 64, 512])
def test_every_leaf(leaf: int) -> None:
    x, _ = cloud("outliers", 1500, 3, "f4")
    compare(points_of(numbered(x, lw.AoSoA(32)), "position"), lw.Open(), leaf)


@pytest.mark.slow
@NEEDS_COMPILER
@pytest.mark.parametrize(("dtype", "axes"), [("f4", 2), ("f8", 2), ("f8", 3)])
@pytest.mark.parametrize("layout", [lw.SoA(), lw.AoS(), lw.AoSoA(8)], ids=str)
def test_other_positions_and_layouts(dtype: str, axes: int, layout: lw.Layout) -> None:
    for name in ("clusters", "outliers"):
        x, _ = cloud(name, 700, axes, dtype)
        compare(points_of(numbered(x, layout), "position"), lw.Open(), 8)


@pytest.mark.slow
@NEEDS_COMPILER
def test_a_periodic_world() -> None:
    """Places outside are brought back; boxes grow by what that rounds away."""
    x: Array = (np.random.default_rng(0).random((1200, 3)) * 40 - 20).astype("f4")
    compare(points_of(numbered(x), "position"), PERIODIC, 8)


@pytest.mark.slow
def test_kernels_compile_without_a_gpu() -> None:
    """Every kernel of every precision for an NVIDIA H200, nothing put away in memory."""
    for dtype, axes, world in (("f4", 3, lw.Open()), ("f4", 2, lw.Open()), ("f8", 3, PERIODIC)):
        points = points_of(numbered(np.zeros((100, axes), dtype)), "position")
        for name, text in kernel_texts(points, world, 8).items():
            cubin = compile_cubin(text, name, "sm_90")
            assert cubin.resources.spill_stores == 0, name
            assert cubin.resources.shared_bytes <= 48 * 1024, name
            assert THREADS[name] * cubin.resources.registers <= 65_536, name


def test_the_text_of_keys(golden: Any) -> None:
    points = points_of(numbered(np.zeros((100, 3), "f4"), lw.AoSoA(8)), "position")
    for name, text in kernel_texts(points, PERIODIC, 8).items():
        golden(name, text)


@pytest.mark.parametrize(
    ("count", "leaf", "levels"), [(1, 8, (1,)), (1000, 8, (125, 32, 8, 2, 1)), (4096, 4, (1024, 256, 64, 16, 4, 1))]
)
def test_the_shape_of_a_tree(count: int, leaf: int, levels: tuple[int, ...]) -> None:
    tree = BoxTree(count, leaf)
    assert tree.levels == levels
    places = np.concatenate(tree.places())
    np.testing.assert_array_equal(np.sort(places), np.arange(tree.nodes))  # every node has a place of its own
    links = tree.links()
    assert sorted(-1 - links[links < 0]) == list(range(levels[0]))
    inner = np.flatnonzero(links >= 0)
    assert (links[inner] > inner + 1).all()
    assert links.max() in (tree.nodes, -1)
