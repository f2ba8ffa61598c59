"""A GPU that is none: memory of the host behind CuPy's names, kernels that NVRTC compiles and nobody runs, launches
that are written down.

For what the host does of a call: what it accepts, refuses, launches and gives back. What kernels compute is not looked
at.
"""

from __future__ import annotations

import ctypes
import operator
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lanewise.runtime import cuda, cuda_graphs, devices

DEVICE = "cuda:98"  # what is kept by the names of devices is found by no test on a GPU
CONSTANT_BYTES = 1 << 16
ATTRIBUTES_OF_H200 = {
    12: 1 << 16, 13: 1_980_000, 36: 3_201_000, 37: 6144, 38: 50 << 20, 39: 2048, 81: 228 << 10, 82: 1 << 16, 97: 227 << 10,
    106: 32, 111: 1 << 10,
}  # fmt: skip
"""By their numbers in `runtime.cuda_device.ATTRIBUTES`."""


class Memory:
    """The address of an array, as CuPy gives it."""

    device_id = 98

    def __init__(self, ptr: int) -> None:
        self.ptr = ptr

    def __add__(self, offset: int) -> Memory:
        return Memory(self.ptr + offset)

    def memset_async(self, value: int, nbytes: int) -> None:
        ctypes.memset(self.ptr, value, nbytes)


class Array:
    """An array of the stand-in; `host` has its elements."""

    __cuda_array_interface__: Any = None  # whoever asks whether an array lies on a GPU looks for the name

    def __init__(self, host: Any, dtype: Any = None, memory: Memory | None = None, strides: Any = None) -> None:
        if memory is not None:  # a view of memory: `host` is its shape
            steps = strides or np.empty(host, dtype).strides
            span = sum((n - 1) * step for n, step in zip(host, steps, strict=True)) + np.dtype(dtype).itemsize
            there: Any = (ctypes.c_char * max(span, 1)).from_address(memory.ptr)
            host = np.ndarray(host, dtype, there, 0, strides)
        self.host = host

    @property
    def data(self) -> Memory:
        return Memory(self.host.ctypes.data)

    def get(self) -> Any:
        return self.host.copy()

    def set(self, values: Any) -> None:
        self.host[...] = values

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, Memory.device_id

    def __len__(self) -> int:
        return len(self.host)

    def __getitem__(self, at: Any) -> Any:
        return wrapped(self.host[plain(at)])

    def __setitem__(self, at: Any, values: Any) -> None:
        self.host[plain(at)] = plain(values)

    def __getattr__(self, name: str) -> Any:
        return called(getattr(self.host, name))


def _binary(name: str) -> Callable[[Array, Any], Any]:
    return lambda self, other: wrapped(getattr(operator, name)(self.host, plain(other)))


for _name in ("add", "sub", "mul", "truediv", "lt", "gt", "le", "ge", "eq", "ne", "and_", "or_"):
    setattr(Array, f"__{_name.strip('_')}__", _binary(_name))


def plain(value: Any) -> Any:
    match value:
        case Array():
            return value.host
        case tuple():
            return tuple(map(plain, value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        case _:
            return value


def wrapped(value: Any) -> Any:
    return Array(value) if isinstance(value, np.ndarray) else value


def called(attribute: Any) -> Any:
    """What is no function stays; a function of NumPy takes and gives arrays of the stand-in."""
    if not callable(attribute) or isinstance(attribute, type):
        return attribute
    return lambda *some, **named: wrapped(attribute(*map(plain, some), **{n: plain(v) for n, v in named.items()}))


class Stream:
    """Whatever is put on it is done at once."""

    ptr = 0

    def __init__(self, **options: Any) -> None:
        del options

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: object) -> None: ...

    def synchronize(self) -> None: ...

    def is_capturing(self) -> bool:
        return False


class Module:
    """CuPy."""

    ndarray = Array
    cuda = SimpleNamespace(
        Device=lambda number: Stream(), Stream=Stream, get_current_stream=lambda *device: Stream(),
        runtime=SimpleNamespace(
            memGetInfo=lambda: (1 << 36, 1 << 37), getDevice=lambda: int(DEVICE.partition(":")[2]), setDevice=lambda number: None, driverGetVersion=lambda: 13000,
            deviceGetAttribute=lambda code, number: ATTRIBUTES_OF_H200[code],
        ),
        memory=SimpleNamespace(OutOfMemoryError=MemoryError),
        UnownedMemory=lambda ptr, nbytes, owner, device: Memory(ptr), MemoryPointer=lambda memory, offset: memory + offset,
    )  # fmt: skip

    def get_default_memory_pool(self) -> Any:
        return SimpleNamespace(free_bytes=lambda: 0)

    def asarray(self, values: Any, dtype: Any = None) -> Any:
        return values if isinstance(values, Array) else Array(np.array(values, dtype))

    def asnumpy(self, array: Array) -> Any:
        return array.host.copy()

    def __getattr__(self, name: str) -> Any:
        return called(getattr(np, name))


@dataclass
class Launches:
    """What was put on the device since anybody asked: names of kernels, "graph" for a capture, "replay" for
    its launch.
    """

    names: list[str] = field(default_factory=list[str])

    def since(self) -> list[str]:
        names, self.names = self.names, []
        return names


def put_in(monkeypatch: pytest.MonkeyPatch) -> Launches:
    """Make the stand-in the device `DEVICE`."""
    launches, module, constants = Launches(), Module(), np.zeros(CONSTANT_BYTES, np.uint8)

    class Kernel:
        constant_lease: Any = None

        def __init__(self, device: str, cubin: Any, name: str, threads: int, shared: int = 0) -> None:
            del device, shared
            assert cubin.code
            self.name, self.threads = name, threads

        def launch(self, grid: tuple[int, int], arguments: tuple[Any, ...]) -> None:
            assert all(n > 0 for n in grid)
            assert all(isinstance(a, (int, np.generic)) for a in arguments)
            launches.names.append(self.name)

        def constant(self, name: str) -> tuple[int, int]:
            del name
            return constants.ctypes.data, CONSTANT_BYTES

    class Graph:
        def __init__(self, device: str, work: Callable[[], None]) -> None:
            del device
            work()
            launches.names.append("graph")

        def launch(self) -> None:
            launches.names.append("replay")

    always: dict[str, Any] = {
        "cupy": lambda: module, "CudaKernel": Kernel, "_THREAD": threading.local(),
        "architecture": lambda device: "sm_90", "multiprocessors": lambda device: 132, "device_name": lambda device: "stand-in",
        "synchronize": lambda device: None, "is_capturing": lambda device: False,
        "copy_within": lambda device, to, source, nbytes: ctypes.memmove(to, source, nbytes),
    }  # fmt: skip
    for name, there in always.items():
        monkeypatch.setattr(cuda, name, there)
    graphs: dict[str, Any] = {"Graph": Graph, "Replay": Graph, "wait_for_graphs": lambda device: None}
    for name, there in graphs.items():
        monkeypatch.setattr(cuda_graphs, name, there)
    monkeypatch.setattr(devices, "missing_for_cuda", tuple)
    monkeypatch.setattr(devices, "cuda_device_count", lambda: 99)
    return launches
