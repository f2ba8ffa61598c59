"""How fast this device copies: what the speed of a flow solver is measured against."""

from __future__ import annotations

import time
from functools import cache

from lanewise.language.target import is_compiled, is_gpu

BYTES = 1 << 30  # of the array that a GPU copies: far more than its caches hold
ROUNDS = 10


THREADS = 256
# Loads and stores of 16 bytes, one a thread: on an NVIDIA H200 the driver's own copy takes 1.5 times as long.
_COPY = """extern "C" __global__ void lanewise_copy(const float4 *from, float4 *to, long long count)
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
    if not is_gpu(device):
        from lanewise.models.devices import copy_bandwidth as measured

        return measured()
    from lanewise.runtime import cuda
    from lanewise.runtime.timing import stopwatch

    if cuda.free_memory(device) < 3 * BYTES:
        return None
    module, count = cuda.cupy(), BYTES // 16
    source, target = cuda.allocate(device, BYTES), cuda.allocate(device, BYTES)
    kernel = module.RawKernel(_COPY, "lanewise_copy")

    def copy() -> None:
        with cuda.use(device):
            kernel((count // THREADS,), (THREADS,), (source, target, count))

    with cuda.use(device):
        source.fill(0)
    copy()
    cuda.synchronize(device)
    begin = time.perf_counter()
    copy()
    cuda.synchronize(device)
    watch = stopwatch(device, [copy], time.perf_counter() - begin)
    return 2 * BYTES / min(watch() for _ in range(ROUNDS))
