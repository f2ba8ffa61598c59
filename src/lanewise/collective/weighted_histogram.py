"""Exact sums of float32 into up to a million elements on a GPU, where an array says how much and another one where.

Values go to buckets first (`collective.value_buckets`); then blocks add up what is in a bucket. A block counts in units of its own, by the
largest of the values that it sees first: whole numbers of 64 bits, too many bits apart for the others, which go to the words of the exact
sums (`language.exact_sums`), as do the block's totals and what a bucket has no room for. All of it is exact, so that no order matters.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from lanewise.collective import value_buckets
from lanewise.collective.value_buckets import WIDE, Split
from lanewise.language.exact_sums import F32, GROUP
from lanewise.runtime import cuda, memory
from lanewise.runtime.exact_sums_text import SCATTER_SUM
from lanewise.runtime.memory import device_of

ROOM = 8_192  # elements of a bucket: 64 KB of shared memory
SPLIT = Split(
    ROOM, threads=512, each=12, blocks=2, place="int", kind="long long", beyond="lw_scatter_sum(sums, p, value_of[at])",
    head=SCATTER_SUM, valued=True,
)  # fmt: skip
THREADS = 1024
SHARED = 8 * ROOM
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
def sum_text(*, wide: bool, direct: bool) -> str:
    """The text of the second pass. direct: it is the only one, over the places of the caller."""
    place, scalar = ("int", "int") if direct else ("ushort", "unsigned short")
    return SCATTER_SUM + SUM.format(
        threads=THREADS, bins=ROOM, place=place, scalar=scalar, direct=int(direct), wide=int(wide), group=GROUP,
        group_words=GROUP * F32.words,
    )  # fmt: skip


def fits(count: int, elements: int) -> bool:
    """Whether buckets pay."""
    return value_buckets.fits(count, elements, ROOM)


def add(places: Any, values: Any, words: Any, elements: int) -> None:
    """Add values of float32 at places of int32, both arrays of CuPy, to the words of exact sums; places outside are left out."""
    device, count = device_of(values), int(values.size)
    addresses, to = (memory.address(places), memory.address(values)), memory.address(words)
    blocks = cuda.multiprocessors(device)
    if elements <= ROOM:
        wide = all(a % WIDE == 0 for a in addresses)
        _sum(device, addresses[1], addresses[0], 0, to, count, 0, blocks * 2, 1, elements, wide=wide, direct=True)
        return
    b = value_buckets.fill(SPLIT, device, places, values, to, elements)
    parts = max(1, round(2 * blocks / b.count))
    _sum(device, b.kept, b.within, b.lengths, to, count, b.room, parts, b.count, elements, wide=True, direct=False)


def _sum(
    device: str, values: int, places: int, lengths: int, words: int, count: int, room: int, parts: int, buckets: int, elements: int,
    *, wide: bool, direct: bool,
) -> None:  # fmt: skip
    kernel = cuda.loaded(device, sum_text(wide=wide, direct=direct), "bucket_sums", THREADS, SHARED)
    numbers = (np.int64(count), np.int64(room), np.int32(parts), np.uint32(elements))
    kernel.launch((buckets * parts, 1), (values, places, lengths, words, *numbers))
