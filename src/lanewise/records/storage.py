"""The storage of an array of records: where its records lie now, and what becomes of that.

Arrays index and convert; what they index is here: a placement, the memory that may grow, the other
side on the host, and the array that a view is a part of.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, NoReturn

import numpy as np

from lanewise.language.record import Field, Record
from lanewise.language.target import CPU, target_of
from lanewise.layouts import Arrangement, Layout, default_layout, packed, strided
from lanewise.records.field_views import FieldViews, in_one_memory
from lanewise.records.open_layout import OpenLayout
from lanewise.records.placement import RecordPlacement
from lanewise.records.two_sides import DEVICE, EVERY, HOST, MemorySide, on_host
from lanewise.runtime.memory import allocate
from lanewise.runtime.prepared import Places, host_views
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError

MOST_PARTS = 64  # kinds of parts of an allocation that an array remembers
OF_ANOTHER = "its memory belongs to another array; .copy() is an independent array"
OF_A_VIEW = "a view has the records that it was cut with; .copy() is an independent array"


class Storage:
    """Where the records of an array are.

    record, layout: what lies there, and how. placement: where, another one after every change in
    length. capacity: how many records there is memory for; of a view how many it has. fixed: why
    the length cannot be changed, if so. whole: of a view the storage that owns the memory, and
    where its records were. side: which side it is, if there are two; that of the whole for a view.
    host: the array of the host's side, once a caller has requested it. stands_for: of a copy that a
    kernel gets instead of an array: that array's. open: of an array whose layout kernels choose:
    what is open about it, and why it is as it is. before: of the rows of a part of a mesh how many
    the parts before it have.
    """

    __slots__ = (
        "__weakref__",
        "_parts",
        "before",
        "capacity",
        "fixed",
        "host",
        "layout",
        "open",
        "placement",
        "record",
        "side",
        "stands_for",
        "whole",
    )

    def __init__(
        self,
        record: Record,
        layout: Layout,
        placement: RecordPlacement,
        *,
        capacity: int | None = None,
        fixed: str = "",
        side: MemorySide | None = None,
        whole: tuple[Storage, RecordPlacement] | None = None,
    ) -> None:
        self.record, self.layout, self.placement = record, layout, placement
        self.capacity = placement.count if capacity is None else capacity
        self.fixed, self.whole, self.before = fixed, whole, 0
        self.side = MemorySide() if side is None else side
        self.host: Any = None
        self.stands_for: Storage | None = None
        self.open: OpenLayout | None = None
        self._parts: dict[int, tuple[Places, list[Any]]] = {}

    @classmethod
    def over(
        cls, record: Record, count: int, layout: Layout, device: str, data: Any, fixed: str = ""
    ) -> Storage:
        """`count` records in an allocation, which are there already."""
        views = FieldViews(data, device, layout.arrange(record.leaves), count)
        return cls(record, layout, views, fixed=fixed)

    @classmethod
    def zeros(cls, record: Record, count: int, layout: Layout, device: str) -> Storage:
        """Raises `DeviceError` when they do not fit the memory."""
        data = allocate(device, layout.arrange(record.leaves).nbytes(count), _what(record, count))
        return cls.over(record, count, layout, device, data)

    def alike(self, count: int) -> Storage:
        """As many zeros like these, without the gaps of a view."""
        made = Storage.zeros(self.record, count, packed(self.layout), self.placement.device)
        made.leave_open_like(self)
        return made

    def __len__(self) -> int:
        return self.placement.count

    # ------------------------------------------------------------ fields

    def field(self, field: Field) -> Any:
        """A field for the user: see `MemorySide.field`."""
        with self._staying():
            return self.side.field(self.record, self.places, field)

    @property
    def lent(self) -> Any:
        """The allocation, for users: as bytes, all of whose fields may be written to."""
        with self._staying():
            return self.side.memory(self.memory)

    def _staying(self) -> AbstractContextManager[Any]:
        """In the block, in which memory is handed out, no other thread moves the records."""
        left = self.owner.open
        if left is None or left.settled:
            return nullcontext()
        left.heed_graph()
        return left.lock

    def on_host(self, field: Field) -> Any:
        """A field as an array of NumPy, for reading at once: the memory is lent to no caller."""
        return on_host(self.side, self.record, self.places, field)

    # ------------------------------------------------------------ where the records are

    @property
    def places(self) -> RecordPlacement:
        """Whatever they hold. Raises `ArgumentError` for a view of what was changed in length."""
        if self.whole is not None:
            whole, seen = self.whole
            if whole.placement is not seen:
                raise ArgumentError(
                    f"this view was taken when its array of {self.record.name} had {seen.count:,} "
                    "records, and the array was changed in length since; take the view again"
                )
        return self.placement

    @property
    def read(self) -> RecordPlacement:
        """For a caller that reads them."""
        places = self.places
        self.side.read(EVERY)
        return places

    @property
    def written(self) -> RecordPlacement:
        """For a caller that changes some of them."""
        places = self.read
        self.side.write(EVERY)
        return places

    @property
    def memory(self) -> FieldViews:
        """In one memory. Raises `ArgumentError` where they lie in several."""
        places = self.places
        return places if isinstance(places, FieldViews) else self._refused(places)

    @property
    def regular(self) -> FieldViews:
        """As kernels ask for. Raises `ArgumentError` where they lie otherwise."""
        places = self.memory
        return places if places.is_regular else self._refused(places)

    def _refused(self, places: RecordPlacement) -> NoReturn:
        why = places.irregular(self.record.name, self.layout)
        raise ArgumentError(f"{why}; kernels run over a .copy() of it")

    @property
    def _arranged(self) -> Arrangement:
        return self.layout.arrange(self.record.leaves)

    @property
    def device(self) -> str:
        return self.placement.device

    @property
    def owner(self) -> Storage:
        """The storage that owns the memory: of a view the one that it was cut of."""
        return self if self.whole is None else self.whole[0]

    def progression(self) -> tuple[int, int]:
        """Where this begins in the storage that owns the memory, and its step, both counted in its
        records.
        """
        views, whole = in_one_memory(self.placement), in_one_memory(self.owner.placement)
        own = whole.arrangement.buffers[0]
        away = views.arrangement.starts(views.count)[0] - whole.arrangement.starts(whole.count)[0]
        step = views.arrangement.buffers[0].block // own.block * views.step
        return away // own.block * own.width + views.first, step

    def cut(self, start: int, step: int, count: int) -> Storage:
        """A view of some records."""
        with self._staying():
            return self._cut(start, step if count > 1 else 1, count)

    def _cut(self, start: int, step: int, count: int) -> Storage:
        places = self.places
        layout = self.layout
        if step > 1 and all(b.width == 1 for b in self._arranged.buffers):
            layout = strided(layout, step)
        part = Storage(
            self.record,
            layout,
            places.cut(start, step, count, layout.arrange(self.record.leaves)),
            fixed=OF_A_VIEW,
            side=self.side,
            whole=self.whole or (self, places),
        )
        if (left := self.owner.open) is not None:
            left.add_part(part)
        return part

    def parts_at(self, places: Places) -> list[Any]:
        """Parts of the allocation as numbers, on the host.

        Calls of kernels ask for the same ones again and again.
        """
        cached = self._parts.get(id(places))
        if cached is None or cached[0] is not places:
            if len(self._parts) >= MOST_PARTS:  # kernels come and go while an array lives
                self._parts.clear()
            views = host_views(in_one_memory(self.placement).data, places)
            cached = self._parts[id(places)] = (places, views)
        return cached[1]

    # ------------------------------------------------------------ changes of length

    def check_own(self, method: str) -> None:
        """Refuse to change the length of what is a view, or memory of others."""
        if self.fixed:
            raise ArgumentError(
                f"{method} changes the length of an array of {self.record.name}, and {self.fixed}"
            )

    def allocated(self, capacity: int, *, zeroed: bool = True) -> Any:
        """Memory for as many of these records."""
        nbytes = self._arranged.nbytes(capacity)
        return allocate(self.device, nbytes, _what(self.record, capacity), zeroed=zeroed)

    def lie(self, data: Any, capacity: int, count: int, old: RecordPlacement | None = None) -> None:
        """Have `count` records in an allocation for `capacity`; those of `old` are copied there."""
        arrangement = self._arranged
        if capacity != count:
            arrangement = arrangement.at(arrangement.starts(capacity))
        views = FieldViews(data, self.device, arrangement, count)
        if old is not None:
            copy_columns(self.record, old, views)
        self._move_to(views, capacity)
        if (sides := self.side.sides) is not None:
            other = sides.moved(self.side.number, views, capacity)
            if other is not None:
                other._move_to(sides.places[1 - self.side.number], capacity)

    def _move_to(self, views: FieldViews, capacity: int) -> None:
        self.placement, self.capacity, self._parts = views, capacity, {}
        if self.open is not None:
            self.open.forget_former()

    # ------------------------------------------------------------ a layout that kernels choose

    def leave_open(self) -> None:
        """Have the layout that kernels choose."""
        self.open = left = OpenLayout(self.device)
        self.side.asks = left.asks

    def leave_open_like(self, other: Storage) -> None:
        """Do so if no kernel has used yet what this is a copy of."""
        left = other.owner.open
        if left is not None and not left.decided:
            self.leave_open()

    def settle(self, why: str = "") -> None:
        """Keep the layout that this has, for good."""
        if self.open is not None and not self.open.settled:
            self.open.settle(why)
            self.side.asks = None

    def same_records(self, seen: RecordPlacement) -> bool:
        """Whether the records that lay there are these, also if they were moved to another layout
        since.
        """
        places = self.places
        left = self.owner.open
        return seen is places or (left is not None and left.was(seen))

    def lie_as(self, layout: Layout) -> None:
        """Move the records to another layout; views of them move along. What is late on this side
        stays so.

        Raises `DeviceError` where there is no memory for a copy; then they stay where they are.
        """
        left, before = self.open, self.memory
        assert left is not None
        assert self.whole is None
        parts = [(p, p.progression()) for p in left.parts if p.places_are(before)]
        arrangement, capacity = layout.arrange(self.record.leaves), self.capacity
        nbytes = arrangement.nbytes(capacity)
        data = allocate(self.device, nbytes, _what(self.record, capacity))
        if capacity != before.count:
            arrangement = arrangement.at(arrangement.starts(capacity))
        views = FieldViews(data, self.device, arrangement, before.count)
        copy_columns(self.record, before, views)
        self.layout, self.placement, self._parts = layout, views, {}
        if self.side.sides is not None:
            self.side.sides.relaid(self.side.number, views, layout)
        left.moved(before)
        for part, (start, step) in parts:
            left.moved(part.placement)
            part.follow(self, start, step)

    def places_are(self, places: RecordPlacement) -> bool:
        """Whether this is a view of what lies there."""
        return self.whole is not None and self.whole[1] is places

    def follow(self, whole: Storage, start: int, step: int) -> None:
        """Be the view of these records again, which lie elsewhere now."""
        count = self.placement.count
        again = whole.cut(start if count else 0, step if count > 1 else 1, count)
        self.layout, self.whole, self._parts = again.layout, again.whole, {}
        self.placement = again.placement

    # ------------------------------------------------------------ the side on the host

    @property
    def is_on_host(self) -> bool:
        """Whether this is the host's side, or needs none as it lies there."""
        if self.side.sides is None:
            return target_of(self.device).host_memory
        return self.side.number == HOST

    @property
    def device_of_other(self) -> str | None:
        """The device of the other side, if there is one."""
        sides = self.side.sides
        return None if sides is None else sides.places[1 - self.side.number].device

    @property
    def layout_of_host(self) -> Layout | None:
        """That of the host's side, where there is one next to this."""
        sides = self.side.sides
        return None if sides is None or self.side.number == HOST else sides.layouts[HOST]

    def make_host(self, layout: Layout | None = None) -> None:
        """Have a side on the host from now on, in the host's default layout or another one."""
        if self.fixed == OF_ANOTHER:
            raise ArgumentError(
                f"an array of {self.record.name} has one side where its memory is that of another "
                "array; .copy() is an independent array"
            )
        layouts = self.layout, layout or default_layout(self.record, CPU.name)
        sides = self.side.make_two(self.record, self.memory, self.capacity, layouts)
        sides.belongs(DEVICE, self)

    def other(self) -> Storage:
        """The other side, of which there is one; of a view the same part of it."""
        if self.whole is not None:
            start, step = self.progression()
            return self.whole[0].other().cut(start, step, self.placement.count)
        number, sides = 1 - self.side.number, self.side.sides
        assert sides is not None
        if (known := sides.storage(number)) is not None:
            return known
        made = Storage(
            self.record,
            sides.layouts[number],
            sides.places[number],
            capacity=self.capacity,
            fixed=self.fixed,
            side=MemorySide(number, sides),
        )
        sides.belongs(number, made)
        return made

    def drop_host(self) -> None:
        """Let the host's side go. An array of it that a caller holds becomes independent."""
        sides = self.side.sides
        if sides is None:
            return
        if self.side.number == HOST:
            raise ArgumentError(
                f"this is the host's side of an array of {self.record.name}; delete .host of that "
                "array"
            )
        sides.read(DEVICE, EVERY)
        self.host = None
        if (left := sides.storage(HOST)) is not None:
            sides.read(HOST, EVERY)
            left.side.forget()
            left.fixed = ""
        self.side.forget()


def copy_columns(record: Record, source: RecordPlacement, to: RecordPlacement) -> None:
    """All fields of as many records."""
    for leaf in record.leaves:
        to.fill(leaf.name, source.column(leaf.name))


def _what(record: Record, count: int) -> str:
    return f"{count:,} records of {record.name}"


def check_number(what: str, number: Any) -> int:
    """A number of records."""
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < 0:
        raise ArgumentError(f"{what} must be an integer from 0 on, found {shown(number)}")
    return int(number)
