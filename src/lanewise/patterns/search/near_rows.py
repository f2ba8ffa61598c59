"""Of every part of a mesh its own rows and those of others that may come near to them.

    rows of others before the own | own rows | rows of others behind

All are in the order of all rows, so that a search meets neighbours in the order in which it would
among all rows: sums have the same bits for any number of parts. The others are listed periodically,
and brought before every step. Lists keep their lengths while these fit, as calls are bound to them:
what is too much in one are rows that are too far away to be met.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from lanewise.compiler.default_plans import complete_plan
from lanewise.ir.names import COUNT
from lanewise.ir.pattern import Work
from lanewise.language import types as t
from lanewise.launch.arguments import bind_value_array
from lanewise.launch.programs import Programs
from lanewise.launch.support import bind_record, index_type, machine_of
from lanewise.launch.task_list import Renamed, TaskList
from lanewise.patterns.elements import ELEMENTWISE
from lanewise.patterns.part_rooms import Rooms, RowsBrought, bytes_of_rows, room_layout
from lanewise.patterns.search.base import ORDER, Search
from lanewise.patterns.search.builders.geometry import cell_numbers
from lanewise.patterns.search.gather import SORTED, build_gather
from lanewise.patterns.search.points import points_of
from lanewise.patterns.search.static_grid import StaticGrid
from lanewise.patterns.search.worlds import Open
from lanewise.records.arrays import RecordArray, class_of, storage_of
from lanewise.records.storage import Storage
from lanewise.runtime.exchange import Move, Moves
from lanewise.runtime.memory import array_module, on, to_host, together
from lanewise.runtime.prepared import Prepared

SHARE, SPARE = 16, 16  # of a list's rows one in so many, and so many more, are room to grow
Chooses = Callable[[int, int], Any]
"""Of the rows of one part those that another one needs: not 0 for each of these; None: all."""


def over_parts(search: Search, rooms: Rooms) -> Search | None:
    """The search by which a part finds, among own rows and those that are near, what it finds among
    all rows, in the same order. None for a search whose structure follows from all of them.
    """
    if not lists_near(search):
        return None
    cells = search.geometry(points_of(rooms.wholes[0], search.position)).cells
    return replace(search, cells=cells, side=None)


def lists_near(search: Search) -> TypeGuard[StaticGrid]:
    """Whether parts get rows that are near alone, and not all of them."""
    if not isinstance(search, StaticGrid) or search.radius is None:
        return False
    return not isinstance(search.world, Open) or search.over is not None


def in_cells(search: StaticGrid, elements: RecordArray) -> NDArray[np.intp]:
    """The rows of elements on the host in the order in which the search lists them."""
    points = points_of(elements, search.position)
    return np.argsort(cell_numbers(search.geometry(points), points), kind="stable")


def list_lengths(
    needed: Mapping[tuple[int, int], int], own: Sequence[int], least: int = 1
) -> dict[tuple[int, int], int]:
    """How many rows each part gets of each other one, which needs so many of them: see `NearRows`,
    of which these are the lists when they are made first. own: how many each part has.
    """
    found = {(p, q): min(own[p], _room(count)) for (p, q), count in needed.items()}
    for q, mine in enumerate(own):
        if mine + sum(count for (_, to), count in found.items() if to == q) < least:
            found |= {pair: own[pair[0]] for pair in found if pair[1] == q}
    return found


def bytes_in_rooms(array: RecordArray, fields: Collection[str] | None = None) -> int:
    """Bytes of a row in a room that buffers have which hold these fields; None: all of them."""
    record = storage_of(array).record
    arrangement = room_layout(storage_of(array)).arrange(record.leaves).unpinned
    named = record.leaves if fields is None else [x for x in record.leaves if x.field in fields]
    buffers = {arrangement.slot(leaf.name).buffer for leaf in named}
    return sum(arrangement.buffers[n].block for n in buffers)


@dataclass(slots=True, eq=False)
class _Lot:
    """Rows of one part that another one gets.

    rows: which of the own rows, int32 on the device of the part, and one place for all others;
    None: all of them, as they lie.
    packed, pack: side by side, and what puts them there.
    """

    count: int
    rows: Any = None
    packed: RecordArray | None = None
    pack: Prepared | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Looked:
    """Of the rows of a part those that another one needs, and how many there are up to each."""

    needed: Any
    upto: Any


class NearRows:
    """What every part has of others, as of the last `choose`.

    fields: those that are brought. least: rows that a part has at least, if there are so many.
    """

    def __init__(self, rooms: Rooms, fields: frozenset[str], least: int = 1) -> None:
        self.rooms, self._least = rooms, least
        arrangement = rooms.wholes[0].arrangement.unpinned
        record = storage_of(rooms.array).record
        leaves = [leaf.name for leaf in record.leaves if leaf.field in fields]
        self._buffers = sorted({arrangement.slot(leaf).buffer for leaf in leaves})
        self._lots: dict[tuple[int, int], _Lot] = {}
        self._programs = Programs()
        self.bring = Moves(())

    def bringing_all(self) -> RowsBrought:
        """What brings these fields of all rows to all parts."""
        return self.rooms.everything(self._buffers)

    @property
    def parts(self) -> list[int]:
        """Those that have rows."""
        return [n for n, rows in enumerate(self.rooms.own) if rows]

    def of_part(self, part: int) -> range:
        """Which rows of its room a part searches: its own, and those of others next to them."""
        before = sum(lot.count for (p, q), lot in self._lots.items() if q == part and p < part)
        behind = sum(lot.count for (p, q), lot in self._lots.items() if q == part and p > part)
        own = self.rooms.own[part]
        return range(own.start - before, own.stop + behind)

    @property
    def counts(self) -> dict[tuple[int, int], int]:
        """How many rows each part gets of each other one."""
        return {pair: lot.count for pair, lot in self._lots.items()}

    # ------------------------------------------------------------ lists

    def choose(self, needed: Chooses) -> bool:
        """List the rows of others anew. Whether the lists have other lengths now.

        All devices look at their rows at the same time. The host waits for the numbers of rows.
        """
        before = self.counts
        with together(self.rooms.devices):
            looked = {pair: self._looked(pair[0], needed(*pair)) for pair in self._pairs()}
            for pair, found in looked.items():
                self._list(*pair, found)
        for q in self.parts:
            if len(self.of_part(q)) < self._least:
                for p in self.parts:
                    if p != q:
                        self._list(p, q, None)
        if self.counts == before:
            return False
        self.bring = Moves(tuple(self._moves()))
        return True

    def _pairs(self) -> Iterator[tuple[int, int]]:
        return ((p, q) for p in self.parts for q in self.parts if p != q)

    def _looked(self, p: int, mask: Any) -> _Looked | None:
        """How many rows up to each one are needed."""
        if mask is None:
            return None
        device = self.rooms.devices[p]
        with on(device):
            mask = mask != 0
            return _Looked(mask, array_module(device).cumsum(mask, dtype="int32"))

    def _list(self, p: int, q: int, found: _Looked | None) -> None:
        device, most = self.rooms.devices[p], len(self.rooms.own[p])
        with on(device):
            needed = most if found is None else int(to_host(found.upto[-1:])[0])
            lot = self._lots.get((p, q))
            if lot is None or lot.count < needed or lot.count > 2 * _room(needed):
                lot = self._lots[p, q] = self._lot(p, min(most, _room(needed)))
            if found is not None and lot.rows is not None:
                _fill(array_module(device), lot, found, needed)

    def _lot(self, p: int, count: int) -> _Lot:
        if count == len(self.rooms.own[p]):
            return _Lot(count)
        device, part = self.rooms.devices[p], self.rooms.part(p)
        storage = storage_of(self.rooms.wholes[p])
        rows = array_module(device).zeros(count + 1, dtype="int32")
        packed = RecordArray(
            Storage.zeros(storage.record, count, storage.layout, device), class_of(part)
        )
        return _Lot(count, rows, packed, self._packing(device, part, rows[:count], packed))

    def _packing(self, device: str, part: RecordArray, rows: Any, packed: RecordArray) -> Prepared:
        name, leaves, layout = "own_rows", part.record.leaves, packed.layout
        gather = partial(build_gather, name, leaves, layout, leaves, layout, index_type(device))
        plan = complete_plan(None, machine_of(device), Work(ELEMENTWISE, len(packed)))
        kernel = self._programs.get((leaves, layout), gather, plan, device)
        there = {
            name: bind_record(part),
            SORTED: bind_record(packed),
            ORDER: bind_value_array(rows, t.I32),
        }
        tasks = TaskList("rows for others", device, (Renamed(kernel, {}),))
        return tasks.bound(there, {COUNT: len(packed)})

    # ------------------------------------------------------------ copies

    def _moves(self) -> Iterator[Move]:
        """The rows of all lists, to where they lie in the rooms."""
        for q in self.parts:
            at = self.of_part(q).start
            for p in self.parts:
                if p == q:
                    at += len(self.rooms.own[q])
                elif count := self._lots[p, q].count:
                    yield from self._moves_between(p, q, range(at, at := at + count))

    def _moves_between(self, p: int, q: int, to: range) -> Iterator[Move]:
        lot, devices = self._lots[p, q], self.rooms.devices
        if lot.packed is None:
            sent = bytes_of_rows(self.rooms.wholes[p], self.rooms.own[p])
        else:
            sent = bytes_of_rows(lot.packed, range(lot.count))
        room = bytes_of_rows(self.rooms.wholes[q], to)
        pack = lot.pack
        for buffer in self._buffers:
            yield Move(devices[p], partial(_taken, pack, sent[buffer]), devices[q], room[buffer])
            pack = None  # all buffers are packed by the first one


def _taken(pack: Prepared | None, data: Any) -> Any:
    if pack is not None:
        pack.run()
    return data


def _fill(module: Any, lot: _Lot, found: _Looked, needed: int) -> None:
    """Put the needed rows into a list, in their order, and among them the first others while there
    is room. The host waits for nothing.
    """
    numbers = module.arange(len(found.upto), dtype="int32")
    listed = found.needed
    if more := lot.count - needed:
        listed = listed | (numbers - found.upto < more)
    places = module.cumsum(listed, dtype="int32") - 1
    lot.rows[module.where(listed, places, lot.count)] = numbers


def _room(needed: int) -> int:
    """How long a list is made, of which so many rows are needed."""
    return needed + needed // SHARE + SPARE
