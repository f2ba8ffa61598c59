"""Integers added to the elements of an array at places that another array tells, by buckets.

They wrap: no order matters. A CPU adds any numbers, one for each place, or the same one for all; a
GPU the same one for all: how often places occur, into more elements than a block has room for in
shared memory, up to two million.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from lanewise.primitives.buckets import (
    HOST_ROOM,
    ROUND,
    ROUNDS,
    Split,
    buckets_of,
    fill,
    fits,
    splits,
)
from lanewise.runtime import cpu
from lanewise.runtime.device import get_device
from lanewise.runtime.memory import address, device_of

# ------------------------------------------------------------ on a CPU

ADD = """def bucket_sums_kernel(within, {kept}starts, tiles, shift, array, begin, end):
    for b in range(begin, end):
        base = uint64(b) << uint64(shift)
        for t in range(tiles):
            for i in range(starts[t, b], starts[t, b + 1]):
                e = base + uint64(within[uint64(i)])
                array[e] += {value}
"""


@cache
def whole_text(number: int | None) -> str:
    """The text that adds up buckets of integers, of which each is `number` where one is
    given.
    """
    return (
        ADD.format(kept="kept, ", value="kept[uint64(i)]")
        if number is None
        else ADD.format(kept="", value=number)
    )


def add_on_host(places: Any, values: Any, array: Any, *, number: int = 1) -> None:
    """Add integers to the elements of an array (m,), in its type; where `values` is None,
    `number` at each place.
    """
    add: Any = cpu.own_kernel(whole_text(number if values is None else None), "bucket_sums")
    buckets = buckets_of(array.size, HOST_ROOM)
    for part in splits(places, values, buckets, min(max(2 * array.size, ROUND), ROUNDS)):
        cpu.run_range(
            add,
            (part.within, *part.kept, part.starts, part.tiles, buckets.shift, array),
            buckets.count,
            1,
        )


# ------------------------------------------------------------ on a GPU

PLACES = {"int32": "int", "uint32": "unsigned int", "int64": "long long"}
SUMS = {4: "unsigned int", 8: "unsigned long long"}  # by their size: they wrap, whatever their sign
ROOM = 16_384  # elements of a bucket: 64 KB of shared memory
SPLIT_THREADS, EACH, BLOCKS = 512, 16, 2
THREADS = 1024
COUNT = """
#define THREADS {threads}
#define ROOM {room}
typedef {kind} Sum;
struct __align__(16) Places {{ unsigned short lane[8]; }};

// A part of a bucket: how many there are of each element, times `each`.
extern "C" __global__ void __launch_bounds__(THREADS)
bucket_counts_kernel(const unsigned short *places, const unsigned int *lengths, Sum *sums, long long room, int parts, unsigned int bins,
                     Sum each)
{{
    extern __shared__ unsigned int counts[];
    const long long bucket = blockIdx.x / parts, part = blockIdx.x % parts, element = bucket * ROOM;
    for (int n = threadIdx.x; n < ROOM; n += THREADS) counts[n] = 0;
    __syncthreads();
    const long long all = min((long long)lengths[bucket], room), share = ((all + parts - 1) / parts + 7) / 8 * 8;
    const long long end = bucket * room + min(all, (part + 1) * share);
    long long i = bucket * room + part * share + 8 * threadIdx.x;
    for (; i + 7 < end; i += 8 * THREADS) {{
        const Places p = *reinterpret_cast<const Places *>(places + i);
#pragma unroll
        for (int k = 0; k < 8; ++k) atomicAdd(counts + p.lane[k], 1u);
    }}
    for (; i < end; ++i) atomicAdd(counts + places[i], 1u);
    __syncthreads();
    const unsigned int own = (unsigned int)min((long long)bins - element, (long long)ROOM);
    for (unsigned int n = threadIdx.x; n < own; n += THREADS)
        if (counts[n]) atomicAdd(sums + element + n, each * counts[n]);
}}
"""


@cache
def split_of(place: str, size: int, number: int) -> Split:
    """How places of a type of NumPy are split. size: bytes of a sum; number: what is added for each
    of them.
    """
    beyond = f"atomicAdd(sums + p, (Sum){number}ll)"
    return Split(
        ROOM,
        threads=SPLIT_THREADS,
        each=EACH,
        blocks=BLOCKS,
        place=PLACES[place],
        kind=SUMS[size],
        beyond=beyond,
    )


@cache
def count_text(size: int) -> str:
    """The text of the second pass."""
    return COUNT.format(threads=THREADS, room=ROOM, kind=SUMS[size])


def fits_on_gpu(count: int, elements: int) -> bool:
    """Whether buckets pay."""
    return fits(count, elements, ROOM)


def add_on_gpu(places: Any, sums: Any, *, number: int = 1) -> None:
    """Add a number to the integers `sums` at each of the places, both arrays of CuPy.

    Places outside are left out, sums wrap.
    """
    device, size = device_of(places), sums.itemsize
    split = split_of(places.dtype.name, size, number)
    to, kind = address(sums), np.dtype(f"u{size}").type
    b = fill(split, device, places, None, to, sums.size)
    parts = max(1, round(2 * get_device(device).units() / b.count))
    kernel = get_device(device).load(count_text(size), "bucket_counts", THREADS, 4 * ROOM)
    numbers = (
        np.int64(b.room),
        np.int32(parts),
        np.uint32(sums.size),
        kind(number % (1 << 8 * size)),
    )
    kernel.launch((b.count * parts, 1), (b.within, b.lengths, to, *numbers))
