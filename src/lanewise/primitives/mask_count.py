"""How many elements a mask on a GPU keeps, and where those of each tile go: one kernel, then the
host gets.

A thread looks at sixteen flags at once and leaves them as bits, an eighth of the bytes, for the
kernel that copies. The block that ends last adds up groups of tiles, and writes the sum of all to
memory of the host, which waits for nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from lanewise.runtime.device import get_device
from lanewise.runtime.memory import address, allocate

THREADS = 256
FLAGS = 16  # of a thread: an access of 16 bytes
TILE = THREADS * FLAGS
GROUP = 32  # tiles, whose counts a warp adds up
TILES = 8  # of a block that counts: as many accesses of a thread are on their way

PLACES = f"""
#define THREADS {THREADS}
#define FLAGS {FLAGS}
#define TILE (THREADS * FLAGS)
#define GROUP {GROUP}
#define TILES {TILES}

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

// Lists which elements of the block's tile are kept; returns how many the tiles before keep.
__device__ __forceinline__ long long kept_places(const unsigned short *bits, const int *counts, const long long *groups,
                                                 unsigned short *places, int &total)
{{
    __shared__ long long start;
    unsigned int rest = bits[(long long)blockIdx.x * THREADS + threadIdx.x];
    if (threadIdx.x < GROUP) {{
        const long long group = blockIdx.x / GROUP;
        const int sum = __reduce_add_sync(~0u, threadIdx.x < blockIdx.x % GROUP ? counts[group * GROUP + threadIdx.x] : 0);
        if (threadIdx.x == 0) start = groups[group] + sum;
    }}
    int place = before(__popc(rest), total);
    for (; rest; rest &= rest - 1) places[place++] = threadIdx.x * FLAGS + __ffs(rest) - 1;
    __syncthreads();
    return start;
}}
"""

COUNT = """
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

// `counts`: of each tile; `groups`: what the groups of tiles before keep; `told`: what all keep, for the host. `ended`: blocks, 0 before.
extern "C" __global__ void __launch_bounds__(THREADS)
mask_count_kernel(const unsigned char *mask, unsigned short *bits, int *counts, long long *groups, long long *told, unsigned int *ended,
                  long long count)
{{
    __shared__ bool last;
    __shared__ int kept[TILES];
    const long long first_tile = (long long)blockIdx.x * TILES, tiles = (count + TILE - 1) / TILE;
    if (threadIdx.x < TILES) kept[threadIdx.x] = 0;
    __syncthreads();
    unsigned int own[TILES];
#pragma unroll
    for (int k = 0; k < TILES; ++k) own[k] = bits_of(mask, (first_tile + k) * TILE + threadIdx.x * FLAGS, count);
#pragma unroll
    for (int k = 0; k < TILES; ++k) {{
        if (first_tile + k < tiles) bits[(first_tile + k) * THREADS + threadIdx.x] = own[k];
        const int sum = __reduce_add_sync(~0u, __popc(own[k]));
        if (threadIdx.x % 32 == 0) atomicAdd(kept + k, sum);
    }}
    __syncthreads();
    if (threadIdx.x < TILES && first_tile + threadIdx.x < tiles) {{
        counts[first_tile + threadIdx.x] = kept[threadIdx.x];
        __threadfence();  // counts are seen before this block has ended
    }}
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(ended, 1u) == gridDim.x - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    long long sum = 0;
    const long long all = (tiles + GROUP - 1) / GROUP;
    for (long long first = 0; first < all; first += THREADS) {{
        const long long group = first + threadIdx.x;
        int own_tiles = 0, total;
        if (group < tiles / GROUP) {{
            const int4 *four = reinterpret_cast<const int4 *>(counts) + group * (GROUP / 4);
#pragma unroll
            for (int k = 0; k < GROUP / 4; ++k) {{
                const int4 c = __ldcg(four + k);
                own_tiles += c.x + c.y + c.z + c.w;
            }}
        }} else if (group < all) {{
            for (long long t = group * GROUP; t < tiles; ++t) own_tiles += __ldcg(counts + t);
        }}
        const int start = before(own_tiles, total);
        if (group < all) groups[group] = sum + start;
        sum += total;
        __syncthreads();  // all have read the sums of the warps
    }}
    if (threadIdx.x == 0) *told = sum;
}}
"""


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """A mask as bits, what tiles and groups of them keep, and how many elements there are.

    `memory` holds all of it.
    """

    bits: int
    counts: int
    groups: int
    count: int
    tiles: int
    memory: Any


@cache
def count_text(*, wide: bool) -> str:
    """The text of the kernel. wide: the mask begins at a multiple of 16 bytes."""
    return PLACES + COUNT.format(wide=int(wide))


def counted(device: str, mask: Any) -> Counted:
    """Count a contiguous array of CuPy of bool and shape (n,), and wait for the number."""
    tiles = -(-mask.size // TILE)
    if not tiles:
        return Counted(0, 0, 0, 0, 0, None)
    bits, counts, groups = 2 * THREADS * tiles, 4 * -(-tiles // 4) * 4, 8 * -(-tiles // GROUP)
    scratch = allocate(device, bits + counts + groups + 4, "the count of a mask", zeroed=False)
    told, source = get_device(device).pinned(8, "the count of a mask"), address(mask)
    begins = (address(scratch) + n for n in (0, bits, bits + counts, bits + counts + groups))
    bits_at, counts_at, groups_at, ended = begins
    get_device(device).clear(ended, 4)
    kernel = get_device(device).load(count_text(wide=source % FLAGS == 0), "mask_count", THREADS)
    arguments = source, bits_at, counts_at, groups_at, address(told), ended, np.int64(mask.size)
    kernel.launch((-(-tiles // TILES), 1), arguments)
    get_device(device).synchronize()
    return Counted(bits_at, counts_at, groups_at, int(told.view(np.int64)[0]), tiles, scratch)
