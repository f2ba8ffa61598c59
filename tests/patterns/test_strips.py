"""Kernels that compute long before they scatter do so in strips: the same results at any size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.emit import strips

BINS = 40


@lw.threadwise
def counted(i: lw.index, seed: lw.i32, bins: lw.Array1[lw.i32], sums: lw.Array1[lw.f32]):
    z = lw.normal(seed, i)
    b = lw.i32(lw.floor((z + 2.0) * 10.0))
    if b >= 0 and b < len(bins):
        lw.scatter_add(bins, b, i % 5)
        lw.scatter_add(sums, b, z)


@lw.threadwise
def in_order(i: lw.index, seed: lw.i32, bins: lw.Array1[lw.i32], sums: lw.Array1[lw.f32]):
    total = 0.0
    where = 0
    for k in range(3):
        z = lw.normal(seed, i, k)
        total += z
        if z > 0:
            where += i % 7 + k
    lw.scatter_add(bins, where % len(bins), 1)
    for k in range(2):
        lw.scatter_add(sums, (where + k) % len(sums), total, exact=False)


@lw.threadwise
def extremes(y: lw.index, x: lw.index, seed: lw.i32, bins: lw.Array1[lw.i32], sums: lw.Array1[lw.f32]):
    z = lw.normal(seed, y, x)
    b = (y + x) % len(bins)
    if z > 0:
        lw.scatter_max(sums, b, z)
    else:
        lw.scatter_max(sums, (b + 1) % len(sums), -z)
    lw.scatter_add(bins, b, lw.i32(100 * z))


@lw.threadwise
def of_local_arrays(i: lw.index, seed: lw.i32, bins: lw.Array1[lw.i32], sums: lw.Array1[lw.f32]):
    pair = lw.zeros(lw.f32, 2)
    pair[i % 2] = lw.normal(seed, i)
    lw.scatter_add(sums, i % len(sums), pair[0])
    lw.scatter_add(bins, i % len(bins), 1)


class Thrown(lw.Record):
    """A number that is drawn anew for every element."""

    number: lw.i32
    last: lw.f32


@lw.elementwise
def of_records(p: Thrown, seed: lw.i32, bins: lw.Array1[lw.i32], sums: lw.Array1[lw.f32]):
    z = p.last + lw.normal(seed, p.number)
    b = lw.i32(lw.floor(8 * (z + 2.5)))
    if b >= 0 and b < len(bins):
        lw.scatter_add(bins, b, 1)
        lw.scatter_add(sums, b, z)


@lw.elementwise
def updated(p: Thrown, seed: lw.i32, bins: lw.Array1[lw.i32], sums: lw.Array1[lw.f32]):
    z = p.last + lw.normal(seed, p.number)
    lw.scatter_add(bins, p.number % len(bins), 1)
    lw.scatter_add(sums, p.number % len(bins), z)
    p.last = z


@pytest.mark.parametrize("kernel", [of_records, updated], ids=["read", "updated"])
def test_elements_scatter_in_strips_too(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Products and sums are fused alike with strips and without them."""
    found = []
    for long in (strips.LONG, 10**9):
        monkeypatch.setattr(strips, "LONG", long)
        made = lw.elementwise(kernel.python)
        for count in (1, 256, 700):
            numbers = np.arange(count, dtype=np.int32)
            thrown = Thrown.array(number=numbers, last=np.ones(count, np.float32))  # type: ignore[attr-defined]
            bins, sums = np.zeros(BINS, np.int32), np.zeros(BINS, np.float32)
            for seed in (1, 2):
                made(thrown, seed, bins, sums)
            found.append((bins.tobytes(), sums.tobytes(), np.asarray(thrown.last).tobytes()))
        text = made.compile(thrown, 1, bins, sums).source
        # what a point stores, the points behind it have not read yet in a strip
        assert ("_strip in range(" in text) == (long < 10**9 and kernel is of_records)
    assert found[:3] == found[3:]


KERNELS = {k.__name__: k for k in (counted, in_order, extremes, of_local_arrays)}


def results_of(kernel: Any, count: int, device: str) -> tuple[bytes, bytes]:
    bins, sums = np.zeros(BINS, np.int32), np.zeros(BINS, np.float32)
    with lw.device(device):
        kernel(11, bins, sums, grid=(3, count) if kernel is extremes else count)
    return bins.tobytes(), sums.tobytes()


@pytest.mark.parametrize("name", KERNELS)
def test_strips_scatter_what_single_elements_do(name: str) -> None:
    for count in (1, 255, 257):
        assert results_of(KERNELS[name], count, "cpu") == results_of(KERNELS[name], count, "python")


@pytest.mark.parametrize("name", KERNELS)
def test_which_kernels_run_in_strips(name: str) -> None:
    """Local arrays that a scatter reads would need room for each element."""
    compiled = KERNELS[name].compile(
        11, np.zeros(BINS, np.int32), np.zeros(BINS, np.float32), grid=(3, 700) if name == "extremes" else 700
    )
    assert ("_strip in range(" in compiled.source) == (name != "of_local_arrays")


def test_strips_have_the_same_bits_on_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    found = set()
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("LANEWISE_THREADS", threads)
        found.add(results_of(counted, 200_000, "cpu"))
    assert len(found) == 1
