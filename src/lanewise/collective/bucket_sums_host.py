"""Sums into the elements of an array on a CPU, where an array says what is added and another one where.

An addition to a random element waits for memory, and one that other threads must not interrupt lets nothing else begin meanwhile. So values
go to buckets of neighbouring elements first, some ten thousand of them, which fit the caches of a core: a thread counts a tile by buckets,
then copies it in their order; the second look at it finds it in the caches. Then a thread adds up a bucket alone, from all tiles. Sums of
floats are in `collective.exact_buckets_host`; those of whole numbers wrap: no order matters. Two lines of a bucket are fetched ahead of the
one that is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from lanewise.runtime import cpu

FEW = 2**16  # values, for which the kernel of the caller is as fast
ROOM = 2**15  # elements of a bucket, as long as there are no more than `BUCKETS` of them
LEAST, BUCKETS = 32, 512
TILE, SHARE = 2**16, 256  # values of a tile, and values of a bucket in it at least
ROUND, ROUNDS = 2**20, 2**23  # values of a round, at least and at most
MOST = 2**31  # elements
HEAD = """import numpy as np
from numba import float32, float64, int32, int64, njit, uint64

from lanewise.runtime.simd import prefetch_to_store


"""
SPLIT = (
    HEAD
    + """@njit(error_model="numpy", nogil=True)
def bucket_split_kernel(places, {values}elements, shift, buckets, starts, within, {kept}first, stop, tile, begin, end):
    rest = (uint64(1) << uint64(shift)) - uint64(1)
    own = np.empty(buckets, np.int64)
    for t in range(begin, end):
        own[:] = 0
        low, high = first + t * tile, min(first + (t + 1) * tile, stop)
        for i in range(low, high):
            p = uint64(int64(places[uint64(i)]))
            if p < uint64(elements):
                own[p >> uint64(shift)] += 1
        here = t * tile
        for b in range(buckets):
            starts[t, b] = here
            own[b], here = here, here + own[b]
        starts[t, buckets] = here
        for i in range(low, high):
            p = uint64(int64(places[uint64(i)]))
            if p < uint64(elements):
                to = p >> uint64(shift)
                at = uint64(own[to])
                own[to] += 1
                prefetch_to_store(within, at + uint64(64))
                within[at] = p & rest
{keep}"""
)
KEEP = """                prefetch_to_store(kept, at + uint64(16))
                kept[at] = values[uint64(i)]
"""
ADD = (
    HEAD
    + """@njit(error_model="numpy", nogil=True)
def bucket_sums_kernel(within, {kept}starts, tiles, shift, array, begin, end):
    for b in range(begin, end):
        base = uint64(b) << uint64(shift)
        for t in range(tiles):
            for i in range(starts[t, b], starts[t, b + 1]):
                e = base + uint64(within[uint64(i)])
                array[e] += {value}
"""
)


@dataclass(frozen=True, slots=True)
class Split:
    """A round of values in buckets: of each place what it is within its bucket, the values, and where the buckets of each tile begin.

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
def split_text(*, valued: bool) -> str:
    """The text of the pass that fills buckets. valued: every value is another one."""
    parts = ("values, ", "kept, ", KEEP) if valued else ("", "", "")
    return SPLIT.format(values=parts[0], kept=parts[1], keep=parts[2])


@cache
def whole_text(number: int | None) -> str:
    """The text that adds up buckets of whole numbers, of which each is `number` where one is given."""
    return ADD.format(kept="kept, ", value="kept[uint64(i)]") if number is None else ADD.format(kept="", value=number)


def fits(count: int, elements: int) -> bool:
    """Whether buckets pay: not for few values, and not where each element has few of them."""
    return count >= FEW and elements <= min(MOST, 4 * count)


def add_numbers(places: Any, values: Any, array: Any, *, number: int = 1) -> None:
    """Add whole numbers to the elements of an array (m,), in its type; where `values` is None, `number` at each place."""
    add: Any = cpu.own_kernel(whole_text(number if values is None else None), "bucket_sums")
    buckets = buckets_of(array.size, ROOM)
    for part in splits(places, values, buckets, min(max(2 * array.size, ROUND), ROUNDS)):
        cpu.run_range(add, (part.within, *part.kept, part.starts, part.tiles, buckets.shift, array), buckets.count, 1)


def buckets_of(elements: int, room: int) -> Buckets:
    """Buckets of at most so many elements, unless there were too many of them."""
    wanted = min(max(elements // room, LEAST), BUCKETS)
    return Buckets(elements, max(-(-elements // wanted) - 1, 0).bit_length())


def splits(places: Any, values: Any, buckets: Buckets, size: int) -> Iterator[Split]:
    """Rounds of about equal length, of so many values at most, in memory that the next round overwrites. Places outside are left out."""
    size = -(-len(places) // -(-len(places) // size))
    tile = max(TILE, SHARE * buckets.count)
    split: Any = cpu.own_kernel(split_text(valued=values is not None), "bucket_split")
    within = np.empty(size, np.uint16 if buckets.shift <= 16 else np.uint32)
    given, kept = ((), ()) if values is None else ((values,), (np.empty(size, values.dtype),))
    starts = np.empty((-(-size // tile), buckets.count + 1), np.int64)
    for first in range(0, len(places), size):
        stop = min(first + size, len(places))
        tiles = -(-(stop - first) // tile)
        how = buckets.elements, buckets.shift, buckets.count
        cpu.run_range(split, (places, *given, *how, starts, within, *kept, first, stop, tile), tiles, 1)
        yield Split(within, kept, starts, tiles, first == 0, stop == len(places))
