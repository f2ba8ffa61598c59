"""Sums into the elements of an array on a CPU, where an array says what is added and another one where.

An addition to a random element waits for memory, and one that other threads must not interrupt lets nothing else begin meanwhile. So values
go to buckets of neighbouring elements first, some ten thousand of them, which fit the caches of a core: chunks are counted by buckets, then
copied to where their buckets are; then a thread adds up a bucket alone. A round of all this takes as many values as fit the caches that
cores share. Sums of floats are those of `lanewise.exact_sums`, in its words, and those of whole numbers wrap: no order matters.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from lanewise.exact_sums import ABOVE, BELOW, FORMATS, NAN, WORD, Format
from lanewise.runtime import cpu

FEW = 2**16  # values, for which the kernel of the caller is as fast
ROOM = 2**15  # elements of a bucket, as long as there are no more than `BUCKETS` of them
LEAST, BUCKETS = 32, 512
CHUNKS = 32  # of a round
ROUND, ROUNDS = 2**20, 2**23  # values of a round, at least and at most
MOST = 2**31  # elements
HEAD = """import numpy as np
from numba import float32, float64, int32, int64, njit, uint64


"""
COUNT = (
    HEAD
    + """@njit(error_model="numpy", nogil=True)
def bucket_counts_kernel(places, elements, shift, buckets, counts, first, stop, chunk, begin, end):
    for c in range(begin, end):
        own = np.zeros(buckets, np.int64)
        for i in range(first + c * chunk, min(first + (c + 1) * chunk, stop)):
            p = uint64(int64(places[uint64(i)]))
            if p < uint64(elements):
                own[p >> uint64(shift)] += 1
        for b in range(buckets):
            counts[b, c] = own[b]
"""
)
SPLIT = (
    HEAD
    + """@njit(error_model="numpy", nogil=True)
def bucket_split_kernel(places, {values}elements, shift, starts, within, {kept}first, stop, chunk, begin, end):
    rest = (uint64(1) << uint64(shift)) - uint64(1)
    for c in range(begin, end):
        own = starts[:, c].copy()
        for i in range(first + c * chunk, min(first + (c + 1) * chunk, stop)):
            p = uint64(int64(places[uint64(i)]))
            if p < uint64(elements):
                b = p >> uint64(shift)
                at = uint64(own[b])
                own[b] += 1
                within[at] = p & rest
{keep}"""
)
KEEP = "                kept[at] = values[uint64(i)]\n"
ADD = (
    HEAD
    + """@njit(error_model="numpy", nogil=True)
def bucket_sums_kernel(within, {kept}starts, shift, array, begin, end):
    for b in range(begin, end):
        base = uint64(b) << uint64(shift)
        for i in range(starts[b, 0], starts[b + 1, 0]):
            e = base + uint64(within[uint64(i)])
            array[e] += {value}
"""
)
EXACT = (
    HEAD
    + """@njit(error_model="numpy", nogil=True)
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
    exponent, rest = int64(bits >> {bits}({fraction})) & int64({most}), int64(bits) & int64({rest})
    if exponent == {most}:
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
def bucket_sums_kernel(within, kept, starts, shift, words, word, begin, end):
    count = uint64(len(words) // {words} - 1)
    low, least = int64(32 * word), int64(max(32 * word, 1))
    span = uint64(min(low + int64({span}), int64({most} - 1)) - least)
    own = count * uint64(word)
    used = False
    for b in range(begin, end):
        base = uint64(b) << uint64(shift)
        for i in range(uint64(starts[b, 0]), uint64(starts[b + 1, 0])):
            element = base + uint64(within[i])
            bits = kept[i]
            exponent = int64(bits >> {bits}({fraction})) & int64({most})
            if uint64(exponent - least) > span:
                if bits << {bits}(1):
                    added(words, count, element, bits)
                continue
            used = True
            number, sign, up = int64(bits) & int64({rest}) | int64({one}), int64(bits) >> int64(63), uint64(exponent - low)
            at = own + element
{pieces}    if used:
        words[count * uint64({words}) + uint64(word)] = 1
{also}"""
)
ONE_PIECE = """            piece = (int64(uint64(number) << up) ^ sign) - sign
            before = words[at]
            after = int64(uint64(before) + uint64(piece))
            words[at] = after
            if (before ^ after) & (piece ^ after) < 0:
                carried(words, count, element, word + 2, int64(-1) if piece < 0 else int64(1))
"""
TWO_PIECES = """            piece = (int64(uint64(number) << up & uint64(0xFFFFFFFF)) ^ sign) - sign
            over = (int64(uint64(number) << uint64(10) >> (uint64(42) - up)) ^ sign) - sign
            before, old = words[at], words[at + count]
            after, new = int64(uint64(before) + uint64(piece)), int64(uint64(old) + uint64(over))
            words[at], words[at + count] = after, new
            if ((before ^ after) & (piece ^ after) | (old ^ new) & (over ^ new)) < 0:
                if (before ^ after) & (piece ^ after) < 0:
                    carried(words, count, element, word + 2, int64(-1) if piece < 0 else int64(1))
                if (old ^ new) & (over ^ new) < 0:
                    carried(words, count, element, word + 3, int64(-1) if over < 0 else int64(1))
"""
ALSO = "        words[count * uint64({words}) + uint64(word + 1)] = 1\n"
SPAN = {"float32": 38, "float64": 41}  # bits that a value may be shifted by in the words that most values go to
SAMPLE = 1_024  # values that tell which these are


@cache
def split_text(*, valued: bool) -> str:
    """The text of the pass that fills buckets. valued: every value is another one."""
    parts = ("values, ", "kept, ", KEEP) if valued else ("", "", "")
    return SPLIT.format(values=parts[0], kept=parts[1], keep=parts[2])


@cache
def exact_text(name: str) -> str:
    """The text that adds up buckets of floats, by NumPy's name of their type."""
    kind = FORMATS[name]
    return EXACT.format(
        words=kind.words, bits=kind.bits.name[1:], fraction=kind.fraction, most=kind.most, rest=(1 << kind.fraction) - 1,
        one=1 << kind.fraction, span=SPAN[name], nan=NAN, above=ABOVE, below=BELOW,
        pieces=TWO_PIECES if kind.several else ONE_PIECE, also=ALSO.format(words=kind.words) if kind.several else "",
    )  # fmt: skip


@cache
def whole_text(number: int | None) -> str:
    """The text that adds up buckets of whole numbers, of which each is `number` where one is given."""
    return ADD.format(kept="kept, ", value="kept[uint64(i)]") if number is None else ADD.format(kept="", value=number)


def fits(count: int, elements: int) -> bool:
    """Whether buckets pay: not for few values, and not where each element has few of them."""
    return count >= FEW and elements <= min(MOST, 4 * count)


def add_floats(places: Any, values: Any, words: Any, elements: int) -> None:
    """Add floats to the words of exact sums; places outside are left out. places: int32 or int64, values: float32 or float64, both (n,)."""
    kind = FORMATS[values.dtype.name]
    bits = values.view(kind.bits.name[1:])
    _rounds(places, bits, elements, cpu.own_kernel(exact_text(kind.name), "bucket_sums"), words, _main_word(kind, bits))


def add_numbers(places: Any, values: Any, array: Any, *, number: int = 1) -> None:
    """Add whole numbers to the elements of an array (m,), in its type; where `values` is None, `number` at each place."""
    text = whole_text(number if values is None else None)
    _rounds(places, values, array.size, cpu.own_kernel(text, "bucket_sums"), array)


def _main_word(kind: Format, bits: Any) -> int:
    """The word that takes most values whole: those up to a few times as large as the largest of some."""
    exponents = bits[:: max(len(bits) // SAMPLE, 1)] >> kind.fraction & kind.most
    largest = int(exponents[exponents != kind.most].max(initial=1))
    return max(-(-(largest + 2 - SPAN[kind.name]) // WORD), 0)


def _rounds(places: Any, values: Any, elements: int, add: Any, *to: Any) -> None:
    """Fill buckets, and add them up, with as many values at a time as the caches hold."""
    wanted = min(max(elements // ROOM, LEAST), BUCKETS)
    shift = max(-(-elements // wanted) - 1, 0).bit_length()
    buckets = -(-elements // (1 << shift))
    size = min(max(2 * elements, ROUND), ROUNDS, len(places))
    chunk = -(-size // CHUNKS)
    chunks = -(-size // chunk)
    count: Any = cpu.own_kernel(COUNT, "bucket_counts")
    split: Any = cpu.own_kernel(split_text(valued=values is not None), "bucket_split")
    within = np.empty(size, np.uint16 if shift <= 16 else np.uint32)
    given, kept = ((), ()) if values is None else ((values,), (np.empty(size, values.dtype),))
    counts, starts = np.zeros((buckets, chunks), np.int64), np.zeros((buckets + 1, chunks), np.int64)
    for first in range(0, len(places), size):
        part = first, min(first + size, len(places)), chunk
        cpu.run_range(count, (places, elements, shift, buckets, counts, *part), chunks, 1)
        flat = starts.reshape(-1)
        np.cumsum(counts.reshape(-1), out=flat[1 : counts.size + 1])
        cpu.run_range(split, (places, *given, elements, shift, starts, within, *kept, *part), chunks, 1)
        cpu.run_range(add, (within, *kept, starts, shift, *to), buckets, 1)
