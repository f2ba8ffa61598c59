"""The memory of a ragged array: its flat values with what lies behind them, and its offsets, in one
allocation until it grows.

Values that are no records lie as those of a record with one field, so that they have what records
have: a side on the host, loans, growth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from lanewise.language import types as t
from lanewise.language.record import Field, Record, RecordValue
from lanewise.language.values import WINDOW
from lanewise.layouts import AoS, Layout
from lanewise.records import moves
from lanewise.records.arrays import RecordArray, class_of, storage_of
from lanewise.records.field_views import FieldViews
from lanewise.records.storage import Storage
from lanewise.records.two_sides import EVERY
from lanewise.runtime.memory import allocate_pieces, on

# values after the last list of floats that are not numbers: what kernels read instead of a value
# outside of a list
PAD = WINDOW
LEVEL = "level {}"
FIXED = "those of a ragged array are as many as its lists have"


@dataclass(frozen=True, slots=True)
class FlatValues:
    """What all lists hold together, before it has its memory: values or records, and how many there
    are.
    """

    values: Any
    kind: Record | t.ValueType
    count: int


@cache
def record_of_values(kind: t.ValueType) -> Record:
    """The record that values lie as."""
    return Record(str(kind), (Field("values", kind),))


def spare(kind: Record | t.ValueType) -> int:
    """How many values there are after the last list: of integers and records none."""
    return PAD if not isinstance(kind, Record) and t.scalar_of(kind).is_float else 0


@dataclass(frozen=True, slots=True)
class FlatMemory:
    """All lists one after the other, in memory. array: the records, where they are some."""

    kind: Record | t.ValueType
    storage: Storage
    array: RecordArray | None

    @property
    def given(self) -> Any:
        """What users get: the records, or an array of the values."""
        return self.array if self.array is not None else self.storage.field(self._field)

    @property
    def _field(self) -> Field:
        return self.storage.record.fields[0]

    def part(self, first: int, last: int) -> Any:
        """Some of the values, or a dict with a view of each field of some of the records."""
        if self.array is None:
            return self.given[first:last]
        return {f.name: getattr(self.array, f.name)[first:last] for f in self.storage.record}

    def part_on_host(self, first: int, last: int) -> Any:
        """As `part`, in arrays of NumPy for reading at once."""
        found = {f.name: self.storage.on_host(f)[first:last] for f in self.storage.record}
        return found[self._field.name] if self.array is None else found

    @property
    def host(self) -> FlatMemory:
        """The same on the host's side, of which there is one."""
        array = None if self.array is None else self.array.host
        return FlatMemory(self.kind, self.storage.other(), array)

    def raw(self, side: Storage | None = None) -> Any:
        """The memory of the values with those after the last one, of shape (n,) or (n,
        components).
        """
        assert not isinstance(self.kind, Record)
        places = (side or self.storage).memory
        width = t.scalar_of(self.kind).size * len(t.leaves("", self.kind))
        data = places.data[: (places.count + spare(self.kind)) * width]
        return data.view(t.scalar_of(self.kind).dtype).reshape(-1, *t.shape_of(self.kind))

    def pad(self) -> None:
        """What lies after the last value is not a number, on either side."""
        if not spare(self.kind):
            return
        sides = self.storage.side.sides
        for side in (self.storage, None if sides is None else self.storage.other()):
            if side is not None:
                with on(side.device):
                    self.raw(side)[side.memory.count :] = np.nan

    def grow(self, flat: FlatValues) -> None:
        """Add values at the end. The memory grows by a half at least, so that many lists one by one
        cost as much as some copies of all.
        """
        storage, more = self.storage, flat.count
        count = len(storage)
        needed = count + more + spare(self.kind)
        if needed > storage.capacity:
            moves.grow(storage, max(needed, int(storage.capacity * moves.GROWTH)))
        if more:
            added = Storage.zeros(storage.record, more, storage.layout, storage.device)
            put(FlatMemory(self.kind, added, None), flat)
            moves.append(storage, added)
        self.pad()

    def empty(self) -> None:
        """Hold nothing: memory for no records is memory for one."""
        places = self.storage.memory
        self.storage.lie(places.data, self.storage.capacity, 0)


def host_layout_of(values: Any) -> Layout | None:
    """That of the host's side of records, where they have one."""
    return storage_of(values).layout_of_host if isinstance(values, RecordArray) else None


def allocated(
    flat: FlatValues, lengths: Sequence[int], device: str, like: Any, host: Layout | None
) -> tuple[FlatMemory, tuple[Any, ...], Any]:
    """The flat array, the offsets of each level, and the allocation, which holds anything.

    like: records whose layout and class those of the array have, where `flat` has none. host: the
    layout of a second side.
    """
    kind, source = flat.kind, flat.values if isinstance(flat.values, RecordArray) else like
    if isinstance(kind, Record):
        record, layout, count = kind, source.layout, max(1, flat.count)
        capacity = count
    else:
        record, layout, count = record_of_values(kind), AoS(), flat.count
        capacity = max(1, count + spare(kind))
    size = layout.arrange(record.leaves).nbytes(capacity)
    sizes = {"data": size, **{LEVEL.format(n): 8 * length for n, length in enumerate(lengths)}}
    pieces = allocate_pieces(device, sizes, f"lists with {flat.count:,} {record.name}")
    offsets = tuple(pieces[LEVEL.format(n)].view(np.int64) for n in range(len(lengths)))
    arrangement = layout.arrange(record.leaves)
    if capacity != count:
        arrangement = arrangement.at(arrangement.starts(capacity))
    views = FieldViews(pieces["data"], device, arrangement, count)
    storage = Storage(record, layout, views, capacity=capacity, fixed=FIXED)
    if host is not None:
        storage.make_host(host)
    array = RecordArray(storage, class_of(source)) if isinstance(kind, Record) else None
    return FlatMemory(kind, storage, array), offsets, pieces.whole


def put(data: FlatMemory, flat: FlatValues) -> None:
    """Put the values or records where they belong."""
    storage = data.storage
    if not isinstance(flat.kind, Record):
        storage.side.write(EVERY)
        with on(storage.device):
            storage.memory.strided(storage.record.fields[0])[...] = flat.values
    elif flat.count:
        array = RecordArray(storage, RecordValue) if data.array is None else data.array
        records = isinstance(flat.values, RecordArray)
        for f in flat.kind:
            name = f.name
            setattr(array, name, getattr(flat.values, name) if records else flat.values[name])
