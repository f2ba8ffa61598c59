"""Exact sums of floats into few elements on a CPU: in float64, where nothing is lost.

An element has a float64 of float32 values, two of float64 ones. A value is added to the first, and
what that addition loses, which is a float again, to the second. Where the last one loses nothing
either, both are kept; where it does, they stay as they were, and the value waits for the words of
`language.exact_sums`, as do values that are not finite. So the numbers of an element and its words
are the sum without any rounding, and no order and no number of threads changes a bit: every thread
adds to its own numbers.

At the end the numbers of all threads and the element are added up in the same way, and rounded
once. Where something is lost, they go to the words, which are rounded after that.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from lanewise.language.exact_sums import F32, FORMATS
from lanewise.primitives.words_text import LEFT_OVER, words_text
from lanewise.runtime import cpu

ROOM = 2**18  # bytes of the numbers of a thread, which the caches of a core hold
ADDED = 2.0  # nanoseconds that a value takes
WAITING = 16  # one value in so many may wait; where more do, buckets are as fast
GRAIN = 1024  # elements

ADD = """def direct_sums_kernel(places, values, shares, sums, waiting, counts, begin, end):
    elements, room = uint64(sums.shape[1] // {each}), waiting.shape[1]
    for share in range(begin, end):
        left = 0
        for e in range(sums.shape[1]):
            sums[share, e] = 0.0
        for i in range(shares[share, 0], shares[share, 1]):
            p = uint64(int64(places[uint64(i)]))
            if p < elements:
                x = float64(values[uint64(i)])
                {add}
                    if left == room:
                        left += 1
                        break
                    waiting[share, left] = i
                    left += 1
        counts[share] = left
"""
ADD_SINGLE = """one = sums[share, p]
                if left_over(one, x) == 0.0:
                    sums[share, p] = one + x
                else:"""
ADD_DOUBLE = """at = p << uint64(1)
                one, other = sums[share, at], sums[share, at | uint64(1)]
                rest = left_over(one, x)
                if left_over(other, rest) == 0.0:
                    sums[share, at], sums[share, at | uint64(1)] = one + x, other + rest
                else:"""

# One thread: two values that wait may be of one element.
WAIT = """def waiting_sums_kernel(places, bits, waiting, counts, words, mixed, begin, end):
    count = uint64(len(words) // {words} - 1)
    for share in range(begin, end):
        for n in range(counts[share]):
            i = uint64(waiting[share, n])
            element = uint64(int64(places[i]))
            mixed[element] = 1
            added(words, count, element, bits[i])
"""

FINISH = """def finished_sums_kernel(sums, words, mixed, array, begin, end):
    count = uint64(len(words) // {words} - 1)
    odd = empty(1, int64)
    odd_sum = odd.view(float64)
    for e in range(begin, end):
        element = uint64(e)
        total, small, lost = 0.0, 0.0, mixed[element] != 0
        for share in range(sums.shape[0]):
            for n in range({each}):
                number = sums[share, {each} * e + n]
                rest = left_over(total, number)
                if left_over(small, rest) != 0.0:
                    lost = True
                total, small = total + number, small + rest
        if not lost and total + small == 0.0:
            continue  # the element keeps its bits
        own = float64(array[element])
        rest = left_over(total, own)
        if lost or left_over(small, rest) != 0.0:
            for share in range(sums.shape[0]):
                for n in range({each}):
                    added_sum(words, count, element, sums[share, {each} * e + n])
        else:
            array[element] = nearest(total + own, small + rest, odd, odd_sum)
"""


@cache
def texts_of(name: str) -> tuple[str, str, str]:
    """The texts that add values, that add those that wait, and that finish, for a type of floats by
    NumPy's name of it.
    """
    kind = FORMATS[name]
    each, add = (1, ADD_SINGLE) if kind == F32 else (2, ADD_DOUBLE)
    return (
        LEFT_OVER + ADD.format(each=each, add=add),
        words_text(name) + WAIT.format(words=kind.words),
        words_text(name) + FINISH.format(words=kind.words, each=each),
    )


def most_elements(name: str) -> int:
    """How many elements of a type of floats, by NumPy's name of it, get their sums directly."""
    return ROOM // (8 if FORMATS[name] == F32 else 16)


def add_directly(places: Any, values: Any, words: Any, array: Any) -> bool:
    """Add floats to the elements of an array (m,), exactly; places outside are left out. What does
    not fit goes to the words of exact sums. False: elements are too many, or too many values would
    wait, and nothing was done.

    places: int32 or int64, values: float32 or float64, both (n,), of the array's type; words: those
    of all elements, zero.
    """
    kind, count, elements = FORMATS[values.dtype.name], len(values), len(array)
    numbers = elements if kind == F32 else 2 * elements
    if not 0 < elements <= most_elements(kind.name):
        return False
    number = max(1, min(cpu.threads_worth(ADDED * count), count // (4 * numbers)))
    add, wait, finish = texts_of(kind.name)
    edges = np.linspace(0, count, number + 1).astype(np.int64)
    shares = np.ascontiguousarray(np.stack([edges[:-1], edges[1:]], axis=1))
    room = -(-count // number) // WAITING + 1
    sums, waiting = np.empty((number, numbers)), np.empty((number, room), np.int64)
    counts = np.zeros(number, np.int64)
    arguments = places, values, shares, sums, waiting, counts
    cpu.run_shares(cpu.own_kernel(add, "direct_sums"), arguments, number)
    if (counts > room).any():
        return False
    mixed = np.zeros(elements, np.uint8)
    if counts.any():
        bits = values.view(kind.bits.name[1:])
        waits: Any = cpu.own_kernel(wait, "waiting_sums")
        waits(places, bits, waiting, counts, words, mixed, 0, number)
    finished = cpu.own_kernel(finish, "finished_sums")
    cpu.run_range(finished, (sums, words, mixed, array), elements, GRAIN)
    return True
