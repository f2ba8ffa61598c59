"""`lw.histogram`, how often each integer occurs: what it takes, and how a CPU and a GPU do it.

On a CPU each thread counts in separate bins, and these are added up. Bins that are more than the
caches of a core hold are counted in buckets of neighbours, unless there are few values.

On a GPU values are counted in bins of a block's own in shared memory where they fit there, else by
way of buckets of bins that do. Few values, and more bins than buckets take, are counted by the
atomics of global memory. Few bins have several copies, one for some warps
each: threads that add to one place of shared memory wait for each other.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from lanewise.language.types import I64
from lanewise.primitives import buckets, whole_sums
from lanewise.primitives.arrays import check_out, check_row, empty_beside
from lanewise.primitives.own_copies import OwnCopy, run_with_copies
from lanewise.runtime import cpu
from lanewise.runtime.device import get_device
from lanewise.runtime.memory import address, array_module, device_of, on, overlap
from lanewise.support.attributes import settings_by_name
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError

TYPES = ("int32", "uint32", "int64")
ADVICE = "bins are integers: .astype(np.int32) of what tells them"
MOST = 2**31 - 1  # bins


@settings_by_name
def histogram(values: Any, *, bins: int, out: Any = None) -> Any:
    """How often each of the numbers 0 to `bins - 1` occurs in an array. Other numbers are not
    counted.

    values: a contiguous array of NumPy or CuPy of shape (n,) of int32, uint32 or int64. The result
    is int64 of shape (bins,), on the device of the values; the call does not wait for a GPU. out:
    an array for the result, which is overwritten.

    Results are exact: the same in every run and on every device. Raises `ArgumentError` for other
    arrays and numbers.
    """
    check_row("histogram: the array of values", values, TYPES, ADVICE)
    whole = isinstance(bins, (int, np.integer)) and not isinstance(bins, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
    if not whole or not 0 <= bins <= MOST:
        raise ArgumentError(
            f"histogram: bins= is an integer from 0 to {MOST:,}, found {shown(bins)}"
        )
    shape = (int(bins),)
    if out is None:
        out = empty_beside(values, np.int64, shape)
    else:
        check_row("histogram: out", out, ("int64",), "counts have 64 bits")
        check_out("histogram", out, values, np.int64, shape)
        if overlap(out, values):
            raise ArgumentError(
                "histogram: out shares memory with the values; give it its own memory"
            )
    run = on_host if isinstance(values, np.ndarray) else on_gpu
    run(values, out)
    return out


# ------------------------------------------------------------ on a CPU

PART = 16_384  # values at least
OWN = (OwnCopy(1, "add", I64),)
# Rounds are counted down: LLVM then reads at a pointer that moves, without an index register.
HOST_TEXT = """def histogram_kernel(values, counts, begin, end):
    bins = uint64(len(counts))
    i, left = begin, end - begin
    while left > 0:
        v = uint64(int64(values[uint64(i)]))
        if v < bins:
            counts[v] += 1
        i += 1
        left -= 1
"""


def on_host(values: Any, counts: Any) -> None:
    """Count the values of an array of NumPy into another one."""
    counts[:] = 0
    cached = counts.nbytes <= buckets.HOST_CACHED
    if not cached and buckets.fits_on_host(values.size, counts.size):
        whole_sums.add_on_host(values, None, counts)
        return
    kernel: Any = cpu.own_kernel(HOST_TEXT, "histogram")
    run_with_copies(kernel, (values, counts), values.size, PART, OWN)


# ------------------------------------------------------------ on a GPU

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
    """The text for values of a type. wide: bytes of an access, of which the array begins at a
    multiple. narrow: counts have 32 bits.
    """
    count = "unsigned int" if narrow else "unsigned long long"
    return TEXT.format(
        value=VALUES[dtype.name],
        threads=THREADS,
        room=ROOM if shared else 0,
        wide=wide,
        count=count,
    )


def on_gpu(values: Any, counts: Any) -> None:
    """Count the values of an array of CuPy into another one on the same device."""
    device = device_of(values)
    shared = counts.size <= ROOM
    narrow = not shared and values.size < NARROW
    with on(device):
        count = array_module(device).zeros(counts.shape, np.uint32) if narrow else counts
        if not narrow:
            counts.fill(0)
        if not shared and whole_sums.fits_on_gpu(values.size, counts.size):
            whole_sums.add_on_gpu(values, count)
        elif values.size and counts.size:
            _launch(device, values, count, shared=shared, narrow=narrow)
        if narrow:
            counts[...] = count


def _launch(device: str, values: Any, counts: Any, *, shared: bool, narrow: bool) -> None:
    source = address(values)
    wide = WIDE if source % WIDE == 0 else values.itemsize
    kernel = get_device(device).load(
        text_of(values.dtype, shared=shared, wide=wide, narrow=narrow), "histogram", THREADS
    )
    accesses, rest = divmod(values.size, wide // values.itemsize)
    blocks = min(get_device(device).units() * BLOCKS, -(-values.size // THREADS))
    copies = min(COPIES, ROOM // counts.size) if shared else 1
    numbers = (np.int64(accesses), np.int32(rest), np.uint32(counts.size), np.uint32(copies))
    kernel.launch((blocks, 1), (source, address(counts), *numbers))
