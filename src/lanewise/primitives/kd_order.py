"""CUDA text of an order by halves along the longest side: the levels of a tree, from the root down.

Nodes that are too large for a block are divided a level at a time, all of them at once: boxes, then
keys of all elements (the distance from the lower side of the node, as float32, whose bits are
ordered as the distances are), a stable sort by the key and one by the node (`radix_sort`). Keys are
those of elements in the caller's order, so of equal keys the first elements come first. A block
divides the rest in its shared memory, and puts the elements of a leaf in the caller's order.
Nothing depends on which thread is the first.
"""

from __future__ import annotations

from functools import lru_cache

from lanewise.language.types import Scalar
from lanewise.layouts import Arrangement
from lanewise.primitives import radix_sort
from lanewise.primitives.survey import coordinate_text
from lanewise.runtime.cuda_spelling import TYPES

THREADS = {
    "kd_begin": 256,
    "kd_boxes": 256,
    "kd_keys": 512,
    "curve_sort": radix_sort.THREADS,
    "kd_nodes": 256,
    "kd_children": 256,
    "kd_finish": 512,
}
"""Of a block of each kernel."""
BOX_ITEMS = 16  # elements of a thread: a block of the first levels lies in one node
MOST = 2048  # elements of a node that a block divides
MOST_LEAVES = 64
COLUMNS = "const char *x, const char *y, const char *z"

_HEAD = """
#if WIDE
typedef unsigned long long word;
#define SIGN 0x8000000000000000ull
__device__ __forceinline__ word bits_of(T v) { return (word)__double_as_longlong(v); }
__device__ __forceinline__ T with_bits(word b) { return __longlong_as_double((long long)b); }
#else
typedef unsigned int word;
#define SIGN 0x80000000u
__device__ __forceinline__ word bits_of(T v) { return (word)__float_as_int(v); }
__device__ __forceinline__ T with_bits(word b) { return __int_as_float((int)b); }
#endif
#define SIDES (2 * AXES)

// Words that are ordered as the numbers are.
__device__ __forceinline__ word ordered(T v)
{
    const word b = bits_of(v);
    return b & SIGN ? ~b : b | SIGN;
}

__device__ __forceinline__ T number(word w) { return with_bits(w & SIGN ? w ^ SIGN : ~w); }

// The lower ends of a box have even numbers.
__device__ __forceinline__ word outside(int side) { return side & 1 ? word(0) : ~word(0); }

__device__ __forceinline__ word wider(int side, word a, word b) { return side & 1 ? (a > b ? a : b) : (a < b ? a : b); }

__device__ __forceinline__ void widen(word *box, int side, word w)
{
    if (side & 1) atomicMax(box + side, w);
    else atomicMin(box + side, w);
}

// The distance of an element from the lower side of its node, along the longest one.
__device__ __forceinline__ unsigned int key_in(const word *box, COLUMNS, long long i)
{
    int axis = 0;
    T longest = T(-1), lowest = T(0);
#pragma unroll
    for (int a = 0; a < AXES; ++a) {
        const T low = number(box[2 * a]), side = number(box[2 * a + 1]) - low;
        if (side > longest) axis = a, longest = side, lowest = low;
    }
    return (unsigned int)__float_as_int((float)(place(axis, x, y, z, i) - lowest)) & 0x7fffffffu;
}
"""

_TEXTS = {
    "kd_begin": """
// One node, and the caller's order.
extern "C" __global__ void __launch_bounds__(THREADS)
kd_begin_kernel(int count, int *order, unsigned int *node, word *boxes, unsigned int *histogram, unsigned int *tickets, int passes)
{
    const long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
    if (i < count) order[i] = (int)i, node[i] = 0;
    if (i < SIDES) boxes[i] = outside((int)i);
    if (i < PASSES * BINS) histogram[i] = 0;
    if (i < passes) tickets[i] = 0;
}
""",
    "kd_boxes": """
extern "C" __global__ void __launch_bounds__(THREADS)
kd_boxes_kernel(COLUMNS, int count, const int *order, const unsigned int *node, word *boxes)
{
    __shared__ word of_warp[THREADS / 32][SIDES];
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const long long first = (long long)blockIdx.x * ITEMS * THREADS, behind = first + ITEMS * THREADS;
    const unsigned int here = node[order[first]];
    const bool alike = here == node[order[(behind < count ? behind : count) - 1]];
    word box[SIDES];
#pragma unroll
    for (int side = 0; side < SIDES; ++side) box[side] = outside(side);
    for (int item = 0; item < ITEMS; ++item) {
        const long long p = first + item * THREADS + thread;
        unsigned int own = here;
        if (p < count) {
            const long long i = order[p];
            if (!alike) own = node[i];
#pragma unroll
            for (int a = 0; a < AXES; ++a) {
                const word w = ordered(place(a, x, y, z, i));
                box[2 * a] = wider(0, box[2 * a], w);
                box[2 * a + 1] = wider(1, box[2 * a + 1], w);
            }
        }
        if (alike) continue;
        const unsigned int leading = __shfl_sync(0xffffffffu, own, 0);
        if (p >= count) own = leading;
        const bool together = __ballot_sync(0xffffffffu, own == leading) == 0xffffffffu;
#pragma unroll
        for (int side = 0; side < SIDES; ++side) {
            word w = box[side];
            if (together) {
#pragma unroll
                for (int step = 16; step; step /= 2) w = wider(side, w, __shfl_xor_sync(0xffffffffu, w, step));
            }
            if (!together || lane == 0) widen(boxes + (long long)own * SIDES, side, w);
            box[side] = outside(side);
        }
    }
    if (!alike) return;
#pragma unroll
    for (int side = 0; side < SIDES; ++side) {
        word w = box[side];
#pragma unroll
        for (int step = 16; step; step /= 2) w = wider(side, w, __shfl_xor_sync(0xffffffffu, w, step));
        if (lane == 0) of_warp[warp][side] = w;
    }
    __syncthreads();
    if (thread >= SIDES) return;
    word w = of_warp[0][thread];
    for (int k = 1; k < THREADS / 32; ++k) w = wider(thread, w, of_warp[k][thread]);
    widen(boxes + (long long)here * SIDES, thread, w);
}
""",
    "kd_keys": """
#define COPIES 8  // of every counter: neighbours often have one digit in common

// Keys, the counts of their digits, and the status of all sorts' tiles set to zero.
extern "C" __global__ void __launch_bounds__(THREADS)
kd_keys_kernel(COLUMNS, int count, const unsigned int *node, const word *boxes, unsigned int *keys, unsigned int *histogram,
               unsigned int *status, long long status_words)
{
    __shared__ unsigned int counts[PASSES * BINS * COPIES];
    const int thread = threadIdx.x;
    for (int k = thread; k < PASSES * BINS * COPIES; k += THREADS) counts[k] = 0;
    for (long long k = (long long)blockIdx.x * THREADS + thread; k < status_words; k += (long long)gridDim.x * THREADS)
        status[k] = 0;
    __syncthreads();
    for (int item = 0; item < ITEMS; ++item) {
        const long long i = ((long long)blockIdx.x * ITEMS + item) * THREADS + thread;
        if (i >= count) break;
        const unsigned int key = key_in(boxes + (long long)node[i] * SIDES, x, y, z, i);
        keys[i] = key;
#pragma unroll
        for (int pass = 0; pass < PASSES; ++pass)
            atomicAdd(&counts[(pass * BINS + (key >> 8 * pass & (BINS - 1))) * COPIES + thread % COPIES], 1u);
    }
    __syncthreads();
    for (int bin = thread; bin < PASSES * BINS; bin += THREADS) {
        unsigned int sum = 0;
        for (int copy = 0; copy < COPIES; ++copy) sum += counts[bin * COPIES + (copy + thread) % COPIES];
        if (sum) atomicAdd(&histogram[bin], sum);
    }
}
""",
    "kd_nodes": """
// The nodes of elements in their order, as keys.
extern "C" __global__ void __launch_bounds__(THREADS)
kd_nodes_kernel(int count, const int *order, const unsigned int *node, unsigned int *keys)
{
    const long long p = (long long)blockIdx.x * THREADS + threadIdx.x;
    if (p < count) keys[p] = node[order[p]];
}
""",
    "kd_children": """
// Each node's elements go to its children, and all that the next level adds to begins anew.
extern "C" __global__ void __launch_bounds__(THREADS)
kd_children_kernel(int count, const int *order, const int *borders, unsigned int *node, word *boxes, int sides,
                   unsigned int *histogram, unsigned int *tickets, int passes)
{
    const long long p = (long long)blockIdx.x * THREADS + threadIdx.x;
    if (p < count) {
        const long long i = order[p];
        const unsigned int parent = node[i];
        node[i] = 2 * parent + (p >= borders[parent]);
    }
    if (p < sides) boxes[p] = outside((int)p);
    if (p < PASSES * BINS) histogram[p] = 0;
    if (p < passes) tickets[p] = 0;
}
""",
    "kd_finish": """
#define LOCAL 2047u  // an element's number in its block; above it are 32 bits of its key, then its node

__device__ __forceinline__ void sort(unsigned long long *values, int width)  // bitonic
{
    for (int size = 2; size <= width; size *= 2) {
        for (int stride = size / 2; stride; stride /= 2) {
            for (int t = threadIdx.x; t < width / 2; t += THREADS) {
                const int low = 2 * t - (t & (stride - 1)), high = low + stride;
                const unsigned long long a = values[low], b = values[high];
                if ((a > b) == !(low & size)) values[low] = b, values[high] = a;
            }
            __syncthreads();
        }
    }
}

// A node of the last level: first leaf and number of leaves.
extern "C" __global__ void __launch_bounds__(THREADS)
kd_finish_kernel(COLUMNS, int count, const int *nodes, const int *from, int *to)
{
    __shared__ unsigned long long values[MOST];
    __shared__ int index[MOST], first_leaf[MOST_LEAVES], leaves_of[MOST_LEAVES];
    __shared__ word boxes[MOST_LEAVES * SIDES];
    const int thread = threadIdx.x;
    const long long begin = (long long)nodes[2 * blockIdx.x] * LEAF;
    const int leaves = nodes[2 * blockIdx.x + 1];
    const long long end = begin + (long long)leaves * LEAF;
    const int n = (int)((end < count ? end : count) - begin);
    int width = 1, parents = 1;
    while (width < n) width *= 2;
    for (int t = thread; t < width; t += THREADS) values[t] = t < n ? (unsigned long long)from[begin + t] : ~0ull;
    if (thread == 0) first_leaf[0] = 0, leaves_of[0] = leaves;
    __syncthreads();
    sort(values, width);
    for (int t = thread; t < n; t += THREADS) index[t] = (int)values[t], values[t] = (unsigned long long)t;
    __syncthreads();
    for (int most = leaves; most > 1; most = (most + 1) / 2) {
        for (int k = thread; k < parents * SIDES; k += THREADS) boxes[k] = outside(k & 1);
        __syncthreads();
        for (int t = thread; t < n; t += THREADS) {
            const long long i = index[values[t] & LOCAL];
            word *const box = boxes + (int)(values[t] >> 43) * SIDES;
#pragma unroll
            for (int a = 0; a < AXES; ++a) {
                const word w = ordered(place(a, x, y, z, i));
                widen(box, 2 * a, w);
                widen(box, 2 * a + 1, w);
            }
        }
        __syncthreads();
        for (int t = thread; t < n; t += THREADS) {
            const unsigned long long parent = values[t] >> 43, local = values[t] & LOCAL;
            const unsigned int key = key_in(boxes + (int)parent * SIDES, x, y, z, index[local]);
            values[t] = parent << 43 | (unsigned long long)key << 11 | local;
        }
        __syncthreads();
        sort(values, width);
        for (int t = thread; t < n; t += THREADS) {
            const int parent = (int)(values[t] >> 43), size = leaves_of[parent];
            const bool right = size > 1 && t >= (first_leaf[parent] + (size + 1) / 2) * LEAF;
            values[t] = (unsigned long long)(2 * parent + right) << 43 | values[t] & LOCAL;
        }
        int first = 0, size = 0;
        if (thread < parents) first = first_leaf[thread], size = leaves_of[thread];
        __syncthreads();
        if (thread < parents) {
            const int left = (size + 1) / 2;
            first_leaf[2 * thread] = first, leaves_of[2 * thread] = left;
            first_leaf[2 * thread + 1] = first + left, leaves_of[2 * thread + 1] = size - left;
        }
        parents *= 2;
        __syncthreads();
    }
    sort(values, width);  // the elements of a leaf by their numbers
    for (int t = thread; t < n; t += THREADS) to[begin + t] = index[values[t] & LOCAL];
}
""",
}


@lru_cache(maxsize=64)
def texts(
    arrangement: Arrangement, leaves: tuple[str, ...], precision: Scalar, leaf: int, keys: int
) -> dict[str, str]:
    """The text of every kernel but the sort's, for positions in this arrangement. leaf: elements of
    a leaf. keys: elements that a thread has in the kernel of keys.
    """
    cases = [
        f"    if (axis == {a}) return {coordinate_text(arrangement, name, 'xyz'[a], 'i')};"
        for a, name in enumerate(leaves)
    ]
    items = {"kd_keys": keys, "kd_boxes": BOX_ITEMS}
    return {
        name: "\n".join(
            [
                *(
                    f"#define {word} {value}"
                    for word, value in {
                        "AXES": len(leaves),
                        "WIDE": int(precision.size == 8),
                        "LEAF": leaf,
                        "MOST": MOST,
                        "MOST_LEAVES": MOST_LEAVES,
                        "ITEMS": items.get(name, 1),
                        "THREADS": THREADS[name],
                        "BINS": radix_sort.BINS,
                        "PASSES": radix_sort.PASSES,
                    }.items()
                ),
                f"typedef {TYPES[precision]} T;",
                "",
                f"__device__ __forceinline__ T place(int axis, {COLUMNS}, long long i)",
                "{",
                *cases,
                "    return T(0);",
                "}",
            ]
        )
        + (_HEAD + text).replace("COLUMNS", COLUMNS)
        for name, text in _TEXTS.items()
    }
