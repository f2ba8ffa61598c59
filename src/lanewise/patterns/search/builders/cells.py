"""Cells filled on the host: the cell of every source, then a counting sort, which keeps sources of
one cell in their order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.language.target import target_of
from lanewise.language.types import COMPONENTS
from lanewise.launch.tasks import Primitive, reading, writing
from lanewise.patterns.search.base import ORDER, POSITIONS
from lanewise.patterns.search.builders.counting import sort_by_cell
from lanewise.patterns.search.builders.geometry import Geometry
from lanewise.patterns.search.grid_expressions import STARTS
from lanewise.patterns.search.points import Points
from lanewise.runtime.cpu import own_kernel, run_priced
from lanewise.runtime.memory import PlannedPieces

NUMBERED = 3.0  # nanoseconds that the number of a cell takes

_NUMBERS = '''"""The cell of every source."""


def along(x, low, inverse, last, size, inverse_size):  # the cell along one axis, as walks compute it
    w = x - low
    if size > 0:
        w = w - floor(w * inverse_size) * size
        if w < 0:
            w = w + size
        if w >= size:
            w = w - size
    scaled = w * inverse
    if not scaled > 0:
        return int32(0)
    return int32(last) if scaled > last else int32(scaled)


def cell_numbers_kernel({columns}, cells, {values}, begin, end):
    for i in range(begin, end):
        number = int32(0)
{body}
        cells[i] = number
'''


@dataclass(frozen=True, slots=True, eq=False)
class CellBuilder:
    """Filled cells: int32 arrays on the sources' device, and the tasks that fill them from the
    present positions.

    total: cells. memory: of the sources' device; beside: what the host has where it builds for a
    GPU. cleared: pieces of memory that are zero before and after, by the names that tasks have for
    them.
    """

    total: int
    memory: PlannedPieces
    tasks: tuple[Primitive, ...]
    cleared: Mapping[str, str] = field(default_factory=dict[str, str])
    beside: PlannedPieces | None = None

    @property
    def starts(self) -> Any:
        """The first sorted place of each cell, and of those after the last one."""
        return self.memory["starts"].view("int32")[: self.total + 1]

    @property
    def order(self) -> Any:
        """The caller's index of each place."""
        return self.memory["order"].view("int32")

    @property
    def clean(self) -> Mapping[str, Any]:
        """The memory that is zero before and after, by name."""
        return {n: self.memory[piece].view("int32") for n, piece in self.cleared.items()}

    @property
    def planned(self) -> tuple[PlannedPieces, ...]:
        """What is allocated when any of it is first requested."""
        return (self.memory,) if self.beside is None else (self.memory, self.beside)


def host_cells(geometry: Geometry, sources: Points) -> CellBuilder:
    """Cells built on the host; sources on a GPU are brought there, and the cells back, in each
    build.
    """
    what, n = f"a grid of {geometry.total:,} cells", sources.count
    walked = {"starts": 4 * (geometry.total + 1), "order": 4 * n}
    host = PlannedPieces("cpu", {**walked, "cells": 4 * n}, what)
    numbers = own_kernel(_numbers_text(sources.dimension), "cell_numbers")
    values = axis_values(geometry, sources)

    def fill(points: Points = sources) -> None:
        columns = [host_column(c) for c in points.columns()]
        starts, order, cells = (host[name].view(np.int32) for name in ("starts", "order", "cells"))
        run_priced(numbers, (*columns, cells, *values), n, NUMBERED)
        sort_by_cell(cells, starts, order)

    touched, read = (*reading(POSITIONS), *writing(STARTS, ORDER)), ((POSITIONS, sources.lying_in),)
    if target_of(sources.device).host_memory:
        return CellBuilder(geometry.total, host, (Primitive("cells", fill, touched, read=read),))
    there = PlannedPieces(sources.device, walked, what)

    def build(points: Points = sources) -> None:
        fill(points)
        for name in walked:
            there[name].set(host[name])

    task = Primitive("cells", build, touched, waits=True, read=read)
    return CellBuilder(geometry.total, there, (task,), beside=host)


def cells_of(geometry: Geometry, sources: Points, columns: list[Any]) -> NDArray[np.int32]:
    """The cell of every source, whose coordinates lie in these arrays on the host."""
    cells = np.empty(sources.count, np.int32)
    numbers = own_kernel(_numbers_text(sources.dimension), "cell_numbers")
    arguments = (*columns, cells, *axis_values(geometry, sources))
    run_priced(numbers, arguments, sources.count, NUMBERED)
    return cells


def axis_values(geometry: Geometry, sources: Points) -> list[Any]:
    """For each axis: low, 1 / side, the last cell, the size of a periodic world (0 in others) and
    one over it.
    """
    real, values = sources.precision.dtype.type, list[Any]()
    for low, side, n in zip(geometry.low, geometry.side, geometry.cells, strict=True):
        size = side * n if geometry.periodic else 0.0
        values += [
            real(low),
            real(1 / side),
            real(n - 1),
            real(size),
            real(1 / size if size else 0.0),
        ]
    return values


def host_column(column: Any) -> Any:
    """A column of numbers on the host, which texts can work with."""
    host: Any = column.get() if hasattr(column, "get") else column
    return host if host.flags.writeable else host.copy()  # compiled for writable memory only


def _numbers_text(axes: int) -> str:
    names = COMPONENTS[:axes]
    values = [f"{n}_{c}" for c in names for n in ("low", "inverse", "last", "size", "inverse_size")]
    lines: list[str] = []
    for c in reversed(names):
        arguments = ", ".join(
            f"{n}_{c}" for n in ("low", "inverse", "last", "size", "inverse_size")
        )
        lines.append(
            f"        number = int32(number * (int32(last_{c}) + 1) + along({c}[i], {arguments}))"
        )
    return _NUMBERS.format(
        columns=", ".join(names), values=", ".join(values), body="\n".join(lines)
    )
