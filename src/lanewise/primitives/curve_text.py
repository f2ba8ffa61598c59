"""CUDA text of the curve order: keys along a Hilbert curve, and the boxes of leaves and of the tree
above them.

Quantiles first. A few far elements must not use up the bits of the keys, and a crowd must not fall
into few cells: so a coordinate becomes a cell by its rank, read off the quantiles of 1024 elements
(one of each 1024th of the indices, at a hashed place within it). Between two quantiles cells are
equally wide; what lies beyond the last sample is in the last cell. Ten bits an axis (15 of two) are
then enough for any distribution, the keys have 32 bits, and no box of all elements is needed.
"""

from __future__ import annotations

SAMPLES = 1024  # a block of as many threads sorts them
SEGMENTS = 32  # between quantiles: 32 samples each
KEY_THREADS = 512
BOX_THREADS = 512
UPPER_THREADS = 1024
FAN = 4  # children of a node: fewest boxes are tested

SAMPLE = """
// The quantiles of each axis (a block an axis); and the counters of the kernels that follow, set to zero.
extern "C" __global__ void __launch_bounds__(SAMPLES)
curve_sample_kernel(const char *x, const char *y, const char *z, int count, real *quantiles, unsigned int *histogram,
                    unsigned int *tickets)
{
    __shared__ real values[SAMPLES];
    const int axis = blockIdx.x;
    const unsigned int thread = threadIdx.x;
    unsigned int hash = thread * 2654435761u;
    hash = (hash ^ hash >> 16) * 0x85ebca6bu;
    hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
    const long long within = (long long)thread << 16 | hash >> 16;  // in units of a 2^26th of all elements
    real value = coordinate(axis, x, y, z, within * count >> 26);
    for (unsigned int size = 2; size <= SAMPLES; size *= 2) {  // bitonic sort
        for (unsigned int stride = size / 2; stride; stride /= 2) {
            real other;
            if (stride >= 32) {
                values[thread] = value;
                __syncthreads();
                other = values[thread ^ stride];
                __syncthreads();
            } else {
                other = __shfl_xor_sync(0xffffffffu, value, stride);
            }
            value = !(thread & size) == !(thread & stride) ? fmin(value, other) : fmax(value, other);
        }
    }
    values[thread] = value;
    __syncthreads();
    if (thread <= SEGMENTS) quantiles[axis * (SEGMENTS + 1) + thread] = values[thread * (SAMPLES - 1) / SEGMENTS];
    if (axis == 0) {
        for (int k = thread; k < PASSES * BINS; k += SAMPLES) histogram[k] = 0;
        if (thread < PASSES) tickets[thread] = 0;
    }
}
"""

KEYS = """
#define CELLS (1u << BITS)
#define COPIES 8  // of every counter: neighbours often have one digit in common

// Bits apart, so that those of the other axes fit between them.
__device__ __forceinline__ unsigned int spread(unsigned int v)
{
#if AXES == 3
    v = (v | v << 16) & 0x030000ffu;
    v = (v | v << 8) & 0x0300f00fu;
    v = (v | v << 4) & 0x030c30c3u;
    return (v | v << 2) & 0x09249249u;
#else
    v = (v | v << 8) & 0x00ff00ffu;
    v = (v | v << 4) & 0x0f0f0f0fu;
    v = (v | v << 2) & 0x33333333u;
    return (v | v << 1) & 0x55555555u;
#endif
}

// The place along the Hilbert curve (J. Skilling, AIP Conf. Proc. 707, 2004).
__device__ __forceinline__ unsigned int hilbert(unsigned int cell[AXES])
{
#pragma unroll
    for (unsigned int bit = CELLS / 2; bit > 1; bit /= 2) {
#pragma unroll
        for (int axis = 0; axis < AXES; ++axis) {
            const unsigned int low = bit - 1u;
            if (cell[axis] & bit) {
                cell[0] ^= low;
            } else {
                const unsigned int swap = (cell[0] ^ cell[axis]) & low;
                cell[0] ^= swap;
                cell[axis] ^= swap;
            }
        }
    }
#pragma unroll
    for (int axis = 1; axis < AXES; ++axis) cell[axis] ^= cell[axis - 1];
    unsigned int flip = 0;
#pragma unroll
    for (unsigned int bit = CELLS / 2; bit > 1; bit /= 2)
        if (cell[AXES - 1] & bit) flip ^= bit - 1u;
    unsigned int key = 0;
#pragma unroll
    for (int axis = 0; axis < AXES; ++axis) key |= spread(cell[axis] ^ flip) << (AXES - 1 - axis);
    return key;
}

// Keys, the counts of their digits, and the status of the sort's tiles set to zero.
extern "C" __global__ void __launch_bounds__(KEY_THREADS)
curve_keys_kernel(const char *x, const char *y, const char *z, int count, const real *quantiles, unsigned int *keys,
                  unsigned int *histogram, unsigned int *status, int status_words)
{
    __shared__ real quantile[AXES][SEGMENTS + 1], inverse[AXES][SEGMENTS];
    __shared__ unsigned int counts[PASSES * BINS * COPIES];
    const int thread = threadIdx.x;
    for (int k = thread; k < PASSES * BINS * COPIES; k += KEY_THREADS) counts[k] = 0;
    if (thread < AXES * SEGMENTS) {
        const int axis = thread / SEGMENTS, s = thread % SEGMENTS;
        const real low = quantiles[axis * (SEGMENTS + 1) + s], high = quantiles[axis * (SEGMENTS + 1) + s + 1];
        quantile[axis][s] = low;
        if (s == SEGMENTS - 1) quantile[axis][SEGMENTS] = high;
        inverse[axis][s] = high > low ? real(1) / (high - low) : real(0);
    }
    for (long long k = (long long)blockIdx.x * KEY_THREADS + thread; k < status_words; k += (long long)gridDim.x * KEY_THREADS)
        status[k] = 0;
    __syncthreads();
    for (int item = 0; item < ITEMS; ++item) {
        const long long i = ((long long)blockIdx.x * ITEMS + item) * KEY_THREADS + thread;
        if (i >= count) break;
        unsigned int cell[AXES];
#pragma unroll
        for (int axis = 0; axis < AXES; ++axis) {
            const real place = coordinate(axis, x, y, z, i);
            int s = 0;
#pragma unroll
            for (int step = SEGMENTS / 2; step; step /= 2)
                if (place >= quantile[axis][s + step]) s += step;
            const real part = fmin(fmax((place - quantile[axis][s]) * inverse[axis][s], real(0)), real(1));
            const unsigned int number = (unsigned int)((s + part) * real(CELLS / SEGMENTS));
            cell[axis] = number < CELLS ? number : CELLS - 1u;
        }
        const unsigned int key = hilbert(cell);
        keys[i] = key;
#pragma unroll
        for (int pass = 0; pass < PASSES; ++pass)
            atomicAdd(&counts[(pass * BINS + (key >> 8 * pass & (BINS - 1))) * COPIES + thread % COPIES], 1u);
    }
    __syncthreads();
    for (int bin = thread; bin < PASSES * BINS; bin += KEY_THREADS) {
        unsigned int sum = 0;
        for (int copy = 0; copy < COPIES; ++copy) sum += counts[bin * COPIES + (copy + thread) % COPIES];
        if (sum) atomicAdd(&histogram[bin], sum);
    }
}
"""

_NODES = """
struct Box {
    real low[AXES], high[AXES];
};

struct __align__(16) Node {  // as the walk's array of records: centre, half of the extents, link
#if AXES == 3
    real centre[3], link, half[3];
#else
    real centre[2], half[2], link;
#endif
};

__device__ __forceinline__ long long subtree(int level)  // the nodes of a complete one whose root is of this level
{
    long long nodes = 1;
    for (int l = 0; l < level; ++l) nodes = nodes * FAN + 1;
    return nodes;
}

__device__ __forceinline__ int nodes_of(int level, int count)
{
    long long elements = LEAF;
    for (int l = 0; l < level; ++l) elements *= FAN;
    return (int)((count - 1) / elements + 1);
}

// Where a node lies: after its parent and the whole subtrees of its elder siblings.
__device__ __forceinline__ int place_of(int level, int index, int top)
{
    long long nodes = subtree(level);
    long long place = top - level;
    for (int l = level; l < top; ++l) {
        place += index % FAN * nodes;
        index /= FAN;
        nodes = nodes * FAN + 1;
    }
    return (int)place;
}

// Boxes are a little larger than what they hold: no rounding of the walk may lose an element.
__device__ __forceinline__ void put_node(Node *nodes, const Box &box, int level, int index, int count, int top, int total)
{
    const int place = place_of(level, index, top);
    Node node;
#pragma unroll
    for (int axis = 0; axis < AXES; ++axis) {
        const real centre = real(0.5) * box.low[axis] + real(0.5) * box.high[axis];
        const real half = fmax(box.high[axis] - centre, centre - box.low[axis]);
        node.centre[axis] = centre;
        node.half[axis] = half + MARGIN * (fabs(centre) + half);
    }
    const long long skip = index == nodes_of(level, count) - 1 ? total : place + subtree(level);
    node.link = level ? real(skip) : real(-1 - index);
    nodes[place] = node;
}

__device__ __forceinline__ void join(Box &box, const Box &other)
{
#pragma unroll
    for (int axis = 0; axis < AXES; ++axis) {
        box.low[axis] = fmin(box.low[axis], other.low[axis]);
        box.high[axis] = fmax(box.high[axis], other.high[axis]);
    }
}
"""

BOXES = (
    _NODES
    + """
__device__ __forceinline__ void join_lanes(Box &box, int distance)
{
    Box other;
#pragma unroll
    for (int axis = 0; axis < AXES; ++axis) {
        other.low[axis] = __shfl_xor_sync(0xffffffffu, box.low[axis], distance);
        other.high[axis] = __shfl_xor_sync(0xffffffffu, box.high[axis], distance);
    }
    join(box, other);
}

// The level whose nodes hold so many elements, or -1. Folded by the compiler.
__device__ __forceinline__ int level_of(int size)
{
    int level = 0;
    long long elements = LEAF;
    while (elements < size) {
        elements *= FAN;
        ++level;
    }
    return elements == size ? level : -1;
}

// The boxes of leaves and of all nodes whose elements one block has.
extern "C" __global__ void __launch_bounds__(BOX_THREADS)
curve_boxes_kernel(const char *x, const char *y, const char *z, int count, const int *order, Node *nodes, int top, int total)
{
    __shared__ Box of_warp[BOX_THREADS / 32];
    const int thread = threadIdx.x, lane = thread % 32;
    const long long p = (long long)blockIdx.x * BOX_THREADS + thread;
    Box box;
#pragma unroll
    for (int axis = 0; axis < AXES; ++axis) box.low[axis] = INFINITE, box.high[axis] = -INFINITE;
    if (p < count) {
        const long long i = order[p];
#pragma unroll
        for (int axis = 0; axis < AXES; ++axis) {
            const real place = coordinate(axis, x, y, z, i), margin = wrapping_margin(axis, x, y, z, i);
            box.low[axis] = place - margin;
            box.high[axis] = place + margin;
        }
    }
#pragma unroll
    for (int size = 1; size <= 32; size *= 2) {
        if (size > 1) join_lanes(box, size / 2);
        const int level = level_of(size);
        if (level >= 0 && level <= top && p % size == 0 && p < count)
            put_node(nodes, box, level, (int)(p / size), count, top, total);
    }
    if (lane == 0) of_warp[thread / 32] = box;
    __syncthreads();
    if (thread >= 32) return;
    const long long q = (long long)blockIdx.x * BOX_THREADS + (long long)lane * 32;
    box = of_warp[lane % (BOX_THREADS / 32)];
#pragma unroll
    for (int size = 64; size <= BOX_THREADS; size *= 2) {
        join_lanes(box, size / 64);
        const int level = level_of(size);
        if (level >= 0 && level <= top && lane < BOX_THREADS / 32 && q % size == 0 && q < count)
            put_node(nodes, box, level, (int)(q / size), count, top, total);
    }
}
"""
)

UPPER = (
    _NODES
    + """
// The levels above what one block has, by one block: each node from its children.
extern "C" __global__ void __launch_bounds__(UPPER_THREADS)
curve_upper_kernel(int count, Node *nodes, int first, int top, int total)
{
    for (int level = first; level <= top; ++level) {
        const int here = nodes_of(level, count), below = nodes_of(level - 1, count);
        const int stride = (int)subtree(level - 1);
        for (int index = threadIdx.x; index < here; index += UPPER_THREADS) {
            const int child = place_of(level, index, top) + 1;
            Box box;
#pragma unroll
            for (int k = 0; k < FAN; ++k) {
                if (index * FAN + k >= below) continue;
                const Node node = nodes[child + k * stride];
                Box other;
#pragma unroll
                for (int axis = 0; axis < AXES; ++axis) {
                    other.low[axis] = node.centre[axis] - node.half[axis];
                    other.high[axis] = node.centre[axis] + node.half[axis];
                }
                if (k == 0) box = other;
                join(box, other);
            }
            put_node(nodes, box, level, index, count, top, total);
        }
        __syncthreads();
    }
}
"""
)
