"""An NVIDIA GPU as a device. What it takes of CuPy and cuda.core is in `runtime.cuda`."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from lanewise.language.target import CUDA, Machine, Target, copies_asynchronously
from lanewise.runtime import cuda, cuda_graphs
from lanewise.runtime.cuda_timing import CudaStopwatch, LaunchStopwatch
from lanewise.runtime.device_facts import Facts, Identity
from lanewise.runtime.devices import cores, cuda_number
from lanewise.runtime.lease import Lease
from lanewise.runtime.nvrtc import Cubin, Switches, begin_cubin, nvrtc_version
from lanewise.runtime.timing import Stopwatch, Work
from lanewise.support.errors import DeviceError

_DRIVER_FILE = Path("/proc/driver/nvidia/version")
LARGE = 1 << 28  # bytes, which a kernel needs 0.1 ms or more to write
MAX_L2_FETCH_GRANULARITY = 5  # `cudaLimit`
ATTRIBUTES = {
    "clock_khz": 13,
    "memory_khz": 36,
    "bus_bits": 37,
    "l2_bytes": 38,
    "threads": 39,
    "shared_bytes": 81,
    "registers": 82,
    "block_shared_bytes": 97,
    "blocks": 106,
    "reserved_shared_bytes": 111,
    "block_registers": 12,
}
"""Numbers of cudaDeviceAttr in the CUDA runtime."""


class Loan:
    """Memory of a device that a caller holds.

    It lives as long as any array has a part of it, of CuPy or of another library.
    """

    __slots__ = ("__weakref__", "memory")

    def __init__(self, memory: Any) -> None:
        self.memory = memory


@dataclass(frozen=True, slots=True)
class Cuda:
    """See `lanewise.runtime.device.Device`. The current stream is CuPy's, of the thread."""

    name: str

    @property
    def target(self) -> Target:
        return CUDA

    def title(self) -> str:
        return cuda.device_name(self.name)

    def architecture(self) -> str:
        return cuda.architecture(self.name)

    def units(self) -> int:
        return cuda.multiprocessors(self.name)

    def machine(self) -> Machine:
        return Machine(CUDA.name, self.units(), copies=copies_asynchronously(self.architecture()))

    def identity(self) -> Identity:
        return _identity(self.name)

    def compilers(self) -> int:
        return cores()

    def facts(self) -> Facts:
        attribute, number = cuda.cupy().cuda.runtime.deviceGetAttribute, cuda_number(self.name)
        facts = {name: int(attribute(code, number)) for name, code in ATTRIBUTES.items()}
        clock, memory_clock = facts.pop("clock_khz") * 1e3, facts.pop("memory_khz") * 1e3
        # two transfers a clock
        return Facts(clock, 2.0 * memory_clock * facts.pop("bus_bits") / 8, **facts)

    @property
    def arrays(self) -> Any:
        return cuda.library(self.name)

    @property
    def overcommits(self) -> bool:
        return False  # and asking the driver first takes longer than allocating

    @property
    def asks_from(self) -> int:
        return LARGE

    def free_memory(self) -> int:
        return cuda.free_memory(self.name)

    def allocate(self, nbytes: int, *, zeroed: bool) -> Any:
        data = cuda.allocate(self.name, nbytes)
        if zeroed:
            with self.use():
                data.fill(0)
        return data

    def pinned(self, nbytes: int, what: str) -> Any:
        module = cuda.cupy().cuda
        try:
            memory = module.alloc_pinned_memory(nbytes)
        except module.runtime.CUDARuntimeError as error:
            raise DeviceError(
                f"{what} needs {nbytes:,} bytes of pinned memory, which the driver does not have: "
                f"{error}"
            ) from error
        return np.frombuffer(memory, np.uint8, nbytes)

    def copy(self, to: Any, source: Any) -> None:
        cuda.copy_within(self.name, int(to.data.ptr), int(source.data.ptr), int(source.nbytes))

    def copy_at(self, to: int, source: int, nbytes: int) -> None:
        cuda.copy_within(self.name, to, source, nbytes)

    def clear(self, address: int, nbytes: int) -> None:
        module = cuda.cupy().cuda
        with self.use():
            module.runtime.memsetAsync(address, 0, nbytes, module.get_current_stream().ptr)

    def array_at(self, address: int, nbytes: int, dtype: Any) -> Any:
        module = cuda.cupy()
        memory = module.cuda.UnownedMemory(address, nbytes, None, cuda_number(self.name))
        count = nbytes // np.dtype(dtype).itemsize
        return module.ndarray((count,), dtype, module.cuda.MemoryPointer(memory, 0))

    def lend(self, data: Any, last: Any | None) -> tuple[Any, Any]:
        module = cuda.cupy()
        if last is None or last.memory is not data:
            last = Loan(data)
        memory = module.cuda.UnownedMemory(data.data.ptr, data.nbytes, last, data.data.device_id)
        return module.ndarray(data.shape, data.dtype, module.cuda.MemoryPointer(memory, 0)), last

    def use(self) -> AbstractContextManager[Any]:
        return cuda.use(self.name)

    def synchronize(self) -> None:
        cuda.synchronize(self.name)

    def is_busy(self) -> bool:
        module = cuda.cupy().cuda
        with self.use():
            return module.runtime.streamQuery(module.get_current_stream().ptr) == cuda.NOT_READY

    def replay(self, work: Work) -> Work:
        return cuda_graphs.Replay(self.name, work).launch

    def is_capturing(self) -> bool:
        return cuda.is_capturing(self.name)

    def lease(self, what: str) -> Lease:
        return cuda.lease(what, self.name)

    @contextmanager
    def fetching(self, nbytes: int) -> Generator[None]:
        # A hint, in all of the process. Both changes take 0.2 ms (CUDA Runtime API,
        # "cudaDeviceSetLimit"; NVIDIA H200).
        runtime = cuda.cupy().cuda.runtime
        with self.use():
            before = runtime.deviceGetLimit(MAX_L2_FETCH_GRANULARITY)
            runtime.deviceSetLimit(MAX_L2_FETCH_GRANULARITY, nbytes)
            try:
                yield
            finally:
                runtime.deviceSetLimit(MAX_L2_FETCH_GRANULARITY, before)

    def seconds(self, work: Work) -> float:
        module = cuda.cupy().cuda
        with self.use():
            start, stop = module.Event(), module.Event()
            start.record()
            work()
            stop.record()
            stop.synchronize()
            return float(module.get_elapsed_time(start, stop)) * 1e-3

    def stopwatch(self, works: Sequence[Work], once: float, *, waits: bool = False) -> Stopwatch:
        if waits:
            return LaunchStopwatch(self.seconds, works, once)
        return CudaStopwatch(self.name, works, once)

    def begin(self, text: str, name: str, arch: str | None, asked: Switches) -> None:
        begin_cubin(text, name, arch or self.architecture(), asked)

    def load_cubin(self, cubin: Cubin, name: str, threads: int) -> cuda.CudaKernel:
        return cuda.CudaKernel(self.name, cubin, name, threads)

    def load(self, text: str, name: str, threads: int, shared: int = 0) -> cuda.CudaKernel:
        return cuda.loaded(self.name, text, name, threads, shared)


@cache
def _identity(device: str) -> Identity:
    compiler = f"NVRTC {nvrtc_version()}"
    return Identity(
        cuda.device_name(device), cuda.architecture(device), driver_version(), compiler, 0
    )


def driver_version() -> str:
    """The version of the NVIDIA driver, such as "580.159.04".

    What CUDA calls it where the system does not tell.
    """
    if _DRIVER_FILE.exists():
        match = re.search(r"\b(\d{3}\.\d+(?:\.\d+)?)\b", _DRIVER_FILE.read_text(encoding="utf-8"))
        if match:
            return match.group(1)
    return f"CUDA {cuda.cupy().cuda.runtime.driverGetVersion()}"
