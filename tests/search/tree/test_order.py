"""The order of a tree by halves: on a CPU, and by the kernels of a GPU, whose texts run emulated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lanewise.patterns.search.builders.kd_device import (
    KdLevels,
    kernel_texts,
    memory_sizes,
    steps_of,
)
from lanewise.patterns.search.builders.kd_host import HostOrder
from lanewise.patterns.search.points import Points, points_of_values
from lanewise.patterns.search.tree.shape import KdShape
from lanewise.primitives.kd_order import THREADS
from lanewise.runtime.nvrtc import compile_cubin
from tests.search.clouds import CLOUDS, cloud
from tests.search.emulated_cuda import COMPILER, launch

NEEDS_COMPILER = pytest.mark.skipif(COMPILER is None, reason="no g++")


def by_definition(places: NDArray[Any], shape: KdShape) -> NDArray[np.int32]:
    """Each node's elements by their distance from its lower side, and by their number."""
    order = np.arange(len(places), dtype=np.int32)
    for _, first, leaves in shape.levels():
        begin, end = shape.places(first, leaves)
        middle = (first + (leaves + 1) // 2) * shape.leaf
        for b, m, e in zip(begin, middle, end, strict=True):
            if e - b <= shape.leaf:
                continue
            own, x = order[b:e], places[order[b:e]]
            axis = int(np.argmax(x.max(axis=0) - x.min(axis=0)))
            keys = (x[:, axis] - x[:, axis].min()).astype(np.float32) + np.float32(0)
            left = np.isin(np.arange(len(own)), np.argsort(keys, kind="stable")[: m - b])
            order[b:e] = np.concatenate([own[left], own[~left]])
    return order


def on_host(points: Points, shape: KdShape) -> NDArray[np.int32]:
    made = HostOrder(points, shape)
    made.build()
    return made.order


def emulated(points: Points, shape: KdShape) -> NDArray[np.int32]:
    """The same by the texts for a GPU, in memory full of something."""
    levels = KdLevels.of(shape)
    memory = {n: np.full(k, 0xA5, np.uint8) for n, k in memory_sizes(points, levels).items()}
    order = memory["values0"].view(np.int32)
    order[:] = np.arange(points.count)
    for name, tables in (("borders", levels.borders), ("counts", levels.histograms)):
        rows = [t.reshape(-1) for t in tables]
        memory[name] = np.concatenate(rows) if rows else np.empty(0, np.int32)
    memory["nodes"] = np.ascontiguousarray(levels.nodes)
    at = {n: a.ctypes.data for n, a in memory.items()}
    columns = (*points.addresses(), *([0] * (3 - points.dimension)))
    texts = kernel_texts(points, shape.leaf)
    for step in steps_of(columns, points.count, levels, at):
        text, threads = texts[step.kernel], THREADS[step.kernel]
        launch(text, step.kernel, step.blocks, threads, *step.arguments)
    return order


@pytest.mark.parametrize("name", CLOUDS)
def test_every_cloud_on_a_cpu(name: str) -> None:
    for count, leaf, axes, dtype in ((3000, 32, 3, "f4"), (700, 5, 2, "f8")):
        x, _ = cloud(name, count, axes, dtype)
        shape = KdShape(count, leaf)
        order = on_host(points_of_values(x, "cpu"), shape)
        assert np.array_equal(order, by_definition(x, shape))


@pytest.mark.parametrize("count", [1, 7, 8, 9, 64, 65])
def test_few_elements(count: int) -> None:
    x = np.random.default_rng(count).random((count, 3)).astype("f4")
    shape = KdShape(count, 8)
    assert np.array_equal(on_host(points_of_values(x, "cpu"), shape), by_definition(x, shape))


def test_ties_go_by_the_number() -> None:
    x = np.zeros((1000, 3), "f4")
    x[::2] = -0.0
    shape = KdShape(1000, 32)
    assert np.array_equal(on_host(points_of_values(x, "cpu"), shape), np.arange(1000))


def test_what_is_no_number_goes_somewhere() -> None:
    x = np.random.default_rng(0).random((3000, 3)).astype("f4")
    x[::7, 1], x[5] = np.nan, np.inf
    order = on_host(points_of_values(x, "cpu"), KdShape(3000))
    assert np.array_equal(np.sort(order), np.arange(3000))


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(1).normal(size=(5000, 3)).astype("f4")
    points, shape = points_of_values(x, "cpu"), KdShape(5000, 8)
    alone = on_host(points, shape)
    monkeypatch.setenv("LANEWISE_THREADS", "3")
    assert np.array_equal(on_host(points, shape), alone)


CASES = [
    pytest.param("clusters", 2500, 32, 3, "f4", id="two levels"),
    pytest.param("uniform", 300, 8, 2, "f8", id="a block"),
    pytest.param("outliers", 300, 1, 3, "f4", id="leaves of one", marks=pytest.mark.slow),
    pytest.param("uniform", 9000, 256, 3, "f4", id="large leaves", marks=pytest.mark.slow),
    pytest.param("clusters", 17_000, 1, 3, "f4", id="two digits", marks=pytest.mark.slow),
    pytest.param("outliers", 9001, 32, 2, "f8", id="f64", marks=pytest.mark.slow),
]


@NEEDS_COMPILER
@pytest.mark.parametrize(("name", "count", "leaf", "axes", "dtype"), CASES)
def test_a_gpu_makes_the_same_order(name: str, count: int, leaf: int, axes: int, dtype: str) -> None:
    x, _ = cloud(name, count, axes, dtype)
    x[::3] = np.round(x[::3] * 8) / 8  # which makes ties
    points, shape = points_of_values(x, "cpu"), KdShape(count, leaf)
    assert np.array_equal(emulated(points, shape), on_host(points, shape))


@NEEDS_COMPILER
def test_a_gpu_takes_what_is_no_number() -> None:
    x = np.random.default_rng(0).random((2500, 3)).astype("f4")
    x[::7, 1], x[5] = np.nan, np.inf
    order = emulated(points_of_values(x, "cpu"), KdShape(2500))
    assert np.array_equal(np.sort(order), np.arange(2500))


@pytest.mark.parametrize(("axes", "dtype"), [(3, "f4"), pytest.param(2, "f8", marks=pytest.mark.slow)])
def test_kernels_compile_without_a_gpu(axes: int, dtype: str) -> None:
    points = points_of_values(np.zeros((100, axes), dtype), "cpu")
    for name, text in kernel_texts(points, 32).items():
        cubin = compile_cubin(text, name, "sm_90")
        assert cubin.resources.spill_stores == 0, name
        assert cubin.resources.shared_bytes <= 48 * 1024, name
        assert THREADS[name] * cubin.resources.registers <= 65_536, name
