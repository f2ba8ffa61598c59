"""CUDA text of a radix sort of 32-bit keys with their indices: one pass over the memory for each digit of eight bits.

A block takes the next tile of elements, ranks them by their digit, learns from the tiles before how many elements with this
digit they hold, and writes each run of equal digits where it belongs. No block waits for one that has not begun, since tiles
are handed out in the order in which blocks begin. The sort is stable: equal keys stay in the order of their indices, so its
result has the same bits in every run. Its time depends on the number of elements alone, never on where they are.

Method: a pass a digit with decoupled look-back (D. Merrill and M. Garland 2016 for the scan, A. Adinets and D. Merrill 2022
for the sort); a thread looks back at `WINDOW` tiles at once, because all tiles of a million elements run at the same time and
the chain between them is what a pass waits for. It sorts at most 2^30 - 1 elements: a count shares its word with two bits that say how far
it has come.
"""

from __future__ import annotations

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
