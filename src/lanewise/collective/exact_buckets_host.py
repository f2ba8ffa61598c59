"""Exact sums of floats in buckets on a CPU: two whole numbers of 64 bits an element, which most values are split into by additions.

A value x is split at two weights, top and low: `x + 1.5 * 2^52 * top` is rounded to a multiple of `top`, which the last bits of the sum say
as a whole number; what is left over is split at `low` in the same way, and has to have nothing left over then. So a value takes five
additions of floats, which go over several values at once, and two of whole numbers to the element, which need no test of a carry: after
`MOST` values of a bucket its numbers go to the words of `language.exact_sums`. There go also values that are too large, too small or not
finite. Both are exact, so where a value ends up changes no bit. The weights are chosen by the largest of a sample of the values.

At the end the two numbers of an element, and the element, are three floats whose sum is rounded once; what is left over of adding two of
them exactly tells whether that is so. Where it is not, and in buckets of which something went to the words, all of it goes there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import ldexp
from typing import Any

import numpy as np

from lanewise.collective.bucket_sums_host import HEAD, buckets_of, splits
from lanewise.language.exact_sums import ABOVE, BELOW, FORMATS, NAN, Format
from lanewise.runtime import cpu

ROOM = 2**15  # elements of a bucket, which are 512 KiB of numbers
# Values of a round, at least and at most: 8 of each element, whose numbers every round reads again.
ROUND, ROUNDS = 2**20, 2**23
MOST = 2**20  # values that the numbers of a bucket hold without a carry
# Bits that a value has above the first weight, and those down to the second one: 2^62 is not reached.
ABOVE_TOP, BELOW_TOP = 42, 43
SAMPLE = 1_024  # values that tell how large they are
TEXT = (
    HEAD
    + """from lanewise.runtime.simd import bits_of, lanes

load_pair, add_pairs, store_pair = lanes(2, "load", "add", "store")


@njit(error_model="numpy", nogil=True)
def carried(words, count, element, word, piece):  # what leaves a word that wraps goes two words higher
    while True:
        words[count * uint64({words}) + uint64(word)] = 1
        place = count * uint64(word) + element
        before = words[place]
        after = int64(uint64(before) + uint64(piece))
        words[place] = after
        if (before ^ after) & (piece ^ after) >= 0:
            return
        piece = int64(-1) if piece < 0 else int64(1)
        word += 2


@njit(error_model="numpy", nogil=True)
def added(words, count, element, bits):  # any value at all
    exponent, rest = int64(bits >> {bits}({fraction})) & int64({most_exponent}), int64(bits) & int64({rest})
    if exponent == {most_exponent}:
        words[count * uint64({words}) + uint64({words} - 1)] = 1
        words[count * uint64({words} - 1) + element] |= {nan} if rest else {below} if bits < 0 else {above}
        return
    number, place = rest | int64({one}) if exponent else rest, exponent if exponent else int64(1)
    word, up, sign = place >> int64(5), place & int64(31), int64(bits) >> int64(63)
    low = int64(uint64(number) << uint64(up)) & int64(0xFFFFFFFF)
    high = number >> (int64(32) - up)
    if low:
        carried(words, count, element, word, (low ^ sign) - sign)
    if high:
        carried(words, count, element, word + 1, (high ^ sign) - sign)


@njit(error_model="numpy", nogil=True)
def emptied(state, words, count, element, top_place, low_place):  # the numbers of an element go to the words
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


@njit(error_model="numpy", nogil=True)
def bucket_sums_kernel(
    within, kept, bits, starts, tiles, shift, state, held, mixed, words, array, weights, biases, places, first_round, last_round, begin, end
):
    count = uint64(len(words) // {words} - 1)
    top, low, limit, one_top, one_low = weights[0], weights[1], weights[2], weights[3], weights[4]
    top_bias, low_bias, top_place, low_place = biases[0], biases[1], places[0], places[1]
    pairs = np.empty(2 * {block}, np.int64)  # both numbers of a value, side by side
{prepare}    for b in range(begin, end):
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
                    pairs[uint64(j) << uint64(1)] = bits_of(whole) - top_bias
                    pairs[uint64(j) << uint64(1) | uint64(1)] = bits_of(part) - low_bias
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
                    both = add_pairs(load_pair(state, at), load_pair(pairs, uint64(j) << uint64(1)))
                    store_pair(state, at, both)
        if last_round:
            for e in range(base, beyond):
                element = uint64(e)
                at = element << uint64(1)
                s, c = state[at], state[at | uint64(1)]
                if not (s | c):
                    continue
                one, other, own = float64(s) * one_top, float64(c) * one_low, float64(array[element])
                large = one + own
                back = large - one
                small = (one - (large - back)) + (own - back)
                near = other + small
                back = near - other
                lost = (other - (near - back)) + (small - back)
                if mixed[b] or lost != 0.0 or max(abs(s), abs(c)) > {precise}:
                    emptied(state, words, count, element, top_place, low_place)
                    continue
                state[at], state[at | uint64(1)] = 0, 0
                if one + other != 0.0:  # else the element keeps its bits
                    {store}
"""
)
STORE = "array[element] = large + near"
STORE_SINGLE = """sum_ = large + near
                    back = sum_ - large
                    lost = (large - (sum_ - back)) + (near - back)
                    pattern = float64(sum_).view(np.int64)
                    if lost != 0.0 and not pattern & int64(1):  # rounded to odd, it may be rounded again to fewer bits
                        odd[0] = pattern + (int64(1) if (lost > 0.0) == (sum_ > 0.0) else int64(-1))
                        sum_ = odd_sum[0]
                    array[element] = float32(sum_)"""
PREPARE_SINGLE = """    odd = np.empty(1, np.int64)
    odd_sum = odd.view(np.float64)
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
def text_of(name: str) -> str:
    """The text that adds up buckets of floats, by NumPy's name of their type."""
    kind = FORMATS[name]
    return TEXT.format(
        words=kind.words, bits=kind.bits.name[1:], fraction=kind.fraction, most_exponent=kind.most, rest=(1 << kind.fraction) - 1,
        one=1 << kind.fraction, nan=NAN, above=ABOVE, below=BELOW, block=BLOCK, most=MOST, precise=2**53,
        store=STORE if name == "float64" else STORE_SINGLE,
        prepare="" if name == "float64" else PREPARE_SINGLE,
    )  # fmt: skip


def add_floats(places: Any, values: Any, words: Any, array: Any) -> None:
    """Add floats to the elements of an array (m,), exactly; places outside are left out. What does not fit goes to the words of exact sums.

    places: int32 or int64, values: float32 or float64, both (n,), of the array's type; words: those of all elements, zero.
    """
    kind = FORMATS[values.dtype.name]
    weights = weights_for(kind, values)
    buckets = buckets_of(array.size, ROOM)
    state = np.empty(2 * array.size, np.int64)  # of large pages, as zeros of NumPy are not
    held, mixed = np.zeros(buckets.count, np.int64), np.zeros(buckets.count, np.uint8)
    scaled = np.array([1.5 * ldexp(1.0, 52 + weights.top), 1.5 * ldexp(1.0, 52 + weights.low)])
    numbers = np.array([*scaled, *(ldexp(1.0, n) for n in (weights.limit, weights.top, weights.low))])
    unit = smallest(kind) - 1
    how = numbers, scaled.view(np.int64), np.array([weights.top - unit, weights.low - unit])
    kernel: Any = cpu.own_kernel(text_of(kind.name), "bucket_sums")
    for part in splits(places, values, buckets, min(max(8 * array.size, ROUND), ROUNDS)):
        (kept,) = part.kept
        own = part.within, kept, kept.view(kind.bits.name[1:]), part.starts, part.tiles, buckets.shift
        cpu.run_range(kernel, (*own, state, held, mixed, words, array, *how, part.first, part.last), buckets.count, 1)


def smallest(kind: Format) -> int:
    """The exponent of the smallest float of a type that is not zero: its bits count from there."""
    return 2 - kind.most // 2 - kind.significand


def weights_for(kind: Format, values: Any) -> Weights:
    """The weights that take values up to twice as large as the largest of a sample, and as many small ones as there is room for."""
    sample = np.abs(values[:: max(len(values) // SAMPLE, 1)])
    largest = float(np.max(sample, where=np.isfinite(sample), initial=0.0))
    exponent = np.frexp(largest)[1] + 1 if largest else smallest(kind)
    top = min(max(int(exponent) - ABOVE_TOP, smallest(kind)), 960)
    return Weights(top, max(top - BELOW_TOP, smallest(kind)))
