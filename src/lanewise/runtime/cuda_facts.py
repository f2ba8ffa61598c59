"""What the driver of an NVIDIA GPU tells and can be told about it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from lanewise.runtime import cuda
from lanewise.runtime.device_facts import Facts
from lanewise.runtime.devices import cuda_number

MAX_L2_FETCH_GRANULARITY = 5  # `cudaLimit`
# Numbers of cudaDeviceAttr in the CUDA runtime.
CLOCK_KHZ, MEMORY_KHZ, BUS_BITS, L2_BYTES, THREADS, SHARED_BYTES = 13, 36, 37, 38, 39, 81
REGISTERS, BLOCK_SHARED_BYTES, BLOCKS, RESERVED_SHARED_BYTES, BLOCK_REGISTERS = 82, 97, 106, 111, 12


def facts(device: str) -> Facts:
    """What the driver tells of the GPU."""

    def told(number: int) -> int:
        return int(cuda.cupy().cuda.runtime.deviceGetAttribute(number, cuda_number(device)))

    return Facts(
        clock_hz=told(CLOCK_KHZ) * 1e3,
        memory_bandwidth=2.0 * told(MEMORY_KHZ) * 1e3 * told(BUS_BITS) / 8,  # two transfers a clock
        l2_bytes=told(L2_BYTES), threads=told(THREADS), blocks=told(BLOCKS), shared_bytes=told(SHARED_BYTES),
        block_shared_bytes=told(BLOCK_SHARED_BYTES), registers=told(REGISTERS), block_registers=told(BLOCK_REGISTERS),
        reserved_shared_bytes=told(RESERVED_SHARED_BYTES),
    )  # fmt: skip


@contextmanager
def fetching(device: str, nbytes: int) -> Generator[None]:
    """While it lasts the L2 cache asks memory for that many bytes at a time (32, 64 or 128), in all of the process.

    It is a hint, and both changes take 0.2 ms (CUDA Runtime API, `cudaLimitMaxL2FetchGranularity`; NVIDIA H200).
    """
    runtime = cuda.cupy().cuda.runtime
    with cuda.use(device):
        before = runtime.deviceGetLimit(MAX_L2_FETCH_GRANULARITY)
        runtime.deviceSetLimit(MAX_L2_FETCH_GRANULARITY, nbytes)
        try:
            yield
        finally:
            runtime.deviceSetLimit(MAX_L2_FETCH_GRANULARITY, before)
