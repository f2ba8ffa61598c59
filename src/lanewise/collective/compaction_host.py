"""Compaction on a CPU: tiles are counted, then each copies its rows to where those before it end.

Of a tile that keeps little the places are listed before anything is copied. A row far from the last one waits for memory, and copies that
hang on no guess about the mask wait together.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lanewise.runtime import cpu

TILE = 16_384  # elements
GRAIN = 4  # tiles
SPARSE = 16  # times as many elements as a tile keeps, from which on places are listed first
MOST = 2**31 - 1  # rows whose places have 32 bits
COUNT = """import numpy as np
from numba import njit, uint64


@njit(error_model="numpy", nogil=True)
def kept_count_kernel(mask, counts, begin, end):
    for tile in range(begin, end):
        total = 0
        for i in range(tile * {tile}, min((tile + 1) * {tile}, len(mask))):
            total += mask[uint64(i)]
        counts[tile] = total
"""
COPY = """import numpy as np
from numba import njit, uint64


@njit(error_model="numpy", nogil=True)
def compaction_kernel(values, mask, eight, starts, kept, begin, end):
    listed = np.empty({tile} // {sparse} + 8, np.int64)
    for tile in range(begin, end):
        place, stop = starts[tile], starts[tile + 1]
        first, last = tile * {tile}, min((tile + 1) * {tile}, len(mask))
        if (stop - place) * {sparse} <= last - first:
            count = 0
            for word in range(first, last, 8):
                if word + 8 > last or eight[uint64(word) >> uint64(3)]:
                    if count >= stop - place:
                        break
                    for i in range(word, min(word + 8, last)):
                        listed[uint64(count)] = i
                        count += mask[uint64(i)]
            for n in range(min(count, stop - place)):
                i = listed[uint64(n)]
                {copy}
                place += 1
            continue
        for word in range(first, last, 8):
            if word + 8 <= last and not eight[uint64(word) >> uint64(3)]:
                continue
            if place == stop:
                break
            for i in range(word, min(word + 8, last)):
                if place == stop:  # written before it is known to be kept: nobody can guess a mask
                    break
                {copy}
                place += mask[uint64(i)]
"""
ONE = "kept[uint64(place)] = {value}"
ROW = """for k in range(kept.shape[1]):
                    kept[uint64(place), k] = values[uint64(i), k]"""


def _starts(mask: Any) -> Any:
    """Where the rows of each tile begin among those that are kept; the last entry is their number."""
    tiles = -(-len(mask) // TILE)
    starts = np.zeros(tiles + 1, np.int64)
    kernel: Any = cpu.own_kernel(COUNT.format(tile=TILE), "kept_count")
    cpu.run_range(kernel, (mask.view(np.uint8), starts[1:]), tiles, GRAIN)
    np.cumsum(starts, out=starts)
    return starts


def _copy(values: Any, mask: Any, starts: Any, kept: Any, copy: str) -> None:
    kernel: Any = cpu.own_kernel(COPY.format(tile=TILE, sparse=SPARSE, copy=copy), "compaction")
    cpu.run_range(kernel, (values, mask.view(np.uint8), _eight(mask), starts, kept), len(starts) - 1, GRAIN)


def _eight(mask: Any) -> Any:
    """A mask as words of eight of its elements, as many as are whole: most of a mask that keeps little are zero."""
    aligned = mask if mask.ctypes.data % 8 == 0 else mask.copy()
    return aligned.view(np.uint8)[: len(mask) // 8 * 8].view(np.uint64)


def places(mask: Any) -> Any:
    """The places of what is true."""
    starts = _starts(mask)
    kept = np.empty(int(starts[-1]), np.int32)
    _copy(kept, mask, starts, kept, ONE.format(value="i"))
    return kept


def compact(array: Any, mask: Any) -> Any:
    """The rows of an array of NumPy whose mask is true."""
    starts = _starts(mask)
    result = np.empty((int(starts[-1]), *array.shape[1:]), array.dtype)
    size = array.itemsize * int(np.prod(array.shape[1:], dtype=np.int64))
    if not size or not len(result):
        return result
    width = next(w for w in (8, 4, 2, 1) if size % w == 0)
    values, kept = (a.reshape(-1).view(f"u{width}") for a in (array, result))
    values = values if values.flags.writeable else values.copy()  # generated code is compiled for writable memory
    if size == width:
        _copy(values, mask, starts, kept, ONE.format(value="values[uint64(i)]"))
    else:
        _copy(values.reshape(-1, size // width), mask, starts, kept.reshape(-1, size // width), ROW)
    return result
