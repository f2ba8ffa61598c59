"""The order of a tree along a Hilbert curve: on a CPU, and by the kernels of a GPU, whose texts run
emulated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import lanewise as lw
from lanewise.patterns.search.builders.hilbert_device import kernel_texts, memory_sizes, steps_of
from lanewise.patterns.search.builders.hilbert_host import HostOrder
from lanewise.patterns.search.points import Points, points_of, points_of_values
from lanewise.primitives.hilbert_order import LEVELS, THREADS
from lanewise.runtime.nvrtc import compile_cubin
from tests.search.clouds import CLOUDS, cloud
from tests.search.emulated_cuda import COMPILER, launch

NEEDS_COMPILER = pytest.mark.skipif(COMPILER is None, reason="no g++")


def cubes(places: NDArray[Any]) -> NDArray[np.int64]:
    """The cube of each place, along each axis."""
    x = places.astype(np.float64)
    with np.errstate(all="ignore"):
        v = (x - x.min(axis=0)) * (2.0**LEVELS / np.float64(np.ptp(x, axis=0).max()))
        return np.where(v > 0, np.minimum(v, 2.0**LEVELS - 1), 0.0).astype(np.int64)


def number_of(cell: list[int]) -> int:
    """The number of a cube along the curve, bit by bit (J. Skilling 2004)."""
    axes = len(cell)
    for level in range(LEVELS - 1, 0, -1):
        below = (1 << level) - 1
        for a in range(axes):
            if cell[a] >> level & 1:
                cell[0] ^= below
            else:
                swap = (cell[0] ^ cell[a]) & below
                cell[0], cell[a] = cell[0] ^ swap, cell[a] ^ swap
    for a in range(1, axes):
        cell[a] ^= cell[a - 1]
    flip = 0
    for level in range(LEVELS - 1, 0, -1):
        flip ^= ((1 << level) - 1) * (cell[-1] >> level & 1)
    number = 0
    for level in range(LEVELS - 1, -1, -1):
        for x in cell:
            number = 2 * number + ((x ^ flip) >> level & 1)
    return number


def by_definition(places: NDArray[Any]) -> NDArray[np.int32]:
    numbers = [number_of([int(c) for c in cell]) for cell in cubes(places)]
    return np.array(sorted(range(len(numbers)), key=lambda i: numbers[i]), np.int32)


def on_host(points: Points) -> NDArray[np.int32]:
    made = HostOrder(points)
    made.build(made.order)
    return made.order


def emulated(points: Points) -> NDArray[np.int32]:
    """The same by the texts for a GPU, in memory full of something."""
    memory = {n: np.full(k, 0xA5, np.uint8) for n, k in memory_sizes(points).items()}
    at = {n: a.ctypes.data for n, a in memory.items()}
    columns = (*points.addresses(), *([0] * (3 - points.dimension)))
    texts = kernel_texts(points)
    for step in steps_of(columns, points.count, at):
        text, threads = texts[step.kernel], THREADS[step.kernel]
        launch(text, step.kernel, step.blocks, threads, *step.arguments)
    return memory["values0"].view(np.int32)


@lw.record
class Star:
    mass: lw.f64
    position: lw.vec3


LAYOUTS = [lw.SoA(), lw.AoS(), lw.SoAoAS(), lw.AoAS(), lw.AoSoA(8)]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("step", [1, 3])
def test_positions_are_read_where_they_lie(layout: lw.Layout, step: int) -> None:
    """Keys, the other order and the order: 24 bytes an element. Only blocks are copied before."""
    x, _ = cloud("clusters", 1100, 3, "f4")
    blocks = isinstance(layout, lw.AoSoA)
    if blocks and step > 1:
        return  # no view has blocks
    made: Any = Star
    points = points_of(made.array(position=x, mass=1.0, layout=layout)[::step], "position")
    assert np.array_equal(on_host(points), by_definition(x[::step]))
    bytes_of_one = HostOrder(points).planned[0].need.nbytes / points.count
    assert bytes_of_one < (37 if blocks else 25)


@pytest.mark.parametrize("name", CLOUDS)
def test_every_cloud_on_a_cpu(name: str) -> None:
    x, _ = cloud(name, 600, 3, "f4")
    assert np.array_equal(on_host(points_of_values(x, "cpu")), by_definition(x))


@pytest.mark.slow
@pytest.mark.parametrize("name", CLOUDS)
def test_every_cloud_of_two_axes(name: str) -> None:
    x, _ = cloud(name, 600, 2, "f8")
    assert np.array_equal(on_host(points_of_values(x, "cpu")), by_definition(x))


def test_a_body_far_away_leaves_the_others_in_order() -> None:
    x = np.random.default_rng(2).normal(size=(500, 3)).astype("f4")
    x[17] = 3e8
    assert np.array_equal(on_host(points_of_values(x, "cpu")), by_definition(x))
    near = np.delete(x, 17, axis=0)
    order = on_host(points_of_values(x, "cpu"))
    steps = np.linalg.norm(np.diff(x[order[order != 17]], axis=0), axis=1)
    assert np.median(steps) < np.median(np.linalg.norm(np.diff(near, axis=0), axis=1)) / 3


def test_ties_go_by_the_number() -> None:
    x = np.zeros((1000, 3), "f4")
    x[::2] = -0.0
    assert np.array_equal(on_host(points_of_values(x, "cpu")), np.arange(1000))
    rng = np.random.default_rng(3)
    y = np.repeat(rng.random((5, 3), "f4"), 100, axis=0)[rng.permutation(500)]
    assert np.array_equal(on_host(points_of_values(y, "cpu")), by_definition(y))


def test_what_is_no_number_goes_somewhere() -> None:
    x = np.random.default_rng(0).random((3000, 3)).astype("f4")
    x[::7, 1], x[5] = np.nan, np.inf
    order = on_host(points_of_values(x, "cpu"))
    assert np.array_equal(np.sort(order), np.arange(3000))


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(1).normal(size=(20_000, 3)).astype("f4")
    points = points_of_values(x, "cpu")
    alone = on_host(points).copy()
    monkeypatch.setenv("LANEWISE_THREADS", "3")
    assert np.array_equal(on_host(points), alone)


CASES = [
    pytest.param("clusters", 1100, 3, "f4", id="three axes"),
    pytest.param("outliers", 700, 2, "f8", id="two axes", marks=pytest.mark.slow),
    pytest.param("outliers", 9001, 3, "f8", id="f64", marks=pytest.mark.slow),
]


@NEEDS_COMPILER
@pytest.mark.parametrize(("name", "count", "axes", "dtype"), CASES)
def test_a_gpu_makes_the_same_order(name: str, count: int, axes: int, dtype: str) -> None:
    x, _ = cloud(name, count, axes, dtype)
    x[::3] = np.round(x[::3] * 8) / 8  # which makes ties
    points = points_of_values(x, "cpu")
    assert np.array_equal(emulated(points), on_host(points))


@NEEDS_COMPILER
def test_a_gpu_takes_what_is_no_number() -> None:
    x = np.random.default_rng(0).random((1100, 3)).astype("f4")
    x[::7, 1], x[5] = np.nan, np.inf
    order = emulated(points_of_values(x, "cpu"))
    assert np.array_equal(np.sort(order), np.arange(1100))


@pytest.mark.parametrize(("axes", "dtype"), [(3, "f4"), pytest.param(2, "f8", marks=pytest.mark.slow)])
def test_kernels_compile_without_a_gpu(axes: int, dtype: str) -> None:
    points = points_of_values(np.zeros((100, axes), dtype), "cpu")
    for name, text in kernel_texts(points).items():
        cubin = compile_cubin(text, name, "sm_90")
        assert cubin.resources.spill_stores == 0, name
        assert cubin.resources.shared_bytes <= 48 * 1024, name
        assert THREADS[name] * cubin.resources.registers <= 65_536, name
