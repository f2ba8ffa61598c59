"""The two sides of an array of records, on the device and on the host: copied field by field when
one reads what the other has changed.

Of every field at least one side is current; `late` says which side is not. Reading a field on a
side brings it there if it is late, and changing it makes it late on the other one. An array that
was handed out, such as `bodies.position` of CuPy, may be changed by its holder at any time. So it
borrows its memory through a loan: for as long as the loan lives, and once after that, the host's
side counts as late. Arrays that the host's side hands out are read-only.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import cache
from typing import Any

import numpy as np

from lanewise.language import types as t
from lanewise.language.record import Field, Record
from lanewise.language.target import CPU, target_of
from lanewise.layouts import Layout
from lanewise.profiling.copies import copying
from lanewise.records.field_views import FieldViews
from lanewise.records.placement import RecordPlacement
from lanewise.runtime.device import get_device
from lanewise.runtime.field_copies import field_copy
from lanewise.runtime.memory import allocate, allocate_beside, array_module, on, overlap, to_host
from lanewise.support.errors import ArgumentError

DEVICE, HOST = 0, 1
EVERY = -1  # field: all bits
DIRECTIONS = ("to device", "to host")


@cache
def bits_of(record: Record) -> Mapping[str, int]:
    """A bit for every field: sets of fields are integers."""
    return {field.name: 1 << number for number, field in enumerate(record)}


@cache
def bits_of_leaves(record: Record) -> Mapping[str, int]:
    """For every leaf the bit of its field."""
    bits = bits_of(record)
    return {leaf.name: bits[leaf.field] for leaf in record.leaves}


def bit_of(record: Record, name: str) -> int:
    """That of one field, without hashing the record: arrays ask for it whenever a field is read."""
    for number, field in enumerate(record.fields):
        if field.name == name:
            return 1 << number
    raise KeyError(name)


class MemorySide:
    """What an array of records and its views know of the other side, if there is one.

    Sets of fields are bits, see `bits_of`. followed: whether anybody has to hear of what is read
    and changed: the other side, or who follows the array. Where there are two sides, `Sides` tells
    of the changes of both. asks: says before a call like an earlier one whether that goes the way
    of a first call; None where no function has to be asked.
    """

    __slots__ = ("_lent", "_told", "asks", "followed", "number", "sides")

    def __init__(self, number: int = DEVICE, sides: Sides | None = None) -> None:
        self.number, self.sides, self.followed = number, sides, sides is not None
        self._told: Callable[[], None] | None = None
        self.asks: Callable[[], bool] | None = None
        self._lent: dict[int, weakref.ref[Any]] = {}  # the last loan of a set of fields

    # ------------------------------------------------------------ what kernels and methods say

    def read(self, fields: int) -> None:
        """Bring these fields up to date here, before they are read, or changed in part."""
        if self.sides is not None:
            self.sides.read(self.number, fields)

    def write(self, fields: int) -> None:
        """These fields are changed here. What is not replaced as a whole is read first."""
        if self.sides is not None:
            self.sides.write(self.number, fields)
        elif self._told is not None:
            self._told()

    def tell(self, told: Callable[[], None] | None) -> None:
        """Call this whenever anything is changed from now on, on either side; None for nothing."""
        self._told = told
        self._follow()
        if self.sides is not None:
            self.sides.told = told

    def _follow(self) -> None:
        self.followed = self._told is not None or self.sides is not None

    @property
    def told(self) -> Callable[[], None] | None:
        """See `tell`: what was told to this side or the other one."""
        return self._told if self.sides is None else self.sides.told

    @property
    def is_lent(self) -> bool:
        """Whether a caller has an array of its memory, and may change it without a word."""
        lent = self._lent if self.sides is None else self.sides.lent
        return any(loan() is not None for loan in lent.values())

    # ------------------------------------------------------------ what is handed out

    def field(self, record: Record, views: RecordPlacement, field: Field) -> Any:
        """A field for the user: a view that may be written to, on the host's side a read-only one;
        else a copy.
        """
        bit = bit_of(record, field.name)
        self.read(bit)
        if self.number == HOST:
            view = views.strided(field, memory=_frozen)
            advice = (
                f".{field.name} of the host's side is read-only, because writes to it cannot be "
                "tracked; assign the whole field, "
                f"array.host.{field.name} = values, or records: array.host[i].{field.name} = "
                "value, array.host[2:5] = records"
            )
            return views.gathered(field) if view is None else field_copy(view, advice)
        view = views.strided(field, memory=lambda data: self._loan(views.device, data, bit))
        return views.gathered(field) if view is None else view

    def memory(self, views: FieldViews) -> Any:
        """The allocation for the user, all of whose fields may be written to; on the host's side it
        is read-only.
        """
        self.read(EVERY)
        return (
            _frozen(views.data)
            if self.number == HOST
            else self._loan(views.device, views.data, EVERY)
        )

    def _loan(self, device: str, data: Any, fields: int) -> Any:
        """The allocation, through a loan: whatever is made of it keeps the loan alive."""
        last = self._lent.get(fields)
        leased, loan = get_device(device).lend(data, None if last is None else last())
        self._lent[fields] = weakref.ref(loan)
        self.write(fields)
        return leased

    def forget(self) -> None:
        """Have one side. Who was told to follow the other one does not follow this."""
        self.number, self.sides = DEVICE, None
        self._follow()

    def make_two(
        self, record: Record, places: FieldViews, capacity: int, layouts: tuple[Layout, Layout]
    ) -> Sides:
        """Have a host's side, which has nothing yet."""
        self.sides = Sides(record, places, capacity, layouts, self._lent)
        self._follow()
        self.sides.told = self._told
        return self.sides


def _frozen(data: Any) -> Any:
    """The same bytes as an array that nothing can make writable."""
    return np.frombuffer(memoryview(data).toreadonly(), np.uint8)


class Sides:
    """Both sides of an array: where its records are on each, and which fields are late there.

    Storages hold it, not the other way round: memory of a GPU is free as soon as the last of them
    is gone. lent: the loans of the device's side. told: see `MemorySide.tell`.
    """

    __slots__ = (
        "_always",
        "_bits",
        "_device",
        "_record",
        "_storages",
        "capacity",
        "every",
        "late",
        "layouts",
        "lent",
        "places",
        "told",
    )

    def __init__(
        self,
        record: Record,
        places: FieldViews,
        capacity: int,
        layouts: tuple[Layout, Layout],
        lent: dict[int, weakref.ref[Any]],
    ) -> None:
        self._record, self._bits, self.layouts, self.lent = record, bits_of(record), layouts, lent
        self.told: Callable[[], None] | None = None
        self.every = (1 << len(record.fields)) - 1
        self._device = get_device(places.device)
        self._always = 0  # fields that a captured graph may change whenever it is launched
        self._storages: list[weakref.ref[Any] | None] = [None, None]
        self.capacity = capacity
        self.late = [0, self.every]
        self.places = [
            places,
            self._laid(HOST, self._allocated(HOST, capacity), capacity, places.count),
        ]

    # ------------------------------------------------------------ reading and writing

    def read(self, side: int, fields: int) -> None:
        """See `MemorySide.read`."""
        if late := fields & self.late[side]:
            self._bring(side, late)

    def write(self, side: int, fields: int) -> None:
        """See `MemorySide.write`."""
        fields &= self.every
        self.late[side] &= ~fields
        self.late[1 - side] |= fields
        if fields and side == DEVICE and self._device.is_capturing():
            self._always |= fields
        if self.told is not None:
            self.told()

    def _bring(self, side: int, late: int) -> None:
        to, source = self.places[side], self.places[1 - side]
        if self._device.is_capturing():
            names = ", ".join(name for name, bit in self._bits.items() if late & bit)
            raise ArgumentError(
                f"{self._record.name}: {names} would be copied {DIRECTIONS[side]} while a graph is "
                "captured, which would do so in every "
                "launch; read the field on that side before the capture begins"
            )
        for field in self._record:
            if late & (bit := self._bits[field.name]):
                with copying(
                    self._record.name, field.name, DIRECTIONS[side], nbytes_of(field, to.count)
                ):
                    move(field, source, to)
                self.late[side] &= ~bit
                self.late[HOST] |= bit & self._open()

    def _open(self) -> int:
        """The fields that a caller may change on the device without a word."""
        fields = self._always
        for lent, loan in self.lent.items():
            if loan() is not None:
                fields |= lent
        return fields

    # ------------------------------------------------------------ the storages of both sides

    def storage(self, side: int) -> Any:
        """The storage of that side, where there is one."""
        known = self._storages[side]
        return None if known is None else known()

    def belongs(self, side: int, storage: Any) -> None:
        """That is the storage of that side. It is not kept alive."""
        self._storages[side] = weakref.ref(storage)

    def moved(self, side: int, places: FieldViews, capacity: int) -> Any:
        """All records of one side lie elsewhere, or are others; the other side gets memory for as
        many, and is late.

        Returns the storage of the other side, which is to lie at `places`, or None where nothing
        has it.
        """
        other = 1 - side
        data = (
            self.places[other].data
            if capacity == self.capacity
            else self._allocated(other, capacity)
        )
        self.capacity, self.places[side] = capacity, places
        self.places[other] = self._laid(other, data, capacity, places.count)
        self.late[side], self.late[other] = 0, self.every
        return self.storage(other)

    def relaid(self, side: int, places: FieldViews, layout: Layout) -> None:
        """The records of one side were moved to another layout; both sides have what they had."""
        layouts = [*self.layouts]
        layouts[side], self.places[side] = layout, places
        self.layouts = layouts[DEVICE], layouts[HOST]

    def _laid(self, side: int, data: Any, capacity: int, count: int) -> FieldViews:
        arrangement = self.layouts[side].arrange(self._record.leaves)
        if capacity != count:
            arrangement = arrangement.at(arrangement.starts(capacity))
        return FieldViews(
            data, CPU.name if side == HOST else self.places[DEVICE].device, arrangement, count
        )

    def _allocated(self, side: int, capacity: int) -> Any:
        nbytes = self.layouts[side].arrange(self._record.leaves).nbytes(capacity)
        what = f"the host's side of {capacity:,} records of {self._record.name}"
        if side == DEVICE:
            return allocate(
                self.places[DEVICE].device, nbytes, f"{capacity:,} records of {self._record.name}"
            )
        return allocate_beside(self._device.name, nbytes, what)


def nbytes_of(field: Field, count: int) -> int:
    """The bytes of a field of so many records, without what lies between them."""
    return count * t.scalar_of(field.type).size * len(t.leaves(field.name, field.type))


def move(field: Field, source: FieldViews, to: FieldViews) -> None:
    """Copy a field of all records to other memory, in another layout, on another device.

    It is there when this returns.
    """
    if not to.count:
        return
    for leaf in t.leaves(field.name, field.type):
        match target_of(source.device).host_memory, target_of(to.device).host_memory:
            case False, True:
                _down(leaf, source, to)
            case True, False:
                _up(leaf, source, to)
            case _:
                to.fill(leaf, source.column(leaf))


def _down(leaf: str, source: FieldViews, to: FieldViews) -> None:
    """One transfer: records that are apart on the device are gathered there first, and spread on
    the host afterwards.
    """
    column = to.column(leaf)
    with on(source.device):
        values = array_module(source.device).ascontiguousarray(source.column(leaf))
        if column.flags.c_contiguous and np.may_share_memory(column, to.data):
            values.get(out=column)
        else:
            to.fill(leaf, values.get())


def _up(leaf: str, source: FieldViews, to: FieldViews) -> None:
    values = np.ascontiguousarray(source.column(leaf))
    with on(to.device):
        column = to.column(leaf)
        if column.flags.c_contiguous and overlap(column, to.data):
            stream = array_module(to.device).cuda.get_current_stream()
            column.set(values, stream)  # after the kernels that may still read it
            stream.synchronize()
        else:
            to.fill(leaf, array_module(to.device).asarray(values))


def on_host(side: MemorySide, record: Record, views: RecordPlacement, field: Field) -> Any:
    """A field as an array on the host, for reading at once: no loan is given, and the other side
    stays as it is.
    """
    bit = bit_of(record, field.name)
    side.read(bit)
    view = views.strided(field)
    counted = not target_of(views.device).host_memory and side.sides is not None
    with (
        copying(record.name, field.name, DIRECTIONS[HOST], nbytes_of(field, views.count))
        if counted
        else nullcontext()
    ):
        return to_host(views.gathered(field) if view is None else view)
