"""Exact sums of float32 into up to a million elements on a GPU, where an array says how much and another one where.

Atomic additions to global memory are what the L2 cache does, however they are written: some 1e11 a second. Those of shared memory take a
quarter of the time, and room for 8,192 elements. So values go to buckets of as many neighbouring elements first, in one pass that
counts and sorts tiles in shared memory; then blocks add up what is in a bucket. A block counts in units of its own, by the largest of
the values that it sees first: whole numbers of 64 bits, too many bits apart for the others, which go to the words of the exact sums
(`lanewise.exact_sums`), as do the block's totals and what a bucket has no room for. All of it is exact, so that no order matters.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from lanewise.collective.arrays import device_of
from lanewise.exact_sums import F32, GROUP
from lanewise.exact_sums_text import SCATTER_SUM
from lanewise.runtime import cuda, memory

ROOM = 8_192  # elements of a bucket: 64 KB of shared memory
BUCKETS = 128
MOST = ROOM * BUCKETS
FEW = 2**20  # values, for which one pass of atomic additions is as fast
LARGEST = 2**30  # values, of which no bucket has more than 32 bits count
SPLIT_THREADS, EACH = 512, 16
TILE = SPLIT_THREADS * EACH
THREADS = 1024
SLACK = 1.25  # room of a bucket, where all had as many values
SHARED = 8 * ROOM
WIDE = 16  # bytes of an access
SPLIT = """
#define THREADS {threads}
#define EACH {each}
#define TILE (THREADS * EACH)
#define BUCKETS {buckets}
#define BITS {bits}  // of a place within its bucket

// Puts each tile of values in the order of their buckets, and appends it to them.
extern "C" __global__ void __launch_bounds__(THREADS)
value_buckets_kernel(const int *places, const float *values, float *kept, unsigned short *within, unsigned int *lengths, long long *words,
                     long long count, long long room, unsigned int bins)
{{
    extern __shared__ unsigned int shared[];
    unsigned int *const place_of = shared;
    float *const value_of = reinterpret_cast<float *>(shared + TILE);
    __shared__ unsigned int counts[BUCKETS], starts[BUCKETS], before[BUCKETS / 32], all;
    __shared__ long long shift[BUCKETS];
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const long long tiles = (count + TILE - 1) / TILE;
    for (long long tile = blockIdx.x; tile < tiles; tile += gridDim.x) {{
        if (thread < BUCKETS) counts[thread] = 0;
        __syncthreads();
        unsigned int place[EACH], rank[EACH];
        float value[EACH];
#if {wide}
        if ((tile + 1) * TILE <= count) {{
#pragma unroll
            for (int n = 0; n < EACH / 4; ++n) {{
                const long long access = tile * (TILE / 4) + n * THREADS + thread;
                const int4 p = reinterpret_cast<const int4 *>(places)[access];
                const float4 v = reinterpret_cast<const float4 *>(values)[access];
                place[4 * n] = p.x; place[4 * n + 1] = p.y; place[4 * n + 2] = p.z; place[4 * n + 3] = p.w;
                value[4 * n] = v.x; value[4 * n + 1] = v.y; value[4 * n + 2] = v.z; value[4 * n + 3] = v.w;
            }}
        }} else
#endif
        {{
#pragma unroll
            for (int n = 0; n < EACH; ++n) {{
                const long long i = tile * TILE + n * THREADS + thread;
                place[n] = i < count ? places[i] : ~0u;
                value[n] = i < count ? values[i] : 0.0f;
            }}
        }}
#pragma unroll
        for (int n = 0; n < EACH; ++n)
            if (place[n] < bins) rank[n] = atomicAdd(counts + (place[n] >> BITS), 1u);
        __syncthreads();
        unsigned int own = 0, sum = 0;
        if (thread < BUCKETS) {{
            own = sum = counts[thread];
#pragma unroll
            for (int d = 1; d < 32; d *= 2) {{
                const unsigned int other = __shfl_up_sync(~0u, sum, d);
                if (lane >= d) sum += other;
            }}
            if (lane == 31) before[warp] = sum;
        }}
        __syncthreads();
        if (thread < BUCKETS) {{
            unsigned int start = sum - own;
            for (int w = 0; w < warp; ++w) start += before[w];
            starts[thread] = start;
            shift[thread] = (long long)atomicAdd(lengths + thread, own) - start;
            if (thread == BUCKETS - 1) all = start + own;
        }}
        __syncthreads();
#pragma unroll
        for (int n = 0; n < EACH; ++n) {{
            if (place[n] >= bins) continue;
            const unsigned int at = starts[place[n] >> BITS] + rank[n];
            place_of[at] = place[n];
            value_of[at] = value[n];
        }}
        __syncthreads();
#pragma unroll
        for (int n = 0; n < EACH; ++n) {{
            const unsigned int at = n * THREADS + thread;
            if (at >= all) break;
            const unsigned int p = place_of[at], bucket = p >> BITS;
            const long long to = shift[bucket] + at;
            if (to >= room) {{
                lw_scatter_sum(words, p, value_of[at]);
            }} else {{
                kept[bucket * room + to] = value_of[at];
                within[bucket * room + to] = (unsigned short)(p & ((1u << BITS) - 1));
            }}
        }}
        __syncthreads();
    }}
}}
"""
SUM = """
#define THREADS {threads}
#define ROOM {bins}

__device__ __forceinline__ unsigned int exponent_of(float value) {{ return max(__float_as_uint(value) >> 23 & 255u, 1u); }}

// Adds a value to two halves of a whole number in units of 2^(unit - 150), where it fits, else to the words.
__device__ __forceinline__ void add(unsigned int *low, unsigned int *high, unsigned int at, float value, int unit, unsigned int span,
                                    long long *words, long long element)
{{
    const unsigned int bits = __float_as_uint(value), exponent = bits >> 23 & 255u;
    const unsigned int up = max(exponent, 1u) - unit;
    if (up > span || exponent == 255u) {{
        if (bits << 1) lw_scatter_sum(words, element, value);
        return;
    }}
    const long long size = (long long)(exponent ? bits & 0x7fffffu | 0x800000u : bits & 0x7fffffu) << up;
    const unsigned long long number = bits >> 31 ? -size : size;
    const unsigned int small = (unsigned int)number, before = atomicAdd(low + at, small);
    const unsigned int large = (unsigned int)(number >> 32) + (before + small < small);
    if (large) atomicAdd(high + at, large);
}}

// A bucket (or all) of the elements, and a part of its values.
extern "C" __global__ void __launch_bounds__(THREADS)
bucket_sums_kernel(const float *values, const {scalar} *places, const unsigned int *lengths, long long *words, long long count,
                   long long room, int parts, unsigned int bins)
{{
    extern __shared__ unsigned int low[];
    unsigned int *const high = low + ROOM;
    __shared__ unsigned int top;
    const long long bucket = blockIdx.x / parts, part = blockIdx.x % parts, element = bucket * ROOM;
    for (int n = threadIdx.x; n < 2 * ROOM; n += THREADS) low[n] = 0;
    if (threadIdx.x == 0) top = 1;
    __syncthreads();
#if {direct}
    const long long all = count;
#else
    const long long all = min((long long)lengths[bucket], room);
#endif
    const long long share = ((all + parts - 1) / parts + 3) / 4 * 4, begin = bucket * room + part * share;
    const long long end = bucket * room + min(all, (part + 1) * share);
    const unsigned int own = (unsigned int)min((long long)bins - element, (long long)ROOM);
    if (begin + threadIdx.x < end) {{
        const unsigned int exponent = exponent_of(values[begin + threadIdx.x]);
        if (exponent != 255u) atomicMax(&top, exponent);
    }}
    __syncthreads();
    const unsigned int span = 38 - (64 - __clzll(share));  // 24 bits of a value, as many as count them, and the sign
    const int unit = max((int)top + 2 - (int)span, 1);
    long long i = begin + 4 * threadIdx.x;
    for (; i + 3 < end; i += 4 * THREADS) {{
#if {wide}
        const float4 v = *reinterpret_cast<const float4 *>(values + i);
        const {place}4 p = *reinterpret_cast<const {place}4 *>(places + i);
        const float value[4] = {{v.x, v.y, v.z, v.w}};
        const unsigned int place[4] = {{(unsigned int)p.x, (unsigned int)p.y, (unsigned int)p.z, (unsigned int)p.w}};
#else
        float value[4];
        unsigned int place[4];
        for (int n = 0; n < 4; ++n) {{ value[n] = values[i + n]; place[n] = (unsigned int)places[i + n]; }}
#endif
#pragma unroll
        for (int n = 0; n < 4; ++n)
            if (place[n] < own) add(low, high, place[n], value[n], unit, span, words, element + place[n]);
    }}
    for (; i < end; ++i)
        if ((unsigned int)places[i] < own) add(low, high, places[i], values[i], unit, span, words, element + places[i]);
    __syncthreads();
    for (unsigned int n = threadIdx.x; n < own; n += THREADS) {{
        const long long sum = (long long)((unsigned long long)high[n] << 32 | low[n]);
        if (!sum) continue;
        const unsigned long long size = sum < 0 ? -(unsigned long long)sum : sum, right = size << (unit & 31);
        const unsigned long long left = unit & 31 ? size >> (64 - (unit & 31)) : 0;
        const long long e = element + n;
        unsigned long long *const word = reinterpret_cast<unsigned long long *>(words) + (e / {group} * {group_words} + e % {group})
            + (unit >> 5) * {group};
        const long long pieces[3] = {{(long long)(right & 0xffffffffull), (long long)(right >> 32), (long long)left}};
#pragma unroll
        for (int n = 0; n < 3; ++n)
            if (pieces[n]) lw_scatter_piece(word + n * {group}, sum < 0 ? -pieces[n] : pieces[n]);
    }}
}}
"""


@cache
def split_text(*, wide: bool) -> str:
    """The text of the first pass. wide: the arrays begin at a multiple of 16 bytes."""
    bits = ROOM.bit_length() - 1
    return SCATTER_SUM + SPLIT.format(threads=SPLIT_THREADS, each=EACH, buckets=BUCKETS, bits=bits, wide=int(wide))


@cache
def sum_text(*, wide: bool, direct: bool) -> str:
    """The text of the second pass. direct: it is the only one, over the places of the caller."""
    place, scalar = ("int", "int") if direct else ("ushort", "unsigned short")
    return SCATTER_SUM + SUM.format(
        threads=THREADS, bins=ROOM, place=place, scalar=scalar, direct=int(direct), wide=int(wide), group=GROUP,
        group_words=GROUP * F32.words,
    )  # fmt: skip


def fits(count: int, elements: int) -> bool:
    """Whether buckets pay: few elements meet in any case, and of many values buckets are filled well."""
    return FEW <= count <= LARGEST and elements <= MOST


def add(places: Any, values: Any, words: Any, elements: int) -> None:
    """Add values of float32 at places of int32, both arrays of CuPy, to the words of exact sums; places outside are left out."""
    device, count = device_of(values), int(values.size)
    addresses = memory.address(places), memory.address(values)
    wide = all(a % WIDE == 0 for a in addresses)
    blocks = cuda.multiprocessors(device)
    if elements <= ROOM:
        _sum(device, addresses[1], addresses[0], 0, words, count, 0, blocks * 2, 1, elements, wide=wide, direct=True)
        return
    buckets = -(-elements // ROOM)
    room = -(-int(count / (elements / ROOM) * SLACK) // 8) * 8
    scratch = memory.allocate(device, 4 * BUCKETS + 6 * room * buckets, "buckets of values", zeroed=False)
    with cuda.use(device):
        scratch[: 4 * BUCKETS] = 0
    lengths = memory.address(scratch)
    kept = lengths + 4 * BUCKETS
    within = kept + 4 * room * buckets
    kernel = cuda.loaded(device, split_text(wide=wide), "value_buckets", SPLIT_THREADS, SHARED)
    numbers = (np.int64(count), np.int64(room), np.uint32(elements))
    grid = min(-(-count // TILE), blocks * 3)
    kernel.launch((grid, 1), (*addresses, kept, within, lengths, memory.address(words), *numbers))
    parts = max(1, round(2 * blocks / buckets))
    _sum(device, kept, within, lengths, words, count, room, parts, buckets, elements, wide=True, direct=False)


def _sum(
    device: str, values: int, places: int, lengths: int, words: Any, count: int, room: int, parts: int, buckets: int, elements: int,
    *, wide: bool, direct: bool,
) -> None:  # fmt: skip
    kernel = cuda.loaded(device, sum_text(wide=wide, direct=direct), "bucket_sums", THREADS, SHARED)
    numbers = (np.int64(count), np.int64(room), np.int32(parts), np.uint32(elements))
    kernel.launch((buckets * parts, 1), (values, places, lengths, memory.address(words), *numbers))
