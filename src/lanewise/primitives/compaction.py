"""Stable compaction of plain arrays: the rows whose mask is true, in their order, on a CPU and on a
GPU.

On a CPU tiles are counted, then each copies its rows to where those before it end. Of a tile that
keeps little the places are listed before anything is copied: a row far from the last one waits for
memory, and copies that depend on no guess about the mask wait together.

On a GPU a mask is counted (`primitives.mask_count`), then each tile does the same. The host learns
how many rows there are before it allocates the result, and nothing else. In a tile threads list the
places of what is kept in shared memory; neighbouring threads then copy neighbouring rows of the
list, so that what is written is coalesced, and what is read as far as the mask allows.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from lanewise.primitives.arrays import check_row, is_array, place_of
from lanewise.primitives.mask_count import PLACES, THREADS, Counted, counted
from lanewise.runtime import cpu
from lanewise.runtime.device import get_device
from lanewise.runtime.memory import address, array_module, device_of, on, unlocked
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError

ADVICE = "a comparison makes one: values > 0"
WANTED = (
    "compact: the array must be a contiguous array of NumPy or CuPy with at least one axis, or an "
    "array of records"
)


def check_mask(mask: Any, count: int, device: str) -> None:
    """Refuse what is no mask of that many elements on this device."""
    check_row("compact: the mask", mask, ("bool",), ADVICE)
    if len(mask) != count:
        raise ArgumentError(
            f"compact: the mask has {len(mask):,} elements, and the array {count:,}; one for each "
            "is wanted"
        )
    if (lies := "cpu" if isinstance(mask, np.ndarray) else device_of(mask)) != device:
        raise ArgumentError(
            f"compact: the mask lies on {lies!r}, and the array on {device!r}; bring them together"
        )


def compact_array(array: Any, mask: Any) -> Any:
    """See `lanewise.compact`."""
    here = isinstance(array, np.ndarray)
    if not is_array(array):
        raise ArgumentError(f"{WANTED}, found {shown(array)}")
    if (
        not array.ndim
        or array.dtype.hasobject
        or not array.dtype.itemsize
        or not array.flags.c_contiguous
    ):
        found = (
            f"{WANTED}, found one of {array.dtype} with shape {tuple(array.shape)} on "
            f"{place_of(array)}"
        )
        apart = array.ndim and not array.flags.c_contiguous
        raise ArgumentError(
            f"{found}, which is not contiguous; pass np.ascontiguousarray(...) of it"
            if apart
            else found
        )
    check_mask(mask, len(array), "cpu" if here else device_of(array))
    return (on_host if here else on_gpu)(array, mask)


# ------------------------------------------------------------ on a CPU

HOST_TILE = 16_384  # elements
GRAIN = 4  # tiles
SPARSE = 16  # times as many elements as a tile keeps, from which on places are listed first
MOST = 2**31 - 1  # rows whose places have 32 bits
HOST_COUNT = """def kept_count_kernel(mask, counts, begin, end):
    for tile in range(begin, end):
        total = 0
        for i in range(tile * {tile}, min((tile + 1) * {tile}, len(mask))):
            total += mask[uint64(i)]
        counts[tile] = total
"""
HOST_COPY = """def compaction_kernel(values, mask, eight, starts, kept, begin, end):
    listed = empty({tile} // {sparse} + 8, int64)
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
    """Where the rows of each tile begin among those that are kept; the last entry is their
    number.
    """
    tiles = -(-len(mask) // HOST_TILE)
    starts = np.zeros(tiles + 1, np.int64)
    kernel: Any = cpu.own_kernel(HOST_COUNT.format(tile=HOST_TILE), "kept_count")
    cpu.run_range(kernel, (mask.view(np.uint8), starts[1:]), tiles, GRAIN)
    np.cumsum(starts, out=starts)
    return starts


def _copy_on_host(values: Any, mask: Any, starts: Any, kept: Any, copy: str) -> None:
    kernel: Any = cpu.own_kernel(
        HOST_COPY.format(tile=HOST_TILE, sparse=SPARSE, copy=copy), "compaction"
    )
    cpu.run_range(
        kernel, (values, mask.view(np.uint8), _eight(mask), starts, kept), len(starts) - 1, GRAIN
    )


def _eight(mask: Any) -> Any:
    """A mask as words of eight of its elements, as many as are whole: most of a mask that keeps
    little are zero.
    """
    aligned = mask if mask.ctypes.data % 8 == 0 else mask.copy()
    return aligned.view(np.uint8)[: len(mask) // 8 * 8].view(np.uint64)


def places(mask: Any) -> Any:
    """The places of what is true."""
    starts = _starts(mask)
    kept = np.empty(int(starts[-1]), np.int32)
    _copy_on_host(kept, mask, starts, kept, ONE.format(value="i"))
    return kept


def on_host(array: Any, mask: Any) -> Any:
    """The rows of an array of NumPy whose mask is true."""
    starts = _starts(mask)
    result = np.empty((int(starts[-1]), *array.shape[1:]), array.dtype)
    size = array.itemsize * int(np.prod(array.shape[1:], dtype=np.int64))
    if not size or not len(result):
        return result
    width = next(w for w in (8, 4, 2, 1) if size % w == 0)
    values, kept = (a.reshape(-1).view(f"u{width}") for a in (array, result))
    values = values if values.flags.writeable else unlocked(values)
    if size == width:
        _copy_on_host(values, mask, starts, kept, ONE.format(value="values[uint64(i)]"))
    else:
        _copy_on_host(
            values.reshape(-1, size // width), mask, starts, kept.reshape(-1, size // width), ROW
        )
    return result


# ------------------------------------------------------------ on a GPU

UNITS = {
    16: "uint4",
    8: "unsigned long long",
    4: "unsigned int",
    2: "unsigned short",
    1: "unsigned char",
}
COPY = """
#define ROW {row}  // units of a row
typedef {unit} Unit;

extern "C" __global__ void __launch_bounds__(THREADS)
compaction_kernel(const unsigned short *bits, const int *counts, const long long *groups, const Unit *__restrict__ rows,
                  Unit *__restrict__ kept)
{{
    __shared__ unsigned short places[TILE];
    int total;
    const long long start = kept_places(bits, counts, groups, places, total), tile = (long long)blockIdx.x * TILE;
#pragma unroll 8
    for (int n = threadIdx.x; n < total * ROW; n += THREADS) {{
        kept[start * ROW + n] = rows[(tile + places[n / ROW]) * ROW + n % ROW];
    }}
}}
"""


@cache
def text_of(unit: int, row: int) -> str:
    """The text for rows of some units of that many bytes."""
    return PLACES + COPY.format(row=row, unit=UNITS[unit])


def _copy_on_gpu(device: str, rows: int, mask: Counted, kept: Any, unit: int, row: int) -> None:
    kernel = get_device(device).load(text_of(unit, row), "compaction", THREADS)
    kernel.launch((mask.tiles, 1), (mask.bits, mask.counts, mask.groups, rows, address(kept)))


def on_gpu(array: Any, mask: Any) -> Any:
    """The rows of an array of CuPy whose mask is true."""
    device, shape = device_of(array), tuple(array.shape[1:])
    size = array.itemsize * math.prod(shape)
    keeps = counted(device, mask)
    with on(device):
        result = array_module(device).empty((keeps.count, *shape), array.dtype)
    if result.size:
        source = address(array)
        unit = next(w for w in UNITS if size % w == 0 and source % w == 0)
        _copy_on_gpu(device, source, keeps, result, unit, size // unit)
    return result
