"""CUDA text of the order along a Hilbert curve of equal cubes, which halve the box of all elements
`LEVELS` times.

The number of a cube has LEVELS bits an axis. It is sorted by words of 32 bits, the lowest first,
each computed anew from the positions: `radix_sort` is stable, and of equal numbers the smaller
index stays in front. Nothing depends on which thread is the first.

Method: J. Skilling, AIP Conf. Proc. 707, 2004.
"""

from __future__ import annotations

from functools import lru_cache

from lanewise.language.types import Scalar
from lanewise.layouts import Arrangement
from lanewise.primitives import radix_sort
from lanewise.primitives.survey import coordinate_text
from lanewise.runtime.cuda_spelling import TYPES

LEVELS = 42  # what float64 holds with room for rounding; two numbers of 64 bits have them
THREADS = {
    "hilbert_begin": 256,
    "hilbert_box": 256,
    "hilbert_word": 512,
    "curve_sort": radix_sort.THREADS,
}
"""Of a block of each kernel."""
BOX_ITEMS = 16  # elements of a thread
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
"""

_TEXTS = {
    "hilbert_begin": """
extern "C" __global__ void __launch_bounds__(THREADS)
hilbert_begin_kernel(word *box, unsigned int *counters, int counts)
{
    const int k = blockIdx.x * THREADS + threadIdx.x;
    if (k < SIDES) box[k] = outside(k);
    if (k < counts) counters[k] = 0;
}
""",
    "hilbert_box": """
extern "C" __global__ void __launch_bounds__(THREADS)
hilbert_box_kernel(COLUMNS, int count, word *box)
{
    __shared__ word of_warp[THREADS / 32][SIDES];
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    word own[SIDES];
#pragma unroll
    for (int side = 0; side < SIDES; ++side) own[side] = outside(side);
    for (int item = 0; item < ITEMS; ++item) {
        const long long i = ((long long)blockIdx.x * ITEMS + item) * THREADS + thread;
        if (i >= count) break;
#pragma unroll
        for (int a = 0; a < AXES; ++a) {
            const word w = ordered(place(a, x, y, z, i));
            own[2 * a] = wider(0, own[2 * a], w);
            own[2 * a + 1] = wider(1, own[2 * a + 1], w);
        }
    }
#pragma unroll
    for (int side = 0; side < SIDES; ++side) {
        word w = own[side];
#pragma unroll
        for (int step = 16; step; step /= 2) w = wider(side, w, __shfl_xor_sync(0xffffffffu, w, step));
        if (lane == 0) of_warp[warp][side] = w;
    }
    __syncthreads();
    if (thread >= SIDES) return;
    word w = of_warp[0][thread];
    for (int k = 1; k < THREADS / 32; ++k) w = wider(thread, w, of_warp[k][thread]);
    if (thread & 1) atomicMax(box + thread, w);
    else atomicMin(box + thread, w);
}
""",
    "hilbert_word": """
#define COPIES 8  // of every counter: neighbours often have one digit in common
typedef unsigned long long cube;

// A word of the cubes' numbers, of elements in an order (none: their own), the counts of its digits, and the sort's status
// set to zero.
extern "C" __global__ void __launch_bounds__(THREADS)
hilbert_word_kernel(COLUMNS, int count, const word *box, const int *order, int which, unsigned int *keys,
                    unsigned int *histogram, unsigned int *status, int status_words)
{
    __shared__ unsigned int counts[PASSES * BINS * COPIES];
    const int thread = threadIdx.x;
    for (int k = thread; k < PASSES * BINS * COPIES; k += THREADS) counts[k] = 0;
    for (long long k = (long long)blockIdx.x * THREADS + thread; k < status_words; k += (long long)gridDim.x * THREADS)
        status[k] = 0;
    double low[AXES], largest = 0;
#pragma unroll
    for (int a = 0; a < AXES; ++a) {
        low[a] = (double)number(box[2 * a]);
        const double side = (double)number(box[2 * a + 1]) - low[a];
        if (!(side <= largest)) largest = side;
    }
    const double scale = (double)(cube(1) << LEVELS) / largest;
    __syncthreads();
    for (int item = 0; item < ITEMS; ++item) {
        const long long p = ((long long)blockIdx.x * ITEMS + item) * THREADS + thread;
        if (p >= count) break;
        const long long i = order ? order[p] : p;
        cube cell[AXES];
#pragma unroll
        for (int a = 0; a < AXES; ++a) {
            const double v = ((double)place(a, x, y, z, i) - low[a]) * scale, most = (double)((cube(1) << LEVELS) - 1);
            cell[a] = v > 0 ? (cube)(v < most ? v : most) : cube(0);
        }
        for (int level = LEVELS - 1; level > 0; --level) {
            const cube below = (cube(1) << level) - 1;
#pragma unroll
            for (int a = 0; a < AXES; ++a) {
                if (cell[a] >> level & 1) {
                    cell[0] ^= below;
                } else {
                    const cube swap = (cell[0] ^ cell[a]) & below;
                    cell[0] ^= swap;
                    cell[a] ^= swap;
                }
            }
        }
#pragma unroll
        for (int a = 1; a < AXES; ++a) cell[a] ^= cell[a - 1];
        cube flip = 0;
        for (int level = LEVELS - 1; level > 0; --level)
            if (cell[AXES - 1] >> level & 1) flip ^= (cube(1) << level) - 1;
        unsigned int key = 0;
        for (int k = 0; k < 32; ++k) {
            const int n = 32 * which + k, level = n / AXES;
#pragma unroll
            for (int a = 0; a < AXES; ++a)
                if (level < LEVELS && a == AXES - 1 - n % AXES) key |= (unsigned int)((cell[a] ^ flip) >> level & 1) << k;
        }
        keys[p] = key;
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
}


def words(axes: int) -> int:
    """How many words the number of a cube has."""
    return -(-LEVELS * axes // 32)


@lru_cache(maxsize=64)
def texts(
    arrangement: Arrangement, leaves: tuple[str, ...], precision: Scalar, keys: int
) -> dict[str, str]:
    """The text of every kernel but the sort's, for positions in this arrangement. keys: elements
    that a thread has in the kernel of words.
    """
    cases = [
        f"    if (axis == {a}) return {coordinate_text(arrangement, name, 'xyz'[a], 'i')};"
        for a, name in enumerate(leaves)
    ]
    items = {"hilbert_word": keys, "hilbert_box": BOX_ITEMS}
    made: dict[str, str] = {}
    for name, text in _TEXTS.items():
        numbers = {
            "AXES": len(leaves),
            "WIDE": int(precision.size == 8),
            "LEVELS": LEVELS,
            "ITEMS": items.get(name, 1),
            "THREADS": THREADS[name],
            "BINS": radix_sort.BINS,
            "PASSES": radix_sort.PASSES,
        }
        head = [
            *(f"#define {word} {value}" for word, value in numbers.items()),
            f"typedef {TYPES[precision]} T;",
            "",
            f"__device__ __forceinline__ T place(int axis, {COLUMNS}, long long i)",
            "{",
            *cases,
            "    return T(0);",
            "}",
        ]
        made[name] = "\n".join(head) + (_HEAD + text).replace("COLUMNS", COLUMNS)
    return made
