"""Keys of 32 bits and their indices, brought into ascending order: equal keys stay as they were.

On a CPU one thread takes three digits of ten bits, whose counts fit a first-level cache: keys
have 30 bits.

On a GPU there is one pass over the memory for each of four digits of eight bits. A block takes
the next tile of elements, ranks them by their digit, learns from the tiles before how many
elements with this digit they hold, and writes each run of equal digits where it belongs. No block
waits for one that has not begun, since tiles are handed out in the order in which blocks begin.
Its time depends on the number of elements alone, never on where they are.

Method: a pass a digit with decoupled look-back (D. Merrill and M. Garland 2016 for the scan, A.
Adinets and D. Merrill 2022 for the sort); a thread looks back at `WINDOW` tiles at once, because
all tiles of a million elements run at the same time and the chain between them is what a pass
waits for. It sorts at most 2^30 - 1 elements: a count shares its word with two bits that say how
far it has come.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.runtime import cpu

# ------------------------------------------------------------ on a CPU

HOST_BITS = 10  # of a digit
HOST_TEXT = """def radix_sort_kernel(keys, other_keys, order, other_order, digit_bits):
    bins = 1 << digit_bits  # three passes of ten bits: their counts fit a first-level cache
    count, mask = len(keys), bins - 1
    counts = zeros((3, bins), int64)
    for i in range(count):
        key = int64(keys[i])
        for p in range(3):
            counts[p, key >> p * digit_bits & mask] += 1
    for p in range(3):
        total = 0
        for d in range(bins):
            here = counts[p, d]
            counts[p, d] = total
            total += here
    for i in range(count):
        key = int64(keys[i])
        to = counts[0, key & mask]
        counts[0, key & mask] = to + 1
        other_keys[to] = keys[i]
        other_order[to] = i
    for i in range(count):
        d = int64(other_keys[i]) >> digit_bits & mask
        to = counts[1, d]
        counts[1, d] = to + 1
        keys[to] = other_keys[i]
        order[to] = other_order[i]
    for i in range(count):
        d = int64(keys[i]) >> 2 * digit_bits & mask
        to = counts[2, d]
        counts[2, d] = to + 1
        other_order[to] = order[i]
    for i in range(count):  # a slice would be checked for its length, by much machine code
        order[i] = other_order[i]
"""


def on_host(
    keys: NDArray[np.uint32],
    other_keys: NDArray[np.uint32],
    order: NDArray[np.int32],
    other_order: NDArray[np.int32],
) -> None:
    """Put the indices of keys below 2^30 into `order`; all arrays have shape (n,).

    The keys and the other arrays are overwritten.
    """
    cpu.own_kernel(HOST_TEXT, "radix_sort")(keys, other_keys, order, other_order, HOST_BITS)


# ------------------------------------------------------------ on a GPU

BINS = 256  # of a digit of eight bits
PASSES = 4
THREADS = 512

SORT = """
#define WARPS (THREADS / 32)
#define TILE (THREADS * ITEMS)
#define PARTIAL 0x40000000u  // the count of this tile alone is there
#define COMPLETE 0x80000000u  // and those of all tiles before it
#define VALUE 0x3fffffffu
#define WINDOW 8

// The lanes of the warp whose digit is the same.
__device__ __forceinline__ unsigned int lanes_alike(unsigned int digit)
{
    unsigned int alike = 0xffffffffu;
#pragma unroll
    for (int bit = 0; bit < 8; ++bit) {
        const bool set = digit >> bit & 1u;
        const unsigned int lanes = __ballot_sync(0xffffffffu, set);
        alike &= set ? lanes : ~lanes;
    }
    return alike;
}

// How many elements of all earlier tiles have this digit.
__device__ __forceinline__ unsigned int counted_before(const volatile unsigned int *status, int tile, int digit)
{
    unsigned int sum = 0;
    bool complete = tile == 0;
    for (int last = tile - 1; !complete; last -= WINDOW) {
        unsigned int seen[WINDOW];
#pragma unroll
        for (int k = 0; k < WINDOW; ++k) seen[k] = last - k >= 0 ? status[(long long)(last - k) * BINS + digit] : COMPLETE;
#pragma unroll
        for (int k = 0; k < WINDOW; ++k) {
            if (complete) continue;
            while (seen[k] < PARTIAL) seen[k] = status[(long long)(last - k) * BINS + digit];
            sum += seen[k] & VALUE;
            complete = seen[k] >= COMPLETE;
        }
    }
    return sum;
}

// The sum over the threads before this one, of the first BINS threads. All threads of the block call it.
__device__ __forceinline__ unsigned int sum_before(unsigned int value, unsigned int *warp_sums)
{
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    unsigned int inclusive = value;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const unsigned int other = __shfl_up_sync(0xffffffffu, inclusive, step);
        if (lane >= step) inclusive += other;
    }
    if (lane == 31 && warp < BINS / 32) warp_sums[warp] = inclusive;
    __syncthreads();
    unsigned int before = inclusive - value;
    for (int w = 0; w < warp && w < BINS / 32; ++w) before += warp_sums[w];
    __syncthreads();
    return before;
}

// One digit. `keys_out` is null in the last pass, `values` in the first: then an element's value is its index.
extern "C" __global__ void __launch_bounds__(THREADS)
curve_sort_kernel(const unsigned int *keys, const int *values, unsigned int *keys_out, int *values_out,
                  const unsigned int *histogram, volatile unsigned int *status, unsigned int *ticket, int count, int shift)
{
    __shared__ unsigned int storage[2 * TILE > WARPS * BINS ? 2 * TILE : WARPS * BINS];  // counts, then the sorted tile
    __shared__ unsigned int warp_sums[BINS / 32], first_in_tile[BINS], offset[BINS];
    __shared__ int drawn;
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    unsigned int *const counts = storage + warp * BINS;
    if (thread == 0) drawn = (int)atomicAdd(ticket, 1u);
    for (int k = thread; k < WARPS * BINS; k += THREADS) storage[k] = 0;
    __syncthreads();
    const int tile = drawn;
    const long long start = (long long)tile * TILE;
    const int valid = count - start < TILE ? (int)(count - start) : TILE;

    unsigned int key[ITEMS], rank[ITEMS];
    int value[ITEMS];
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
        const int within = (warp * ITEMS + item) * 32 + lane;
        key[item] = within < valid ? keys[start + within] : 0xffffffffu;  // those beyond the end come last
        value[item] = within < valid ? (values ? values[start + within] : (int)(start + within)) : 0;
    }
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
        const unsigned int digit = key[item] >> shift & (BINS - 1);
        const unsigned int alike = lanes_alike(digit);
        const unsigned int before = counts[digit];
        __syncwarp();
        if (lane == __ffs(alike) - 1) counts[digit] = before + __popc(alike);
        __syncwarp();
        rank[item] = before + __popc(alike & ((1u << lane) - 1u));
    }
    __syncthreads();

    unsigned int total = 0;
    if (thread < BINS) {
#pragma unroll
        for (int w = 0; w < WARPS; ++w) {  // what the warps before this one hold
            const unsigned int own = storage[w * BINS + thread];
            storage[w * BINS + thread] = total;
            total += own;
        }
        status[(long long)tile * BINS + thread] = (tile ? PARTIAL : COMPLETE) | total;
    }
    const unsigned int first = sum_before(total, warp_sums);
    const unsigned int base = sum_before(thread < BINS ? histogram[thread] : 0u, warp_sums);
    if (thread < BINS) {
        first_in_tile[thread] = first;
        const unsigned int before = counted_before(status, tile, thread);
        if (tile) status[(long long)tile * BINS + thread] = COMPLETE | (before + total);
        offset[thread] = base + before - first;
    }
    __syncthreads();

#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
        const unsigned int digit = key[item] >> shift & (BINS - 1);
        rank[item] += first_in_tile[digit] + counts[digit];
    }
    __syncthreads();  // the counts end here
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
        storage[rank[item]] = key[item];
        storage[TILE + rank[item]] = (unsigned int)value[item];
    }
    __syncthreads();
#pragma unroll
    for (int item = 0; item < ITEMS; ++item) {
        const int place = item * THREADS + thread;
        if (place < valid) {
            const unsigned int k = storage[place];
            const unsigned int to = offset[k >> shift & (BINS - 1)] + place;
            if (keys_out) keys_out[to] = k;
            values_out[to] = (int)storage[TILE + place];
        }
    }
}
"""


def tiles(count: int, items: int) -> int:
    """How many blocks a pass has, whose threads take so many elements each."""
    return -(-count // (THREADS * items))


def pass_arguments(number: int, at: Mapping[str, int], count: int, tiles: int) -> tuple[Any, ...]:
    """What the kernel is given in a pass: keys and indices go from one memory to the other.

    The last indices go to "values0".

    at: addresses of memory, of uint32. "keys0", with the keys, "keys1", "values0", "values1":
    (count,). "histogram": (PASSES, BINS), how many keys have a digit. "status": (PASSES, tiles,
    BINS) and "tickets": (PASSES,), zero.
    """
    even, last, bins = number % 2, number == PASSES - 1, 4 * BINS * number
    keys, values = ([at[f"{name}{k}"] for k in range(2)] for name in ("keys", "values"))
    return (
        keys[even],
        values[even] if number else 0,
        0 if last else keys[1 - even],
        values[1 - even],
        at["histogram"] + bins,
        at["status"] + bins * tiles,
        at["tickets"] + 4 * number,
        np.int32(count),
        np.int32(8 * number),
    )


def sort_text(items: int) -> str:
    """The text of a pass by itself; a thread takes so many elements. Its kernel is "curve_sort"."""
    return f"#define BINS {BINS}\n#define ITEMS {items}\n#define THREADS {THREADS}\n{SORT}"
