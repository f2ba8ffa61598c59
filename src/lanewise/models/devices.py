"""What the models know of a device: how much of everything it can do in a second, and what a launch costs.

A GPU is read from its driver (`device_model`) or taken from a table, to plan for one that is not there (`table_model`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from lanewise.errors import DeviceError
from lanewise.models.occupancy import LIMITS, Limits
from lanewise.runtime.devices import resolve
from lanewise.target import is_gpu


@dataclass(frozen=True, slots=True)
class DeviceModel:
    """A GPU or CPU as the models see it.

    `multiprocessors` are the cores of a CPU. Lanes are results a cycle of one multiprocessor (CUDA C++ Programming
    Guide, "Throughput of Native Arithmetic Instructions"); `special_lanes` compute reciprocals, roots, exponentials and
    sines, `conversion_lanes` conversions within 32 bits and `wide_conversion_lanes` those from and to 64 bits.
    Bandwidths are bytes a second, `memory_bandwidth` what a copy reaches. `clock_hz` is the highest clock.
    `launch_seconds` is a launch by itself, `graph_launch_seconds` one inside a graph. `limits` is None on a CPU, where
    `vector_bits` is the width of a SIMD register, and `vector_gain` what 512 bits gain over 256.
    """

    name: str
    kind: Literal["cuda", "cpu"]
    arch: str
    multiprocessors: int
    clock_hz: float
    fp32_lanes: int
    fp64_lanes: int
    special_lanes: int
    int_lanes: int
    conversion_lanes: int
    wide_conversion_lanes: int
    memory_bandwidth: float
    l2_bandwidth: float
    l2_bytes: int
    limits: Limits | None
    schedulers: int = 4
    shared_bytes_per_cycle: int = 128
    launch_seconds: float = 4.5e-6
    graph_launch_seconds: float = 0.5e-6
    vector_bits: int = 0
    vector_gain: float = 1.0

    @property
    def cycles(self) -> float:
        """Cycles a second of all multiprocessors together."""
        return self.multiprocessors * self.clock_hz

    @property
    def fp32_operations(self) -> float:
        """Additions, multiplications or fused multiply-adds of float32 a second."""
        return self.cycles * self.fp32_lanes


@dataclass(frozen=True, slots=True)
class _Lanes:
    fp32: int
    fp64: int
    integer: int
    conversion: int
    wide: int


_LANES = {
    "sm_75": _Lanes(64, 2, 64, 16, 2),
    "sm_80": _Lanes(64, 32, 64, 16, 16),
    "sm_86": _Lanes(128, 2, 64, 64, 2),
    "sm_87": _Lanes(128, 2, 64, 64, 2),
    "sm_89": _Lanes(128, 2, 64, 64, 2),
    "sm_90": _Lanes(128, 64, 64, 64, 16),
    "sm_100": _Lanes(128, 64, 64, 64, 16),
    "sm_103": _Lanes(128, 2, 64, 64, 2),
    "sm_120": _Lanes(128, 2, 128, 64, 2),
    "sm_121": _Lanes(128, 2, 128, 64, 2),
}
COPY_SHARE = 0.87  # of the memory's nominal bandwidth: a copy reaches 4.28 of 4.92 TB/s on an NVIDIA H200
L2_BYTES_PER_CYCLE = (
    40  # of one multiprocessor: what a resident working set is read with on an NVIDIA H200 (about 10 TB/s)
)


def _gpu(
    name: str, arch: str, multiprocessors: int, clock_hz: float, nominal_bandwidth: float, l2_mib: int,
    limits: Limits | None = None,
) -> DeviceModel:  # fmt: skip
    lanes = _LANES[arch]
    return DeviceModel(
        name, "cuda", arch, multiprocessors, clock_hz, lanes.fp32, lanes.fp64, 16, lanes.integer, lanes.conversion,
        lanes.wide, nominal_bandwidth * COPY_SHARE, multiprocessors * clock_hz * L2_BYTES_PER_CYCLE, l2_mib << 20,
        limits or LIMITS[arch],
    )  # fmt: skip


# One typical device of each architecture, from the vendor's data sheets: multiprocessors, boost clock, memory, L2 cache.
_TABLE = {
    "sm_75": _gpu("NVIDIA T4", "sm_75", 40, 1.59e9, 320e9, 4),
    "sm_80": _gpu("NVIDIA A100", "sm_80", 108, 1.41e9, 2039e9, 40),
    "sm_86": _gpu("NVIDIA RTX A6000", "sm_86", 84, 1.80e9, 768e9, 6),
    "sm_87": _gpu("NVIDIA Jetson AGX Orin", "sm_87", 16, 1.30e9, 205e9, 4),
    "sm_89": _gpu("NVIDIA L40S", "sm_89", 142, 2.52e9, 864e9, 96),
    "sm_90": replace(_gpu("NVIDIA H200", "sm_90", 132, 1.98e9, 4917e9, 50), memory_bandwidth=4.28e12),  # measured copy
    "sm_100": _gpu("NVIDIA B200", "sm_100", 148, 1.965e9, 8000e9, 126),
    "sm_103": _gpu("NVIDIA B300", "sm_103", 148, 2.03e9, 8000e9, 126),
    "sm_120": _gpu("NVIDIA GeForce RTX 5090", "sm_120", 170, 2.41e9, 1792e9, 96),
    "sm_121": _gpu("NVIDIA GB10", "sm_121", 48, 2.42e9, 273e9, 24),
}


def table_model(arch: str = "sm_90") -> DeviceModel:
    """A typical device of an architecture, for planning without it; raises `DeviceError` for an unknown one."""
    if arch not in _TABLE:
        raise DeviceError(f"no device model of the architecture {arch!r}; known are {', '.join(_TABLE)}")
    return _TABLE[arch]


@cache
def device_model(device: str) -> DeviceModel:
    """The model of a device of this machine: "cpu", "cuda", "cuda:1".

    GPUs are asked through their driver, a CPU is measured for some milliseconds; both once a process. An architecture
    newer than the table gets the lanes of the newest one that is known. Raises `DeviceError` as `runtime.devices.resolve`.
    """
    device = resolve(device)
    if is_gpu(device):
        return _read_gpu(device)
    from lanewise.models.host import cpu_model

    return cpu_model()


# Numbers of cudaDeviceAttr in the CUDA runtime.
_CLOCK_KHZ, _MEMORY_KHZ, _BUS_BITS, _L2, _THREADS, _SHARED = 13, 36, 37, 38, 39, 81
_REGISTERS, _OPT_IN, _BLOCKS, _RESERVED, _BLOCK_REGISTERS = 82, 97, 106, 111, 12


def _read_gpu(device: str) -> DeviceModel:
    from lanewise.runtime import cuda
    from lanewise.runtime.devices import cuda_number

    def attribute(number: int) -> int:
        return int(cuda.cupy().cuda.runtime.deviceGetAttribute(number, cuda_number(device)))

    arch = cuda.architecture(device)
    limits = Limits(
        attribute(_THREADS) // 32, attribute(_BLOCKS), attribute(_SHARED), attribute(_OPT_IN), attribute(_REGISTERS),
        attribute(_BLOCK_REGISTERS), attribute(_RESERVED), 256 if arch == "sm_75" else 128,
    )  # fmt: skip
    known = arch if arch in _LANES else max(_LANES, key=lambda a: int(a[3:]))
    like = _TABLE[known]  # for what a driver does not tell
    nominal = 2.0 * attribute(_MEMORY_KHZ) * 1e3 * attribute(_BUS_BITS) / 8  # two transfers a clock
    clock = attribute(_CLOCK_KHZ) * 1e3
    name, multiprocessors = cuda.device_name(device), cuda.multiprocessors(device)
    model = _gpu(
        name, known, multiprocessors, clock or like.clock_hz, nominal or like.memory_bandwidth / COPY_SHARE,
        attribute(_L2) >> 20, limits,
    )  # fmt: skip
    return replace(model, arch=arch)
