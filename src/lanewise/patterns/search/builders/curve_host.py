"""Elements in the order of a Hilbert curve, and the tree of boxes above them, on a CPU: the steps
of `curve.py`.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.launch.tasks import Primitive, reading, writing
from lanewise.layouts import Arrangement
from lanewise.patterns.search.base import ORDER, POSITIONS
from lanewise.patterns.search.box_expressions import BOXES
from lanewise.patterns.search.builders.parts import places_of
from lanewise.patterns.search.builders.tree import BoxTree, columns_of, margin, node_arrangement
from lanewise.patterns.search.points import Points
from lanewise.patterns.search.worlds import World
from lanewise.primitives import radix_sort
from lanewise.primitives.curve_order import KEY_BITS
from lanewise.primitives.curve_text import SAMPLES, SEGMENTS
from lanewise.runtime import cpu
from lanewise.runtime.memory import Pieces, PlannedPieces

GRAIN = 8192  # elements worth handing to another thread
SKILLING = """def invert(x, shift, low):
    for n in range(len(x)):
        x[n] ^= low & -(x[n] >> shift & int32(1))


def invert_or_swap(x, other, shift, low):
    for n in range(len(x)):
        a, b = x[n], other[n]
        inverts = -(b >> shift & int32(1))
        swap = (a ^ b) & low & ~inverts
        other[n] = b ^ swap
        x[n] = a ^ swap ^ (low & inverts)


def flips(last, bits, flip):
    flip[:] = 0
    for level in range(bits - 1, 0, -1):
        shift, low = int32(level), int32((1 << level) - 1)
        for n in range(len(last)):
            flip[n] ^= low & -(last[n] >> shift & int32(1))


"""
"""The steps of J. Skilling, AIP Conf. Proc. 707, 2004, without branches, for cells side by side."""

# Pieces of the elements that fit a first-level cache, and loops over them that become SIMD
# instructions.
KEYS = f"""def find_cells(places, quantiles, inverses, scale, last, begin, axis, cell):  # by rank; 32 segments
    real = places.dtype
    for n in range(len(cell)):
        place, s = places[begin + n, axis], 0
        s += 16 if place >= quantiles[axis, 16] else 0
        s += 8 if place >= quantiles[axis, s + 8] else 0
        s += 4 if place >= quantiles[axis, s + 4] else 0
        s += 2 if place >= quantiles[axis, s + 2] else 0
        s += 1 if place >= quantiles[axis, s + 1] else 0
        part = (place - quantiles[axis, s]) * inverses[axis, s]
        part = min(part if part > real(0) else real(0), real(1))  # 0 of what is no number
        cell[n] = min(fitting(int32, (real(s) + part) * scale), last)


{SKILLING}def spread_into(cell, flip, axes, shift, keys):  # bits apart, those of the other axes between them
    for n in range(len(cell)):
        v = int32(cell[n] ^ flip[n])
        if axes == 3:
            v = int32((v | v << int32(16)) & int32(0x030000FF))
            v = int32((v | v << int32(8)) & int32(0x0300F00F))
            v = int32((v | v << int32(4)) & int32(0x030C30C3))
            v = int32((v | v << int32(2)) & int32(0x09249249))
        else:
            v = int32((v | v << int32(8)) & int32(0x00FF00FF))
            v = int32((v | v << int32(4)) & int32(0x0F0F0F0F))
            v = int32((v | v << int32(2)) & int32(0x33333333))
            v = int32((v | v << int32(1)) & int32(0x55555555))
        keys[n] |= uint32(v << int32(shift))


def hilbert_keys_kernel(places, quantiles, inverses, bits, keys, begin, end):
    real = places.dtype
    axes, cells = places.shape[1], 1 << bits
    cells_of_piece, flips_of_piece = empty((axes, 512), int32), empty(512, int32)
    for piece in range(begin, end, 512):
        size = min(512, end - piece)
        x, last, flip = cells_of_piece[0][:size], cells_of_piece[axes - 1][:size], flips_of_piece[:size]
        for axis in range(axes):
            cell = cells_of_piece[axis][:size]
            find_cells(places, quantiles, inverses, real(cells // 32), int32(cells - 1), piece, axis, cell)
        for level in range(bits - 1, 0, -1):  # J. Skilling, AIP Conf. Proc. 707, 2004, without branches
            invert(x, int32(level), int32((1 << level) - 1))
            for axis in range(1, axes):
                invert_or_swap(x, cells_of_piece[axis][:size], int32(level), int32((1 << level) - 1))
        for axis in range(1, axes):
            for n in range(512):  # slices would be checked for their length, by much machine code
                cells_of_piece[axis, n] ^= cells_of_piece[axis - 1, n]
        flips(last, bits, flip)
        keys[piece : piece + size] = 0
        for axis in range(axes):
            spread_into(cells_of_piece[axis][:size], flip, axes, axes - 1 - axis, keys[piece : piece + size])
"""

LEAVES = """def leaf_boxes_kernel(places, margins, order, leaf, at, nodes, halves, margin, begin, end):
    axes, count = places.shape[1], len(order)
    for index in range(begin, end):
        first, last = index * leaf, min((index + 1) * leaf, count)
        for axis in range(axes):
            low, high = places[order[first], axis], places[order[first], axis]
            lost = margins[order[first], axis] if len(margins) else places.dtype(0)
            for p in range(first + 1, last):
                place = places[order[p], axis]
                low, high = min(low, place), max(high, place)
                if len(margins):
                    lost = max(lost, margins[order[p], axis])
            low, high = low - lost, high + lost
            centre = places.dtype(0.5) * low + places.dtype(0.5) * high
            half = max(high - centre, centre - low)
            nodes[at[index], axis] = centre
            nodes[at[index], halves + axis] = half + margin * (abs(centre) + half)
"""

UPPER = """def upper_boxes_kernel(fan, below, stride, at, nodes, axes, halves, margin, begin, end):
    for index in range(begin, end):
        child, children = at[index] + 1, min(fan, below - index * fan)
        for axis in range(axes):
            low = nodes[child, axis] - nodes[child, halves + axis]
            high = nodes[child, axis] + nodes[child, halves + axis]
            for k in range(1, children):
                c = child + k * stride
                low = min(low, nodes[c, axis] - nodes[c, halves + axis])
                high = max(high, nodes[c, axis] + nodes[c, halves + axis])
            centre = nodes.dtype(0.5) * low + nodes.dtype(0.5) * high
            half = max(high - centre, centre - low)
            nodes[at[index], axis] = centre
            nodes[at[index], halves + axis] = half + margin * (abs(centre) + half)
"""


def quantiles_of(places: NDArray[Any]) -> NDArray[Any]:
    """Quantiles of each axis, shape (axes, SEGMENTS + 1), of a sample that lies evenly in the
    indices, hashed within.
    """
    thread = np.arange(SAMPLES, dtype=np.uint32)
    with np.errstate(over="ignore"):
        h = thread * np.uint32(2654435761)
        h = (h ^ h >> np.uint32(16)) * np.uint32(0x85EBCA6B)
        h = (h ^ h >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    within = thread.astype(np.int64) << 16 | (h >> np.uint32(16)).astype(np.int64)
    sample = np.sort(places[within * len(places) >> 26], axis=0)
    return np.ascontiguousarray(sample[np.arange(SEGMENTS + 1) * (SAMPLES - 1) // SEGMENTS].T)


def _link(arrangement: Arrangement, tree: BoxTree, memory: Pieces) -> None:
    """Where the boxes of a tree lead follows from their number."""
    columns = columns_of(memory["nodes"], arrangement, tree.nodes)
    columns["link"][:] = tree.links()


class HostCurve:
    """The order and the tree on a CPU, in their own memory."""

    def __init__(self, points: Points, world: World, leaf: int) -> None:
        self._points, self._world, self.tree = points, world, BoxTree(points.count, leaf)
        self.arrangement = node_arrangement(points.dimension, points.precision)
        lists = dict.fromkeys(("order", "other order", "keys", "other keys"), 4 * points.count)
        sizes = {"nodes": self.arrangement.nbytes(self.tree.nodes), **lists}
        self._memory = PlannedPieces(
            "cpu", sizes, "a dynamic grid", partial(_link, self.arrangement, self.tree)
        )
        self.planned = (self._memory,)

    @property
    def nodes(self) -> NDArray[np.uint8]:
        """The boxes, as bytes."""
        return self._memory["nodes"]

    @property
    def order(self) -> NDArray[np.int32]:
        return self._memory["order"].view(np.int32)

    @cached_property
    def _at(self) -> list[NDArray[Any]]:
        return self.tree.places()

    def tasks(self) -> tuple[Primitive, ...]:
        touched = (*reading(POSITIONS), *writing(ORDER, BOXES))
        return (
            Primitive("curve", self.build, touched, read=((POSITIONS, self._points.lying_in),)),
        )

    def build(self, points: Points | None = None) -> None:
        """Order the present positions, of these elements or of those that it was made for, and
        draw the boxes round them.
        """
        places, margins = places_of(points or self._points, self._world)
        quantiles = quantiles_of(places)
        width = np.diff(quantiles, axis=1)
        inverses = np.divide(1, width, out=np.zeros_like(width), where=width > 0)
        number = cpu.own_kernel(KEYS, "hilbert_keys")
        bits = KEY_BITS[self._points.dimension]
        keys, other_keys = (self._memory[n].view(np.uint32) for n in ("keys", "other keys"))
        cpu.run_range(number, (places, quantiles, inverses, bits, keys), len(places), GRAIN)
        other_order = self._memory["other order"].view(np.int32)
        radix_sort.on_host(keys, other_keys, self.order, other_order)
        self._boxes(places, margins)

    def _boxes(self, places: NDArray[Any], margins: NDArray[Any]) -> None:
        scalar, tree = places.dtype.type, self.tree
        nodes = self.nodes.view(places.dtype).reshape(tree.nodes, -1)
        halves = 4 if self._points.dimension == 3 else 2
        room = scalar(margin(self._points.precision))
        leaves = cpu.own_kernel(LEAVES, "leaf_boxes")
        arguments = (places, margins, self.order, tree.leaf, self._at[0], nodes, halves, room)
        cpu.run_range(leaves, arguments, tree.levels[0], GRAIN // tree.leaf)
        upper = cpu.own_kernel(UPPER, "upper_boxes")
        for level, (below, here) in enumerate(zip(tree.levels, tree.levels[1:], strict=False), 1):
            shape = (
                tree.fan,
                below,
                tree.subtree(level - 1),
                self._at[level],
                nodes,
                self._points.dimension,
            )
            cpu.run_range(upper, (*shape, halves, room), here, GRAIN)
