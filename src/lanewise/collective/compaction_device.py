"""Compaction on a GPU: a mask is counted, then each tile copies its rows to where those before it end.

The host learns how many rows there are before it allocates the result, and nothing else. In a tile threads list the places of what is
kept in shared memory; neighbouring threads then copy neighbouring rows of the list, so that what is written is coalesced, and what is
read as far as the mask allows.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from lanewise.collective.mask_count_device import PLACES, THREADS, Counted, counted
from lanewise.runtime import cuda, memory
from lanewise.runtime.memory import device_of

UNITS = {16: "uint4", 8: "unsigned long long", 4: "unsigned int", 2: "unsigned short", 1: "unsigned char"}
TEXT = """
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
    return PLACES + TEXT.format(row=row, unit=UNITS[unit])


def _copy(device: str, rows: int, mask: Counted, kept: Any, unit: int, row: int) -> None:
    kernel = cuda.loaded(device, text_of(unit, row), "compaction", THREADS)
    kernel.launch((mask.tiles, 1), (mask.bits, mask.counts, mask.groups, rows, memory.address(kept)))


def compact(array: Any, mask: Any) -> Any:
    """The rows of an array of CuPy whose mask is true."""
    device, shape = device_of(array), tuple(array.shape[1:])
    size = array.itemsize * math.prod(shape)
    keeps = counted(device, mask)
    with cuda.use(device):
        result = cuda.cupy().empty((keeps.count, *shape), array.dtype)
    if result.size:
        source = memory.address(array)
        unit = next(w for w in UNITS if size % w == 0 and source % w == 0)
        _copy(device, source, keeps, result, unit, size // unit)
    return result
