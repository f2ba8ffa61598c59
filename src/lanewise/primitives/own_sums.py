"""Exact sums of floats in compiled kernels of a CPU: two float64 for each element, and words
behind them for what has no room there.

A kernel adds a value to the first, and what that addition loses, which is a float, to the second.
Where the second one also loses something, both stay as they were, and the value goes to the words
of `language.exact_sums`, as do values that are not finite. So numbers and words together are the
sum without any rounding, and neither an order nor who adds what changes a bit: each thread adds to
its own, which are added up afterwards.

The numbers of float32 are two rows, as the second one is seldom needed; those of float64 lie side
by side.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from lanewise.language.exact_sums import F32, FORMATS, FloatFormat
from lanewise.primitives.words_text import words_text
from lanewise.runtime import cpu

GRAIN = 1024  # elements

FINISH = """def own_sums_kernel(sums, words, array, begin, end):
    elements = uint64(array.shape[0])
    odd = empty(1, int64)
    odd_sum = odd.view(float64)
    any_ = int64(0)
    for w in range({words}):
        any_ |= words[elements * uint64({words}) + uint64(w)]
    for e in range(begin, end):
        element = uint64(e)
        at, behind = {places}
        total, small = sums[at], sums[behind]
        if total == 0.0 and small == 0.0:
            continue
        sums[at], sums[behind] = 0.0, 0.0
        held = int64(0)
        if any_:
            for w in range({words}):
                held |= words[elements * uint64(w) + element]
        if not held and total + small == 0.0:
            continue  # the element keeps its bits
        own = float64(array[element])
        rest = left_over(total, own)
        if held or left_over(small, rest) != 0.0:
            added_sum(words, elements, element, total)
            added_sum(words, elements, element, small)
        else:
            array[element] = nearest(total + own, small + rest, odd, odd_sum)
"""

MERGE = """def merged_sums_kernel(sums, words, others, begin, end):
    elements = uint64(sums.shape[0] >> 1)
    for e in range(begin, end):
        element = uint64(e)
        at, behind = {places}
        total, small = sums[at], sums[behind]
        for n in range(2):
            number = others[at] if n == 0 else others[behind]
            if number != 0.0:
                rest = left_over(total, number)
                if left_over(small, rest) != 0.0:
                    added_sum(words, elements, element, number)
                else:
                    total, small = total + number, small + rest
        sums[at], sums[behind] = total, small
"""

MERGE_WORDS = """def merged_words_kernel(words, others, begin, end):
    elements = uint64(len(words) // {words} - 1)
    for w in range({words}):
        if others[elements * uint64({words}) + uint64(w)]:
            for e in range(begin, end):
                piece = others[elements * uint64(w) + uint64(e)]
                if piece:
                    if w == {words} - 1:
                        words[elements * uint64({words}) + uint64(w)] = 1
                        words[elements * uint64(w) + uint64(e)] |= piece
                    else:
                        carried(words, elements, uint64(e), w, piece)
"""


@cache
def texts_of(name: str) -> tuple[str, str, str]:
    """The texts that round, that add numbers to numbers, and words to words, for a type of floats
    by NumPy's name of it.
    """
    kind, head = FORMATS[name], words_text(name)
    single = "element, elements + element"
    places = single if kind == F32 else "element << uint64(1), element << uint64(1) | uint64(1)"
    texts = (FINISH, MERGE, MERGE_WORDS)
    finish, merge, words = (t.format(words=kind.words, places=places) for t in texts)
    return head + finish, head + merge, head + words


def planes_of(kind: FloatFormat, words: Any) -> Any:
    """The words, without the numbers."""
    return words[2 * elements_of(kind, words) :]


def elements_of(kind: FloatFormat, words: Any) -> int:
    """How many there are."""
    return (len(words) - kind.words) // (kind.words + 2)


def touched(kind: FloatFormat, elements: int) -> int:
    """Bytes that a kernel touches where all values fit the numbers."""
    return elements * (8 if kind == F32 else 16)


def _parts(kind: FloatFormat, words: Any) -> tuple[Any, Any]:
    sums = words[: 2 * elements_of(kind, words)].view(np.float64)
    return sums, planes_of(kind, words)


def is_used(kind: FloatFormat, planes: Any) -> bool:
    """Whether a value went to the words."""
    return bool(planes[-kind.words :].any())


def finish(words: Any, array: Any) -> None:
    """Add the numbers to the elements of an array of NumPy, each rounded once, and make them zero
    again; those of elements that also have words go to these.
    """
    kind = FORMATS[array.dtype.name]
    text, _, _ = texts_of(kind.name)
    cpu.run_range(
        cpu.own_kernel(text, "own_sums"), (*_parts(kind, words), array), array.size, GRAIN
    )


def merge(kind: FloatFormat, words: Any, others: Any) -> None:
    """Add the numbers and words of another thread."""
    _, numbers_text, words_text_ = texts_of(kind.name)
    (sums, planes), (other, behind) = _parts(kind, words), _parts(kind, others)
    merge_sums = cpu.own_kernel(numbers_text, "merged_sums")
    cpu.run_range(merge_sums, (sums, planes, other), len(sums) // 2, GRAIN)
    if is_used(kind, behind):
        merge_words = cpu.own_kernel(words_text_, "merged_words")
        cpu.run_range(merge_words, (planes, behind), len(sums) // 2, GRAIN)
