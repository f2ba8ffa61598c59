"""Cells filled on a GPU by the kernels of `primitives.cells`, in launches that a graph can hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from lanewise.ir.names import own
from lanewise.language.types import Scalar
from lanewise.launch.tasks import Access, Primitive, changing, reading, writing
from lanewise.layouts import Arrangement
from lanewise.patterns.search.base import ORDER, POSITIONS
from lanewise.patterns.search.builders.addressed import Addressed
from lanewise.patterns.search.builders.cells import CellBuilder, axis_values
from lanewise.patterns.search.builders.geometry import Geometry
from lanewise.patterns.search.grid_expressions import STARTS
from lanewise.patterns.search.points import Points
from lanewise.primitives.cells import CROWDED, SORTERS, SORTING_THREADS, THREADS, TILE, kernel_texts
from lanewise.runtime.device import WrittenKernel, get_device
from lanewise.runtime.memory import PlannedPieces

COUNTS, PLACE, MEMBERS = map(own, ("cells.counts", "place", "members"))
SUMS, CROWD = map(own, ("sums", "crowded"))
TOUCHED: dict[str, tuple[Access, ...]] = {
    "cells_count": (*reading(POSITIONS), *changing(COUNTS), *writing(PLACE)),
    "cells_sums": (*reading(COUNTS), *writing(SUMS, CROWD)),
    "cells_scan": (*reading(SUMS), *changing(COUNTS, CROWD), *writing(STARTS)),
    "cells_fill": (*reading(PLACE, STARTS), *writing(MEMBERS)),
    "cells_sort": (*reading(CROWD, STARTS), *changing(MEMBERS)),
    "cells_rank": (*reading(PLACE, STARTS, MEMBERS), *writing(ORDER)),
}
"""What the kernels read and write."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of a kernel.

    Arguments are names of memory, addresses as Python integers, and numbers as NumPy scalars.
    """

    kernel: str
    blocks: int
    threads: int
    arguments: tuple[Any, ...]


def memory_sizes(geometry: Geometry, count: int) -> dict[str, int]:
    """How many int32 the kernels need of each kind of memory; `counts` are zero at first, all else
    is written before it is read.
    """
    tiles = _tiles(geometry)
    return {
        "counts": tiles * TILE,
        "starts": tiles * TILE,
        "place": 2 * count,
        "members": count,
        "order": count,
        "sums": tiles,
        "crowded": count // CROWDED + 2,
    }


def launch_list(geometry: Geometry, sources: Points, columns: list[int]) -> list[Launch]:
    """The launches of one build; `columns` are the addresses of the coordinates of the first
    source.
    """
    n, tiles = np.int32(sources.count), _tiles(geometry)
    by_source = -(-sources.count // THREADS)
    return [
        Launch(
            "cells_count",
            by_source,
            THREADS,
            (*columns, "counts", "place", n, *axis_values(geometry, sources)),
        ),
        Launch("cells_sums", tiles, THREADS, ("counts", "sums", "crowded")),
        Launch("cells_scan", tiles, THREADS, ("counts", "sums", "starts", "crowded")),
        Launch("cells_fill", by_source, THREADS, ("place", "starts", "members", n)),
        Launch("cells_sort", SORTERS, SORTING_THREADS, ("crowded", "starts", "members")),
        Launch("cells_rank", by_source, THREADS, ("place", "starts", "members", "order", n)),
    ]


def device_cells(geometry: Geometry, sources: Points) -> CellBuilder:
    """Cells built where the sources are, without a transfer or an allocation in a build."""
    device, sizes = sources.device, memory_sizes(geometry, sources.count)
    nbytes = {name: 4 * length for name, length in sizes.items()}

    what = f"a grid of {geometry.total:,} cells"
    memory = PlannedPieces(device, nbytes, what, clean=("counts",))
    kernels = _kernels(
        device, sources.arrangement.unpinned, sources.leaves, sources.precision, geometry.periodic
    )
    tasks: list[Primitive] = []
    for x in launch_list(geometry, sources, []):
        touched, run = (
            TOUCHED[x.kernel],
            _Run(kernels[x.kernel], (x.blocks, 1), x.arguments, memory),
        )
        if any(a.buffer == POSITIONS for a in touched):
            read = ((POSITIONS, sources.lying_in),)
            tasks.append(Primitive(x.kernel, run.behind(sources), touched, read=read))
        else:
            tasks.append(Primitive(x.kernel, run, touched))
    return CellBuilder(geometry.total, memory, tuple(tasks), {COUNTS: "counts"})


@dataclass(eq=False)
class _Run:
    """A launch on memory that is there by the time of the first one, and lives as long as it."""

    kernel: WrittenKernel
    grid: tuple[int, int]
    given: tuple[Any, ...]
    memory: PlannedPieces

    @cached_property
    def arguments(self) -> tuple[Any, ...]:
        at = self.memory.addresses
        return tuple(at[a] if isinstance(a, str) else a for a in self.given)

    def __call__(self) -> None:
        self.kernel.launch(self.grid, self.arguments)

    def behind(self, sources: Points) -> Callable[..., None]:
        """The same with the coordinates of positions before its other arguments."""
        axes = sources.dimension
        addressed = Addressed(lambda columns: (*columns[:axes], *self.arguments))

        def run(points: Points = sources) -> None:
            self.kernel.launch(self.grid, addressed(points))

        return run


@cache
def _kernels(
    device: str,
    arrangement: Arrangement,
    leaves: tuple[str, ...],
    precision: Scalar,
    periodic: bool,
) -> dict[str, WrittenKernel]:
    """The kernels for sources of one kind, by name; kept for the life of the program."""
    texts = kernel_texts(arrangement, leaves, precision, periodic=periodic)
    return {
        n: get_device(device).load(text, n, SORTING_THREADS if n == "cells_sort" else THREADS)
        for n, text in texts.items()
    }


def _tiles(geometry: Geometry) -> int:
    return -(-(geometry.total + 1) // TILE)
