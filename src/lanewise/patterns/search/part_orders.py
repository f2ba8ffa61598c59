"""Rows on a mesh that are brought into the order of a structure over all of them.

    bring all rows to all parts
    of each part: fill the structure; copy own rows, in that order, to spare memory; copy them back

Own rows of a part are then neighbours in space. All parts have the same order, that of one device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from lanewise.compiler.default_plans import complete_plan
from lanewise.ir.names import COUNT
from lanewise.ir.pattern import Work
from lanewise.ir.values import value_leaves
from lanewise.language.types import I32
from lanewise.launch.arguments import bind_value_array
from lanewise.launch.programs import Programs
from lanewise.launch.support import bind_record, index_type, machine_of
from lanewise.launch.task_list import Renamed, TaskList
from lanewise.layouts import AoS
from lanewise.patterns.elements import ELEMENTWISE
from lanewise.patterns.part_rooms import Rooms, RowsBrought, bytes_of_rows, moved
from lanewise.patterns.search.base import ORDER, POSITIONS, Search, Structure
from lanewise.patterns.search.gather import SORTED, build_gather
from lanewise.patterns.search.points import points_of
from lanewise.records.arrays import RecordArray, class_of, storage_of
from lanewise.records.storage import Storage
from lanewise.runtime.exchange import Moves
from lanewise.runtime.memory import array_module, on, together
from lanewise.runtime.prepared import Prepared

ROWS, NUMBERS = "rows", "numbers"


def structures_over(search: Search, rooms: Rooms) -> tuple[Structure, ...]:
    """A structure of every part over all rows; their memory is there when they are filled."""
    points = (points_of(whole, search.position) for whole in rooms.wholes)
    return tuple(search.structure(p, p) for p in points)


@dataclass(frozen=True, slots=True, eq=False)
class _Ordering:
    """Of one part: what fills its structure, what takes own rows in that order, and what comes
    back from spare memory.
    """

    device: str
    fill: Prepared
    takes: tuple[Prepared, ...]
    back: tuple[tuple[Any, Any], ...]

    def __call__(self) -> None:
        self.fill.run()
        for take in self.takes:
            take.run()
        with on(self.device):
            for to, spare in self.back:
                to[...] = spare


class PartOrders:
    """What brings rows on a mesh into the order of their search, and knows where they came from.

    numbers: of the row at each own place of every part, as the caller counts, int32.
    """

    def __init__(self, rooms: Rooms, structures: Sequence[Structure]) -> None:
        self._rooms = rooms
        count = len(rooms.array)
        self._numbers = [array_module(d).arange(count, dtype="int32") for d in rooms.devices]
        own = zip(self._numbers, rooms.own, strict=True)
        self.numbers = tuple([numbers[rows.start : rows.stop] for numbers, rows in own])
        self._bring = rooms.everything()
        between = Moves(tuple(self._numbers_of_all()))
        self._bring_numbers = RowsBrought(between, rooms.of_others([self._numbers]))
        self._structures, self._parts = tuple(structures), list[_Ordering]()

    def _numbers_of_all(self) -> Any:
        devices, own = self._rooms.devices, self._rooms.own
        for p, rows in enumerate(own):
            for q, others in enumerate(own):
                if p != q and others:
                    room = self._numbers[q][rows.start : rows.stop]
                    yield from moved(devices[p], [self.numbers[p]], devices[q], [room])

    def __call__(self) -> None:
        """Bring all rows into the order in which the search would list them now."""
        if not self._parts:  # compiled, and memory allocated, when it is first requested
            parts = (n for n, rows in enumerate(self._rooms.own) if rows)
            self._parts = [self._ordering(n) for n in parts]
        with together(self._rooms.devices):
            self._bring()
            self._bring_numbers()
            for part in self._parts:
                part()

    def _ordering(self, n: int) -> _Ordering:
        structure, device = self._structures[n], self._rooms.devices[n]
        whole, rows = self._rooms.wholes[n], self._rooms.own[n]
        fill = TaskList("order", device, tuple(structure.parts({POSITIONS: ROWS}, device)))
        memory = {ROWS: bind_record(whole), **structure.arrays, **structure.clean}
        memory[ORDER] = bind_value_array(structure.order, I32)
        filled = fill.bound(memory, {COUNT: len(whole)})
        spare = RecordArray(
            Storage.zeros(whole.record, len(rows), storage_of(whole).layout, device),
            class_of(whole),
        )
        numbers = array_module(device).zeros(len(rows), dtype="int32")
        order = bind_value_array(structure.order[rows.start : rows.stop], I32)
        programs, index = Programs(), index_type(device)
        plan = complete_plan(None, machine_of(device), Work(ELEMENTWISE, len(rows)))
        takes: list[Prepared] = []
        for name, leaves, layout, array, to in (
            (ROWS, whole.record.leaves, whole.layout, bind_record(whole), bind_record(spare)),
            (
                NUMBERS,
                value_leaves(I32),
                AoS(),
                bind_value_array(self._numbers[n], I32),
                bind_value_array(numbers, I32),
            ),
        ):
            gather = partial(build_gather, name, leaves, layout, leaves, layout, index)
            kernel = programs.get((name, leaves, layout), gather, plan, device)
            tasks = TaskList(f"own {name}", device, (Renamed(kernel, {}),))
            arrays = {name: array, SORTED: to, ORDER: order}
            takes.append(tasks.bound(arrays, {COUNT: len(rows)}))
        pairs = zip(bytes_of_rows(whole, rows), bytes_of_rows(spare, range(len(rows))), strict=True)
        back = (*pairs, (self.numbers[n], numbers))
        return _Ordering(device, filled, tuple(takes), back)
