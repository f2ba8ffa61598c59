"""The order of a tree along a Hilbert curve of equal cubes, on a GPU: the box of all elements, and
a sort for each word of the cubes' numbers.

Nothing is read back and nothing is allocated when they run, so a graph may hold them.
`hilbert_host.py` makes the same order on a CPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from lanewise.launch.tasks import Primitive, reading, writing
from lanewise.patterns.search.builders.addressed import Addressed
from lanewise.patterns.search.builders.curve import grains
from lanewise.patterns.search.points import Points
from lanewise.primitives import hilbert_order, radix_sort
from lanewise.primitives.hilbert_order import BOX_ITEMS, THREADS, words
from lanewise.runtime.device import WrittenKernel, get_device
from lanewise.runtime.memory import Pieces, PlannedPieces, address, on
from lanewise.support.errors import ArgumentError

MOST_ELEMENTS = 2**30 - 1  # of a sort


def kernel_texts(points: Points) -> dict[str, str]:
    """The CUDA text of every kernel, for the layout and precision of these points."""
    grain = grains(points.count)
    arrangement = points.arrangement.unpinned
    made = hilbert_order.texts(arrangement, points.leaves, points.precision, grain.keys)
    return {**made, "curve_sort": radix_sort.sort_text(grain.sort)}


def device_order(points: Points) -> DeviceOrder:
    """The order of points on a GPU."""
    device = get_device(points.device)
    texts = kernel_texts(points)
    return DeviceOrder(points, {n: device.load(t, n, THREADS[n]) for n, t in texts.items()})


@dataclass(frozen=True, slots=True)
class Step:
    """A kernel that is launched with these arguments on so many blocks."""

    kernel: str
    blocks: int
    arguments: tuple[Any, ...]


def _begin(points: Points, memory: Pieces) -> None:
    """The caller's order is the first one."""
    with on(points.device):
        numbers = get_device(points.device).arrays.arange(points.count, dtype=np.int32)
        memory["values0"].view(np.int32)[:] = numbers


class DeviceOrder:
    """What makes the order with these kernels, and memory for one where the points are."""

    def __init__(self, points: Points, kernels: Mapping[str, WrittenKernel]) -> None:
        if points.count > MOST_ELEMENTS:
            raise ArgumentError(
                f"a tree on a GPU orders at most {MOST_ELEMENTS:,} elements, and there are "
                f"{points.count:,}; divide them"
            )
        self._kernels = kernels
        self._points = points
        # neither knows the order itself, so its memory is given back with the last reference
        self._memory = memory = PlannedPieces(
            points.device, memory_sizes(points), "the order of a tree", partial(_begin, points)
        )
        self.planned = (memory,)
        self._steps = Addressed(
            lambda at: steps_of(at[:3], points.count, {**memory.addresses, "values0": at[3]})
        )

    @property
    def order(self) -> Any:
        """int32, shape (count,)."""
        return self._memory["values0"].view(np.int32)

    def tasks(self, positions: str, order: str) -> tuple[Primitive, ...]:
        """Its only one: kernels of the same stream, one after the other."""
        touched = (*reading(positions), *writing(order))
        read = ((positions, self._points.lying_in),)
        return (Primitive("tree order", self._build, touched, (order,), read=read),)

    def _build(self, points: Points, order: Any) -> None:
        self.build(order, points)

    def build(self, order: Any, points: Points | None = None) -> None:
        """Put the order of the present positions there, of these elements or of those that it was
        made for.
        """
        for step in self._steps(points or self._points, address(order)):
            self._kernels[step.kernel].launch((step.blocks, 1), step.arguments)


BINS = radix_sort.PASSES * radix_sort.BINS  # of a word's digits


def memory_sizes(points: Points) -> dict[str, int]:
    """Bytes of each piece of memory that kernels write, all of it before they read it. values0: an
    order.
    """
    count, sorts = points.count, words(points.dimension)
    return {
        **dict.fromkeys(("values0", "values1", "keys0", "keys1"), 4 * count),
        "box": 2 * points.dimension * points.precision.size,
        "counters": 4 * sorts * (BINS + radix_sort.PASSES),
        "status": 4 * BINS * radix_sort.tiles(count, grains(count).sort),
    }


def steps_of(columns: tuple[int, ...], count: int, at: Mapping[str, int]) -> tuple[Step, ...]:
    """The launches, in order. columns: addresses of the first coordinates, three of them. at:
    addresses of memory.
    """
    number, grain = np.int32(count), grains(count)
    tiles, sorts = radix_sort.tiles(count, grain.sort), words(sum(c != 0 for c in columns))
    counters = sorts * (BINS + radix_sort.PASSES)

    def blocks(kernel: str, extent: int, items: int = 1) -> int:
        return -(-extent // (THREADS[kernel] * items))

    begin = (at["box"], at["counters"], np.int32(counters))
    made = [
        Step("hilbert_begin", blocks("hilbert_begin", counters), begin),
        Step(
            "hilbert_box",
            blocks("hilbert_box", count, BOX_ITEMS),
            (*columns, number, at["box"]),
        ),
    ]
    for word in range(sorts):
        histogram = at["counters"] + 4 * word * BINS
        tickets = at["counters"] + 4 * (sorts * BINS + word * radix_sort.PASSES)
        order, zeroed = at["values0"] if word else 0, np.int32(BINS * tiles)
        keyed = (at["box"], order, np.int32(word), at["keys0"], histogram, at["status"], zeroed)
        made.append(
            Step(
                "hilbert_word",
                blocks("hilbert_word", count, grain.keys),
                (*columns, number, *keyed),
            )
        )
        memory = {**at, "histogram": histogram, "tickets": tickets}
        for p in range(radix_sort.PASSES):
            keys, values, *rest = radix_sort.pass_arguments(p, memory, count, tiles)
            if word and not p:
                values = at["values0"]  # the first word begins with the caller's order
            made.append(Step("curve_sort", tiles, (keys, values, *rest)))
    return tuple(made)
