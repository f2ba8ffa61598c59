"""Memory of each part of a mesh for all rows of an array, in which its own rows are the array.

What a part gets of others lies next to its own rows, behind or before them, in the order of all
rows. So own rows and those that are near are one array, and no step moves own rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lanewise.layouts import Layout, SoA, packed
from lanewise.records.arrays import RecordArray, class_of, storage_of
from lanewise.records.binding import places_of
from lanewise.records.split_rows import SplitRows, over_mesh, split_rows
from lanewise.records.storage import Storage
from lanewise.runtime.exchange import Move, Moves
from lanewise.runtime.memory import Need, require_together
from lanewise.runtime.mesh import Mesh
from lanewise.support.errors import ArgumentError

REMEDY = "take fewer rows, or devices with more memory"


@dataclass(frozen=True, slots=True, eq=False)
class Rooms:
    """Rows on a mesh of one process, each part in a room for all of them.

    array: all rows, on the mesh. wholes: the rooms of the parts, as arrays of all rows. own: the
    rows of each part.
    """

    mesh: Mesh
    array: RecordArray
    wholes: tuple[RecordArray, ...]
    own: tuple[range, ...]

    def part(self, number: int) -> RecordArray:
        """The own rows of a part."""
        rows = self.own[number]
        return self.wholes[number][rows.start : rows.stop]

    @property
    def devices(self) -> tuple[str, ...]:
        return self.mesh.devices

    def everything(self) -> Moves:
        """What brings all rows to all parts."""
        moves: list[Move] = []
        for p, rows in enumerate(self.own):
            sent = bytes_of_rows(self.wholes[p], rows)
            for q in self._others(p):
                room = bytes_of_rows(self.wholes[q], rows)
                moves += moved(self.devices[p], sent, self.devices[q], room)
        return Moves(tuple(moves))

    def _others(self, part: int) -> Iterator[int]:
        return (q for q, rows in enumerate(self.own) if q != part and rows)


def in_rooms(array: RecordArray) -> Rooms:
    """A copy of an array on a mesh, in rooms. A part's rows begin anywhere, which layouts with
    blocks do not allow: of them the copy has columns. Raises `DeviceError` where there is no room.
    """
    storage, rows = storage_of(array), split_rows(storage_of(array))
    if rows is None or rows.mesh.everywhere:
        raise ArgumentError("rooms are for rows on a mesh of one process")
    layout, count, devices = _without_blocks(storage), len(array), rows.mesh.devices
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
    rooms = Rooms(rows.mesh, RecordArray(whole, class_of(array)), tuple(wholes), own)
    rooms.everything()()
    return rooms


def _without_blocks(storage: Storage) -> Layout:
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
