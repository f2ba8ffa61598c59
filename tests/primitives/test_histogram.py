"""Histograms: one body for the CPU, the GPU's text on a CPU, and the GPU; exact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.primitives import histogram as device
from lanewise.primitives.histogram import PART
from lanewise.runtime import cpu
from lanewise.runtime.nvrtc import compile_cubin
from lanewise.support.errors import ArgumentError
from tests.search import emulated_cuda

Array = np.ndarray[Any, Any]
Run = Callable[[Array, int], Array]
TYPES = sorted(device.VALUES)


def on_cpu(values: Array, bins: int) -> Array:
    return lw.histogram(values, bins=bins)


def on_gpu(values: Array, bins: int) -> Array:
    import cupy

    return lw.histogram(cupy.asarray(values), bins=bins).get()


def emulated(values: Array, bins: int) -> Array:
    """The text for a GPU, two blocks after each other; with accesses as wide as the array allows."""
    shared = bins <= device.ROOM
    counts = np.zeros(bins, np.int64 if shared else np.uint32)
    wide = device.WIDE if values.ctypes.data % device.WIDE == 0 else values.itemsize
    accesses, rest = divmod(len(values), wide // values.itemsize)
    copies = min(device.COPIES, device.ROOM // max(bins, 1)) if shared else 1
    text = device.text_of(values.dtype, shared=shared, wide=wide, narrow=not shared)
    numbers = (accesses, rest, bins, copies)
    emulated_cuda.launch(text, "histogram", 2, device.THREADS, values.ctypes.data, counts.ctypes.data, *numbers)
    return counts.astype(np.int64)


RUNS = [
    pytest.param(on_cpu, id="cpu"),
    pytest.param(emulated, id="emulated", marks=pytest.mark.skipif(emulated_cuda.COMPILER is None, reason="no g++")),
    pytest.param(on_gpu, id="gpu", marks=pytest.mark.cuda),
]


def expected(values: Array, bins: int) -> Array:
    wide = values.astype(np.int64)
    return np.bincount(wide[(wide >= 0) & (wide < bins)], minlength=bins)


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("bins", [1, 7, 256, device.ROOM, device.ROOM + 1])
def test_counts(run: Run, kind: str, bins: int) -> None:
    for length in (0, 1, 3, 5000):
        values = np.random.default_rng(2).integers(0, bins + 3, length + 1, kind)
        for part in (values[:-1], values[1:]):
            counts = run(part, bins)
            assert counts.dtype == np.int64
            np.testing.assert_array_equal(counts, expected(part, bins))


@pytest.mark.parametrize("run", RUNS)
@given(values=st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 9), max_size=40), bins=st.integers(1, 9))
def test_numbers_outside_are_not_counted(run: Run, values: list[int], bins: int) -> None:
    given_values = np.array(values, np.int64)
    np.testing.assert_array_equal(run(given_values, bins), expected(given_values, bins))


@pytest.mark.parametrize("bins", [1, 9, 40_000, 2_000_000])
def test_nothing_beside_the_bins_is_written(bins: int) -> None:
    """Values next to the limits, and bins in the middle of other memory."""
    memory = np.full(bins + 64, -7)
    values = np.random.default_rng(4).choice(np.array([-2, -1, 0, bins - 1, bins, bins + 1, bins + 7]), 20_000)
    lw.histogram(values, bins=bins, out=memory[32:-32])
    np.testing.assert_array_equal(memory[32:-32], expected(values, bins))
    assert (memory[:32] == -7).all()
    assert (memory[-32:] == -7).all()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("bins", [3, 40_000, 2_000_000])
def test_parts_are_added(bins: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """More values than one thread counts in a part, each in bins of its own or in buckets."""
    monkeypatch.setenv("LANEWISE_THREADS", str(threads))
    monkeypatch.setattr(cpu, "HANDING_OVER", 1e-12)
    monkeypatch.setattr("lanewise.primitives.own_copies.COPYING", 1e-18)
    values = np.random.default_rng(4).integers(-1, bins, 40 * PART, np.int32)
    out = np.full(bins, 9)
    assert lw.histogram(values, bins=bins, out=out) is out
    np.testing.assert_array_equal(out, expected(values, bins))


def test_no_bins() -> None:
    assert lw.histogram(np.zeros(3, np.int32), bins=0).shape == (0,)


@pytest.mark.cuda
@pytest.mark.parametrize("bins", [2, 1000, 100_000])
def test_many_values_on_a_gpu(bins: int) -> None:
    import cupy

    values = np.random.default_rng(4).integers(0, bins, 3_000_001, np.uint32)
    place, out = cupy.asarray(values), cupy.full(bins, 9)
    for part in (place, place[1:]):
        assert lw.histogram(part, bins=bins, out=out) is out
        np.testing.assert_array_equal(out.get(), expected(part.get(), bins))


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("wide", [False, True])
def test_the_text_for_a_gpu_compiles(kind: str, shared: bool, wide: bool) -> None:
    bytes_ = device.WIDE if wide else np.dtype(kind).itemsize
    text = device.text_of(np.dtype(kind), shared=shared, wide=bytes_, narrow=not shared)
    assert compile_cubin(text, "histogram", "sm_90").resources.shared_bytes == 4 * device.ROOM * shared


# ------------------------------------------------------------ refusals

LINE = np.zeros(6, np.int64)
LOCKED = np.zeros(3, np.int64)
LOCKED.flags.writeable = False
REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    (np.zeros(3), {"bins": 3}, "histogram: the array of values must be a contiguous array of NumPy or CuPy of shape (n,) of int32, uint32, int64, found one of float64 with shape (3,); bins are integers: .astype(np.int32) of what tells them"),
    (LINE, {"bins": -1}, "histogram: bins= is an integer from 0 to 2,147,483,647, found -1"),
    (LINE, {"bins": 2.0}, "histogram: bins= is an integer from 0 to 2,147,483,647, found 2.0"),
    (LINE, {"bins": True}, "histogram: bins= is an integer from 0 to 2,147,483,647, found True"),
    (LINE, {"bins": 3, "out": np.zeros(3, np.int32)}, "histogram: out must be a contiguous array of NumPy or CuPy of shape (n,) of int64, found one of int32 with shape (3,); counts have 64 bits"),
    (LINE, {"bins": 3, "out": np.zeros(4, np.int64)}, "histogram: out must be an array of int64 with shape (3,) on the host, where the values are, found one of int64 with shape (4,) on the host"),
    (LINE, {"bins": 3, "out": LOCKED}, "histogram: out is written, and this array is read-only"),
    (LINE, {"bins": 3, "out": LINE[:3]}, "histogram: out shares memory with the values; give it its own memory"),
]  # fmt: skip


@pytest.mark.parametrize(("values", "options", "message"), REFUSED)
def test_what_is_refused(values: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError) as error:
        lw.histogram(values, **options)
    assert str(error.value) == message
