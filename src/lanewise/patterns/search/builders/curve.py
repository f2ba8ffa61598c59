"""Elements in the order of a Hilbert curve, and the tree of boxes above them, on a GPU: eight short kernels.

Quantiles of a sample, keys, four passes of a radix sort, the boxes of leaves and small nodes, the boxes above. Nothing is read
back and nothing is allocated when they run, so a graph may hold them. `curve_host.py` does the same on a CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from lanewise.language.types import F32, F64, Scalar
from lanewise.layouts import Arrangement
from lanewise.patterns.search.builders import curve_device, radix
from lanewise.patterns.search.builders.tree import Tree, margin, node_arrangement
from lanewise.patterns.search.points import Points
from lanewise.patterns.search.worlds import Periodic, World
from lanewise.runtime.cuda import loaded
from lanewise.runtime.cuda_spelling import literal
from lanewise.runtime.memory import allocate_pieces

KEY_BITS = {2: 15, 3: 10}  # an axis
_SPELLING = {F32: "float", F64: "double"}
_TEXTS = {
    "curve_sample": curve_device.SAMPLE,
    "curve_keys": curve_device.KEYS,
    "curve_sort": radix.SORT,
    "curve_boxes": curve_device.BOXES,
    "curve_upper": curve_device.UPPER,
}
THREADS = {
    "curve_sample": curve_device.SAMPLES,
    "curve_keys": curve_device.KEY_THREADS,
    "curve_sort": radix.THREADS,
    "curve_boxes": curve_device.BOX_THREADS,
    "curve_upper": curve_device.UPPER_THREADS,
}
"""Of a block of each kernel."""


@dataclass(frozen=True, slots=True)
class Grains:
    """Elements a thread handles in the kernels of keys and of the sort: few where blocks would be too few to fill a GPU."""

    keys: int
    sort: int


def grains(count: int) -> Grains:
    """For about two blocks on each multiprocessor of an NVIDIA H200."""
    if count >= 1 << 19:
        return Grains(8, 8)
    return Grains(4, 4) if count >= 1 << 17 else Grains(2, 2)


@dataclass(frozen=True, slots=True)
class _Kind:
    """What a text depends on of points."""

    arrangement: Arrangement
    leaves: tuple[str, ...]
    precision: Scalar

    @property
    def dimension(self) -> int:
        return len(self.leaves)


def kernel_texts(points: Points, world: World, leaf: int) -> dict[str, str]:
    """The CUDA text of every kernel, for the layout, precision and world of these points."""
    return _texts(
        _Kind(points.arrangement.unpinned, points.leaves, points.precision), world, leaf, grains(points.count)
    )


@lru_cache(maxsize=64)
def _texts(points: _Kind, world: World, leaf: int, grain: Grains) -> dict[str, str]:
    items = {"curve_keys": grain.keys, "curve_sort": grain.sort}
    return {
        name: _defines(points, leaf, items.get(name, 1)) + _coordinates(points, world) + text
        for name, text in _TEXTS.items()
    }


def _defines(points: _Kind, leaf: int, items: int) -> str:
    numbers = {
        "AXES": points.dimension, "BITS": KEY_BITS[points.dimension], "LEAF": leaf, "FAN": curve_device.FAN, "ITEMS": items,
        "SAMPLES": curve_device.SAMPLES, "SEGMENTS": curve_device.SEGMENTS, "BINS": radix.BINS, "PASSES": radix.PASSES,
        "THREADS": radix.THREADS, "KEY_THREADS": curve_device.KEY_THREADS, "BOX_THREADS": curve_device.BOX_THREADS,
        "UPPER_THREADS": curve_device.UPPER_THREADS, "MARGIN": literal(margin(points.precision), points.precision),
        "INFINITE": "real(__int_as_float(0x7f800000))",
    }  # fmt: skip
    lines = [f"#define {name} {value}" for name, value in numbers.items()]
    return "\n".join([*lines, f"typedef {_SPELLING[points.precision]} real;", ""])


def _coordinates(points: _Kind, world: World) -> str:
    """`raw`: a coordinate as it lies in memory; `coordinate`: within the world; `wrapping_margin`: what wrapping rounds away."""
    cases: list[str] = []
    for axis, leaf in enumerate(points.leaves):
        slot = points.arrangement.slot(leaf)
        buffer = points.arrangement.buffers[slot.buffer]
        place = f"i * {buffer.block}LL"
        if buffer.width > 1:
            place = f"i / {buffer.width} * {buffer.block}LL + i % {buffer.width} * {slot.stride}"
        cases.append(f"    if (axis == {axis}) return *(const real *)({'xyz'[axis]} + {place});\n")
    columns = "const char *x, const char *y, const char *z"
    head = "__device__ __forceinline__ real"
    return (
        f"\n{head} raw(int axis, {columns}, long long i)\n{{\n{''.join(cases)}    return real(0);\n}}\n"
        f"\n{head} coordinate(int axis, {columns}, long long i)\n{{\n{_wrap(points, world)}}}\n"
        f"\n{head} wrapping_margin(int axis, {columns}, long long i)\n{{\n{_lost(points, world)}}}\n"
    )


def _wrap(points: _Kind, world: World) -> str:
    if not isinstance(world, Periodic):
        return "    return raw(axis, x, y, z, i);\n"
    text = "    const real place = raw(axis, x, y, z, i);\n"
    for axis in range(points.dimension):
        size, inverse, origin = (
            literal(v, points.precision) for v in (world.size[axis], 1 / world.size[axis], world.origin[axis])
        )
        text += f"    if (axis == {axis}) return place - {size} * floor((place - {origin}) * {inverse});\n"
    return text + "    return place;\n"


def _lost(points: _Kind, world: World) -> str:
    if not isinstance(world, Periodic):
        return "    return real(0);\n"
    largest = max(*world.size, *(abs(o) for o in world.origin))
    return f"    return MARGIN * (fabs(raw(axis, x, y, z, i)) + {literal(largest, points.precision)});\n"


class Launchable(Protocol):
    """A kernel with its number of threads: pointers are Python integers, numbers NumPy scalars."""

    def launch(self, grid: tuple[int, int], arguments: tuple[Any, ...]) -> None: ...


def device_curve(points: Points, world: World, leaf: int) -> DeviceCurve:
    """The order and the tree of points on a GPU."""
    kernels = {n: loaded(points.device, text, n, THREADS[n]) for n, text in kernel_texts(points, world, leaf).items()}
    return DeviceCurve(points, leaf, kernels)


class DeviceCurve:
    """The order and the tree, in memory of their own where the points are, filled by these kernels."""

    def __init__(self, points: Points, leaf: int, kernels: Mapping[str, Launchable]) -> None:
        self._points, self._kernels, self.tree = points, kernels, Tree(points.count, leaf)
        self._tiles = -(-points.count // (radix.THREADS * grains(points.count).sort))
        self.arrangement = node_arrangement(points.dimension, points.precision)
        self._memory = allocate_pieces(points.device, self._sizes(), "a dynamic grid")
        self._at = self._memory.addresses
        self.nodes = self._memory["nodes"]

    def _sizes(self) -> dict[str, int]:
        """Bytes of each piece of memory. Every build writes all of them before it reads them."""
        count, digits = self._points.count, 4 * radix.PASSES * radix.BINS
        lists = dict.fromkeys(("values0", "values1", "keys0", "keys1"), 4 * count)
        return {
            "nodes": self.arrangement.nbytes(self.tree.nodes), **lists, "quantiles": 8 * 3 * (curve_device.SEGMENTS + 1),
            "histogram": digits, "tickets": 4 * radix.PASSES, "status": digits * self._tiles,
        }  # fmt: skip

    @property
    def order(self) -> Any:
        return self._memory["values0"].view(np.int32)

    def launches(self) -> tuple[Callable[[], object], ...]:
        """One function a kernel, in order."""
        p, count = self._points, np.int32(self._points.count)
        xyz = (*p.addresses(), *([0] * (3 - p.dimension)))
        top, total = np.int32(len(self.tree.levels) - 1), np.int32(self.tree.nodes)
        words = radix.PASSES * radix.BINS * self._tiles
        key_blocks = -(-p.count // (curve_device.KEY_THREADS * grains(p.count).keys))
        quantiles, histogram, status, tickets = (self._at[n] for n in ("quantiles", "histogram", "status", "tickets"))
        keys, nodes, order = (self._at[n] for n in ("keys0", "nodes", "values0"))
        calls = [
            self._call("curve_sample", p.dimension, *xyz, count, quantiles, histogram, tickets),
            self._call("curve_keys", key_blocks, *xyz, count, quantiles, keys, histogram, status, np.int32(words)),
            *(self._sort_pass(number, histogram, status, tickets) for number in range(radix.PASSES)),
            self._call("curve_boxes", -(-p.count // curve_device.BOX_THREADS), *xyz, count, order, nodes, top, total),
        ]
        first = first_above(self.tree.leaf)
        if first <= top:
            calls.append(self._call("curve_upper", 1, count, nodes, np.int32(first), top, total))
        return tuple(calls)

    def _sort_pass(self, number: int, histogram: int, status: int, tickets: int) -> Callable[[], object]:
        """Keys and indices from one memory to the other; the last pass ends in the order's memory."""
        even = number % 2
        keys, values = ([self._at[f"{n}{k}"] for k in range(2)] for n in ("keys", "values"))
        last = number == radix.PASSES - 1
        bins = 4 * radix.BINS * number
        return self._call(
            "curve_sort", self._tiles, keys[even], values[even] if number else 0, 0 if last else keys[1 - even],
            values[1 - even], histogram + bins, status + bins * self._tiles, tickets + 4 * number,
            np.int32(self._points.count), np.int32(8 * number),
        )  # fmt: skip

    def _call(self, name: str, blocks: int, *arguments: Any) -> Callable[[], object]:
        return lambda: self._kernels[name].launch((blocks, 1), arguments)  # keeps the memory alive, too


def first_above(leaf: int) -> int:
    """The first level whose nodes have more elements than a block of the boxes' kernel."""
    level = 0
    while leaf * curve_device.FAN**level <= curve_device.BOX_THREADS:
        level += 1
    return level
