"""Cells filled on a GPU, in launches that a graph can hold: count, two for a scan, fill, and two that put each cell in order.

Atomics hand out places within a cell in any order; the last two passes rank its members by index, so that the order never depends on
the race. Members of crowded cells are sorted, a cell a block; those of all others compare themselves with the few others of their cell.
The scan leaves the counters zero for the next build.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from lanewise.runtime.cuda import CudaKernel
from lanewise.runtime.memory import allocate
from lanewise.search.build.cells import CellBuilder, axis_values
from lanewise.search.build.cells_text import CROWDED, SORTERS, SORTING_THREADS, THREADS, TILE, kernel_texts
from lanewise.search.build.geometry import Geometry
from lanewise.search.build.loaded import loaded
from lanewise.search.points import Points


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of a kernel. Arguments are names of memory, addresses as Python integers, and numbers as NumPy scalars."""

    kernel: str
    blocks: int
    threads: int
    arguments: tuple[Any, ...]


def memory_sizes(geometry: Geometry, count: int) -> dict[str, int]:
    """How many int32 the kernels need of each kind of memory, all zero at first."""
    tiles = _tiles(geometry)
    return {
        "counts": tiles * TILE, "starts": tiles * TILE, "place": 2 * count, "members": count, "order": count, "sums": tiles,
        "crowded": count // CROWDED + 2,
    }  # fmt: skip


def launch_list(geometry: Geometry, sources: Points, columns: list[int]) -> list[Launch]:
    """The launches of one build; `columns` are the addresses of the coordinates of the first source."""
    n, tiles = np.int32(sources.count), _tiles(geometry)
    by_source = -(-sources.count // THREADS)
    return [
        Launch("cells_count", by_source, THREADS, (*columns, "counts", "place", n, *axis_values(geometry, sources))),
        Launch("cells_sums", tiles, THREADS, ("counts", "sums", "crowded")),
        Launch("cells_scan", tiles, THREADS, ("counts", "sums", "starts", "crowded")),
        Launch("cells_fill", by_source, THREADS, ("place", "starts", "members", n)),
        Launch("cells_sort", SORTERS, SORTING_THREADS, ("crowded", "starts", "members")),
        Launch("cells_rank", by_source, THREADS, ("place", "starts", "members", "order", n)),
    ]


def device_cells(geometry: Geometry, sources: Points) -> CellBuilder:
    """Cells built where the sources are, without a transfer or an allocation in a build."""
    device, what = sources.device, f"{geometry.total:,} cells"
    memory = {
        name: allocate(device, 4 * length, what).view("int32")
        for name, length in memory_sizes(geometry, sources.count).items()
    }
    texts = kernel_texts(sources.arrangement, sources.leaves, sources.precision, periodic=geometry.periodic)
    first = int(sources.data.data.ptr)
    columns = [first + sources.arrangement.address(leaf, 0, sources.count) for leaf in sources.leaves]
    work = tuple(
        partial(_run, loaded(device, texts[x.kernel], x.kernel, x.threads), x, memory, sources)
        for x in launch_list(geometry, sources, columns)
    )
    return CellBuilder(memory["starts"][: geometry.total + 1], memory["order"], work)


def _run(kernel: CudaKernel, launch: Launch, memory: dict[str, Any], sources: Points) -> None:
    """Launch; the arguments keep the memory alive that addresses point to."""
    del sources
    arguments = tuple(int(memory[a].data.ptr) if isinstance(a, str) else a for a in launch.arguments)
    kernel.launch((launch.blocks, 1), arguments)


def _tiles(geometry: Geometry) -> int:
    return -(-(geometry.total + 1) // TILE)
