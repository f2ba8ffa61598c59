"""What a repeated query asks of a GPU: launches, allocations and transfers, counted by a stand-in for CuPy and for the
GPU's kernels.

The stand-in's memory is the host's, and of all kernels only the first look at positions is run (by NumPy): results are
not looked at here, but in the tests that need a GPU.
"""

import ctypes
from collections import Counter
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

import lanewise as lw
from lanewise.primitives.survey import NONE, sampled
from lanewise.runtime import cuda, devices
from lanewise.support.errors import ArgumentError

DEVICE = 97  # kernels are kept by the names of devices: no test on a GPU finds those of the stand-in
COUNT = 20_000


class Memory:
    device_id = DEVICE

    def __init__(self, ptr: int) -> None:
        self.ptr = ptr

    def __add__(self, offset: int) -> "Memory":
        return Memory(self.ptr + offset)

    def memset_async(self, value: int, size: int) -> None:
        ctypes.memset(self.ptr, value, size)
        Gpu.did["filled"] += 1


class Array:
    """An array of the stand-in; `host` has its elements."""

    __cuda_array_interface__ = None

    def __init__(self, host: Any) -> None:
        self.host, self.data = host, Memory(host.ctypes.data)
        self.shape, self.dtype, self.ndim, self.nbytes = host.shape, host.dtype, host.ndim, host.nbytes

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, DEVICE

    def __len__(self) -> int:
        return len(self.host)

    def __getitem__(self, at: Any) -> Any:
        return Array(self.host[at])

    def reshape(self, *shape: Any) -> Any:
        return Array(self.host.reshape(*shape))

    def view(self, dtype: Any) -> Any:
        return Array(self.host.view(dtype))

    def fill(self, value: int) -> None:
        self.host.fill(value)
        Gpu.did["filled"] += 1


class Gpu:
    """What was done since it was last forgotten, and kernels that only say that they were launched."""

    did: ClassVar[Counter[str]] = Counter()

    def __init__(self, device: str, cubin: Any, name: str, threads: int, *more: Any) -> None:
        del device, cubin, threads, more
        self.name = name

    def launch(self, grid: tuple[int, int], arguments: tuple[Any, ...]) -> None:
        del grid
        Gpu.did[self.name] += 1
        if self.name == "survey":
            _look(arguments)


def _look(arguments: tuple[Any, ...]) -> None:
    """The kernel of the first look, for float32 in rows of three; bounds are left out."""
    count, places = int(arguments[3]), sampled(int(arguments[3]))
    values = np.ctypeslib.as_array((ctypes.c_float * (3 * count)).from_address(arguments[0])).reshape(count, 3)
    wrong = np.flatnonzero(~np.isfinite(values).all(axis=1))
    first = np.array([wrong[0] if len(wrong) else NONE, NONE], np.uint32)
    sample = np.ascontiguousarray(values if places is None else values[places])
    for at, what in zip(arguments[-2:], (first, sample), strict=True):
        ctypes.memmove(at, what.ctypes.data, what.nbytes)


def _view(shape: tuple[int, ...], dtype: Any, memory: Memory, strides: tuple[int, ...]) -> Array:
    span = sum((n - 1) * step for n, step in zip(shape, strides, strict=True)) + np.dtype(dtype).itemsize
    there: Any = (ctypes.c_char * span).from_address(memory.ptr)
    return Array(np.ndarray(shape, dtype, there, 0, strides))


def _same(value: Any, dtype: Any = None) -> Any:
    del dtype
    return value


def _always(value: Any) -> Any:
    def answer(device: str) -> Any:
        del device
        return value

    return answer


def _empty(shape: Any, dtype: Any) -> Array:
    Gpu.did["allocated"] += 1
    return Array(np.full(shape, 0x5A, dtype))


class Views:
    """CuPy's class of arrays: a call makes a view of memory."""

    def __new__(cls, *arguments: Any, **named: Any) -> Any:
        return _view(*arguments, **named)


def _asarray(values: Any, dtype: Any = None) -> Any:
    if isinstance(values, Array):
        return values
    Gpu.did["brought there"] += 1
    return Array(np.array(values, dtype))


def _asnumpy(array: Array) -> Any:
    Gpu.did["brought here"] += 1
    return array.host.copy()


def _free() -> tuple[int, int]:
    Gpu.did["requested free memory"] += 1
    return 1 << 36, 1 << 37


class Device:
    def __init__(self, number: int) -> None:
        assert number == DEVICE

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    parts = SimpleNamespace(
        Device=Device,
        runtime=SimpleNamespace(memGetInfo=_free, getDevice=lambda: DEVICE, setDevice=lambda number: None),
        memory=SimpleNamespace(OutOfMemoryError=MemoryError),
    )
    module = SimpleNamespace(
        ndarray=Views, uint8=np.uint8, empty=_empty, asarray=_asarray, asnumpy=_asnumpy, cuda=parts,
        ascontiguousarray=_same, get_default_memory_pool=lambda: SimpleNamespace(free_bytes=lambda: 0),
    )  # fmt: skip
    for name, there in (
        ("cupy", lambda: module), ("CudaKernel", Gpu), ("architecture", _always("sm_90")), ("multiprocessors", _always(132)),
    ):  # fmt: skip
        monkeypatch.setattr(cuda, name, there)
    monkeypatch.setattr(devices, "missing_for_cuda", tuple)
    monkeypatch.setattr(devices, "cuda_device_count", lambda: DEVICE + 1)
    return Gpu.did


def positions(spread: float) -> Any:
    return Array((np.random.default_rng(0).random((COUNT, 3)) * spread).astype("f4"))


CELLS = [f"cells_{x}" for x in ("count", "sums", "scan", "fill", "sort", "rank")]
CURVE = {"curve_sample": 1, "curve_keys": 1, "curve_sort": 4, "curve_boxes": 1, "curve_upper": 1}


@pytest.mark.parametrize(("spread", "build"), [(60.0, dict.fromkeys(CELLS, 1)), (15.0, CURVE)], ids=["cells", "curve"])
def test_a_repeated_call_does_no_more_than_it_has_to(gpu: Counter[str], spread: float, build: dict[str, int]) -> None:
    x = positions(spread)
    lw.nearest(x, 4, 4.0)
    gpu.clear()
    lw.nearest(x, 4, 4.0)
    launches = {"survey": 1, **build, "gather": 1, "nearest": 1}
    assert gpu.pop("requested free memory", 0) <= 1
    assert gpu.pop("filled") == 1 + (build is not CURVE)  # two words of the first look, and counters of cells
    assert dict(gpu) == {**launches, "allocated": 5, "brought here": 1}


def test_a_wrong_position_is_found_before_anything_is_built(gpu: Counter[str]) -> None:
    x = positions(60.0)
    x.host[[777, 999], 1] = np.nan, np.inf
    gpu.clear()
    with pytest.raises(ArgumentError, match=r"nearest: 'points': the position of element 777 is \(.*nan"):
        lw.nearest(x, 4, 4.0)
    assert gpu["survey"] == 1
    assert not any(name.startswith("cells") for name in gpu)
