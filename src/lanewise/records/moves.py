"""Records moved between storages: copies of some, assigned, appended, left out, in another layout,
on another device.
"""

from __future__ import annotations

from typing import Any

from lanewise.layouts import Layout, packed
from lanewise.records.field_views import FieldViews
from lanewise.records.keys import Indices, Mask, Span, check_distinct, checked_mask, places_of_mask
from lanewise.records.placement import RecordPlacement
from lanewise.records.storage import Storage, copy_columns
from lanewise.records.two_sides import EVERY
from lanewise.runtime.memory import copy_whole

GROWTH = 1.5  # a full array that grows gets memory for that many times its records


def chosen(storage: Storage, key: Span | Indices | Mask) -> Storage:
    """Some records: a view of a span, a copy of others."""
    match key:
        case Span(start, step, count):
            return storage.cut(start, step, count)
        case Indices(indices):
            made = storage.alike(len(indices))
            storage.read.move(indices, made.written)
            return made
        case Mask(mask):
            kept = storage.read.staying(mask)
            made = storage.alike(kept.count)
            kept.move(made.written)
            return made


def as_span_or_places(storage: Storage, key: Span | Indices | Mask) -> Span | Indices:
    """The records that are assigned to, each once. Raises `ArgumentError` for one that comes
    twice.
    """
    name, count = storage.record.name, len(storage)
    if isinstance(key, Mask):
        return places_of_mask(name, key.values, count, storage.device)
    if isinstance(key, Indices):
        check_distinct(name, key)
    return key


def assign(storage: Storage, key: Span | Indices, values: Storage) -> None:
    """Some records become those of another storage."""
    source = values.read
    if isinstance(key, Span):
        copy_columns(storage.record, source, storage.cut(key.start, key.step, key.count).written)
        return
    to = storage.written
    for leaf in storage.record.leaves:
        to.put(leaf.name, key.indices, source.column(leaf.name))


def share_memory(one: RecordPlacement, other: RecordPlacement) -> bool:
    """Whether both lie, wherever, in a common allocation."""
    return any(a is b for a in one.memories for b in other.memories)


def apart(values: Storage, storage: Storage) -> Storage:
    """These records in other memory than that of a storage that is to change."""
    return own(values) if share_memory(values.places, storage.places) else values


# ------------------------------------------------------------ changes of length


def reserve(storage: Storage, capacity: int) -> None:
    """See `RecordArray.reserve`."""
    storage.check_own("reserve")
    if capacity > storage.capacity:
        grow(storage, capacity)


def grow(storage: Storage, capacity: int) -> None:
    """Have the records in other memory, for that many."""
    storage.lie(storage.allocated(capacity), capacity, len(storage), storage.read)


def append(storage: Storage, added: Storage) -> None:
    """See `RecordArray.append`."""
    before, more = len(storage), len(added)
    if not more:
        return
    # the memory may go, and lies in another order afterwards
    source = apart(added, storage).read
    if before + more > storage.capacity:
        reserve(storage, max(before + more, int(storage.capacity * GROWTH)))
    storage.side.read(EVERY)
    storage.lie(storage.memory.data, storage.capacity, before + more)
    copy_columns(storage.record, source, storage.cut(before, 1, more).written)


def compact(storage: Storage, mask: Any) -> int:
    """See `RecordArray.compact`."""
    storage.check_own("compact")
    count = len(storage)
    kept = storage.places.staying(checked_mask(storage.record.name, mask, count, storage.device))
    if kept.count == count:
        return kept.count
    storage.side.read(EVERY)
    storage.lie(storage.allocated(storage.capacity, zeroed=False), storage.capacity, kept.count)
    kept.move(storage.written)
    return kept.count


# ------------------------------------------------------------ copies of all


def relaid(storage: Storage, layout: Layout) -> Storage:
    """The same records in another layout, on the same device."""
    made = Storage.zeros(storage.record, len(storage), layout, storage.device)
    copy_columns(storage.record, storage.read, made.written)
    return made


def on_device(storage: Storage, device: str) -> Storage:
    """The same records on another device, or copied on their own: in their layout, without the gaps
    of a view and spare memory.
    """
    places, here = storage.places, storage.device
    if device != here and device == storage.device_of_other:
        return relaid(storage.other(), packed(storage.layout))
    whole = isinstance(places, FieldViews) and storage.whole is None
    if not whole or storage.capacity != places.count:
        own = relaid(storage, packed(storage.layout))
        return own if device == here else on_device(own, device)
    made = Storage.zeros(storage.record, places.count, storage.layout, device)
    copy_whole(made.memory.data, storage.read.memories[0])
    return made


def own(storage: Storage) -> Storage:
    """A copy, with as many sides."""
    made = on_device(storage, storage.device)
    made.leave_open_like(storage)
    if (layout := storage.layout_of_host) is not None:
        made.make_host(layout)
    return made
