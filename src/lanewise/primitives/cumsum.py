"""`lw.cumsum`, prefix sums: what it takes, and how a CPU and a GPU do it.

On a CPU there are two passes over blocks of elements: what each block holds, then its elements
after what all before it hold. The blocks do not depend on the threads that there are, so floats are
added in one order in every run. Blocks are run through side by side, `CHAINS` at a time: one sum
after the other would wait for the adder.

On a GPU there is one pass: every element is read once and written once, and floats are added in one
order in every run. A block takes the next tile of elements into registers and publishes its sum in
global memory. Tiles belong to groups of `GROUP`: what precedes a tile is the sum of the tiles
before it in its group, which the lanes of a warp fetch and add as a tree, and the prefix of the
groups before, which the last tile of each group publishes. Which sums are added, and in which
order, follows from the number of the tile alone, and not from what is published first, as in a
decoupled look-back (D. Merrill and M. Garland 2016). No tile waits for one that has not begun,
since tiles are handed out in the order in which blocks begin.

A word of 64 bits holds 32 bits of a number and whether they are there, so that no reader sees one
without the other. Of float32 all that lies beyond 128 neighbours is added in float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from lanewise.primitives.arrays import check_out, check_row, empty_beside
from lanewise.runtime import cpu
from lanewise.runtime.device import get_device
from lanewise.runtime.memory import address, allocate, device_of, overlap
from lanewise.support.attributes import settings_by_name
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError

TYPES = ("int32", "uint32", "int64", "float32", "float64")
ADVICE = ".astype(...) converts it, to int64 where sums get large"


@settings_by_name
def cumsum(values: Any, *, exclusive: bool = False, out: Any = None) -> Any:
    """The prefix sums of an array: element i of the result is `values[0] + ... + values[i]`,
    without `values[i]` if `exclusive`.

    values: a contiguous array of NumPy or CuPy of shape (n,) of int32, uint32, int64, float32 or
    float64. The result has the type and the device of `values`; the call does not wait for a GPU.
    out: an array of the same shape and type for the result, which may be `values` itself.

    Integers wrap. Floats are added in an order that depends only on n, so results repeat to the bit
    on one device. float32 is added in float64 and each result rounded once; on a GPU 128 neighbours
    are added in float32 first, and a result is off by at most 11 * 2^-24 of the sum of the
    magnitudes up to there, however long the array is.

    Raises `ArgumentError` for other arrays.
    """
    asked: Any = exclusive
    if not isinstance(asked, bool | np.bool_):
        raise ArgumentError(f"cumsum: exclusive= is True or False, found {shown(asked)}")
    check_row("cumsum: the array of values", values, TYPES, ADVICE)
    if out is None:
        out = empty_beside(values, values.dtype, values.shape)
    else:
        check_row("cumsum: out", out, TYPES, ADVICE)
        check_out("cumsum", out, values, values.dtype, values.shape)
        if address(out) != address(values) and overlap(out, values):
            raise ArgumentError(
                "cumsum: out shares a part of its memory with the values; give it its own memory, "
                "or all of theirs"
            )
    run = on_host if isinstance(values, np.ndarray) else on_gpu
    run(values, out, exclusive=bool(exclusive))
    return out


# ------------------------------------------------------------ on a CPU

BLOCK = 1024  # elements
CHAINS = 4  # blocks side by side
GRAIN = 16  # groups of blocks worth handing to another thread
HOST_TEXT = """def {name}_kernel(values, sums, results, begin, end):
    Sum = sums.dtype
    Element = results.dtype
{body}"""
TOTALS = """    for group in range(begin, end):
        first = uint64(group * 4096)
        a, b, c, d = Sum(0), Sum(0), Sum(0), Sum(0)
        if group * 4096 + 4096 <= len(values):
            for n in range(uint64(1024)):
                a += Sum(values[first + n])
                b += Sum(values[first + n + uint64(1024)])
                c += Sum(values[first + n + uint64(2048)])
                d += Sum(values[first + n + uint64(3072)])
        else:
            for n in range(first, uint64(len(values))):
                block = (n - first) // uint64(1024)
                x = Sum(values[n])
                if block == 0:
                    a += x
                elif block == 1:
                    b += x
                elif block == 2:
                    c += x
                else:
                    d += x
        sums[4 * group], sums[4 * group + 1], sums[4 * group + 2], sums[4 * group + 3] = a, b, c, d
"""
INCLUSIVE = """    for group in range(begin, end):
        first = uint64(group * 4096)
        a, b, c, d = sums[4 * group], sums[4 * group + 1], sums[4 * group + 2], sums[4 * group + 3]
        if group * 4096 + 4096 <= len(values):
            for n in range(uint64(1024)):
                a += Sum(values[first + n])
                b += Sum(values[first + n + uint64(1024)])
                c += Sum(values[first + n + uint64(2048)])
                d += Sum(values[first + n + uint64(3072)])
                results[first + n] = Element(a)
                results[first + n + uint64(1024)] = Element(b)
                results[first + n + uint64(2048)] = Element(c)
                results[first + n + uint64(3072)] = Element(d)
        else:
            for n in range(first, uint64(len(values))):
                if (n - first) % uint64(1024) == 0:
                    a = sums[uint64(4 * group) + (n - first) // uint64(1024)]
                a += Sum(values[n])
                results[n] = Element(a)
"""
EXCLUSIVE = """    for group in range(begin, end):
        first = uint64(group * 4096)
        a, b, c, d = sums[4 * group], sums[4 * group + 1], sums[4 * group + 2], sums[4 * group + 3]
        if group * 4096 + 4096 <= len(values):
            for n in range(uint64(1024)):
                p, q = values[first + n], values[first + n + uint64(1024)]
                r, s = values[first + n + uint64(2048)], values[first + n + uint64(3072)]
                results[first + n] = Element(a)
                results[first + n + uint64(1024)] = Element(b)
                results[first + n + uint64(2048)] = Element(c)
                results[first + n + uint64(3072)] = Element(d)
                a += Sum(p)
                b += Sum(q)
                c += Sum(r)
                d += Sum(s)
        else:
            for n in range(first, uint64(len(values))):
                if (n - first) % uint64(1024) == 0:
                    a = sums[uint64(4 * group) + (n - first) // uint64(1024)]
                x = values[n]
                results[n] = Element(a)
                a += Sum(x)
"""
HOST_SUMS = {
    "int32": "int32",
    "uint32": "uint32",
    "int64": "int64",
    "float32": "float64",
    "float64": "float64",
}


def _host_kernel(name: str, body: str) -> Any:
    return cpu.own_kernel(HOST_TEXT.format(name=name, body=body), name)


def on_host(values: Any, out: Any, *, exclusive: bool) -> None:
    """Put the prefix sums of an array of NumPy into another one, or into itself."""
    element, groups = values.dtype.name, -(-values.size // (BLOCK * CHAINS))
    if not groups:
        return
    sums = np.empty(CHAINS * groups + 1, HOST_SUMS[element])
    cpu.run_range(_host_kernel("block_sums", TOTALS), (values, sums[1:], out), groups, GRAIN)
    sums[0] = 0
    before = np.cumsum(sums[:-1], dtype=sums.dtype)
    body = EXCLUSIVE if exclusive else INCLUSIVE
    cpu.run_range(_host_kernel("prefix_sums", body), (values, before, out), groups, GRAIN)


# ------------------------------------------------------------ on a GPU

TEXT = """
typedef {element} Element;
typedef {sum} Sum;  // of a tile, and of all before it
typedef unsigned long long Word;
#define THREADS {threads}
#define CHUNKS {chunks}  // accesses of a thread
#define GROUP {group}  // tiles
#define TURNS ((GROUP + 31) / 32)
#define EXCLUSIVE {exclusive}
#define WARPS (THREADS / 32)
#define LANES (16 / (int)sizeof(Element))  // elements of an access
#define CHUNK (32 * LANES)
#define TILE (THREADS * CHUNKS * LANES)
#define WORDS ((int)sizeof(Sum) / 4)
#define HERE 0x100000000ull
#define ALL 0xffffffffu

struct __align__(16) Access {{ Element lane[LANES]; }};
struct Published {{ Word word[WORDS]; }};

__device__ __forceinline__ void publish(volatile Word *words, Sum sum)
{{
    union {{ Sum sum; unsigned int half[WORDS]; }} bits;
    bits.sum = sum;
#pragma unroll
    for (int w = 0; w < WORDS; ++w) words[w] = HERE | bits.half[w];
}}

__device__ __forceinline__ Published look(const volatile Word *words)
{{
    Published seen;
#pragma unroll
    for (int w = 0; w < WORDS; ++w) seen.word[w] = words[w];
    return seen;
}}

__device__ __forceinline__ bool is_there(const Published &seen)
{{
    bool there = true;
#pragma unroll
    for (int w = 0; w < WORDS; ++w) there = there && seen.word[w] >= HERE;
    return there;
}}

__device__ __forceinline__ Sum sum_of(const Published &seen)
{{
    union {{ Sum sum; unsigned int half[WORDS]; }} bits;
#pragma unroll
    for (int w = 0; w < WORDS; ++w) bits.half[w] = (unsigned int)seen.word[w];
    return bits.sum;
}}

// The sum of all tiles before this one, for the lanes of a warp; the last tile of a group publishes that of the next group.
__device__ __forceinline__ Sum before_tile(Word *tiles, Word *prefixes, unsigned int tile, Sum own, int lane)
{{
    const unsigned int group = tile / GROUP, rank = tile % GROUP;
    const volatile Word *const first = tiles + (size_t)(tile - rank) * WORDS;
    const volatile Word *const behind = prefixes + (size_t)(group - 1) * WORDS;
    Published seen[TURNS], prefix;
#pragma unroll
    for (int k = 0; k < TURNS; ++k)
        if (k * 32 + lane < rank) seen[k] = look(first + (k * 32 + lane) * WORDS);
    if (group) prefix = look(behind);
    Sum sum = 0;
#pragma unroll
    for (int k = 0; k < TURNS; ++k) {{
        if (k * 32 + lane >= rank) continue;
        while (!is_there(seen[k])) seen[k] = look(first + (k * 32 + lane) * WORDS);
        sum += sum_of(seen[k]);
    }}
    __syncwarp();
#pragma unroll
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(ALL, sum, step);
    if (group) {{
        while (!is_there(prefix)) prefix = look(behind);
        if (rank == GROUP - 1 && lane == 0) publish(prefixes + (size_t)group * WORDS, sum_of(prefix) + (sum + own));
        return sum_of(prefix) + sum;
    }}
    if (rank == GROUP - 1 && lane == 0) publish(prefixes, sum + own);
    return sum;
}}

// The sum over the lanes up to this one.
template <class T> __device__ __forceinline__ T up_to(T value, int lane)
{{
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {{
        const T other = __shfl_up_sync(ALL, value, step);
        if (lane >= step) value += other;
    }}
    return value;
}}

// The elements that a thread takes of a tile; what lies beyond the end is zero.
__device__ __forceinline__ void read(Access *chunk, const Element *values, bool whole, long long at, long long count)
{{
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {{
        const Element *const from = values + at + c * CHUNK;
        if ({read_wide} && whole) {{
            const float4 bits = __ldcs(reinterpret_cast<const float4 *>(from));
            chunk[c] = *reinterpret_cast<const Access *>(&bits);
        }} else {{
#pragma unroll
            for (int n = 0; n < LANES; ++n) chunk[c].lane[n] = at + c * CHUNK + n < count ? __ldcs(from + n) : Element(0);
        }}
    }}
}}

// Add up the elements of a chunk; returns the sum of all of them.
__device__ __forceinline__ Element add_up(Access &chunk, int lane)
{{
    Element *const x = chunk.lane;
    const Element until = up_to(x[LANES - 1], lane);
    const Element other = __shfl_up_sync(ALL, until, 1);
    const Element left = lane ? other : Element(0);  // what the lanes before this one have
#pragma unroll
    for (int n = LANES - 1; n >= 0; --n) x[n] = EXCLUSIVE ? (n ? left + x[n ? n - 1 : 0] : left) : left + x[n];
    return __shfl_sync(ALL, until, 31);
}}

__device__ __forceinline__ void write(Element *results, const Element *x, bool whole, long long at, long long count)
{{
    if ({write_wide} && whole) {{
        __stcs(reinterpret_cast<float4 *>(results + at), *reinterpret_cast<const float4 *>(x));
    }} else {{
#pragma unroll
        for (int n = 0; n < LANES; ++n)
            if (at + n < count) __stcs(results + at + n, x[n]);
    }}
}}

// `words`: a ticket, the prefixes of groups, the sums of tiles; all zero. The sum of a tile is published before its elements are added up.
extern "C" __global__ void __launch_bounds__(THREADS, {blocks})
cumsum_kernel(const Element *values, Element *results, long long count, Word *words, unsigned int groups)
{{
    __shared__ unsigned int ticket;
    __shared__ Sum of_warp[WARPS], before;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (threadIdx.x == 0) ticket = atomicAdd(reinterpret_cast<unsigned int *>(words), 1u);
    __syncthreads();
    const unsigned int tile = ticket;
    const bool whole = (long long)(tile + 1) * TILE <= count;
    const long long first = (long long)tile * TILE + warp * (CHUNKS * CHUNK) + lane * LANES;
    Word *const prefixes = words + 1, *const tiles = prefixes + (size_t)groups * WORDS;
    Access chunk[CHUNKS];
    read(chunk, values, whole, first, count);
    Sum total = 0;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {{
#pragma unroll
        for (int n = 1; n < LANES; ++n) chunk[c].lane[n] += chunk[c].lane[n - 1];
        total += Sum(chunk[c].lane[LANES - 1]);
    }}
#pragma unroll
    for (int step = 16; step; step /= 2) total += __shfl_xor_sync(ALL, total, step);
    if (lane == 0) of_warp[warp] = total;
    __syncthreads();
    const Sum warps = up_to(lane < WARPS ? of_warp[lane] : Sum(0), lane);
    const Sum last = __shfl_sync(ALL, warps, WARPS - 1), other = __shfl_up_sync(ALL, warps, 1);
    const Sum within = __shfl_sync(ALL, lane ? other : Sum(0), warp);
    if (threadIdx.x == 0) publish(tiles + (size_t)tile * WORDS, last);
    Element sums[CHUNKS];
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) sums[c] = add_up(chunk[c], lane);
    if (warp == 0) {{
        const Sum sum = before_tile(tiles, prefixes, tile, last, lane);
        if (lane == 0) before = sum;
    }}
    __syncthreads();
    Sum start = before + within;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {{
        const Element base = Element(start);
#pragma unroll
        for (int n = 0; n < LANES; ++n) chunk[c].lane[n] += base;
        write(results, chunk[c].lane, whole, first + c * CHUNK, count);
        start += Sum(sums[c]);
    }}
}}
"""

ELEMENTS = {
    "int32": "unsigned int",
    "uint32": "unsigned int",
    "int64": "unsigned long long",
    "float32": "float",
    "float64": "double",
}
"""Integers wrap, which C++ promises of those without a sign."""
SUMS = {**ELEMENTS, "float32": "double"}
WIDE = 16  # bytes of an access


@dataclass(frozen=True, slots=True)
class Tiles:
    """How elements are divided: threads of a block, accesses of a thread, tiles of a group; blocks
    of a multiprocessor, at least.
    """

    threads: int
    chunks: int
    group: int
    blocks: int

    def elements(self, itemsize: int) -> int:
        """Elements of a tile."""
        return self.threads * self.chunks * (WIDE // itemsize)


SMALL, LARGE = Tiles(512, 16, 32, 1), Tiles(256, 16, 32, 2)
TILES = {
    "int32": SMALL,
    "uint32": SMALL,
    "int64": LARGE,
    "float32": SMALL,
    "float64": Tiles(512, 4, 32, 3),
}
"""The fastest of seventeen for 2^28 and 2^27 elements on an NVIDIA H200."""


@cache
def text_of(
    dtype: np.dtype[Any], tiles: Tiles, *, exclusive: bool, read_wide: bool, write_wide: bool
) -> str:
    """The text for elements of a type. read_wide, write_wide: the arrays begin at a multiple of 16
    bytes.
    """
    return TEXT.format(
        element=ELEMENTS[dtype.name],
        sum=SUMS[dtype.name],
        threads=tiles.threads,
        chunks=tiles.chunks,
        group=tiles.group,
        blocks=tiles.blocks,
        exclusive=int(exclusive),
        read_wide=str(read_wide).lower(),
        write_wide=str(write_wide).lower(),
    )


def on_gpu(values: Any, out: Any, *, exclusive: bool, tiles: Tiles | None = None) -> None:
    """Put the prefix sums of an array of CuPy into another one on the same device, or into
    itself.
    """
    if not values.size:
        return
    device, tiles = device_of(values), tiles or TILES[values.dtype.name]
    source, to = address(values), address(out)
    text = text_of(
        values.dtype,
        tiles,
        exclusive=exclusive,
        read_wide=source % WIDE == 0,
        write_wide=to % WIDE == 0,
    )
    count = -(-values.size // tiles.elements(values.itemsize))
    groups = -(-count // tiles.group)
    words = 1 + (count + groups) * (
        2 if SUMS[values.dtype.name] in ("double", "unsigned long long") else 1
    )
    state = allocate(device, 8 * words, "prefix sums")
    kernel = get_device(device).load(text, "cumsum", tiles.threads)
    kernel.launch(
        (count, 1), (source, to, np.int64(values.size), address(state), np.uint32(groups))
    )
