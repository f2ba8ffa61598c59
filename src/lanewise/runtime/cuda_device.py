"""An NVIDIA GPU as a device. What it takes of CuPy and cuda.core is in `runtime.cuda`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lanewise.language.target import CUDA, Machine, Target, copies_asynchronously
from lanewise.runtime import cuda, cuda_facts, cuda_memory
from lanewise.runtime.cuda_timing import CudaStopwatch
from lanewise.runtime.device_facts import Facts, Identity
from lanewise.runtime.devices import cores
from lanewise.runtime.nvrtc import Switches, begin_cubin, nvrtc_version
from lanewise.runtime.prepared import Turns
from lanewise.runtime.timing import Stopwatch, Work

_DRIVER_FILE = Path("/proc/driver/nvidia/version")


@dataclass(frozen=True, slots=True)
class Cuda:
    """See `lanewise.runtime.device.Device`. The current stream is CuPy's, of the thread."""

    name: str

    @property
    def target(self) -> Target:
        return CUDA

    # ------------------------------------------------------------ what it is

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
        return cuda_facts.facts(self.name)

    # ------------------------------------------------------------ memory

    @property
    def arrays(self) -> Any:
        return cuda.library(self.name)

    @property
    def overcommits(self) -> bool:
        return False  # and asking the driver first takes longer than allocating

    def free_memory(self) -> int:
        return cuda.free_memory(self.name)

    def allocate(self, nbytes: int, *, zeroed: bool) -> Any:
        data = cuda.allocate(self.name, nbytes)
        if zeroed:
            with self.use():
                data.fill(0)
        return data

    def pinned(self, nbytes: int, what: str) -> Any:
        return cuda_memory.pinned(nbytes, what)

    def copy(self, to: Any, source: Any) -> None:
        cuda.copy_within(self.name, int(to.data.ptr), int(source.data.ptr), int(source.nbytes))

    def clear(self, address: int, nbytes: int) -> None:
        cuda.clear(self.name, address, nbytes)

    def lend(self, data: Any, last: Any | None) -> tuple[Any, Any]:
        return cuda_memory.leased(data, last)

    # ------------------------------------------------------------ the order of work

    def use(self) -> AbstractContextManager[Any]:
        return cuda.use(self.name)

    def synchronize(self) -> None:
        cuda.synchronize(self.name)

    def is_capturing(self) -> bool:
        return cuda.is_capturing(self.name)

    def turns(self, what: str) -> Turns:
        return cuda.turns(what, self.name)

    def fetching(self, nbytes: int) -> AbstractContextManager[None]:
        return cuda_facts.fetching(self.name, nbytes)

    # ------------------------------------------------------------ time

    def seconds(self, work: Work) -> float:
        return cuda.timer(self.name)(work)

    def stopwatch(self, works: Sequence[Work], once: float) -> Stopwatch:
        return CudaStopwatch(self.name, works, once)

    # ------------------------------------------------------------ kernels

    def begin(self, text: str, name: str, arch: str | None, asked: Switches) -> None:
        begin_cubin(text, name, arch or self.architecture(), asked)

    def load(self, text: str, name: str, threads: int, shared: int = 0) -> cuda.CudaKernel:
        return cuda.loaded(self.name, text, name, threads, shared)


@cache
def _identity(device: str) -> Identity:
    compiler = f"NVRTC {nvrtc_version()}"
    return Identity(cuda.device_name(device), cuda.architecture(device), driver_version(), compiler, 0)


def driver_version() -> str:
    """The version of the NVIDIA driver, such as "580.159.04".

    What CUDA calls it where the system does not tell.
    """
    if _DRIVER_FILE.exists():
        match = re.search(r"\b(\d{3}\.\d+(?:\.\d+)?)\b", _DRIVER_FILE.read_text(encoding="utf-8"))
        if match:
            return match.group(1)
    return f"CUDA {cuda.cupy().cuda.runtime.driverGetVersion()}"
