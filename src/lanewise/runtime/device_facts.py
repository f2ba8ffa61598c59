"""What a device is called, down to versions that decide how fast kernels are; what a driver
tells.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Identity:
    """A device and what compiles for it: two machines with equal identities run a kernel alike.

    device: the vendor's name; arch: the architecture, or the instruction set of a CPU; driver: of a
    GPU, empty on a CPU; compiler: NVRTC, or LLVM; threads: that kernels of a CPU run on,
    0 on a GPU.
    """

    device: str
    arch: str
    driver: str
    compiler: str
    threads: int


@dataclass(frozen=True, slots=True)
class Facts:
    """What the driver tells of a GPU; 0 where it does not tell.

    clock_hz: the highest clock. memory_bandwidth: nominal, bytes a second. threads, blocks,
    shared_bytes, registers: of a multiprocessor; block_shared_bytes, block_registers: the most that
    one block gets; reserved_shared_bytes: what the driver keeps of the shared memory of each block.
    """

    clock_hz: float
    memory_bandwidth: float
    l2_bytes: int
    threads: int
    blocks: int
    shared_bytes: int
    block_shared_bytes: int
    registers: int
    block_registers: int
    reserved_shared_bytes: int


def processor_name() -> str:
    """The processor's own name where the system tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(
                line.split(":", 1)[1].strip() for line in file if line.startswith("model name")
            )
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
