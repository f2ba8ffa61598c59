"""Histograms on a GPU: in bins of a block's own in shared memory where they fit there, else by way of buckets of bins that do.

Few values, and more bins than buckets take, are counted by the atomics of global memory. Few bins have several copies, one for some warps
each: threads that add to one place of shared memory wait for each other.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from lanewise.collective import bucket_counts_device
from lanewise.runtime import cuda, memory
from lanewise.runtime.memory import device_of

VALUES = {"int32": "int", "uint32": "unsigned int", "int64": "long long"}
THREADS = 512
BLOCKS = 4  # of a multiprocessor
ROOM = 12_288  # bins of a block in shared memory, 48 KB
COPIES = THREADS // 32
WIDE = 16  # bytes of an access
NARROW = 2**32  # values, fewer of which are counted in 32 bits: twice as many bins fit the L2 cache
TEXT = """
typedef {value} Value;
typedef {count} Count;
#define ROOM {room}
#define LANES ({wide} / (int)sizeof(Value))  // values of an access
#define AHEAD 4  // accesses on their way

struct __align__(LANES * sizeof(Value)) Access {{ Value lane[LANES]; }};

__device__ __forceinline__ void count(Value value, unsigned int bins, Count *counts, unsigned int *mine)
{{
    if (value < 0 || (unsigned long long)value >= bins) return;
#if ROOM
    atomicAdd(mine + value, 1u);
#else
    atomicAdd(counts + value, Count(1));
#endif
}}

// `accesses`: of LANES values each; `rest` values follow them. `copies` of the bins fit the room.
extern "C" __global__ void __launch_bounds__({threads})
histogram_kernel(const Access *values, Count *counts, long long accesses, int rest, unsigned int bins, unsigned int copies)
{{
    unsigned int *mine = nullptr;
#if ROOM
    __shared__ unsigned int own[ROOM];
    for (unsigned int b = threadIdx.x; b < bins * copies; b += {threads}) own[b] = 0;
    __syncthreads();
    mine = own + threadIdx.x / 32 % copies * bins;
#endif
    const long long threads = (long long)gridDim.x * {threads}, thread = (long long)blockIdx.x * {threads} + threadIdx.x;
    for (long long first = thread; first < accesses; first += threads * AHEAD) {{
        Access a[AHEAD];
#pragma unroll
        for (int n = 0; n < AHEAD; ++n)
            if (first + n * threads < accesses) a[n] = values[first + n * threads];
#pragma unroll
        for (int n = 0; n < AHEAD; ++n) {{
            if (first + n * threads >= accesses) break;
#pragma unroll
            for (int lane = 0; lane < LANES; ++lane) count(a[n].lane[lane], bins, counts, mine);
        }}
    }}
    if (thread < rest) count(reinterpret_cast<const Value *>(values + accesses)[thread], bins, counts, mine);
#if ROOM
    __syncthreads();
    for (unsigned int b = threadIdx.x; b < bins; b += {threads}) {{
        unsigned int sum = 0;
        for (unsigned int c = 0; c < copies; ++c) sum += own[c * bins + b];
        if (sum) atomicAdd(counts + b, Count(sum));
    }}
#endif
}}
"""


@cache
def text_of(dtype: np.dtype[Any], *, shared: bool, wide: int, narrow: bool = False) -> str:
    """The text for values of a type. wide: bytes of an access, of which the array begins at a multiple. narrow: counts have 32 bits."""
    count = "unsigned int" if narrow else "unsigned long long"
    return TEXT.format(value=VALUES[dtype.name], threads=THREADS, room=ROOM if shared else 0, wide=wide, count=count)


def histogram(values: Any, counts: Any) -> None:
    """Count the values of an array of CuPy into another one on the same device."""
    device = device_of(values)
    shared = counts.size <= ROOM
    narrow = not shared and values.size < NARROW
    with cuda.use(device):
        count = cuda.cupy().zeros(counts.shape, np.uint32) if narrow else counts
        if not narrow:
            counts.fill(0)
        if not shared and bucket_counts_device.fits(values.size, counts.size):
            bucket_counts_device.add(values, count)
        elif values.size and counts.size:
            _launch(device, values, count, shared=shared, narrow=narrow)
        if narrow:
            counts[...] = count


def _launch(device: str, values: Any, counts: Any, *, shared: bool, narrow: bool) -> None:
    source = memory.address(values)
    wide = WIDE if source % WIDE == 0 else values.itemsize
    kernel = cuda.loaded(device, text_of(values.dtype, shared=shared, wide=wide, narrow=narrow), "histogram", THREADS)
    accesses, rest = divmod(values.size, wide // values.itemsize)
    blocks = min(cuda.multiprocessors(device) * BLOCKS, -(-values.size // THREADS))
    copies = min(COPIES, ROOM // counts.size) if shared else 1
    numbers = (np.int64(accesses), np.int32(rest), np.uint32(counts.size), np.uint32(copies))
    kernel.launch((blocks, 1), (source, memory.address(counts), *numbers))
