"""Numbers brought into ascending order on all threads: chunks are sorted, then pairs of runs are
merged, in pieces that every thread finds by halving. Equal numbers stay as they were, and what is
no number comes last or first, by its sign.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.runtime import cpu

RUN = 32_768  # numbers that one thread sorts at a time
PIECE = 8192  # numbers that one thread merges at a time: runs are multiples
# nanoseconds that a number takes of the sort of its chunk, and of one merge
SORTED, MERGED = 70.0, 4.0

MERGE = """def merge_runs_kernel(keys, order, other_keys, other_order, run, piece, begin, end):
    for p in range(begin, end):
        first, last = p * piece, min((p + 1) * piece, len(keys))
        base = first // (2 * run) * (2 * run)
        middle, stop = min(base + run, len(keys)), min(base + 2 * run, len(keys))
        before = first - base
        low, high = max(0, before - (stop - middle)), min(before, middle - base)
        while low < high:  # how many of those before come from the first run
            half = (low + high) // 2
            if keys[base + half] <= keys[middle + before - half - 1]:
                low = half + 1
            else:
                high = half
        i, j = base + low, middle + before - low
        for q in range(first, last):
            if j >= stop or (i < middle and keys[i] <= keys[j]):
                other_keys[q], other_order[q] = keys[i], order[i]
                i += 1
            else:
                other_keys[q], other_order[q] = keys[j], order[j]
                j += 1
"""


def order_of(values: NDArray[Any]) -> NDArray[np.int32]:
    """The places of values, shape (n,), float32 or float64, from the smallest to the largest."""
    keys, order = _keys(values), np.empty(len(values), np.int32)
    runs = -(-len(values) // RUN)
    cpu.run_priced(_sort_runs, (keys, order), runs, SORTED * RUN)
    if runs == 1:
        return order
    other_keys, other_order = np.empty_like(keys), np.empty_like(order)
    merge, pieces, run = cpu.own_kernel(MERGE, "merge_runs"), -(-len(values) // PIECE), RUN
    while run < len(values):
        arguments = (keys, order, other_keys, other_order, run, PIECE)
        cpu.run_priced(merge, arguments, pieces, MERGED * PIECE)
        keys, other_keys, order, other_order = other_keys, keys, other_order, order
        run *= 2
    return order


def _keys(values: NDArray[Any]) -> NDArray[Any]:
    """Integers in the order of these, both zeros alike: NaN has a place as well."""
    kind = np.dtype(f"i{values.dtype.itemsize}")
    bits = (values + values.dtype.type(0)).view(kind)
    return bits ^ (bits >> (8 * kind.itemsize - 1) & np.iinfo(kind).max)


def _sort_runs(keys: NDArray[Any], order: NDArray[np.int32], begin: int, end: int) -> None:
    for first in range(begin * RUN, min(end * RUN, len(keys)), RUN):
        here = slice(first, first + RUN)
        along = np.argsort(keys[here], kind="stable")
        keys[here] = keys[here][along]
        order[here] = along + first
