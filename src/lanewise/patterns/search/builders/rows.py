"""Rows of a ragged list, each brought into ascending order: the order does not depend on the
structure that found them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.runtime.cpu import own_kernel, run_range

GRAIN = 4096  # rows worth handing to another thread
FEW = 64  # entries that are sorted by insertion

_SORT = '''"""Every row in ascending order: few entries by insertion, more by a heap."""


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


def sort_rows_kernel(entries, offsets, begin, end):
    for row in range(begin, end):
        first, count = offsets[row], offsets[row + 1] - offsets[row]
        if count <= {few}:
            for n in range(first + 1, first + count):
                entry, place = entries[n], n
                while place > first and entries[place - 1] > entry:
                    entries[place] = entries[place - 1]
                    place -= 1
                entries[place] = entry
            continue
        for n in range(count // 2 - 1, -1, -1):
            sift(entries, first, n, count)
        for last in range(count - 1, 0, -1):
            largest, other = entries[first], entries[first + last]
            entries[first], entries[first + last] = other, largest
            sift(entries, first, 0, last)
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
