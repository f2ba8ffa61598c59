"""How fast a device copies memory: what the speed of kernels that move data is measured against."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np

from lanewise.language.target import target_of
from lanewise.runtime.device import get_device
from lanewise.runtime.devices import cpu_threads
from lanewise.runtime.memory import address, allocate


@cache
def copy_bandwidth(device: str) -> float | None:
    """Bytes read and written a second by a copy of a large array, measured once a process.

    None for the interpreter, and for a GPU without room for the two arrays.
    """
    if not target_of(device).compiled:
        return None
    return host_bandwidth() if target_of(device).host_memory else _gpu_bandwidth(device)


# ------------------------------------------------------------ on a CPU

HOST_BYTES = 1 << 26  # far beyond a core's own caches


@cache
def host_bandwidth() -> float:
    """The same of a CPU, in one thread for each core that kernels use: of the fastest of some
    copies, by the time that threads run, so that other programs change little.
    """
    threads = cpu_threads()
    source = np.ones(HOST_BYTES // 8, np.float64)
    target = np.empty_like(source)
    pieces = [
        slice(k * len(source) // threads, (k + 1) * len(source) // threads) for k in range(threads)
    ]

    def move(piece: slice) -> float:
        start = time.thread_time()
        target[piece] = source[piece]
        return time.thread_time() - start

    with ThreadPoolExecutor(threads) as pool:
        times = [max(pool.map(move, pieces)) for _ in range(5)]
    return 2 * source.nbytes / min(times[1:])


# ------------------------------------------------------------ on a GPU

BYTES = 1 << 30  # of the array that is copied: far more than the caches hold
ROUNDS = 10
THREADS = 256
# Loads and stores of 16 bytes, one a thread: on an NVIDIA H200 the driver's own copy takes 1.5
# times as long.
COPY = """extern "C" __global__ void copy_kernel(const float4 *from, float4 *to, long long count)
{
    const long long i = blockIdx.x * 256LL + threadIdx.x;
    if (i < count) to[i] = from[i];
}
"""


def _gpu_bandwidth(device: str) -> float | None:
    gpu, what, count = get_device(device), "a copy that is timed", BYTES // 16
    if gpu.free_memory() < 3 * BYTES:
        return None
    source, target = allocate(device, BYTES, what), allocate(device, BYTES, what, zeroed=False)
    kernel = gpu.load(COPY, "copy", THREADS)
    arguments = (address(source), address(target), np.int64(count))

    def copy() -> None:
        kernel.launch((count // THREADS, 1), arguments)

    copy()
    gpu.synchronize()
    begin = time.perf_counter()
    copy()
    gpu.synchronize()
    watch = gpu.stopwatch([copy], time.perf_counter() - begin)
    return 2 * BYTES / min(watch() for _ in range(ROUNDS))
