"""What the models know of a device: how much of everything it can do in a second, and what a launch
costs.

A GPU is read from its driver (`device_model`) or taken from a table, to plan for one that is not
there (`table_model`). Of the CPU that this process runs on, LLVM tells the cores and the SIMD
width; clock and memory are measured.
"""

from __future__ import annotations

import platform
import time
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal

from lanewise.language.target import (
    TARGETS,
    Machine,
    Target,
    architecture_number,
    copies_asynchronously,
)
from lanewise.primitives.copying import host_bandwidth
from lanewise.runtime.device import Device, get_device
from lanewise.runtime.device_facts import Facts, processor_name
from lanewise.runtime.devices import cpu_threads, resolve
from lanewise.runtime.occupancy import LIMITS, Limits
from lanewise.runtime.preferred_width import preferred_bits
from lanewise.support.attributes import near
from lanewise.support.errors import DeviceError
from lanewise.support.interrupts import interrupts_wait

# most that kernels which only read get beyond a copy, whose stores also fetch what they replace
READ_GAIN = 1.5
# first architecture whose smallest and largest of floats take three arguments
THREE_ARGUMENTS = 100


@dataclass(frozen=True, slots=True)
class DeviceModel:
    """A GPU or CPU as the models see it.

    `multiprocessors` are the cores of a CPU. Lanes are results a cycle of one multiprocessor (CUDA
    C++ Programming Guide, "Throughput of Native Arithmetic Instructions"); `special_lanes` compute
    reciprocals, roots, exponentials and sines, `conversion_lanes` conversions within 32 bits and
    `wide_conversion_lanes` those from and to 64 bits. Bandwidths are bytes a second,
    `memory_bandwidth` what a copy reaches. `clock_hz` is the highest clock. `launch_seconds` is a
    launch by itself, `graph_launch_seconds` one inside a graph. `limits` is None on a CPU, where
    `vector_bits` is the width of a SIMD register, `preferred_bits` what the compiler takes of it by
    itself, and `vector_gain` what 512 bits gain over 256. `memory_peak` is more than any kernel
    gets of memory, and `last_cache_bytes` may lie in a cache from one launch to the next: what
    bounds take.
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
    preferred_bits: int = 256
    vector_gain: float = 1.0
    memory_peak: float = 0.0  # 0: not known
    last_cache_bytes: int = 0  # 0: the L2 cache
    host_link: float = 0.0  # bytes a second of copies from and to the host; 0: one memory

    @property
    def target(self) -> Target:
        """What its generated code can use."""
        return TARGETS[self.kind]

    @property
    def machine(self) -> Machine:
        """What default plans ask of it."""
        copies = not self.target.has_blocks or copies_asynchronously(self.arch)
        return Machine(self.kind, self.multiprocessors, self.vector_bits or 256, copies)

    @property
    def compiled_for(self) -> str | None:
        """The architecture that code can be compiled for without the device; None for a CPU, which
        is the one at hand.
        """
        return self.arch if self.target.has_blocks else None

    @property
    def takes_three(self) -> bool:
        """Whether an instruction finds the smallest or the largest of three floats."""
        return self.target.has_blocks and architecture_number(self.arch) >= THREE_ARGUMENTS

    @property
    def loop_launch_seconds(self) -> float:
        """A launch in a loop over time: within a graph, where there are graphs."""
        return self.graph_launch_seconds if self.target.has_blocks else self.launch_seconds

    @property
    def is_nominal(self) -> bool:
        """Whether no unit is faster than this says, as a vendor's figures of a GPU: those of a CPU
        are measured here and now.
        """
        return self.target.has_blocks

    @property
    def most_bandwidth(self) -> float:
        """Bytes a second that no kernel gets beyond from memory."""
        return self.memory_peak or READ_GAIN * self.memory_bandwidth

    def beyond_caches(self, nbytes: float) -> float:
        """Of so many bytes those that no cache can have kept from the launch before."""
        return max(0.0, nbytes - (self.last_cache_bytes or self.l2_bytes))

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
# of the memory's nominal bandwidth: a copy reaches 4.28 of 4.92 TB/s on an NVIDIA H200
COPY_SHARE = 0.87
L2_BYTES_PER_CYCLE = (
    # of one multiprocessor: what a resident working set is read with on an NVIDIA H200 (about 10
    # TB/s)
    40
)


def _gpu(
    name: str,
    arch: str,
    multiprocessors: int,
    clock_hz: float,
    nominal_bandwidth: float,
    l2_mib: int,
    host_link: float,
    limits: Limits | None = None,
) -> DeviceModel:
    lanes = _LANES[arch]
    return DeviceModel(
        name,
        "cuda",
        arch,
        multiprocessors,
        clock_hz,
        lanes.fp32,
        lanes.fp64,
        16,
        lanes.integer,
        lanes.conversion,
        lanes.wide,
        nominal_bandwidth * COPY_SHARE,
        multiprocessors * clock_hz * L2_BYTES_PER_CYCLE,
        l2_mib << 20,
        limits or LIMITS[arch],
        memory_peak=nominal_bandwidth,
        last_cache_bytes=l2_mib << 20,
        host_link=host_link,
    )


# Bytes a second of one direction of 16 lanes, from and to memory that is pinned: 0.85 of what the
# generation of PCI Express has.
PCIE3, PCIE4, PCIE5 = 13.4e9, 26.8e9, 53.6e9
SHARED = 0.0  # host and device have one memory

# One typical device of each architecture, from the vendor's data sheets: multiprocessors, boost
# clock, memory, L2 cache.
_TABLE = {
    "sm_75": _gpu("NVIDIA T4", "sm_75", 40, 1.59e9, 320e9, 4, PCIE3),
    "sm_80": _gpu("NVIDIA A100", "sm_80", 108, 1.41e9, 2039e9, 40, PCIE4),
    "sm_86": _gpu("NVIDIA RTX A6000", "sm_86", 84, 1.80e9, 768e9, 6, PCIE4),
    "sm_87": _gpu("NVIDIA Jetson AGX Orin", "sm_87", 16, 1.30e9, 205e9, 4, SHARED),
    "sm_89": _gpu("NVIDIA L40S", "sm_89", 142, 2.52e9, 864e9, 96, PCIE4),
    # measured copy
    "sm_90": replace(
        _gpu("NVIDIA H200", "sm_90", 132, 1.98e9, 4917e9, 50, PCIE5), memory_bandwidth=4.28e12
    ),
    "sm_100": _gpu("NVIDIA B200", "sm_100", 148, 1.965e9, 8000e9, 126, PCIE5),
    "sm_103": _gpu("NVIDIA B300", "sm_103", 148, 2.03e9, 8000e9, 126, PCIE5),
    "sm_120": _gpu("NVIDIA GeForce RTX 5090", "sm_120", 170, 2.41e9, 1792e9, 96, PCIE5),
    "sm_121": _gpu("NVIDIA GB10", "sm_121", 48, 2.42e9, 273e9, 24, SHARED),
}


def table_archs() -> tuple[str, ...]:
    """The architectures of which a typical device is known."""
    return tuple(_TABLE)


def table_model(arch: str = "sm_90") -> DeviceModel:
    """A typical device of an architecture, for planning without it; raises `DeviceError` for an
    unknown one.
    """
    if arch not in _TABLE:
        raise DeviceError(
            f"no device model of the architecture {arch!r}{near(arch, _TABLE) or ';'} known are "
            f"{', '.join(_TABLE)}"
        )
    return _TABLE[arch]


@cache
def device_model(device: str) -> DeviceModel:
    """The model of a device of this machine: "cpu", "cuda", "cuda:1".

    GPUs are asked through their driver, a CPU is measured for some milliseconds; both once a
    process. An architecture newer than the table gets the lanes of the newest one that is known.
    Raises `DeviceError` as `runtime.devices.resolve`.
    """
    device = resolve(device)
    there = get_device(device)
    facts = there.facts()
    return _cpu_model() if facts is None else _driver_model(there, facts)


def _driver_model(gpu: Device, facts: Facts) -> DeviceModel:
    """The model of what a driver tells of a GPU."""
    arch = gpu.architecture()
    limits = Limits(
        facts.threads // 32,
        facts.blocks,
        facts.shared_bytes,
        facts.block_shared_bytes,
        facts.registers,
        facts.block_registers,
        facts.reserved_shared_bytes,
        256 if arch == "sm_75" else 128,
    )
    tabulated = arch if arch in _LANES else max(_LANES, key=architecture_number)
    like = _TABLE[tabulated]  # for what a driver does not tell
    bandwidth = facts.memory_bandwidth or like.memory_bandwidth / COPY_SHARE
    model = _gpu(
        gpu.title(),
        tabulated,
        gpu.units(),
        facts.clock_hz or like.clock_hz,
        bandwidth,
        facts.l2_bytes >> 20,
        like.host_link,
        limits,
    )
    return replace(model, arch=arch)


# SIMD registers of floats that a core finishes a cycle: two pipes for fused multiply-adds
PORTS = 2
ISSUE_BITS = 256  # what those pipes hold: a 512-bit operation takes both, or two cycles of one


@cache
def _cpu_model() -> DeviceModel:
    """Cores that kernels use, their SIMD width, a clock, and the memory bandwidth of a copy.

    Measured once a process.
    """
    bits = vector_bits()
    cores = cpu_threads()
    fp32 = PORTS * min(bits, ISSUE_BITS) // 32
    bandwidth = host_bandwidth()
    return DeviceModel(
        name=processor_name(),
        kind="cpu",
        arch=platform.machine(),
        multiprocessors=cores,
        clock_hz=clock_hz(),
        fp32_lanes=fp32,
        fp64_lanes=fp32 // 2,
        special_lanes=fp32 // 8,
        int_lanes=fp32,
        conversion_lanes=fp32,
        wide_conversion_lanes=fp32 // 2,
        memory_bandwidth=bandwidth,
        l2_bandwidth=cores * clock_hz() * 32,
        l2_bytes=1 << 20,
        limits=None,
        schedulers=1,
        launch_seconds=4e-6,
        graph_launch_seconds=0.0,
        vector_bits=bits,
        preferred_bits=_preferred_bits(),
        vector_gain=vector_gain(),
        memory_peak=READ_GAIN * bandwidth,
        last_cache_bytes=last_cache_bytes(),
    )


UNTOLD = 1 << 30  # bytes, of a last cache that the system does not tell


def last_cache_bytes() -> int:
    """The caches of the highest level of all cores together, as Linux tells them; more than any has
    where it does not.
    """
    found: dict[str, tuple[int, int]] = {}
    for index in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cache/index*"):
        try:
            level, size = int((index / "level").read_text()), (index / "size").read_text().strip()
            shared = (index / "shared_cpu_list").read_text().strip()
        except (OSError, ValueError):
            continue
        unit = {"K": 1 << 10, "M": 1 << 20}.get(size[-1:], 0)
        if unit and size[:-1].isdigit():
            found[f"{level} {shared}"] = level, int(size[:-1]) * unit
    top = max((level for level, _ in found.values()), default=0)
    return sum(size for level, size in found.values() if level == top) or UNTOLD


@interrupts_wait()
def vector_bits() -> int:
    """The width of the SIMD registers, from the processor's features: 512, 256, or 128 where
    nothing is known.
    """
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    if features.get("avx512f"):
        return 512
    return 256 if features.get("avx2") or features.get("avx") else 128


@interrupts_wait()
def _preferred_bits() -> int:
    """What LLVM takes by itself for this processor."""
    from llvmlite import binding

    return preferred_bits(binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten())


HALF_WIDE = ("znver4",)  # processors that split operations of 512 bits into two of 256
# of 512 bits on other processors that have them: 1.3 to 1.5 measured for direct gravity
WIDE_GAIN = 1.4


@interrupts_wait()
def vector_gain() -> float:
    """What operations of 512 bits gain over those of 256: nothing where the pipes have 256
    (bench/results/cpu_gravity.md).
    """
    from llvmlite import binding

    return 1.0 if vector_bits() < 512 or binding.get_host_cpu_name() in HALF_WIDE else WIDE_GAIN


# An exclusive or and a multiplication, each waiting for the one before: no compiler shortens the
# chain.
CHAIN_CYCLES = 4  # one and three on every x86 core since 2013 and on Zen
_CHAIN = """def chain_kernel(n):
    x = 1
    for i in range(n):
        x = (x ^ i) * 6364136223846793005
    return x
"""


@cache
def clock_hz() -> float:
    """The clock under load, in Hz, from a chain of operations of known latency."""
    from lanewise.runtime.cpu import own_kernel

    chain, length = own_kernel(_CHAIN, "chain"), 100_000
    times: list[float] = []
    for _ in range(25):
        start = time.perf_counter()
        chain(length)
        times.append(time.perf_counter() - start)
    return CHAIN_CYCLES * length / min(times)
