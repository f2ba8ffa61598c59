"""Counts in buckets on a GPU: those of NumPy, whatever the places, the types and what is added."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.planning.plan import Plan
from lanewise.primitives import buckets, whole_sums
from lanewise.runtime.nvrtc import compile_cubin

MOST = whole_sums.ROOM * buckets.BUCKETS


@lw.elementwise
def thrice(place: lw.i32, counts: lw.Array1[lw.i32]):
    lw.scatter_add(counts, place, 3)


@lw.threadwise
def fewer(i: lw.index, place: lw.Array1[lw.i64], counts: lw.Array1[lw.i64]):
    lw.scatter_add(counts, place[i], -1)


@lw.threadwise
def deposited(i: lw.index, place: lw.Array1[lw.i32], v: lw.Array1[lw.f32], sums: lw.Array1[lw.f32]):
    lw.scatter_add(sums, place[i], v[i])


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("size", [4, 8])
@pytest.mark.parametrize("place", list(whole_sums.PLACES))
def test_the_texts_compile(place: str, size: int) -> None:
    split = whole_sums.split_of(place, size, -3)
    for wide in (16, np.dtype(place).itemsize):
        compile_cubin(buckets.split_text(split, wide=wide), "value_buckets", "sm_90")
    compile_cubin(whole_sums.count_text(size), "bucket_counts", "sm_90")


def test_explain_says_so() -> None:
    explained = " ".join(str(thrice.compile(np.zeros(3, np.int32), np.zeros(3, np.int32)).explain()).split())
    text = "on a GPU 1,048,576 values or more go to buckets of 16,384 neighbouring elements first, and are added in shared memory"
    assert f"{text}, where there are at most {MOST:,} elements and no plan was chosen; on a CPU 65,536" in explained


def places_of(kind: str, count: int, elements: int) -> np.ndarray[Any, Any]:
    """Some of which are outside."""
    rng = np.random.default_rng(count)
    match kind:
        case "even":
            return rng.integers(-3, elements + 3, count)
        case "one":
            return np.full(count, elements - 1)
        case _:
            return (rng.normal(elements / 2, elements / 50, count)).astype(np.int64)


def expected(places: np.ndarray[Any, Any], elements: int) -> np.ndarray[Any, Any]:
    return np.bincount(places[(places >= 0) & (places < elements)], minlength=elements)


@pytest.mark.cuda
@pytest.mark.parametrize("kind", ["even", "one", "skewed"])
@pytest.mark.parametrize(
    ("elements", "count"), [(1, 9), (16_384, 40_001), (16_385, 200_003), (1_000_000, 300_007), (MOST, 100_000)]
)
def test_counts(elements: int, count: int, kind: str) -> None:
    import cupy

    places = places_of(kind, count, elements)
    for place in whole_sums.PLACES:
        given = cupy.asarray(places.clip(0 if place == "uint32" else None).astype(place))
        for skipped in (0, 1):
            counts = expected(given.get()[skipped:].astype(np.int64), elements)
            for sums, number in (("int32", -3), ("uint32", 1), ("int64", 2**40), ("uint64", -1)):
                start = np.arange(elements).astype(sums)
                result = cupy.asarray(start)
                whole_sums.add_on_gpu(given[skipped:], result, number=number)
                wrapped = (counts.astype(np.uint64) * np.uint64(number % 2**64)).astype(sums)
                np.testing.assert_array_equal(result.get(), start + wrapped)


@pytest.mark.cuda
def test_kernels_and_histograms_go_to_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    import cupy

    elements, count = 20_000, 100_000
    calls: list[int] = []
    add = whole_sums.add_on_gpu
    monkeypatch.setattr(buckets, "FEW", 1)
    monkeypatch.setattr(whole_sums, "add_on_gpu", lambda *a, **named: (calls.append(1), add(*a, **named)))
    places = places_of("even", count, elements)
    counts = expected(places, elements)
    given = cupy.asarray(places)
    np.testing.assert_array_equal(lw.histogram(given, bins=elements).get(), counts)
    inside = cupy.asarray(places.clip(0, elements - 1))
    counts = expected(inside.get(), elements)
    for kernel, kind, sums, number in ((thrice, "int32", "int32", 3), (fewer, "int64", "int64", -1)):
        to, by_plan = cupy.zeros(elements, sums), cupy.zeros(elements, sums)
        grid: dict[str, Any] = {} if kernel is thrice else {"grid": count}
        kernel(inside.astype(kind), to, **grid)
        kernel(inside.astype(kind), to, **grid)
        np.testing.assert_array_equal(to.get(), (2 * number * counts).astype(sums))
        kernel(inside.astype(kind), by_plan, plan=Plan(block=128), **grid)
        np.testing.assert_array_equal(by_plan.get(), (number * counts).astype(sums))
    assert len(calls) == 5


@pytest.mark.cuda
def test_threads_that_add_floats_go_to_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    import cupy

    monkeypatch.setattr(buckets, "FEW", 1)
    rng = np.random.default_rng(3)
    place, v = rng.integers(0, 30_000, 100_000).astype(np.int32), rng.normal(size=100_000).astype(np.float32)
    sums, on_gpu, by_plan = np.ones(30_000, np.float32), cupy.ones(30_000, np.float32), cupy.ones(30_000, np.float32)
    with lw.device("cpu"):
        deposited(place, v, sums, grid=90_000)
    given = cupy.asarray(place), cupy.asarray(v)
    deposited(*given, on_gpu, grid=90_000)
    deposited(*given, by_plan, grid=90_000, plan=Plan(block=128))
    assert on_gpu.get().tobytes() == by_plan.get().tobytes() == sums.tobytes()
