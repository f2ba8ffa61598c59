"""Exact sums of floats into the elements of an array at places that another array tells: by way of
buckets, on a CPU and on a GPU.

On a CPU few elements get their sums directly (`primitives.direct_sums`). Of more an element has two
whole numbers of 64 bits, which most values are split into by additions.

A value x is split at two weights, top and low: `x + 1.5 * 2^52 * top` is rounded to a multiple of
`top`, which the last bits of the sum say as an integer; what is left over is split at `low` in
the same way, and has to have nothing left over then. So a value takes five additions of floats,
which go over several values at once, and two of integers to the element, which need no test of
a carry: after `MOST` values of a bucket its numbers go to the words of `language.exact_sums`. There
go also values that are too large, too small or not finite. Both are exact, so where a value ends
up changes no bit. The weights are chosen by the largest of a sample of the values.

At the end the two numbers of an element, and the element, are three floats whose sum is rounded
once; what is left over of adding two of them exactly tells whether that is so. Where it is not, and
in buckets of which something went to the words, all of it goes there.

On a GPU values are float32, and elements up to a million. Values go to buckets first
(`primitives.buckets`); then blocks add up what is in a bucket. A block counts in its own units,
by the largest of the values that it sees first: whole numbers of 64 bits, too many bits apart
for the others, which go to the words of the exact sums (`language.exact_sums`), as do the block's
totals and what a bucket has no room for. All of it is exact, so that no order matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import ldexp
from typing import Any

import numpy as np

from lanewise.language.exact_sums import F32, FORMATS, GROUP, FloatFormat
from lanewise.primitives.buckets import WIDE, Split, buckets_of, fill, fits, splits
from lanewise.primitives.direct_sums import add_directly
from lanewise.primitives.words_text import words_text
from lanewise.runtime import cpu
from lanewise.runtime.device import get_device
from lanewise.runtime.exact_sums_text import SCATTER_SUM
from lanewise.runtime.memory import address, device_of

# ------------------------------------------------------------ on a CPU

HOST_ROOM = 2**15  # elements of a bucket, which are 512 KiB of numbers
# Values of a round, at least and at most: 8 of each element, whose numbers every round reads again.
ROUND, ROUNDS = 2**20, 2**23
MOST = 2**20  # values that the numbers of a bucket hold without a carry
# Bits that a value has above the first weight, and those down to the second one: 2^62 is not
# reached.
ABOVE_TOP, BELOW_TOP = 42, 43
SAMPLE = 1_024  # values that tell how large they are
HOST_TEXT = """def emptied(state, words, count, element, top_place, low_place):  # the numbers of an element go to the words
    for half in range(2):
        at = element << uint64(1) | uint64(half)
        number, place = state[at], low_place if half else top_place
        state[at] = 0
        word, up = place >> int64(5), place & int64(31)
        low, high = int64(uint64(number & int64(0xFFFFFFFF)) << uint64(up)), number >> int64(32) << up
        if low:
            carried(words, count, element, word, low)
        if high:
            carried(words, count, element, word + 1, high)


def bucket_sums_kernel(
    within, kept, bits, starts, tiles, shift, state, held, mixed, words, array, weights, biases, places, first_round, last_round, begin, end
):
    count = uint64(len(words) // {words} - 1)
    top, low, limit, one_top, one_low = weights[0], weights[1], weights[2], weights[3], weights[4]
    top_bias, low_bias, top_place, low_place = biases[0], biases[1], places[0], places[1]
    pairs = empty(2 * {block}, int64)  # both numbers of a value, side by side
    odd = empty(1, int64)
    odd_sum = odd.view(float64)
    for b in range(begin, end):
        base = uint64(b) << uint64(shift)
        beyond = min(base + (uint64(1) << uint64(shift)), uint64(len(array)))
        if first_round:
            state[base << uint64(1) : beyond << uint64(1)] = 0
        for t in range(tiles):
            first, stop = starts[t, b], starts[t, b + 1]
            if held[b] + stop - first > {most}:
                mixed[b], held[b] = 1, 0
                for e in range(base, beyond):
                    emptied(state, words, count, uint64(e), top_place, low_place)
            held[b] += stop - first
            for s in range(first, stop, {block}):
                size, others = min({block}, stop - s), 0
                for j in range(size):
                    prefetch_to_store(state, base + uint64(within[uint64(s + j)]) << uint64(1))
                for j in range(size):
                    x = float64(kept[uint64(s + j)])
                    whole = x + top
                    rest = x - (whole - top)
                    part = rest + low
                    pairs[uint64(j) << uint64(1)] = whole.view(int64) - top_bias
                    pairs[uint64(j) << uint64(1) | uint64(1)] = part.view(int64) - low_bias
                    others += (not (abs(x) < limit)) | (part - low != rest)
                if others:
                    for j in range(size):
                        x, element = float64(kept[uint64(s + j)]), base + uint64(within[uint64(s + j)])
                        rest = x - ((x + top) - top)
                        if abs(x) < limit and (rest + low) - low == rest:
                            state[element << uint64(1)] += pairs[uint64(j) << uint64(1)]
                            state[element << uint64(1) | uint64(1)] += pairs[uint64(j) << uint64(1) | uint64(1)]
                        else:
                            mixed[b] = 1
                            added(words, count, element, bits[uint64(s + j)])
                    continue
                for j in range(size):
                    at = base + uint64(within[uint64(s + j)]) << uint64(1)
                    add_pair(state, at, pairs, uint64(j) << uint64(1))
        if last_round:
            for e in range(base, beyond):
                element = uint64(e)
                at = element << uint64(1)
                s, c = state[at], state[at | uint64(1)]
                if not (s | c):
                    continue
                one, other, own = float64(s) * one_top, float64(c) * one_low, float64(array[element])
                small = left_over(one, own)
                large, near, lost = one + own, other + small, left_over(other, small)
                if mixed[b] or lost != 0.0 or max(abs(s), abs(c)) > {precise}:
                    emptied(state, words, count, element, top_place, low_place)
                    continue
                state[at], state[at | uint64(1)] = 0, 0
                if one + other != 0.0:  # else the element keeps its bits
                    array[element] = nearest(large, near, odd, odd_sum)
"""
BLOCK = 64  # values that are split before they are added


@dataclass(frozen=True, slots=True)
class Weights:
    """What numbers of an element count: multiples of 2^top and 2^low. Values are below 2^limit."""

    top: int
    low: int

    @property
    def limit(self) -> int:
        """Values are smaller than two to the power of it."""
        return self.top + ABOVE_TOP


@cache
def host_text_of(name: str) -> str:
    """The text that adds up buckets of floats, by NumPy's name of their type."""
    kind = FORMATS[name]
    return words_text(name) + HOST_TEXT.format(
        words=kind.words,
        block=BLOCK,
        most=MOST,
        precise=2**53,
    )


def add_on_host(places: Any, values: Any, words: Any, array: Any) -> None:
    """Add floats to the elements of an array (m,), exactly; places outside are left out.

    What does not fit goes to the words of exact sums.

    places: int32 or int64, values: float32 or float64, both (n,), of the array's type; words: those
    of all elements, zero.
    """
    kind = FORMATS[values.dtype.name]
    if add_directly(places, values, words, array):
        return
    weights = weights_for(kind, values)
    buckets = buckets_of(array.size, HOST_ROOM)
    state = np.empty(2 * array.size, np.int64)  # of large pages, as zeros of NumPy are not
    held, mixed = np.zeros(buckets.count, np.int64), np.zeros(buckets.count, np.uint8)
    scaled = np.array([1.5 * ldexp(1.0, 52 + weights.top), 1.5 * ldexp(1.0, 52 + weights.low)])
    numbers = np.array(
        [*scaled, *(ldexp(1.0, n) for n in (weights.limit, weights.top, weights.low))]
    )
    unit = smallest(kind) - 1
    how = numbers, scaled.view(np.int64), np.array([weights.top - unit, weights.low - unit])
    kernel: Any = cpu.own_kernel(host_text_of(kind.name), "bucket_sums")
    for part in splits(places, values, buckets, min(max(8 * array.size, ROUND), ROUNDS)):
        (kept,) = part.kept
        own = (
            part.within,
            kept,
            kept.view(kind.bits.name[1:]),
            part.starts,
            part.tiles,
            buckets.shift,
        )
        cpu.run_range(
            kernel,
            (*own, state, held, mixed, words, array, *how, part.first, part.last),
            buckets.count,
            1,
        )


def smallest(kind: FloatFormat) -> int:
    """The exponent of the smallest float of a type that is not zero: its bits count from there."""
    return 2 - kind.most // 2 - kind.significand


def weights_for(kind: FloatFormat, values: Any) -> Weights:
    """The weights that take values up to twice as large as the largest of a sample, and as many
    small ones as there is room for.
    """
    sample = np.abs(values[:: max(len(values) // SAMPLE, 1)])
    largest = float(np.max(sample, where=np.isfinite(sample), initial=0.0))
    exponent = np.frexp(largest)[1] + 1 if largest else smallest(kind)
    top = min(max(int(exponent) - ABOVE_TOP, smallest(kind)), 960)
    return Weights(top, max(top - BELOW_TOP, smallest(kind)))


# ------------------------------------------------------------ on a GPU

ROOM = 8_192  # elements of a bucket: 64 KB of shared memory
SPLIT = Split(
    ROOM,
    threads=512,
    each=12,
    blocks=2,
    place="int",
    kind="long long",
    beyond="lw_scatter_sum(sums, p, value_of[at])",
    head=SCATTER_SUM,
    valued=True,
)
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
        threads=THREADS,
        bins=ROOM,
        place=place,
        scalar=scalar,
        direct=int(direct),
        wide=int(wide),
        group=GROUP,
        group_words=GROUP * F32.words,
    )


def fits_on_gpu(count: int, elements: int) -> bool:
    """Whether buckets pay."""
    return fits(count, elements, ROOM)


def add_on_gpu(places: Any, values: Any, words: Any, elements: int) -> None:
    """Add values of float32 at places of int32, both arrays of CuPy, to the words of exact sums;
    places outside are left out.
    """
    device, count = device_of(values), int(values.size)
    addresses, to = (address(places), address(values)), address(words)
    blocks = get_device(device).units()
    if elements <= ROOM:
        wide = all(a % WIDE == 0 for a in addresses)
        _sum(
            device,
            addresses[1],
            addresses[0],
            0,
            to,
            count,
            0,
            blocks * 2,
            1,
            elements,
            wide=wide,
            direct=True,
        )
        return
    b = fill(SPLIT, device, places, values, to, elements)
    parts = max(1, round(2 * blocks / b.count))
    _sum(
        device,
        b.kept,
        b.within,
        b.lengths,
        to,
        count,
        b.room,
        parts,
        b.count,
        elements,
        wide=True,
        direct=False,
    )


def _sum(
    device: str,
    values: int,
    places: int,
    lengths: int,
    words: int,
    count: int,
    room: int,
    parts: int,
    buckets: int,
    elements: int,
    *,
    wide: bool,
    direct: bool,
) -> None:
    kernel = get_device(device).load(
        sum_text(wide=wide, direct=direct), "bucket_sums", THREADS, SHARED
    )
    numbers = (np.int64(count), np.int64(room), np.int32(parts), np.uint32(elements))
    kernel.launch((buckets * parts, 1), (values, places, lengths, words, *numbers))
