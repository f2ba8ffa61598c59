"""Compaction on a GPU: tiles are counted, their sums added up, then each tile copies its rows to where those before it end.

The host learns how many rows there are before it allocates the result, and nothing else. In a tile threads list the places of what is
kept in shared memory; neighbouring threads then copy neighbouring rows of the list, so that what is written is coalesced, and what is
read as far as the mask allows.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from lanewise.collective import cumsum_device
from lanewise.collective.arrays import device_of
from lanewise.runtime import cuda, memory

THREADS = 256
FLAGS = 16  # of a thread: an access of 16 bytes
TILE = THREADS * FLAGS
UNITS = {16: "uint4", 8: "unsigned long long", 4: "unsigned int", 2: "unsigned short", 1: "unsigned char"}
TEXT = """
#define THREADS {threads}
#define FLAGS {flags}
#define TILE (THREADS * FLAGS)
#define ROW {row}  // units of a row
typedef {unit} Unit;

// Which of the flags of a thread are set, as bits.
__device__ __forceinline__ unsigned int bits_of(const unsigned char *mask, long long first, long long count)
{{
    unsigned int bits = 0;
#if {wide}
    if (first + FLAGS <= count) {{
        const uint4 four = *reinterpret_cast<const uint4 *>(mask + first);
        const unsigned int words[4] = {{four.x, four.y, four.z, four.w}};
#pragma unroll
        for (int w = 0; w < 4; ++w) bits |= ((__vcmpne4(words[w], 0u) & 0x01010101u) * 0x01020408u >> 24 & 15u) << 4 * w;
        return bits;
    }}
#endif
    for (int f = 0; f < FLAGS; ++f)
        if (first + f < count && mask[first + f]) bits |= 1u << f;
    return bits;
}}

// The sum of the values of the threads before, and of all.
__device__ __forceinline__ int before(int value, int &total)
{{
    __shared__ int sums[THREADS / 32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int sum = value;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {{
        const int other = __shfl_up_sync(~0u, sum, d);
        if (lane >= d) sum += other;
    }}
    if (lane == 31) sums[warp] = sum;
    __syncthreads();
    int start = 0;
    total = 0;
#pragma unroll
    for (int w = 0; w < THREADS / 32; ++w) {{
        if (w == warp) start = total;
        total += sums[w];
    }}
    return start + sum - value;
}}

extern "C" __global__ void __launch_bounds__(THREADS)
{name}_kernel(const Unit *rows, const unsigned char *mask, long long *starts, Unit *kept, long long count)
{{
    const long long tile = (long long)blockIdx.x * TILE;
    const unsigned int bits = bits_of(mask, tile + threadIdx.x * FLAGS, count);
    int total;
    int place = before(__popc(bits), total);
#if {counting}
    if (threadIdx.x == 0) starts[blockIdx.x] = total;
#else
    __shared__ unsigned short places[TILE];
    for (unsigned int rest = bits; rest; rest &= rest - 1) places[place++] = threadIdx.x * FLAGS + __ffs(rest) - 1;
    __syncthreads();
    const long long start = starts[blockIdx.x] - total;
#pragma unroll 8
    for (int n = threadIdx.x; n < total * ROW; n += THREADS) {{
        kept[start * ROW + n] = rows[(tile + places[n / ROW]) * ROW + n % ROW];
    }}
#endif
}}
"""


@cache
def text_of(name: str, unit: int, row: int, *, wide: bool, counting: bool = False) -> str:
    """The text for rows of some units of that many bytes. wide: the mask begins at a multiple of 16 bytes."""
    return TEXT.format(
        threads=THREADS,
        flags=FLAGS,
        row=row,
        unit=UNITS[unit],
        wide=int(wide),
        counting=int(counting),
        name=name,
    )


def _ends(mask: Any, device: str) -> Any:
    """How many rows are kept up to the end of each tile."""
    tiles = -(-len(mask) // TILE)
    sums = memory.allocate(device, 8 * tiles, "compaction", zeroed=False).view(np.int64)
    source = memory.address(mask)
    text = text_of("kept_count", 4, 1, wide=source % FLAGS == 0, counting=True)
    kernel = cuda.loaded(device, text, "kept_count", THREADS)
    kernel.launch((tiles, 1), (source, source, memory.address(sums), source, np.int64(len(mask))))
    cumsum_device.cumsum(sums, sums, exclusive=False)
    return sums


def _copy(device: str, rows: int, mask: Any, ends: Any, kept: Any, unit: int, row: int) -> None:
    source = memory.address(mask)
    text = text_of("compaction", unit, row, wide=source % FLAGS == 0)
    kernel = cuda.loaded(device, text, "compaction", THREADS)
    numbers = (memory.address(ends), memory.address(kept), np.int64(len(mask)))
    kernel.launch((len(ends), 1), (rows, source, *numbers))


def compact(array: Any, mask: Any) -> Any:
    """The rows of an array of CuPy whose mask is true."""
    device, shape = device_of(array), tuple(array.shape[1:])
    size = array.itemsize * int(np.prod(shape, dtype=np.int64))
    with cuda.use(device):
        if not len(mask):
            return cuda.cupy().empty((0, *shape), array.dtype)
        ends = _ends(mask, device)
        result = cuda.cupy().empty((int(ends[-1]), *shape), array.dtype)
    if result.size:
        source = memory.address(array)
        unit = next(w for w in UNITS if size % w == 0 and source % w == 0)
        _copy(device, source, mask, ends, result, unit, size // unit)
    return result
