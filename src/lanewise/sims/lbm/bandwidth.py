"""How fast this device copies: what the speed of a flow solver is measured against."""

from __future__ import annotations

import time
from functools import cache

import numpy as np

from lanewise.sims.common.devices import address, get_device, is_compiled

BYTES = 1 << 30  # of the array that a GPU copies: far more than its caches hold
ROUNDS = 10


THREADS = 256
# Loads and stores of 16 bytes, one a thread: on an NVIDIA H200 the driver's own copy takes 1.5 times as long.
_COPY = """extern "C" __global__ void copy_kernel(const float4 *from, float4 *to, long long count)
{
    const long long i = blockIdx.x * 256LL + threadIdx.x;
    if (i < count) to[i] = from[i];
}
"""


@cache
def copy_bandwidth(device: str) -> float | None:
    """Bytes read and written a second by a copy of a large array, measured once a process.

    None for the interpreter, and for a GPU without room for the two arrays.
    """
    if not is_compiled(device):
        return None
    where = get_device(device)
    if where.target.host_memory:
        from lanewise.models.devices import copy_bandwidth as measured

        return measured()
    if where.free_memory() < 3 * BYTES:
        return None
    source, target = (where.allocate(BYTES, zeroed=True) for _ in range(2))
    kernel, count = where.load(_COPY, "copy", THREADS), BYTES // 16
    arguments = (address(source), address(target), np.int64(count))

    def copy() -> None:
        kernel.launch((count // THREADS, 1), arguments)

    copy()
    where.synchronize()
    begin = time.perf_counter()
    copy()
    where.synchronize()
    watch = where.stopwatch([copy], time.perf_counter() - begin)
    return 2 * BYTES / min(watch() for _ in range(ROUNDS))
