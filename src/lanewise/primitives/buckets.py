"""Places of an array, sorted into buckets of neighbouring elements, with a value each where there
are values.

On a CPU an addition to a random element waits for memory, and one that other threads must not
interrupt lets nothing else begin meanwhile. So values go to buckets of neighbouring elements first,
some ten thousand of them, which fit the caches of a core: a thread counts a tile by buckets, then
copies it in their order; the second look at it finds it in the caches. Two lines of a bucket are
fetched ahead of the one that is written. Then a thread adds up a bucket alone, from all tiles.

On a GPU a random addition to global memory is what the L2 cache does, however it is written: some
1e11 a second. Additions in shared memory take a quarter of the time, and there is room for some
thousand elements. So places go to buckets of as many neighbours first: a tile is counted by buckets
and sorted in shared memory, and appended to them. The order within a bucket depends on timing, so
that only sums that are exact may follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from lanewise.runtime import cpu
from lanewise.runtime.device import get_device
from lanewise.runtime.memory import address, allocate

# ------------------------------------------------------------ on a CPU

HOST_FEW = 2**16  # values, for which the kernel of the caller is as fast
# bytes of integers up to which a thread adds to its own copy of them: 1e6 and 1e7 values to 2^12 to
# 2^20 elements take a fifth to a half of the time of buckets, to 2^22 and more 0.9 to 1.6 times it
HOST_CACHED = 2**23
HOST_ROOM = 2**15  # elements of a bucket, as long as there are no more than `HOST_BUCKETS` of them
HOST_LEAST, HOST_BUCKETS = 32, 512
TILE, SHARE = 2**16, 256  # values of a tile, and values of a bucket in it at least
ROUND, ROUNDS = 2**20, 2**23  # values of a round, at least and at most
MOST = 2**31  # elements
# Both loops over a tile have their trip count in a variable, so that LLVM unrolls them: it does not
# compute one from the minimum at which a tile ends.
HOST_SPLIT = """def bucket_split_kernel(places, {values}elements, shift, buckets, starts, within, {kept}first, stop, tile, begin, end):
    rest = (uint64(1) << uint64(shift)) - uint64(1)
    own = empty(buckets, int64)
    for t in range(begin, end):
        own[:] = 0
        low, high = first + t * tile, min(first + (t + 1) * tile, stop)
        i, left = low, high - low
        while left > 0:
            p = uint64(int64(places[uint64(i)]))
            if p < uint64(elements):
                own[p >> uint64(shift)] += 1
            i += 1
            left -= 1
        here = t * tile
        for b in range(buckets):
            starts[t, b] = here
            own[b], here = here, here + own[b]
        starts[t, buckets] = here
        for n in range(high - low):
            i = low + n
            p = uint64(int64(places[uint64(i)]))
            if p < uint64(elements):
                to = p >> uint64(shift)
                at = uint64(own[to])
                own[to] += 1
                prefetch_to_store(within, at + uint64(64))
                within[at] = p & rest
{keep}"""
KEEP = """                prefetch_to_store(kept, at + uint64(16))
                kept[at] = values[uint64(i)]
"""


@dataclass(frozen=True, slots=True)
class BucketRound:
    """A round of values in buckets: of each place what it is within its bucket, the values, and
    where the buckets of each tile begin.

    first, last: whether it is that round.
    """

    within: Any
    kept: tuple[Any, ...]
    starts: Any
    tiles: int
    first: bool
    last: bool


@dataclass(frozen=True, slots=True)
class Buckets:
    """How many buckets elements make, and how many elements one has, as a power of two."""

    elements: int
    shift: int

    @property
    def count(self) -> int:
        """How many."""
        return -(-self.elements // (1 << self.shift))


@cache
def host_split_text(*, valued: bool) -> str:
    """The text of the pass that fills buckets. valued: every value is another one."""
    parts = ("values, ", "kept, ", KEEP) if valued else ("", "", "")
    return HOST_SPLIT.format(values=parts[0], kept=parts[1], keep=parts[2])


def fits_on_host(count: int, elements: int) -> bool:
    """Whether buckets pay: not for few values, and not where each element has few of them."""
    return count >= HOST_FEW and elements <= min(MOST, 4 * count)


def buckets_of(elements: int, room: int) -> Buckets:
    """Buckets of at most so many elements, unless there were too many of them."""
    wanted = min(max(elements // room, HOST_LEAST), HOST_BUCKETS)
    return Buckets(elements, max(-(-elements // wanted) - 1, 0).bit_length())


def splits(places: Any, values: Any, buckets: Buckets, size: int) -> Iterator[BucketRound]:
    """Rounds of about equal length, of so many values at most, in memory that the next round
    overwrites. Places outside are left out.
    """
    size = -(-len(places) // -(-len(places) // size))
    tile = max(TILE, SHARE * buckets.count)
    split: Any = cpu.own_kernel(host_split_text(valued=values is not None), "bucket_split")
    within = np.empty(size, np.uint16 if buckets.shift <= 16 else np.uint32)
    given, kept = ((), ()) if values is None else ((values,), (np.empty(size, values.dtype),))
    starts = np.empty((-(-size // tile), buckets.count + 1), np.int64)
    for first in range(0, len(places), size):
        stop = min(first + size, len(places))
        tiles = -(-(stop - first) // tile)
        how = buckets.elements, buckets.shift, buckets.count
        cpu.run_range(
            split, (places, *given, *how, starts, within, *kept, first, stop, tile), tiles, 1
        )
        yield BucketRound(within, kept, starts, tiles, first == 0, stop == len(places))


# ------------------------------------------------------------ on a GPU

BUCKETS = 128
FEW = 2**20  # values, for which one pass of atomic additions is as fast
LARGEST = 2**30  # values, of which no bucket has more than 32 bits count
SLACK = 1.25  # room of a bucket, where all had as many values
WIDE = 16  # bytes of an access
SPLIT = """
#define THREADS {threads}
#define EACH {each}
#define TILE (THREADS * EACH)
#define BUCKETS {buckets}
#define BITS {bits}  // of a place within its bucket
#define LANES ({wide} / (int)sizeof(Place))  // places of an access
#define WITH_VALUES {valued}
#if WITH_VALUES
#define VALUES(code) code
#else
#define VALUES(code)
#endif
typedef {place} Place;
struct __align__({wide}) Places {{ Place lane[LANES]; }};
struct __align__(LANES * sizeof(float)) Values {{ float lane[LANES]; }};

// A place as a number below `bins`, or one that no array has.
__device__ __forceinline__ unsigned int inside(Place place, unsigned int bins)
{{
    return (unsigned long long)place < bins ? (unsigned int)place : ~0u;
}}

// Puts each tile of places in the order of their buckets, and appends it to them. What a bucket has no room for is added at once.
extern "C" __global__ void __launch_bounds__(THREADS)
value_buckets_kernel(const Place *places, const float *values, float *kept, unsigned short *within, unsigned int *lengths, Sum *sums,
                     long long count, long long room, unsigned int bins)
{{
    extern __shared__ unsigned int shared[];
    unsigned int *const place_of = shared;
    VALUES(float *const value_of = reinterpret_cast<float *>(shared + TILE);)
    __shared__ unsigned int counts[BUCKETS], starts[BUCKETS], before[BUCKETS / 32], all;
    __shared__ long long shift[BUCKETS];
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const long long tiles = (count + TILE - 1) / TILE;
    for (long long tile = blockIdx.x; tile < tiles; tile += gridDim.x) {{
        if (thread < BUCKETS) counts[thread] = 0;
        __syncthreads();
        unsigned int place[EACH], rank[EACH];
        VALUES(float value[EACH];)
        if ((tile + 1) * TILE <= count) {{
#pragma unroll
            for (int n = 0; n < EACH / LANES; ++n) {{
                const long long access = tile * (TILE / LANES) + n * THREADS + thread;
                const Places p = reinterpret_cast<const Places *>(places)[access];
                VALUES(const Values v = reinterpret_cast<const Values *>(values)[access];)
#pragma unroll
                for (int k = 0; k < LANES; ++k) {{
                    place[LANES * n + k] = inside(p.lane[k], bins);
                    VALUES(value[LANES * n + k] = v.lane[k];)
                }}
            }}
        }} else {{
#pragma unroll
            for (int n = 0; n < EACH; ++n) {{
                const long long i = tile * TILE + n * THREADS + thread;
                place[n] = i < count ? inside(places[i], bins) : ~0u;
                VALUES(value[n] = i < count ? values[i] : 0.0f;)
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
            VALUES(value_of[at] = value[n];)
        }}
        __syncthreads();
#pragma unroll
        for (int n = 0; n < EACH; ++n) {{
            const unsigned int at = n * THREADS + thread;
            if (at >= all) break;
            const unsigned int p = place_of[at], bucket = p >> BITS;
            const long long to = shift[bucket] + at;
            if (to < room) {{
                VALUES(kept[bucket * room + to] = value_of[at];)
                within[bucket * room + to] = (unsigned short)(p & ((1u << BITS) - 1));
            }} else {{
                {beyond};
            }}
        }}
        __syncthreads();
    }}
}}
"""


@dataclass(frozen=True, slots=True)
class Split:
    """How places are split: elements of a bucket (a power of two), threads of a block, places of a
    thread, blocks of a multiprocessor.

    blocks: as many as find room at once; with more, those that come later would leave the GPU half
    empty. place: their type in CUDA.
    kind: of the sums that follow. beyond: adds what a bucket has no room for to `sums`, at p (and
    value_of[at]). head: text that it needs.
    """

    room: int
    threads: int
    each: int
    blocks: int
    place: str
    kind: str
    beyond: str
    head: str = ""
    valued: bool = False

    @property
    def most(self) -> int:
        """How many elements there may be."""
        return self.room * BUCKETS

    @property
    def shared(self) -> int:
        """Bytes of shared memory of a block."""
        return (8 if self.valued else 4) * self.threads * self.each


@dataclass(frozen=True, slots=True)
class Filled:
    """Buckets: where the values are, the places within a bucket, how many each has. room: for as
    many; memory: what holds all of them.
    """

    kept: int
    within: int
    lengths: int
    room: int
    count: int
    memory: Any


@cache
def split_text(split: Split, *, wide: int) -> str:
    """The text of the pass. wide: bytes of an access, of which the arrays begin at a multiple."""
    return f"{split.head}\ntypedef {split.kind} Sum;\n" + SPLIT.format(
        threads=split.threads,
        each=split.each,
        buckets=BUCKETS,
        bits=split.room.bit_length() - 1,
        wide=wide,
        place=split.place,
        valued=int(split.valued),
        beyond=split.beyond,
    )


def fits(count: int, elements: int, room: int) -> bool:
    """Whether buckets of so many elements pay: few elements meet in any case, and of many values
    buckets are filled well.
    """
    return FEW <= count <= LARGEST and elements <= room * BUCKETS


def fill(split: Split, device: str, places: Any, values: Any, sums: int, elements: int) -> Filled:
    """Sort places, and values where there are any, arrays of CuPy, into buckets.

    Places outside are left out.
    """
    count = int(places.size)
    addresses = address(places), 0 if values is None else address(values)
    wide = WIDE if all(a % WIDE == 0 for a in addresses) else places.itemsize
    buckets = -(-elements // split.room)
    room = -(-int(count / (elements / split.room) * SLACK) // 8) * 8
    size = 6 if split.valued else 2
    scratch = allocate(
        device, 4 * BUCKETS + size * room * buckets, "buckets of values", zeroed=False
    )
    lengths = address(scratch)
    get_device(device).clear(lengths, 4 * BUCKETS)
    kept = lengths + 4 * BUCKETS
    within = kept + (size - 2) * room * buckets
    kernel = get_device(device).load(
        split_text(split, wide=wide), "value_buckets", split.threads, split.shared
    )
    blocks = min(
        -(-count // (split.threads * split.each)), get_device(device).units() * split.blocks
    )
    numbers = (np.int64(count), np.int64(room), np.uint32(elements))
    kernel.launch((blocks, 1), (*addresses, kept, within, lengths, sums, *numbers))
    return Filled(kept, within, lengths, room, buckets, scratch)
