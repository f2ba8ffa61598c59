"""The model of the CPU that this process runs on: cores and SIMD width as LLVM sees them, clock and memory measured."""

from __future__ import annotations

import platform
import time
from functools import cache
from statistics import median

import numpy as np

from lanewise.models.devices import DeviceModel
from lanewise.runtime.devices import cpu_threads

COPY_BYTES = 1 << 26  # far beyond a core's own caches
PORTS = 2  # SIMD registers of floats that a core finishes a cycle: two pipes for fused multiply-adds
ISSUE_BITS = 256  # what those pipes hold: a 512-bit operation takes both, or two cycles of one


@cache
def cpu_model() -> DeviceModel:
    """Cores that kernels use, their SIMD width, a clock, and the memory bandwidth of a copy. Measured once a process."""
    bits = vector_bits()
    cores = cpu_threads()
    fp32 = PORTS * min(bits, ISSUE_BITS) // 32
    bandwidth = copy_bandwidth()
    return DeviceModel(
        name=processor_name(), kind="cpu", arch=platform.machine(), multiprocessors=cores, clock_hz=clock_hz(),
        fp32_lanes=fp32, fp64_lanes=fp32 // 2, special_lanes=fp32 // 8, int_lanes=fp32, conversion_lanes=fp32,
        wide_conversion_lanes=fp32 // 2, memory_bandwidth=bandwidth, l2_bandwidth=cores * clock_hz() * 32, l2_bytes=1 << 20,
        limits=None, schedulers=1, launch_seconds=18e-6, graph_launch_seconds=0.0, vector_bits=bits, vector_gain=vector_gain(),
    )  # fmt: skip


def processor_name() -> str:
    """The processor's own name where the system tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def vector_bits() -> int:
    """The width of the SIMD registers, from the processor's features: 512, 256, or 128 where nothing is known."""
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    if features.get("avx512f"):
        return 512
    return 256 if features.get("avx2") or features.get("avx") else 128


HALF_WIDE = ("znver4",)  # processors that split operations of 512 bits into two of 256
WIDE_GAIN = 1.4  # of 512 bits on other processors that have them: 1.3 to 1.5 measured for direct gravity


def vector_gain() -> float:
    """What operations of 512 bits gain over those of 256: nothing where the pipes have 256 (bench/results/cpu_gravity.md)."""
    from llvmlite import binding

    return 1.0 if vector_bits() < 512 or binding.get_host_cpu_name() in HALF_WIDE else WIDE_GAIN


# An exclusive or and a multiplication, each waiting for the one before: no compiler shortens the chain.
CHAIN_CYCLES = 4  # one and three on every x86 core since 2013 and on Zen
_CHAIN = """from numba import njit


@njit(nogil=True)
def chain_kernel(n):
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


@cache
def copy_bandwidth() -> float:
    """Bytes read and written a second by a copy, in one thread for each core that kernels use."""
    from concurrent.futures import ThreadPoolExecutor

    threads = cpu_threads()
    source = np.ones(COPY_BYTES // 8, np.float64)
    target = np.empty_like(source)
    pieces = [slice(k * len(source) // threads, (k + 1) * len(source) // threads) for k in range(threads)]

    def move(piece: slice) -> None:
        target[piece] = source[piece]

    times: list[float] = []
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(5):
            start = time.perf_counter()
            list(pool.map(move, pieces))
            times.append(time.perf_counter() - start)
    return 2 * source.nbytes / median(times[1:])
