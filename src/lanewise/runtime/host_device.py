"""The host as a device: of kernels of LLVM, and of the interpreter. Its arrays are NumPy's."""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from lanewise.language.target import CPU, Machine, Target, target_of
from lanewise.layouts import ALIGNMENT
from lanewise.runtime import cpu
from lanewise.runtime.device_facts import Identity, processor_name
from lanewise.runtime.devices import cpu_threads
from lanewise.runtime.here import HERE
from lanewise.runtime.lease import Lease
from lanewise.runtime.timing import CpuStopwatch, Stopwatch, Work
from lanewise.support.errors import DeviceError

SMALL = 1 << 20  # bytes that always fit: asking takes as long as writing some 100,000 of them
_ANYWHERE: AbstractContextManager[None] = nullcontext()


@dataclass(frozen=True, slots=True)
class HostDevice:
    """See `lanewise.runtime.device.Device`. What is launched is done when the launch returns."""

    name: str

    @property
    def target(self) -> Target:
        return target_of(self.name)

    def title(self) -> str:
        return processor_name()

    def architecture(self) -> str:
        return platform.machine()

    def units(self) -> int:
        return cpu_threads()

    def machine(self) -> Machine:
        return Machine(CPU.name, cpu_threads(), 256 if cpu.width_problem(512) else 512)

    def identity(self) -> Identity:
        name, compiler = _identity()
        return Identity(name, platform.machine(), "", compiler, cpu_threads())

    def compilers(self) -> int:
        return 1  # llvmlite lets one thread at a time compile

    def facts(self) -> None:
        return None

    @property
    def arrays(self) -> Any:
        return np

    @property
    def overcommits(self) -> bool:
        return True

    @property
    def asks_from(self) -> int:
        return SMALL

    def free_memory(self) -> int:
        import psutil

        return int(psutil.virtual_memory().available)

    def allocate(self, nbytes: int, *, zeroed: bool) -> Any:
        del zeroed  # the system gives zeros
        raw = np.zeros(nbytes + ALIGNMENT, np.uint8)
        start = -raw.ctypes.data % ALIGNMENT
        return raw[start : start + nbytes]

    def pinned(self, nbytes: int, what: str) -> Any:
        del what
        return np.empty(nbytes, np.uint8)

    def copy(self, to: Any, source: Any) -> None:
        to[...] = source

    def copy_at(self, to: int, source: int, nbytes: int) -> None:
        import ctypes

        ctypes.memmove(to, source, nbytes)

    def clear(self, address: int, nbytes: int) -> None:
        import ctypes

        ctypes.memset(address, 0, nbytes)

    def array_at(self, address: int, nbytes: int, dtype: Any) -> Any:
        import ctypes

        values: Any = (ctypes.c_uint8 * nbytes).from_address(address)
        return np.frombuffer(values, dtype)

    def lend(self, data: Any, last: Any | None) -> tuple[Any, Any]:
        if last is None or not np.may_share_memory(last, data):  # the array may have moved since
            # NumPy shortens chains of views to what owns the memory; a memoryview ends them here.
            last = np.frombuffer(memoryview(data), np.uint8)
        return last, last

    def use(self) -> AbstractContextManager[Any]:
        return HERE

    def synchronize(self) -> None:
        pass

    def is_busy(self) -> bool:
        return False

    def replay(self, work: Work) -> Work:
        return work

    def is_capturing(self) -> bool:
        return False

    def lease(self, what: str) -> Lease:
        return Lease(what)

    def fetching(self, nbytes: int) -> AbstractContextManager[None]:
        del nbytes
        return _ANYWHERE

    def seconds(self, work: Work) -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    def stopwatch(self, works: Sequence[Work], once: float, *, waits: bool = False) -> Stopwatch:
        del waits
        return CpuStopwatch(works, once)

    def begin(self, text: str, name: str, arch: str | None, asked: Any) -> None:
        pass

    def load_cubin(self, cubin: Any, name: str, threads: int) -> Any:
        return self.load(cubin, name, threads)

    def load(self, text: Any, name: str, threads: int, shared: int = 0) -> Any:
        del text, threads, shared
        raise DeviceError(
            f"{name!r} is a kernel of threads in blocks, which {self.name!r} does not have"
        )


@cache
def _identity() -> tuple[str, str]:
    from importlib.metadata import version

    return processor_name(), f"llvmlite {version('llvmlite')}"
