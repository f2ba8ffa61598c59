"""The structures that a GPU builds, on a CPU: their kernels are run as C++, launch by launch."""

from __future__ import annotations

import re
from typing import Any

import pytest

from lanewise.patterns.search import dynamic_grid, static_grid
from lanewise.patterns.search.builders import cells_device
from lanewise.patterns.search.builders.curve import DeviceCurve, kernel_texts
from lanewise.patterns.search.points import Points
from lanewise.primitives import cells, curve_order
from tests.search.emulated_cuda import launch

_MORE = """
struct int2 { int x, y; };
struct int4 { int x, y, z, w; };
static int2 make_int2(int x, int y) { return {x, y}; }
static int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
static int atomicAdd(int *to, int v) { const int old = *to; *to += v; return old; }
"""


class CellKernel:
    """A kernel of cells. axes: of positions, whose grid is among the arguments of the first one."""

    def __init__(self, text: str, name: str, axes: int) -> None:
        self._text, self._name, self._axes = _MORE + text, name, axes

    def launch(self, grid: tuple[int, int], arguments: tuple[Any, ...]) -> None:
        text, blocks, threads = self._text, grid[0], cells.THREADS
        if self._name == "cells_count":
            text, arguments = _with_values(text, arguments, self._axes)
            # the last block first, so that members come in another order than that of their indices
            text = text.replace("blockIdx.x", "(gridDim.x - 1 - blockIdx.x)")
        if self._name == "cells_sort":
            blocks, threads = 3, cells.SORTING_THREADS
        launch(text, self._name, blocks, threads, *arguments)


def _with_values(text: str, arguments: tuple[Any, ...], axes: int) -> tuple[str, tuple[Any, ...]]:
    """The values of the grid as constants of the text: the emulation takes integers only."""
    head, values, tail = re.split(r"(?<=int n),([^)]*)(?=\))", text, maxsplit=1)
    names = re.findall(r"T (\w+)", values)
    given = arguments[-5 * axes :]
    constants = "".join(f"static const T {n} = (T){float(v)!r};\n" for n, v in zip(names, given, strict=True))
    kind = re.search(r"using T = \w+;\n", head)
    assert kind is not None
    return head[: kind.end()] + constants + head[kind.end() :] + tail, arguments[: -5 * axes]


def cell_kernels(sources: Points, *, periodic: bool) -> dict[str, CellKernel]:
    """Those that fill cells with such sources."""
    texts = cells.kernel_texts(sources.arrangement, sources.leaves, sources.precision, periodic=periodic)
    return {name: CellKernel(text, name, len(sources.leaves)) for name, text in texts.items()}


class CurveKernel:
    """A kernel of the curve."""

    def __init__(self, text: str, name: str) -> None:
        self._text, self._name = text, name

    def launch(self, grid: tuple[int, int], arguments: tuple[Any, ...]) -> None:
        launch(self._text, self._name, grid[0], curve_order.THREADS[self._name], *arguments)


def curve_of(points: Points, world: Any, leaf: int) -> DeviceCurve:
    """The order and the tree of these points, as a GPU makes them."""
    texts = kernel_texts(points, world, leaf)
    return DeviceCurve(points, leaf, {name: CurveKernel(text, name) for name, text in texts.items()})


def put_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches on a CPU have the structures of a GPU."""

    def kernels(device: str, arrangement: Any, leaves: Any, precision: Any, periodic: bool) -> Any:
        del device
        texts = cells.kernel_texts(arrangement, leaves, precision, periodic=periodic)
        return {name: CellKernel(text, name, len(leaves)) for name, text in texts.items()}

    monkeypatch.setattr(cells_device, "_kernels", kernels)
    monkeypatch.setattr(static_grid, "host_cells", cells_device.device_cells)
    monkeypatch.setattr(dynamic_grid, "HostCurve", curve_of)
