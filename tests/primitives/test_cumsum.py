"""Prefix sums: one body for the CPU, the GPU's text on a CPU, and the GPU; against NumPy in 64 bits, to the bit for
integers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise as lw
from lanewise.primitives import cumsum as device
from lanewise.primitives.cumsum import BLOCK, CHAINS
from lanewise.runtime.nvrtc import compile_cubin
from lanewise.support.errors import ArgumentError
from tests.search import emulated_cuda

Array = np.ndarray[Any, Any]
Run = Callable[[Array, bool, int], Array]
GROUP = BLOCK * CHAINS
SMALL = device.Tiles(threads=64, chunks=2, group=32, blocks=1)  # several groups of tiles before the emulator is tired
LENGTHS = [0, 1, 2, 3, 127, 129, BLOCK + 1, GROUP - 1, GROUP, GROUP + 1]
SEVERAL = 20_011  # in several groups of tiles, with which the emulator takes seconds


def on_cpu(values: Array, exclusive: bool, shift: int) -> Array:
    del shift
    return lw.cumsum(values, exclusive=exclusive)


def on_gpu(values: Array, exclusive: bool, shift: int) -> Array:
    import cupy

    place = cupy.empty(len(values) + shift, values.dtype)[shift:]
    place.set(values)
    return lw.cumsum(place, exclusive=exclusive).get()


def emulated(values: Array, exclusive: bool, shift: int) -> Array:
    """The text for a GPU, block after block."""
    source, to = placed(values, shift), placed(np.zeros_like(values), shift)
    text = device.text_of(values.dtype, SMALL, exclusive=exclusive, read_wide=not shift, write_wide=not shift)
    tiles = -(-len(values) // SMALL.elements(values.itemsize))
    groups = -(-tiles // SMALL.group)
    words = np.zeros(1 + 2 * (tiles + groups), np.uint64)
    pointers = (source.ctypes.data, to.ctypes.data)
    if tiles:
        emulated_cuda.launch(text, "cumsum", tiles, SMALL.threads, *pointers, len(values), words.ctypes.data, groups)
    return to


def placed(values: Array, shift: int) -> Array:
    """A copy that begins so many elements behind a multiple of 16 bytes."""
    room = np.zeros(values.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 16 + shift * values.itemsize
    result = room[start : start + values.nbytes].view(values.dtype)
    result[:] = values
    return result


RUNS = [
    pytest.param(on_cpu, id="cpu"),
    pytest.param(emulated, id="emulated", marks=pytest.mark.skipif(emulated_cuda.COMPILER is None, reason="no g++")),
    pytest.param(on_gpu, id="gpu", marks=pytest.mark.cuda),
]
TYPES = sorted(device.ELEMENTS)


def numbers(kind: str, length: int, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    if kind.startswith("f"):
        return rng.normal(size=length).astype(kind)
    limits = np.iinfo(kind)
    return rng.integers(limits.min, limits.max, length, kind, endpoint=True)


def check(values: Array, sums: Array, exclusive: bool) -> None:
    kind = values.dtype
    assert sums.dtype == kind
    assert sums.shape == values.shape
    wide = values.astype(np.longdouble if kind.kind == "f" else np.int64)
    expected = np.cumsum(wide)
    if exclusive:
        expected = np.concatenate([expected[:1] * 0, expected[:-1]])
    if kind.kind != "f":
        np.testing.assert_array_equal(sums, expected.astype(kind))
        return
    size = np.cumsum(np.abs(wide))
    unit = np.finfo(kind).eps / 2
    bound = 11 * unit * size if kind == np.float32 else 100 * unit * size
    assert (np.abs(sums - expected) <= bound * 1.0001).all()


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("exclusive", [False, True], ids=["inclusive", "exclusive"])
def test_lengths_and_places(run: Run, kind: str, exclusive: bool) -> None:
    for length in LENGTHS if run is emulated else (*LENGTHS, SEVERAL):
        of_a_length(run, kind, exclusive, length)


@pytest.mark.slow
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("exclusive", [False, True], ids=["inclusive", "exclusive"])
def test_several_groups_of_tiles(kind: str, exclusive: bool) -> None:
    of_a_length(emulated, kind, exclusive, SEVERAL)


def of_a_length(run: Run, kind: str, exclusive: bool, length: int) -> None:
    for shift in (0, 1):
        values = numbers(kind, length)
        sums = run(values, exclusive, shift)
        check(values, sums, exclusive)
        assert sums.tobytes() == run(values, exclusive, 1 - shift).tobytes(), "the place in memory changes no bits"


@pytest.mark.parametrize("run", RUNS)
@given(length=st.integers(0, 3 * GROUP), kind=st.sampled_from(TYPES), seed=st.integers(0, 99), exclusive=st.booleans())
def test_any_length(run: Run, length: int, kind: str, seed: int, exclusive: bool) -> None:
    values = numbers(kind, length, seed)
    check(values, run(values, exclusive, 0), exclusive)


@pytest.mark.parametrize("run", RUNS)
def test_small_numbers_behind_a_large_one_are_not_lost(run: Run) -> None:
    """In float32 alone a million ones behind 2^24 would be nothing."""
    values = np.ones(100_000, np.float32)
    values[0] = 2**24
    assert abs(float(run(values, False, 0)[-1]) - (2**24 + 99_999)) <= 11


@pytest.mark.parametrize("run", RUNS)
def test_what_is_no_number_stays(run: Run) -> None:
    values = np.ones(3000, np.float64)
    values[1500] = np.nan
    sums = run(values, False, 0)
    assert np.isnan(sums[1500:]).all()
    assert not np.isnan(sums[:1400]).any()


@pytest.mark.parametrize("exclusive", [False, True])
def test_out(exclusive: bool) -> None:
    values = numbers("float64", 10_000)
    expected, out = lw.cumsum(values, exclusive=exclusive), np.empty(10_000)
    assert lw.cumsum(values, exclusive=exclusive, out=out) is out
    assert lw.cumsum(values, exclusive=exclusive, out=values) is values
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("value", ["no", 1, None, np.ones(2, bool)], ids=["text", "one", "none", "array"])
def test_exclusive_is_a_truth_value(value: Any) -> None:
    with pytest.raises(ArgumentError, match="cumsum: exclusive= is True or False, found "):
        lw.cumsum(np.ones(3), exclusive=value)


def test_bits_do_not_hang_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    from lanewise.runtime import cpu

    values = numbers("float32", 300_000)
    several = lw.cumsum(values)
    for threads in (1, 3):
        monkeypatch.setattr(cpu, "cpu_threads", lambda threads=threads: threads)
        assert lw.cumsum(values).tobytes() == several.tobytes()


@pytest.mark.cuda
@pytest.mark.parametrize("kind", TYPES)
def test_many_tiles_have_the_same_bits_in_every_run(kind: str) -> None:
    import cupy

    values = cupy.asarray(numbers(kind, 5_000_011))
    first = lw.cumsum(values).get()
    check(values.get(), first, False)
    for _ in range(20):
        assert lw.cumsum(values).get().tobytes() == first.tobytes()
    assert lw.cumsum(values, out=values) is values
    assert values.get().tobytes() == first.tobytes()


@pytest.mark.cuda
def test_more_elements_than_32_bits_count() -> None:
    import cupy

    count = 2**31 + 12_345
    if cupy.cuda.runtime.memGetInfo()[0] < 12 * count:
        pytest.skip("not enough memory on this GPU")
    values = cupy.ones(count, cupy.uint32)
    lw.cumsum(values, out=values)
    assert [int(values[k]) for k in (0, 2**31 - 1, 2**31, count - 1)] == [1, 2**31, 2**31 + 1, count]


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("wide", [False, True])
def test_the_text_for_a_gpu_compiles(kind: str, exclusive: bool, wide: bool) -> None:
    tiles = device.TILES[kind]
    text = device.text_of(np.dtype(kind), tiles, exclusive=exclusive, read_wide=wide, write_wide=wide)
    assert 0 < compile_cubin(text, "cumsum", "sm_90").resources.registers <= 65_536 // (tiles.threads * tiles.blocks)


# ------------------------------------------------------------ refusals

LINE = np.zeros(6)
LOCKED = np.zeros(6)
LOCKED.flags.writeable = False
WANTED = "must be a contiguous array of NumPy or CuPy of shape (n,) of int32, uint32, int64, float32, float64"
REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    ([1, 2], {}, f"cumsum: the array of values {WANTED}, found [1, 2]"),
    (np.zeros(3, np.float16), {}, f"cumsum: the array of values {WANTED}, found one of float16 with shape (3,); .astype(...) converts it, to int64 where sums get large"),
    (np.zeros(3, ">f4"), {}, f"cumsum: the array of values {WANTED}, found one of >f4 with shape (3,); .astype(...) converts it, to int64 where sums get large"),
    (np.zeros((2, 3)), {}, f"cumsum: the array of values {WANTED}, found one of float64 with shape (2, 3); .reshape(-1) makes one row of it"),
    (LINE[::2], {}, f"cumsum: the array of values {WANTED}, found one of float64 with shape (3,), which is not contiguous; pass np.ascontiguousarray(...) of it"),
    (np.ma.zeros(3), {}, f"cumsum: the array of values {WANTED}, found"),
    (LINE, {"out": [0]}, f"cumsum: out {WANTED}, found [0]"),
    (LINE, {"out": np.zeros(5)}, "cumsum: out must be an array of float64 with shape (6,) on the host, where the values are, found one of float64 with shape (5,) on the host"),
    (LINE, {"out": np.zeros(6, np.int64)}, "cumsum: out must be an array of float64 with shape (6,) on the host, where the values are, found one of int64"),
    (LINE, {"out": LOCKED}, "cumsum: out is written, and this array is read-only"),
    (LINE[1:], {"out": LINE[:-1]}, "cumsum: out shares a part of its memory with the values; give it its own memory, or all of theirs"),
]  # fmt: skip


@pytest.mark.parametrize(("values", "options", "message"), REFUSED)
def test_what_is_refused(values: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError) as error:
        lw.cumsum(values, **options)
    assert str(error.value).startswith(message)
