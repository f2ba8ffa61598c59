"""Elements in the order of a Hilbert curve, and the tree of boxes above them, on a GPU: eight short
kernels.

Quantiles of a sample, keys, four passes of a radix sort, the boxes of leaves and small nodes, the
boxes above. Nothing is read back and nothing is allocated when they run, so a graph may hold them.
`curve_host.py` does the same on a CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from lanewise.ir.names import own
from lanewise.launch.tasks import Access, Primitive, changing, reading, writing
from lanewise.patterns.search.base import ORDER, POSITIONS
from lanewise.patterns.search.box_expressions import BOXES
from lanewise.patterns.search.builders.addressed import Addressed
from lanewise.patterns.search.builders.tree import BoxTree, margin, node_arrangement
from lanewise.patterns.search.points import Points
from lanewise.patterns.search.worlds import Periodic, World
from lanewise.primitives import curve_order, curve_text, radix_sort
from lanewise.primitives.curve_order import THREADS
from lanewise.runtime.device import WrittenKernel, get_device
from lanewise.runtime.memory import PlannedPieces

QUANTILES, HISTOGRAM, TICKETS, STATUS = map(own, ("quantiles", "histogram", "tickets", "status"))
KEYS, VALUES = (own("keys0"), own("keys1")), (ORDER, own("values1"))


@dataclass(frozen=True, slots=True)
class Grains:
    """Elements a thread handles in the kernels of keys and of the sort: few where blocks would be
    too few to fill a GPU.
    """

    keys: int
    sort: int


def grains(count: int) -> Grains:
    """For about two blocks on each multiprocessor of an NVIDIA H200."""
    if count >= 1 << 19:
        return Grains(8, 8)
    return Grains(4, 4) if count >= 1 << 17 else Grains(2, 2)


def kernel_texts(points: Points, world: World, leaf: int) -> dict[str, str]:
    """The CUDA text of every kernel, for the layout, precision and world of these points."""
    period = curve_order.Period(world.size, world.origin) if isinstance(world, Periodic) else None
    kind = curve_order.CurveKind(
        points.arrangement.unpinned,
        points.leaves,
        points.precision,
        margin(points.precision),
        period,
    )
    grain = grains(points.count)
    return curve_order.texts(kind, leaf, grain.keys, grain.sort)


def device_curve(points: Points, world: World, leaf: int) -> DeviceCurve:
    """The order and the tree of points on a GPU."""
    kernels = {
        n: get_device(points.device).load(text, n, THREADS[n])
        for n, text in kernel_texts(points, world, leaf).items()
    }
    return DeviceCurve(points, leaf, kernels)


class DeviceCurve:
    """The order and the tree, in their own memory where the points are, filled by these
    kernels.
    """

    def __init__(self, points: Points, leaf: int, kernels: Mapping[str, WrittenKernel]) -> None:
        self._points, self._kernels, self.tree = points, kernels, BoxTree(points.count, leaf)
        self._tiles = radix_sort.tiles(points.count, grains(points.count).sort)
        self.arrangement = node_arrangement(points.dimension, points.precision)
        self._memory = PlannedPieces(points.device, self._sizes(), "a dynamic grid")
        self.planned = (self._memory,)

    def _sizes(self) -> dict[str, int]:
        """Bytes of each piece of memory. Every build writes all of them before it reads them."""
        count, digits = self._points.count, 4 * radix_sort.PASSES * radix_sort.BINS
        lists = dict.fromkeys(("values0", "values1", "keys0", "keys1"), 4 * count)
        return {
            "nodes": self.arrangement.nbytes(self.tree.nodes),
            **lists,
            "quantiles": 8 * 3 * (curve_text.SEGMENTS + 1),
            "histogram": digits,
            "tickets": 4 * radix_sort.PASSES,
            "status": digits * self._tiles,
        }

    @property
    def order(self) -> Any:
        return self._memory["values0"].view(np.int32)

    @property
    def nodes(self) -> Any:
        """The boxes, as bytes."""
        return self._memory["nodes"]

    def tasks(self) -> tuple[Primitive, ...]:
        """One for each kernel, in order."""
        p, count = self._points, np.int32(self._points.count)
        top, total = np.int32(len(self.tree.levels) - 1), np.int32(self.tree.nodes)
        words = np.int32(radix_sort.PASSES * radix_sort.BINS * self._tiles)
        key_blocks = -(-p.count // (curve_text.KEY_THREADS * grains(p.count).keys))
        sampled = (*reading(POSITIONS), *writing(QUANTILES, HISTOGRAM, TICKETS))
        keyed = (*reading(POSITIONS, QUANTILES), *changing(HISTOGRAM), *writing(KEYS[0], STATUS))
        boxed = (*reading(POSITIONS, ORDER), *writing(BOXES))
        tasks = [
            self._task(
                "curve_sample", sampled, p.dimension,
                count, "quantiles", "histogram", "tickets",
            ),
            self._task(
                "curve_keys", keyed, key_blocks,
                count, "quantiles", "keys0", "histogram", "status", words,
            ),
            *(self._sort(number) for number in range(radix_sort.PASSES)),
            self._task(
                "curve_boxes", boxed, -(-p.count // curve_text.BOX_THREADS),
                count, "values0", "nodes", top, total,
            ),
        ]  # fmt: skip
        first = first_above(self.tree.leaf)
        if first <= top:
            above = (count, "nodes", np.int32(first), top, total)
            tasks.append(self._task("curve_upper", changing(BOXES), 1, *above))
        return tuple(tasks)

    def _sort(self, number: int) -> Primitive:
        """A pass, from one memory to the other: the first one knows the indices, the last one
        needs no keys.
        """
        even, last = number % 2, number == radix_sort.PASSES - 1
        reads = reading(HISTOGRAM, KEYS[even], *([VALUES[even]] if number else []))
        writes = writing(VALUES[1 - even], *([] if last else [KEYS[1 - even]]))
        accesses = (*reads, *changing(STATUS, TICKETS), *writes)
        count, tiles = self._points.count, self._tiles

        @cache
        def addressed() -> tuple[Any, ...]:
            return radix_sort.pass_arguments(number, self._memory.addresses, count, tiles)

        return self._launched("curve_sort", accesses, tiles, addressed)

    def _task(
        self, name: str, accesses: tuple[Access, ...], blocks: int, *arguments: Any
    ) -> Primitive:
        """arguments: texts stand for the addresses of pieces of memory. Behind positions, which a
        task reads, they follow those.
        """

        @cache
        def addressed() -> tuple[Any, ...]:
            at = self._memory.addresses
            return tuple(at[a] if isinstance(a, str) else a for a in arguments)

        if all(a.buffer != POSITIONS for a in accesses):
            return self._launched(name, accesses, blocks, addressed)
        kernel, grid = self._kernels[name], (blocks, 1)
        behind = Addressed(lambda columns: (*columns, *addressed()))

        def run(points: Points = self._points) -> None:
            kernel.launch(grid, behind(points))

        return Primitive(name, run, accesses, read=((POSITIONS, self._points.lying_in),))

    def _launched(
        self,
        name: str,
        accesses: tuple[Access, ...],
        blocks: int,
        arguments: Callable[[], tuple[Any, ...]],
    ) -> Primitive:
        """arguments: requested when it runs, as the memory need not be there before."""
        kernel, grid = self._kernels[name], (blocks, 1)
        return Primitive(name, lambda: kernel.launch(grid, arguments()), accesses)


def first_above(leaf: int) -> int:
    """The first level whose nodes have more elements than a block of the boxes' kernel."""
    level = 0
    while leaf * curve_text.FAN**level <= curve_text.BOX_THREADS:
        level += 1
    return level
