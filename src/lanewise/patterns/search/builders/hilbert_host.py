"""The order of a tree along a Hilbert curve of equal cubes, on a CPU.

Cubes halve the box of all elements 42 times, so that neither a crowd nor a body far away leaves
many of them in one cube. The first 21 levels make the keys of a sort, six digits of eleven bits;
where elements have the same key, the other levels are looked at, and of equal ones the smaller
index comes first. `hilbert_device.py` makes the same order on a GPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.launch.tasks import Primitive, reading, writing
from lanewise.patterns.search.builders.curve_host import GRAIN, SKILLING
from lanewise.patterns.search.points import Points
from lanewise.primitives.hilbert_order import LEVELS
from lanewise.runtime import cpu
from lanewise.runtime.memory import Pieces, PlannedPieces

HALF = LEVELS // 2  # levels of a key
FEW = 48  # elements that are sorted by insertion
_HEAD = f"""def cell_of(place, low, scale):  # what is no number is in the first one
    v = (float64(place) - low) * scale
    return int64(min(v, {float(2**LEVELS - 1)!r})) if v > 0.0 else int64(0)


def spread(v, axes):  # {HALF} bits apart, those of the other axes between them
    if axes == 3:
        v = (v | v << 32) & 0x1F00000000FFFF
        v = (v | v << 16) & 0x1F0000FF0000FF
        v = (v | v << 8) & 0x100F00F00F00F00F
        v = (v | v << 4) & 0x10C30C30C30C30C3
        return (v | v << 2) & 0x1249249249249249
    v = (v | v << 16) & 0x0000FFFF0000FFFF
    v = (v | v << 8) & 0x00FF00FF00FF00FF
    v = (v | v << 4) & 0x0F0F0F0F0F0F0F0F
    v = (v | v << 2) & 0x3333333333333333
    return (v | v << 1) & 0x5555555555555555


"""

KEYS = f"""{_HEAD}{SKILLING}def hilbert_high_kernel(places, lows, scale, keys, begin, end):
    axes = places.shape[1]
    cells, flip = zeros((axes, 512), int32), zeros(512, int32)
    for piece in range(begin, end, 512):
        size = min(512, end - piece)
        for axis in range(axes):
            for n in range(size):
                cells[axis, n] = int32(cell_of(places[piece + n, axis], lows[axis], scale) >> {HALF})
        for level in range({HALF - 1}, 0, -1):
            shift, low = int32(level), int32((1 << level) - 1)
            invert(cells[0], shift, low)
            for axis in range(1, axes):
                invert_or_swap(cells[0], cells[axis], shift, low)
        for axis in range(1, axes):
            for n in range(512):
                cells[axis, n] ^= cells[axis - 1, n]
        flips(cells[axes - 1], {HALF}, flip)
        for n in range(size):
            key = int64(0)
            for axis in range(axes):
                key |= spread(int64(cells[axis, n] ^ flip[n]), axes) << (axes - 1 - axis)
            keys[piece + n] = key
"""

SORT = f"""{_HEAD}def low_key(places, lows, scale, i, cells):  # of the other levels
    axes = places.shape[1]
    for axis in range(axes):
        cells[axis] = cell_of(places[i, axis], lows[axis], scale)
    for level in range({LEVELS - 1}, 0, -1):
        low = (int64(1) << level) - 1
        for axis in range(axes):
            if cells[axis] >> level & 1:
                cells[0] ^= low
            else:
                swap = (cells[0] ^ cells[axis]) & low
                cells[0] ^= swap
                cells[axis] ^= swap
    for axis in range(1, axes):
        cells[axis] ^= cells[axis - 1]
    flip, key = int64(0), int64(0)
    for level in range({LEVELS - 1}, 0, -1):
        flip ^= ((int64(1) << level) - 1) & -(cells[axes - 1] >> level & 1)
    for axis in range(axes):
        key |= spread((cells[axis] ^ flip) & {2**HALF - 1}, axes) << (axes - 1 - axis)
    return key


def radix_sort(keys, order, other_keys, other_order, counts, begin, end):  # six digits of eleven bits
    counts[:, :] = 0
    for p in range(begin, end):
        for d in range(6):
            counts[d, keys[p] >> 11 * d & 2047] += 1
    for d in range(6):
        total = begin
        for b in range(2048):
            here = counts[d, b]
            counts[d, b] = total
            total += here
        for p in range(begin, end):
            key = keys[p] if d % 2 == 0 else other_keys[p]
            to = counts[d, key >> 11 * d & 2047]
            counts[d, key >> 11 * d & 2047] = to + 1
            if d % 2 == 0:
                other_keys[to], other_order[to] = key, order[p]
            else:
                keys[to], order[to] = key, other_order[p]


def hilbert_sort_kernel(places, lows, scale, keys, order, other_keys, other_order):
    count, cells, counts = len(keys), empty(3, int64), empty((6, 2048), int64)
    for i in range(count):
        order[i] = i
    radix_sort(keys, order, other_keys, other_order, counts, 0, count)
    begin = 0
    while begin < count:
        end, key = begin + 1, keys[begin]
        while end < count and keys[end] == key:
            end += 1
        if end - begin > 1:
            for p in range(begin, end):
                keys[p] = low_key(places, lows, scale, order[p], cells)
            if end - begin > {FEW}:
                radix_sort(keys, order, other_keys, other_order, counts, begin, end)
            else:
                for p in range(begin + 1, end):
                    low, number, q = keys[p], order[p], p
                    while q > begin and keys[q - 1] > low:
                        keys[q], order[q] = keys[q - 1], order[q - 1]
                        q -= 1
                    keys[q], order[q] = low, number
        begin = end
"""


def _begin(memory: Pieces) -> None:
    """The caller's order is the first one."""
    order = memory["order"].view(np.int32)
    order[:] = np.arange(len(order), dtype=np.int32)


class HostOrder:
    """What makes the order on a CPU, and memory for one."""

    def __init__(self, points: Points) -> None:
        self._points = points
        sizes = {"order": 4, "other order": 4, "keys": 8, "other keys": 8}
        if points.table() is None:  # they are copied side by side
            sizes["places"] = points.dimension * points.precision.size
        nbytes = {n: size * points.count for n, size in sizes.items()}
        self._memory = PlannedPieces("cpu", nbytes, "the order of a tree", _begin)
        self.planned = (self._memory,)

    @property
    def order(self) -> NDArray[np.int32]:
        """int32, shape (count,)."""
        return self._memory["order"].view(np.int32)

    def tasks(self, positions: str, order: str) -> tuple[Primitive, ...]:
        """Its only one, which orders the positions of that name."""
        touched = (*reading(positions), *writing(order))
        read = ((positions, self._points.lying_in),)
        return (Primitive("tree order", self._build, touched, (order,), read=read),)

    def _build(self, points: Points, order: NDArray[np.int32]) -> None:
        self.build(order, points)

    def build(self, order: NDArray[np.int32], points: Points | None = None) -> None:
        """Put the order of the present positions there, of these elements or of those that it was
        made for.
        """
        points, memory = points or self._points, self._memory
        keys, other_keys = (memory[n].view(np.int64) for n in ("keys", "other keys"))
        places, columns = points.table(), points.columns()
        if places is None:
            shape = points.count, points.dimension
            places = memory["places"].view(points.precision.dtype).reshape(shape)
            for axis, column in enumerate(columns):
                places[:, axis] = column
        lows, highs = (np.array([f(c) for c in columns], np.float64) for f in (np.min, np.max))
        with np.errstate(all="ignore"):  # what is no number is in the first cube
            side = np.float64((highs - lows).max())
            scale = np.float64(2**LEVELS) / side
        given = (places, lows, scale, keys)
        high: Any = cpu.own_kernel(KEYS, "hilbert_high")
        cpu.run_range(high, given, points.count, GRAIN)
        sort: Any = cpu.own_kernel(SORT, "hilbert_sort")
        sort(*given, order, other_keys, memory["other order"].view(np.int32))
