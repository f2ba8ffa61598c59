"""What a machine is called, down to the versions that decide how fast its kernels are."""

from __future__ import annotations

import platform
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lanewise.language.target import is_gpu
from lanewise.runtime import cuda
from lanewise.runtime.devices import cpu_threads
from lanewise.runtime.nvrtc import nvrtc_version

_DRIVER_FILE = Path("/proc/driver/nvidia/version")


@dataclass(frozen=True, slots=True)
class Identity:
    """A device and what compiles for it: two machines with equal identities run a kernel alike.

    device: the vendor's name; arch: the architecture, or the instruction set of a CPU; driver: of a GPU, empty on a
    CPU; compiler: NVRTC, or Numba and LLVM; threads: that CPU kernels run on, 0 on a GPU.
    """

    device: str
    arch: str
    driver: str
    compiler: str
    threads: int


def identity(device: str) -> Identity:
    """The identity of "cpu" or of a GPU of this machine."""
    if is_gpu(device):
        return _gpu(device)
    name, compiler = _cpu()
    return Identity(name, platform.machine(), "", compiler, cpu_threads())


@cache
def _gpu(device: str) -> Identity:
    return Identity(
        cuda.device_name(device), cuda.architecture(device), driver_version(), f"NVRTC {nvrtc_version()}", 0
    )


@cache
def _cpu() -> tuple[str, str]:
    from importlib.metadata import version

    return processor_name(), f"Numba {version('numba')}, llvmlite {version('llvmlite')}"


def driver_version() -> str:
    """The version of the NVIDIA driver, for example "580.159.04"; what CUDA calls it where the system does not tell."""
    if _DRIVER_FILE.exists():
        match = re.search(r"\b(\d{3}\.\d+(?:\.\d+)?)\b", _DRIVER_FILE.read_text(encoding="utf-8"))
        if match:
            return match.group(1)
    return f"CUDA {cuda.cupy().cuda.runtime.driverGetVersion()}"


def processor_name() -> str:
    """The processor's own name where the system tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
