"""Calls whose values change with the step, in graphs: the values of the steps of a graph lie in
rows.

A graph holds arguments, and here one of them is the address of a row: the k-th launch of a call in
a graph reads row k (`uniforms="global"`). The values of many steps are computed ahead, into memory
of the host that the device reads; before each launch of a graph those of its steps are copied to
the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from lanewise.ir import nodes as ir
from lanewise.launch.by_step import SteppedLaunch
from lanewise.launch.compiled import Call
from lanewise.launch.steps.rhythm import Rhythm
from lanewise.launch.steps.task import AHEAD
from lanewise.passes.uniform_parameters import UNIFORMS, packed
from lanewise.runtime.device import get_device
from lanewise.runtime.memory import address
from lanewise.runtime.prepared import Piece, Places, Prepared, at_a_stretch
from lanewise.runtime.programs import Work
from lanewise.runtime.stepping import copy_to_graphs
from lanewise.support.errors import ArgumentError
from lanewise.support.whole_steps import LONG_GRAPH

ALIGNED = 16  # bytes: kernels may read as many at once


def rows_of(call: Call, kernel: object) -> list[_Packed] | None:
    """The kernels of a call that read values from memory; None where the call is none of these."""
    kernels = call.compiled.executable.program.kernels
    if not isinstance(kernel, Prepared) or len(kernel.pieces) != len(kernels):
        return None
    environment = call.compiled.environment
    made = [_packed(p, k, environment) for p, k in zip(kernel.pieces, kernels, strict=True)]
    return made if any(m.size for m in made) else None


@dataclass(frozen=True, slots=True)
class _Packed:
    """A launch, and where its values lie in a row. size: of a row in bytes, 0 where it reads
    none.
    """

    piece: Piece
    size: int
    first: Any
    fields: Mapping[str, tuple[int, Any]]
    places: Places | None
    where: slice


def _packed(piece: Piece, kernel: ir.Kernel, environment: Mapping[str, Any]) -> _Packed:
    record = packed(kernel, environment)
    taken = next(
        ((places, where) for name, places, where in piece.arrays if name == UNIFORMS), None
    )
    if record is None or taken is None:
        return _Packed(piece, 0, None, {}, None, slice(0))
    array, data = record
    at = {x.name: (array.arrangement.address(x.name, 0, 1), x.type.dtype) for x in array.leaves}
    return _Packed(piece, -(-len(data) // ALIGNED) * ALIGNED, data, at, *taken)


class _Table:
    """The rows of one kernel: `ahead` on the host, for all steps that are computed, and those that
    a graph reads.
    """

    def __init__(self, kernel: _Packed, device: str, ahead: int, rows: int) -> None:
        self._kernel, self._device = kernel, device
        self._ahead: Any = get_device(device).pinned(ahead * kernel.size, "values by step")
        self._rows: Any = get_device(device).arrays.zeros(rows * kernel.size, "uint8")
        table = self._ahead.reshape(ahead, kernel.size)
        table[:, : len(kernel.first)] = kernel.first
        self._columns = {
            name: table[:, begin : begin + dtype.itemsize].view(dtype)[:, 0]
            for name, (begin, dtype) in kernel.fields.items()
        }

    def fill(self, row: int, numbers: Mapping[str, Any]) -> None:
        for name, number in numbers.items():
            if name in self._columns:
                self._columns[name][row] = number

    def copy_to_graphs(self, row: int, count: int) -> None:
        size = self._kernel.size
        source = int(self._ahead.ctypes.data) + row * size
        copy_to_graphs(self._device, address(self._rows), source, count * size)

    def copy_here(self, row: int) -> None:
        """One row, in order with the current stream."""
        size = self._kernel.size
        with get_device(self._device).use():
            self._rows[:size].set(self._ahead[row * size : (row + 1) * size])

    def launch(self, row: int) -> None:
        piece, places = self._kernel.piece, self._kernel.places
        assert places is not None
        arguments = list(piece.arguments)
        begin = address(self._rows) + row * self._kernel.size
        arguments[self._kernel.where] = [begin + start for start in places.starts]
        piece.run(tuple(arguments))


class InRows:
    """The launches of a call for the steps to come, from rows of values."""

    def __init__(
        self, stepped: SteppedLaunch, kernels: Sequence[_Packed], device: str, launches: Prepared
    ) -> None:
        """kernels: those of the launches, which are these with other values."""
        self._stepped, self._kernels, self._device = stepped, kernels, device
        self._lease, self._mend = launches.lease, launches.mend
        self._tables: list[_Table | None] = []
        self._rows = 0  # that a graph has
        self._filled = self._taken = self._next = 0

    def reserve(self, ahead: int, rows: int) -> None:
        """Room for so many steps that are computed, and for so many rows in a graph."""
        self._rows = rows
        self._tables = [
            _Table(k, self._device, ahead, rows) if k.size else None for k in self._kernels
        ]

    # ------------------------------------------------------------ values

    def clear(self) -> None:
        """Forget steps that did not come."""
        self._filled = self._taken = 0

    def add(self, step: int) -> None:
        """Compute the values of the next launch, which is in this step."""
        stepped = self._stepped
        values = stepped.arguments.at(step)
        numbers = stepped.converted(values)
        if numbers is None:  # of other types: looked at like any call, with the same kernel
            environment = stepped.bound_again(step, values).compiled.environment
            numbers = {n: environment[n] for slot in stepped.slots.values() for n in slot.leaves}
        for table in self._tables:
            if table is not None:
                table.fill(self._filled, numbers)
        self._filled += 1

    # ------------------------------------------------------------ launches

    def capture(self) -> None:
        """A graph is captured: the first launch reads the first row."""
        self._next = 0

    def copy(self, count: int) -> None:
        """The values of the next launches, for a graph with so many of them."""
        for table in self._tables:
            if table is not None:
                table.copy_to_graphs(self._taken, count)
        self._taken += count

    def __call__(self) -> None:
        """Put the next launch into the graph that is captured; else run it."""
        row = 0
        if get_device(self._device).is_capturing():
            row, self._next = self._next, self._next + 1
            if row >= self._rows:
                raise ArgumentError(
                    f"a graph has more than {self._rows} launches of a call by step"
                )
        else:
            for table in self._tables:
                if table is not None:
                    table.copy_here(self._taken)
            self._taken += 1
        works: list[Work] = []
        for kernel, table in zip(self._kernels, self._tables, strict=True):
            works.append(kernel.piece.work() if table is None else partial(table.launch, row))
        at_a_stretch(works, self._lease, self._mend)()


@dataclass(frozen=True, slots=True)
class PartRows:
    """The rows of a part: the calls by step in it, and how often each one is in one repetition."""

    calls: tuple[tuple[InRows, int], ...]

    def capture(self) -> None:
        for call, _ in self.calls:
            call.capture()

    def copy(self, repetitions: int) -> None:
        for call, count in self.calls:
            call.copy(count * repetitions)


def reserve_rows(rhythm: Rhythm) -> None:
    """Make room for the values of all calls by step that graphs hold."""
    for task in rhythm.tasks:
        if isinstance(task.ahead, InRows):
            often = max(rhythm.tasks_of(kind).count(task) for kind in rhythm.kinds)
            task.ahead.reserve(AHEAD * often, LONG_GRAPH * rhythm.turns * often)


def rows_of_part(rhythm: Rhythm, kinds: Sequence[int]) -> PartRows | None:
    """The rows of a part with steps of these kinds; None where its graphs read none."""
    calls = [t.ahead for k in kinds for t in rhythm.tasks_of(k) if isinstance(t.ahead, InRows)]
    counts = {id(call): (call, calls.count(call)) for call in calls}
    return PartRows(tuple(counts.values())) if calls else None
