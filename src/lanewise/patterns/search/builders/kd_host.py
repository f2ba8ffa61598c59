"""The order of a tree by halves, on a CPU.

A range of elements is divided along the longest side of its box, where its left child ends. What
counts is the key of an element: its distance from the lower side, rounded to float32, whose bits
are ordered as the distances are; of equal keys the elements that come first. Elements that go to
one side stay in their order, so those of a leaf are in the caller's.

Of many elements the key where the left side ends is found by counts of 11 bits of it at a time, of
few by partitions (C. A. R. Hoare's FIND). The first levels are divided one after the other, their
nodes on all threads; from `NODES` nodes on each thread divides whole subtrees.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.launch.tasks import Primitive, reading, writing
from lanewise.patterns.search.points import Points
from lanewise.patterns.search.tree.shape import KdShape
from lanewise.runtime import cpu
from lanewise.runtime.memory import allocate_pieces

NODES = 64  # of a level: enough subtrees for the threads of a CPU
FEW = 512  # elements that are sorted into halves by partitions

KD = f"""import numpy as np
from numba import njit


@njit(error_model="numpy")
def find_key(keys, begin, end, left, counts):  # the key of the last one on the left, and how many keys are smaller
    bottom, less = np.int64(0), 0
    for shift in (21, 10, 0):
        bins = 2048 if shift else 1024
        for b in range(bins):
            counts[b] = 0
        high = shift + 11 if shift else 10
        for p in range(begin, end):
            key = np.int64(keys[p])
            if key >> high == bottom >> high:
                counts[(key >> shift) & (bins - 1)] += 1
        b = 0
        while less + counts[b] < left:
            less += counts[b]
            b += 1
        bottom |= np.int64(b) << shift
    return bottom, less


@njit(error_model="numpy")
def find_place(keys, begin, end, left, few):  # the same, of few keys with their places
    for p in range(begin, end):
        few[p - begin] = np.int64(keys[p]) << 16 | (p - begin)
    low, high, k = 0, end - begin - 1, left - 1
    while low < high:
        middle = (low + high) >> 1
        a, b, c = few[low], few[middle], few[high]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = low, high
        while i <= j:
            while few[i] < pivot:
                i += 1
            while pivot < few[j]:
                j -= 1
            if i <= j:
                few[i], few[j] = few[j], few[i]
                i += 1
                j -= 1
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:
            break
    return few[k]


@njit(error_model="numpy")
def divide(places, order, spare_places, spare_order, keys, begin, middle, end, counts, few):
    axes, axis, longest = places.shape[1], 0, places.dtype.type(-1)
    lowest = places[begin, 0]
    for a in range(axes):
        low, high = places[begin, a], places[begin, a]
        for p in range(begin + 1, end):
            low, high = min(low, places[p, a]), max(high, places[p, a])
        if high - low > longest:
            axis, longest, lowest = a, high - low, low
    for p in range(begin, end):
        keys[p] = np.float32(places[p, axis] - lowest).view(np.uint32) & np.uint32(0x7FFFFFFF)
    left = middle - begin
    if end - begin <= {FEW}:
        found = find_place(keys, begin, end, left, few)
        limit, last = found >> 16, begin + (found & 0xFFFF)
    else:
        limit, less = find_key(keys, begin, end, left, counts)
        last = begin - 1
        while less < left:  # the first ones of those with the same key
            last += 1
            if np.int64(keys[last]) == limit:
                less += 1
    to, other = begin, begin
    for p in range(begin, end):  # both sides are written, and one counts: no branch depends on a key
        key, number = np.int64(keys[p]), order[p]
        goes_left = np.int64(key < limit) | (np.int64(key == limit) & np.int64(p <= last))
        order[to] = number
        spare_order[other] = number
        for a in range(axes):
            place = places[p, a]
            places[to, a] = place
            spare_places[other, a] = place
        to += goes_left
        other += 1 - goes_left
    for n in range(other - begin):
        order[middle + n] = spare_order[begin + n]
        for a in range(axes):
            places[middle + n, a] = spare_places[begin + n, a]


@njit(error_model="numpy", nogil=True)
def kd_order_kernel(firsts, leaves, whole, leaf, places, order, spare_places, spare_order, keys, begin, end):
    count = len(order)
    counts, few = np.empty(2048, np.int64), np.empty({FEW}, np.int64)
    todo = np.empty((64, 2), np.int64)
    for node in range(begin, end):
        todo[0, 0], todo[0, 1] = firsts[node], leaves[node]
        waiting = 1
        while waiting:
            waiting -= 1
            first, size = todo[waiting, 0], todo[waiting, 1]
            if size < 2:
                continue
            left = (size + 1) >> 1
            start, stop = first * leaf, min((first + size) * leaf, count)
            divide(places, order, spare_places, spare_order, keys, start, (first + left) * leaf, stop, counts, few)
            if whole:
                todo[waiting, 0], todo[waiting, 1] = first + left, size - left
                todo[waiting + 1, 0], todo[waiting + 1, 1] = first, left
                waiting += 2
"""


class HostOrder:
    """The order on a CPU, in memory of its own."""

    def __init__(self, points: Points, shape: KdShape) -> None:
        self._points = points
        self._levels, self._whole = _levels(shape)
        self._leaf = shape.leaf
        count, shaped = points.count, (points.count, points.dimension)
        place = points.dimension * points.precision.size
        sizes = {"order": 4, "spare": 4, "keys": 4, "places": place, "spare places": place}
        nbytes = {n: size * count for n, size in sizes.items()}
        memory = allocate_pieces("cpu", nbytes, "the order of a tree")
        self.order: NDArray[np.int32] = memory["order"].view(np.int32)
        self.order[:] = np.arange(count, dtype=np.int32)
        self._spare, self._keys = memory["spare"].view(np.int32), memory["keys"].view(np.uint32)
        self._places, self._spare_places = (
            memory[n].view(points.precision.dtype).reshape(shaped)
            for n in ("places", "spare places")
        )

    def tasks(self, positions: str, order: str) -> tuple[Primitive, ...]:
        """Its only one, which orders the positions of that name."""
        touched = (*reading(positions), *writing(order))
        return (Primitive("tree order", self.build, touched),)

    def build(self) -> None:
        """Order the present positions."""
        order = self.order
        order[:] = np.arange(len(order), dtype=np.int32)
        for axis, column in enumerate(self._points.columns()):
            self._places[:, axis] = column
        divide: Any = cpu.own_kernel(KD, "kd_order")
        spares = (self._spare_places, self._spare, self._keys)
        memory = (self._leaf, self._places, order, *spares)
        for firsts, leaves in self._levels:
            cpu.run_range(divide, (firsts, leaves, False, *memory), len(firsts), 1)
        firsts, leaves = self._whole
        cpu.run_range(divide, (firsts, leaves, True, *memory), len(firsts), 1)


Nodes = tuple[NDArray[np.int32], NDArray[np.int32]]


def _levels(shape: KdShape) -> tuple[list[Nodes], Nodes]:
    """Levels that are divided one after the other, and the roots of subtrees that are divided
    whole.
    """
    levels: list[Nodes] = []
    for _, first, leaves in shape.levels():
        if len(first) >= NODES or leaves.max() < 2:
            return levels, (first, leaves)
        levels.append((first, leaves))
    return levels, (np.empty(0, np.int32), np.empty(0, np.int32))
