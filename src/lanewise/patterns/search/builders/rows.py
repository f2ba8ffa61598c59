"""Rows of a ragged list, each brought into ascending order: the order does not depend on the
structure that found them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.runtime.cpu import own_kernel, run_range

GRAIN = 4096  # rows worth handing to another thread
FEW = 24  # entries that are sorted by insertion

# The larger part of a row waits while the smaller one is divided, so that few wait. A part that was
# divided 40 times is sorted by a heap, so that no row takes a square of its length.
_SORT = '''"""Every row in ascending order: divided at a median of three, then by insertion."""


def insert(entries, first, last):
    for n in range(first + 1, last):
        entry, place = entries[n], n
        while place > first and entries[place - 1] > entry:
            entries[place] = entries[place - 1]
            place -= 1
        entries[place] = entry


def sift(entries, first, root, count):
    parent = root
    while 2 * parent + 1 < count:
        child = 2 * parent + 1
        if child + 1 < count and entries[first + child] < entries[first + child + 1]:
            child += 1
        low, high = entries[first + parent], entries[first + child]
        if low >= high:
            return
        entries[first + parent], entries[first + child] = high, low
        parent = child


def heap(entries, first, count):
    for n in range(count // 2 - 1, -1, -1):
        sift(entries, first, n, count)
    for last in range(count - 1, 0, -1):
        largest, other = entries[first], entries[first + last]
        entries[first], entries[first + last] = other, largest
        sift(entries, first, 0, last)


def divide(entries, first, last):
    a, b, c = entries[first], entries[(first + last) // 2], entries[last - 1]
    middle = max(min(a, b), min(max(a, b), c))
    left, right = first, last - 1
    while left <= right:
        while entries[left] < middle:
            left += 1
        while entries[right] > middle:
            right -= 1
        if left <= right:
            low, high = entries[right], entries[left]
            entries[left], entries[right] = low, high
            left += 1
            right -= 1
    return left


def sort_rows_kernel(entries, offsets, begin, end):
    todo = empty((64, 3), int64)
    for row in range(begin, end):
        first, last, turns, waiting = offsets[row], offsets[row + 1], 40, 0
        while True:
            if last - first > {few} and turns > 0:
                cut = divide(entries, first, last)
                turns -= 1
                smaller = cut - first < last - cut
                todo[waiting, 0] = cut if smaller else first
                todo[waiting, 1] = last if smaller else cut
                todo[waiting, 2] = turns
                first, last = (first, cut) if smaller else (cut, last)
                waiting += 1
                continue
            if last - first > {few}:
                heap(entries, first, last - first)
            else:
                insert(entries, first, last)
            if waiting == 0:
                break
            waiting -= 1
            first, last, turns = todo[waiting, 0], todo[waiting, 1], todo[waiting, 2]
'''


def sort_rows(entries: NDArray[np.int32], offsets: NDArray[np.int64]) -> None:
    """Sort the rows of a list on the host, in place."""
    run_range(
        own_kernel(_SORT.format(few=FEW), "sort_rows"), (entries, offsets), len(offsets) - 1, GRAIN
    )


def sort_keys(module: Any, keys: Any) -> Any:
    """The entries of 64-bit keys (row, entry), on a GPU: one sort for all rows, crowded ones
    too.
    """
    keys.sort()
    return module.ascontiguousarray(keys.view("int32")[::2])  # the lower half comes first
