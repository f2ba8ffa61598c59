"""The order of a tree by halves, on a GPU: kernels that the counts of elements alone put in a row.

Nothing is read back and nothing is allocated when they run, so a graph may hold them. `kd_host.py`
makes the same order on a CPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.launch.tasks import Primitive, reading, writing
from lanewise.patterns.search.builders.curve import grains
from lanewise.patterns.search.points import Points
from lanewise.patterns.search.tree.shape import KdShape
from lanewise.primitives import kd_order, radix_sort
from lanewise.primitives.kd_order import BOX_ITEMS, MOST, MOST_LEAVES, THREADS
from lanewise.runtime.device import WrittenKernel, get_device
from lanewise.runtime.memory import allocate_pieces, on
from lanewise.support.errors import ArgumentError

BITS = 8  # of a digit of the sort
MOST_ELEMENTS = 2**30 - 1  # of a sort


def kernel_texts(points: Points, leaf: int) -> dict[str, str]:
    """The CUDA text of every kernel, for the layout and precision of these points."""
    grain = grains(points.count)
    made = kd_order.texts(
        points.arrangement.unpinned, points.leaves, points.precision, leaf, grain.keys
    )
    return {**made, "curve_sort": radix_sort.sort_text(grain.sort)}


def device_order(points: Points, shape: KdShape) -> DeviceOrder:
    """The order of points on a GPU."""
    device = get_device(points.device)
    kernels = {
        n: device.load(text, n, THREADS[n]) for n, text in kernel_texts(points, shape.leaf).items()
    }
    return DeviceOrder(points, shape, kernels)


@dataclass(frozen=True, slots=True)
class KdLevels:
    """What is known of the levels that are divided one after the other.

    borders: by level and node, the first place of the right child. digits: how many digits the
    numbers of a level's nodes have. histograms: by level and digit, how many elements have it.
    nodes: shape (nodes, 2), what blocks divide: first leaf, number of leaves.
    """

    borders: tuple[NDArray[np.int32], ...]
    digits: tuple[int, ...]
    histograms: tuple[NDArray[np.int32], ...]
    nodes: NDArray[np.int32]

    @classmethod
    def of(cls, shape: KdShape) -> KdLevels:
        """The levels of a tree, down to nodes that a block divides."""
        borders: list[NDArray[np.int32]] = []
        digits: list[int] = []
        histograms: list[NDArray[np.int32]] = []
        for level, (_, first, leaves) in enumerate(shape.levels()):
            most = int(leaves.max())
            if most <= MOST_LEAVES and most * shape.leaf <= MOST:
                nodes = np.stack([first, leaves], axis=1)
                return cls(tuple(borders), tuple(digits), tuple(histograms), nodes)
            borders.append((first + (leaves + 1) // 2) * np.int32(shape.leaf))
            digits.append(-(-level // BITS))
            begin, end = shape.places(first, leaves)
            number = np.arange(len(first))
            counts = [
                np.bincount(number >> BITS * d & 255, end - begin, minlength=radix_sort.BINS)
                for d in range(digits[-1])
            ]
            histograms.append(np.array(counts, np.int32).reshape(-1, radix_sort.BINS))
        return cls((), (), (), np.empty((0, 2), np.int32))


@dataclass(frozen=True, slots=True)
class Step:
    """A kernel that is launched with these arguments on so many blocks."""

    kernel: str
    blocks: int
    arguments: tuple[Any, ...]


class DeviceOrder:
    """The order, in memory of its own where the points are, made by these kernels."""

    def __init__(
        self, points: Points, shape: KdShape, kernels: Mapping[str, WrittenKernel]
    ) -> None:
        if points.count > MOST_ELEMENTS:
            raise ArgumentError(
                f"a tree on a GPU orders at most {MOST_ELEMENTS:,} elements, and there are "
                f"{points.count:,}; divide them"
            )
        self._points, self._kernels = points, kernels
        levels = KdLevels.of(shape)
        tables = {
            "borders": _joined(levels.borders),
            "counts": _joined(levels.histograms),
            "nodes": levels.nodes.reshape(-1),
        }
        sizes = memory_sizes(points, levels) | {n: a.nbytes for n, a in tables.items()}
        self._memory = allocate_pieces(points.device, sizes, "the order of a tree")
        with on(points.device):
            for name, table in tables.items():
                if table.size:
                    self._memory[name].set(table.view(np.uint8))
            self.order[:] = get_device(points.device).arrays.arange(points.count, dtype=np.int32)
        columns = (*points.addresses(), *([0] * (3 - points.dimension)))
        self._steps = steps_of(columns, points.count, levels, self._memory.addresses)

    @property
    def order(self) -> Any:
        """int32, shape (count,)."""
        return self._memory["values0"].view(np.int32)

    def tasks(self, positions: str, order: str) -> tuple[Primitive, ...]:
        """Its only one: kernels of the same stream, one after the other."""
        touched = (*reading(positions), *writing(order))
        return (Primitive("tree order", self.build, touched),)

    def build(self) -> None:
        """Order the present positions."""
        for step in self._steps:
            self._kernels[step.kernel].launch((step.blocks, 1), step.arguments)


def memory_sizes(points: Points, levels: KdLevels) -> dict[str, int]:
    """Bytes of each piece of memory that kernels write, all of it before they read it."""
    count, depth = points.count, len(levels.borders)
    lists = dict.fromkeys(("values0", "values1", "keys0", "keys1", "node"), 4 * count)
    if not depth:  # a block divides all elements
        return {"values0": 4 * count}
    bins, passes = 4 * radix_sort.BINS, radix_sort.PASSES + max(levels.digits)
    nodes = 1 << (depth - 1)
    return {
        **lists,
        "boxes": nodes * 2 * points.dimension * points.precision.size,
        "histogram": radix_sort.PASSES * bins,
        "tickets": 4 * passes,
        "status": passes * bins * radix_sort.tiles(count, grains(count).sort),
    }


def steps_of(
    columns: tuple[int, ...], count: int, levels: KdLevels, at: Mapping[str, int]
) -> tuple[Step, ...]:
    """The launches, in order. columns: addresses of the first coordinates, three of them. at:
    addresses of memory, and of the tables "borders", "counts" and "nodes".
    """
    number, grain = np.int32(count), grains(count)
    tiles, axes = radix_sort.tiles(count, grain.sort), sum(c != 0 for c in columns)
    made: list[Step] = []

    def each(kernel: str, *arguments: Any, items: int = 1, extent: int = count) -> None:
        made.append(Step(kernel, -(-extent // (THREADS[kernel] * items)), arguments))

    def sort(keys: int, values: int, counts: int, place: int, shift: int, *, first: bool) -> None:
        """A pass; its result lies in the other memory. place: of its counters."""
        arguments = (
            at[f"keys{keys}"], 0 if first else at[f"values{values}"],
            at[f"keys{1 - keys}"], at[f"values{1 - values}"], counts,
            at["status"] + 4 * radix_sort.BINS * tiles * place, at["tickets"] + 4 * place,
            number, np.int32(shift),
        )  # fmt: skip
        made.append(Step("curve_sort", tiles, arguments))

    if levels.borders:
        passes = radix_sort.PASSES + max(levels.digits)
        words = np.int64(passes * radix_sort.BINS * tiles)
        begun = (at["histogram"], at["tickets"], np.int32(passes))
        extent = max(count, radix_sort.PASSES * radix_sort.BINS)
        first = (at["values0"], at["node"], at["boxes"])
        each("kd_begin", number, *first, *begun, extent=extent)
        border, histogram, here = at["borders"], at["counts"], 0
        for level, (borders, digits) in enumerate(zip(levels.borders, levels.digits, strict=True)):
            order, node = at[f"values{here}"], at["node"]
            each("kd_boxes", *columns, number, order, node, at["boxes"], items=BOX_ITEMS)
            keyed = (node, at["boxes"], at["keys0"], at["histogram"], at["status"], words)
            each("kd_keys", *columns, number, *keyed, items=grain.keys)
            for p in range(radix_sort.PASSES):
                counts = at["histogram"] + 4 * radix_sort.BINS * p
                sort(p % 2, p % 2, counts, p, BITS * p, first=not p)
            if digits:
                each("kd_nodes", number, at["values0"], node, at["keys0"])
            for d in range(digits):
                sort(d % 2, d % 2, histogram, radix_sort.PASSES + d, BITS * d, first=False)
                histogram += 4 * radix_sort.BINS
            here = digits % 2
            last = level + 1 == len(levels.borders)
            sides = 0 if last else 2 * axes * 2 * len(borders)
            each(
                "kd_children",
                number,
                at[f"values{here}"],
                border,
                node,
                at["boxes"],
                np.int32(sides),
                *begun,
                extent=extent,
            )
            border += borders.nbytes
        order = at[f"values{here}"]
    else:
        order = at["values0"]
    nodes = (number, at["nodes"], order, at["values0"])
    made.append(Step("kd_finish", len(levels.nodes), (*columns, *nodes)))
    return tuple(made)


def _joined(arrays: tuple[NDArray[np.int32], ...]) -> NDArray[np.int32]:
    return np.concatenate([a.reshape(-1) for a in arrays]) if arrays else np.empty(0, np.int32)
