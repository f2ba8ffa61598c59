"""Memory of each part of a mesh for all rows of an array, in which its own rows are the array.

What a part gets of others lies next to its own rows, behind or before them, in the order of all
rows. So own rows and those that are near are one array, and no step moves own rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lanewise.layouts import Layout, SoA, packed
from lanewise.records.arrays import RecordArray, class_of, storage_of
from lanewise.records.binding import places_of
from lanewise.records.split_rows import SplitRows, over_mesh, split_rows
from lanewise.records.storage import Storage
from lanewise.runtime.exchange import Move, Moves
from lanewise.runtime.memory import Need, bring, joined, on, require_together
from lanewise.runtime.mesh import Mesh
from lanewise.support.errors import ArgumentError

REMEDY = "take fewer rows, or devices with more memory"


@dataclass(frozen=True, slots=True, eq=False)
class Rooms:
    """Rows on a mesh, each part in a room for all of them.

    array: all rows, on the mesh. lengths: how many each part of it has. wholes: the rooms of the
    parts of this process, as arrays of all rows. own: the rows of each of them.
    """

    mesh: Mesh
    array: RecordArray
    lengths: tuple[int, ...]
    wholes: tuple[RecordArray, ...]
    own: tuple[range, ...]

    def part(self, number: int) -> RecordArray:
        """The own rows of a part."""
        rows = self.own[number]
        return self.wholes[number][rows.start : rows.stop]

    @property
    def devices(self) -> tuple[str, ...]:
        return self.mesh.devices

    def everything(self, buffers: Collection[int] | None = None) -> RowsBrought:
        """What brings all rows to all parts; of some buffers of the layout, or of all."""
        return RowsBrought(self._between_own(buffers), self.of_others(self._columns(buffers)))

    def of_others(self, columns: Sequence[Sequence[Any]]) -> RowsOfOthers | None:
        """What brings the rows of other processes. columns: of each an array of every part, with a
        row for each of all.
        """
        if not self.mesh.everywhere:
            return None
        here = range(self.own[0].start, self.own[-1].stop)
        return RowsOfOthers(self.mesh, self.lengths, here, tuple(tuple(c) for c in columns))

    def _columns(self, buffers: Collection[int] | None) -> list[list[Any]]:
        """Of each buffer the bytes of every part, a row of them for each row."""
        if not len(self.array):
            return []
        every = range(len(self.array))
        parts = [bytes_of_rows(whole, every) for whole in self.wholes]
        chosen = range(len(parts[0])) if buffers is None else buffers
        return [[part[n].reshape(len(every), -1) for part in parts] for n in chosen]

    def _between_own(self, buffers: Collection[int] | None) -> Moves:
        """The moves between the parts of this process."""
        moves: list[Move] = []
        for p, rows in enumerate(self.own):
            sent = bytes_of_rows(self.wholes[p], rows)
            for q in self._others(p):
                room = bytes_of_rows(self.wholes[q], rows)
                chosen = range(len(sent)) if buffers is None else buffers
                some, into = [sent[n] for n in chosen], [room[n] for n in chosen]
                moves += moved(self.devices[p], some, self.devices[q], into)
        return Moves(tuple(moves))

    def _others(self, part: int) -> Iterator[int]:
        return (q for q, rows in enumerate(self.own) if q != part and rows)


@dataclass(frozen=True, slots=True, eq=False)
class RowsOfOthers:
    """Brings the rows of other processes to every part of this one.

    here: the rows of all parts of this process. columns: see `Rooms.of_others`.
    """

    mesh: Mesh
    lengths: tuple[int, ...]
    here: range
    columns: tuple[tuple[Any, ...], ...]

    def __call__(self) -> None:
        own = self.mesh.own_rows(self.lengths)
        first, stop = self.here.start, self.here.stop
        for column in self.columns:
            mine: list[Any] = []
            for array, rows, device in zip(column, own, self.mesh.devices, strict=True):
                with on(device):
                    mine.append(array[rows.start : rows.stop])
            whole = self.mesh.gather(joined(mine), self.lengths)
            for array, device in zip(column, self.mesh.devices, strict=True):
                before, behind = bring(whole[:first], device), bring(whole[stop:], device)
                with on(device):
                    array[:first], array[stop:] = before, behind


@dataclass(frozen=True, slots=True, eq=False)
class RowsBrought:
    """Brings rows to all parts: between those of this process, and from other ones."""

    moves: Moves
    others: RowsOfOthers | None

    def __call__(self) -> None:
        self.moves()
        if self.others is not None:
            self.others()


def in_rooms(array: RecordArray) -> Rooms:
    """A copy of an array on a mesh, in rooms. A part's rows begin anywhere, which layouts with
    blocks do not allow: of them the copy has columns. Raises `DeviceError` where there is no room.
    """
    storage, rows = storage_of(array), split_rows(storage_of(array))
    if rows is None:
        raise ArgumentError("rooms are for rows on a mesh")
    layout, count, devices = room_layout(storage), len(array), rows.mesh.devices
    nbytes = layout.arrange(storage.record.leaves).nbytes(count)
    what = f"rows of {storage.record.name} of all parts"
    needs = [Need(device, nbytes, what) for device in devices]
    require_together(f"an array on a mesh ({rows.mesh})", needs, REMEDY)
    own = rows.mesh.own_rows(rows.lengths)
    wholes: list[RecordArray] = []
    for part, here, device in zip(rows.parts, own, devices, strict=True):
        whole = Storage.zeros(storage.record, count, layout, device)
        wholes.append(RecordArray(whole, class_of(array)))
        if here:
            wholes[-1][here.start : here.stop] = RecordArray(part, class_of(array))
    views = (w[here.start : here.stop] for w, here in zip(wholes, own, strict=True))
    parts = tuple(storage_of(view) for view in views)
    whole = over_mesh(SplitRows(rows.mesh, parts, rows.lengths))
    rooms = Rooms(rows.mesh, RecordArray(whole, class_of(array)), rows.lengths, tuple(wholes), own)
    rooms.everything()()
    return rooms


def room_layout(storage: Storage) -> Layout:
    """How rows lie in rooms: as before, or in columns where they lay in blocks."""
    layout = packed(storage.layout)
    blocks = any(b.width > 1 for b in layout.arrange(storage.record.leaves).buffers)
    return SoA() if blocks else layout


def bytes_of_rows(array: RecordArray, rows: range) -> list[Any]:
    """Of each buffer of a layout without blocks the bytes of some rows, which lie side by side."""
    places = places_of(array)
    arrangement = places.arrangement
    starts = arrangement.starts(places.count)
    return [
        places.data[start + rows.start * b.block : start + rows.stop * b.block]
        for start, b in zip(starts, arrangement.buffers, strict=True)
    ]


def moved(source: str, sent: Sequence[Any], target: str, room: Sequence[Any]) -> list[Move]:
    """Copies of some arrays as they will be then."""
    pairs = zip(sent, room, strict=True)
    return [Move(source, _Here(data), target, to) for data, to in pairs if len(data)]


@dataclass(frozen=True, slots=True, eq=False)
class _Here:
    """Memory that is there."""

    data: Any

    def __call__(self) -> Any:
        return self.data
