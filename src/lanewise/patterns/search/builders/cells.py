"""Cells filled on the host: the cell of every source, then a counting sort, which keeps sources of
one cell in their order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lanewise.language.target import target_of
from lanewise.language.types import COMPONENTS
from lanewise.launch.tasks import Primitive, reading, writing
from lanewise.patterns.search.base import ORDER, POSITIONS
from lanewise.patterns.search.builders.geometry import Geometry
from lanewise.patterns.search.grid_expressions import STARTS
from lanewise.patterns.search.points import Points
from lanewise.runtime.cpu import own_kernel, run_range
from lanewise.runtime.memory import allocate

GRAIN = 16_384  # sources worth handing to another thread

_NUMBERS = '''"""The cell of every source."""

import numpy as np
from numba import njit
from numba import int32 as i32


@njit(error_model="numpy")
def along(x, low, inverse, last, size, inverse_size):  # the cell along one axis, as walks compute it
    w = x - low
    if size > 0:
        w = w - np.floor(w * inverse_size) * size
        if w < 0:
            w = w + size
        if w >= size:
            w = w - size
    scaled = w * inverse
    if not scaled > 0:
        return i32(0)
    return i32(last) if scaled > last else i32(scaled)


@njit(error_model="numpy", nogil=True)
def cell_numbers_kernel({columns}, cells, {values}, begin, end):
    for i in range(begin, end):
        number = i32(0)
{body}
        cells[i] = number
'''

_SORT = '''"""A counting sort by cell."""

from numba import njit


@njit(error_model="numpy", nogil=True)
def counting_sort_kernel(cells, starts, order):
    starts[:] = 0
    for i in range(len(cells)):
        starts[cells[i] + 1] += 1
    for c in range(1, len(starts)):
        starts[c] += starts[c - 1]
    for i in range(len(cells)):
        c = cells[i]
        order[starts[c]] = i
        starts[c] += 1
    for c in range(len(starts) - 1, 0, -1):
        starts[c] = starts[c - 1]
    starts[0] = 0
'''


@dataclass(frozen=True, slots=True, eq=False)
class CellBuilder:
    """Filled cells: int32 arrays on the sources' device, and the tasks that fill them from the
    present positions.

    starts: the first sorted place of each cell and of those behind the last one; order: the
    caller's index of each place. clean: int32 arrays that are zero before and after, by name.
    """

    starts: Any
    order: Any
    tasks: tuple[Primitive, ...]
    clean: Mapping[str, Any] = field(default_factory=dict[str, Any])


def host_cells(geometry: Geometry, sources: Points) -> CellBuilder:
    """Cells built on the host; sources on a GPU are brought there, and the cells back, in each
    build.
    """
    starts, order = np.zeros(geometry.total + 1, np.int32), np.zeros(sources.count, np.int32)
    cells = np.zeros(sources.count, np.int32)
    numbers = own_kernel(_numbers_text(sources.dimension), "cell_numbers")
    sort, values = own_kernel(_SORT, "counting_sort"), axis_values(geometry, sources)

    def fill() -> None:
        columns = [_host_column(c) for c in sources.columns()]
        run_range(numbers, (*columns, cells, *values), sources.count, GRAIN)
        sort(cells, starts, order)

    touched = (*reading(POSITIONS), *writing(STARTS, ORDER))
    if target_of(sources.device).host_memory:
        return CellBuilder(starts, order, (Primitive("cells", fill, touched),))
    what = f"{geometry.total:,} cells"
    starts_there, order_there = (
        allocate(sources.device, a.nbytes, what).view("int32") for a in (starts, order)
    )

    def build() -> None:
        fill()
        starts_there.set(starts)
        order_there.set(order)

    task = Primitive("cells", build, touched, waits=True)
    return CellBuilder(starts_there, order_there, (task,))


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


def _host_column(column: Any) -> Any:
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
            f"        number = i32(number * (i32(last_{c}) + 1) + along({c}[i], {arguments}))"
        )
    return _NUMBERS.format(
        columns=", ".join(names), values=", ".join(values), body="\n".join(lines)
    )
