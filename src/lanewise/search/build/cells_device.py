"""Cells filled on a GPU, in launches that a graph can hold: count, two for a scan, fill, and two that put each cell in order.

Atomics hand out places within a cell in any order; the last two passes rank its members by index, so that the order never depends on
the race. Members of crowded cells are sorted, a cell a block; those of all others compare themselves with the few others of their cell.
The scan leaves the counters zero for the next build.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lanewise.layouts import Arrangement
from lanewise.runtime import cuda
from lanewise.runtime.memory import allocate
from lanewise.runtime.nvrtc import Cubin, compile_cubin
from lanewise.search.build.cells import CellBuilder, axis_values
from lanewise.search.build.cells_text import CROWDED, SORTERS, SORTING_THREADS, THREADS, TILE, kernel_texts
from lanewise.search.build.geometry import Geometry
from lanewise.search.points import Points


def compile_cells(sources: Points, arch: str, *, periodic: bool) -> dict[str, Cubin]:
    """The kernels for sources of this kind by name, for an architecture: no GPU is needed."""
    texts = kernel_texts(sources.arrangement, sources.leaves, sources.precision, periodic=periodic)
    return {name: compile_cubin(text, name, arch) for name, text in texts.items()}


def device_cells(geometry: Geometry, sources: Points) -> CellBuilder:
    """Cells built where the sources are, without a transfer or an allocation in a build."""
    device, n = sources.device, sources.count
    tiles = -(-(geometry.total + 1) // TILE)
    sizes = {
        "counts": tiles * TILE, "starts": tiles * TILE, "place": 2 * n, "members": n, "order": n, "sums": tiles,
        "crowded": n // CROWDED + 2,
    }  # fmt: skip
    a = {
        name: allocate(device, 4 * length, f"{geometry.total:,} cells").view("int32") for name, length in sizes.items()
    }
    cubins = compile_cells(sources, cuda.architecture(device), periodic=geometry.periodic)
    kernels = {
        name: cuda.CudaKernel(device, c, name, SORTING_THREADS if name == "cells_sort" else THREADS)
        for name, c in cubins.items()
    }
    i32, by_source = np.int32, (-(-n // THREADS), 1)
    columns = _column_pointers(sources.data, sources.arrangement, sources.leaves, n)
    work: list[tuple[str, tuple[int, int], tuple[Any, ...]]] = [
        ("cells_count", by_source, (*columns, a["counts"], a["place"], i32(n), *axis_values(geometry, sources))),
        ("cells_sums", (tiles, 1), (a["counts"], a["sums"], a["crowded"])),
        ("cells_scan", (tiles, 1), (a["counts"], a["sums"], a["starts"], a["crowded"])),
        ("cells_fill", by_source, (a["place"], a["starts"], a["members"], i32(n))),
        ("cells_sort", (SORTERS, 1), (a["crowded"], a["starts"], a["members"])),
        ("cells_rank", by_source, (a["place"], a["starts"], a["members"], a["order"], i32(n))),
    ]

    def launch(name: str, grid: tuple[int, int], arguments: tuple[Any, ...]) -> Any:
        plain = tuple(int(x.data.ptr) if hasattr(x, "data") and hasattr(x.data, "ptr") else x for x in arguments)
        kept = (arguments, sources)  # a pointer does not keep the memory that it points to
        return lambda: (kernels[name].launch(grid, plain), kept)[0]

    return CellBuilder(a["starts"][: geometry.total + 1], a["order"], tuple(launch(*w) for w in work))


def _column_pointers(data: Any, arrangement: Arrangement, leaves: tuple[str, ...], count: int) -> list[int]:
    """Where each coordinate of the first source lies."""
    return [int(data.data.ptr) + arrangement.address(leaf, 0, count) for leaf in leaves]
