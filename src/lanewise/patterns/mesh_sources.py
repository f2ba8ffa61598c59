"""All sources for every part of a mesh: memory for them, and the exchange that fills it.

Parts on one device share that memory. What is read of the sources is brought, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from lanewise.language import types as t
from lanewise.launch.joined import Bound, memory_of
from lanewise.launch.sent import RowsToAll
from lanewise.launch.tasks import Buffer, Exchange, Role, Sequence
from lanewise.layouts import Layout, SoA, packed
from lanewise.patterns.mesh_launch import Brought
from lanewise.records.arrays import RecordArray, class_of, storage_of
from lanewise.records.split_rows import SplitRows, split_rows
from lanewise.records.storage import Storage
from lanewise.records.two_sides import bits_of
from lanewise.runtime.device import get_device
from lanewise.runtime.exchange import Move, Moves
from lanewise.runtime.memory import Need, bring, require_together
from lanewise.runtime.mesh import Mesh
from lanewise.support.errors import ArgumentError

REMEDY = "call it for parts of the sources one after the other, or take fewer parts"


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources as each part has them."""

    wholes: tuple[RecordArray, ...]
    brought: Brought


def all_sources(
    name: str,
    source: RecordArray,
    mesh: Mesh,
    reads: int,
    kind: str = "sources",
    *,
    follows: bool,
) -> Sources:
    """Memory of every device of a mesh for all sources, and what brings the fields that are read.

    reads: their bits. kind: what they are to the call. follows: whether they are the rows of its
    parts. Raises `DeviceError` where there is no room.
    """
    storage, devices = storage_of(source), tuple(dict.fromkeys(mesh.devices))
    layouts = {device: _layout_on(device, storage) for device in devices}
    what = f"all {kind} of {name}"
    leaves = storage.record.leaves
    needs = [
        Need(d, lies.arrange(leaves).nbytes(len(storage)), what) for d, lies in layouts.items()
    ]
    require_together(f"a call of {name} on a mesh", needs, REMEDY)
    rooms = {
        device: RecordArray(
            Storage.zeros(storage.record, len(storage), layout, device), class_of(source)
        )
        for device, layout in layouts.items()
    }
    wholes = tuple(rooms[device] for device in mesh.devices)
    moves = _bringing(name, storage, rooms, reads)
    part = "part" if kind == "sources" else f"{kind}, part"
    buffers = {f"{part} {n} of {name}": memory_of(p) for n, p in enumerate(_parts_of(source))}
    targets = {f"{kind} of {name} on {d}": memory_of(room) for d, room in rooms.items()}
    title = f"{kind} of {name}"
    law = RowsToAll(title, _row_bytes(storage, reads), None if follows else len(storage))
    exchange = Exchange(title, tuple(buffers), tuple(targets), moves, moves.nbytes, (law,))
    roles = {n: Buffer(n, Role.ARGUMENT) for n in buffers}
    roles |= {n: Buffer(n, Role.TEMPORARY, what=what) for n in targets}
    sequence = Sequence(exchange.name, roles, (exchange,))
    leases = tuple(get_device(d).lease(f"the {kind} of a bound call of {name}") for d in devices)
    bound = Bound(sequence, {**buffers, **targets}, exchange)
    return Sources(wholes, Brought(exchange, bound, leases))


def brought_together(name: str, one: Brought, other: Brought) -> Brought:
    """What two exchanges bring, as one."""
    exchanges = one.exchange, other.exchange
    sequences = one.bound.sequence, other.bound.sequence
    title = f"sources and targets of {name}"
    exchange = Exchange(
        title,
        tuple(n for e in exchanges for n in e.sources),
        tuple(n for e in exchanges for n in e.targets),
        partial(_run_each, exchanges),
        sum(e.nbytes for e in exchanges),
        tuple(law for e in exchanges for law in e.laws),
    )
    buffers = {n: b for s in sequences for n, b in s.buffers.items()}
    memory = {**one.bound.memory, **other.bound.memory}
    bound = Bound(Sequence(title, buffers, (exchange,)), memory, exchange)
    return Brought(exchange, bound, (*one.leases, *other.leases))


def _run_each(exchanges: tuple[Exchange, ...]) -> None:
    for exchange in exchanges:
        exchange.run()


def _layout_on(device: str, storage: Storage) -> Layout:
    """The layout of all sources. A part's targets may begin anywhere in them, which layouts with
    blocks do not allow; between GPUs columns are copied as they lie.
    """
    layout = packed(storage.layout)
    blocks = any(b.width > 1 for b in layout.arrange(storage.record.leaves).buffers)
    return SoA() if blocks or not get_device(device).target.host_memory else layout


def _parts_of(source: RecordArray) -> Iterator[RecordArray]:
    """The memory that sources lie in, each as its own array."""
    places = storage_of(source).places
    if isinstance(places, SplitRows):
        yield from (RecordArray(part, class_of(source)) for part in places.parts)
    else:
        yield source


@dataclass(frozen=True, slots=True)
class Gathering:
    """Columns of rows that lie in several processes, to rooms of the devices of this one."""

    rows: SplitRows
    rooms: tuple[Storage, ...]
    leaves: tuple[str, ...]

    @property
    def nbytes(self) -> int:
        """What is written."""
        columns = (room.places.column(leaf) for room in self.rooms for leaf in self.leaves)
        return sum(int(column.nbytes) for column in columns)

    def __call__(self) -> None:
        for leaf, column in self.rows.columns(self.leaves).items():
            for room in self.rooms:
                room.places.fill(leaf, bring(column, room.device))


def _bringing(
    name: str, storage: Storage, rooms: dict[str, RecordArray], reads: int
) -> Moves | Gathering:
    """What brings the fields that are read of all sources."""
    rows = split_rows(storage)
    if rows is None or not rows.mesh.everywhere:
        return Moves(tuple(_moves(name, storage, rooms, reads)))
    bits = bits_of(storage.record)
    read = (field for field in storage.record if bits[field.name] & reads)
    leaves = tuple(leaf for field in read for leaf in t.leaves(field.name, field.type))
    return Gathering(rows, tuple(map(storage_of, rooms.values())), leaves)


def _moves(
    name: str, storage: Storage, rooms: dict[str, RecordArray], reads: int
) -> Iterator[Move]:
    """The columns of each part that has rows, to the rooms of all devices."""
    places, bits = storage.places, bits_of(storage.record)
    parts = places.parts if isinstance(places, SplitRows) else (storage,)
    read = [field for field in storage.record if bits[field.name] & reads]
    first = 0
    for part in parts:
        rows = slice(first, first := first + len(part))
        if not len(part):
            continue
        for leaf in (leaf for field in read for leaf in t.leaves(field.name, field.type)):
            take = partial(_column, name, part, leaf, len(part))
            for device, room in rooms.items():
                column = storage_of(room).places.column(leaf)
                yield Move(part.device, take, device, column[rows])


def _row_bytes(storage: Storage, reads: int) -> int:
    """Of the fields of a row that are read."""
    bits = bits_of(storage.record)
    read = {field.name for field in storage.record if bits[field.name] & reads}
    return sum(leaf.type.size for leaf in storage.record.leaves if leaf.field in read)


def _column(name: str, part: Storage, leaf: str, count: int) -> Any:
    """A column of sources, as they are now."""
    if len(part) != count:
        raise ArgumentError(
            f"{name}: it was bound to {count:,} sources, which are {len(part):,} now; bind it anew"
        )
    return part.read.column(leaf)
