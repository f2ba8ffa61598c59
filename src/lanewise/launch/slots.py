"""What each argument of a call has to be like for the call to be one like an earlier one."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from lanewise.frontend.function import Signature
from lanewise.language import types as t
from lanewise.language.record import Record
from lanewise.language.target import CPU, target_of
from lanewise.language.vectors import VectorValue
from lanewise.launch.arguments import Arguments
from lanewise.launch.support import ALL_USED, Uses
from lanewise.records.arrays import RecordArray
from lanewise.records.binding import places_of, side_of
from lanewise.runtime.memory import array_module

EXACT = 2**53  # integers up to here are floats
NOTHING: Mapping[str, Any] = MappingProxyType({})
_ALIGNED = 16  # bytes
MOST_SEEN = 64  # arrays of CuPy that a slot knows, as they come in turn
_UNLIKE: Any = object()  # instead of a number: the way of a first call


class Given:
    """The arguments of a call: arrays by parameter, numbers by their IR names, and in `sizes` how
    large they are, in their order.

    sized: what is launched, where it is filled in but for results and other arrays than records.
    records: what is among the arguments and, until `complete` is called, not among the arrays; by
    name, with its position. asks: whether arrays that leave their layout open may send a call the
    way of a first one.
    """

    __slots__ = ("arguments", "arrays", "asks", "records", "sized", "sizes", "values")

    def __init__(
        self,
        arrays: dict[str, Any],
        values: dict[str, Any],
        sized: Any = None,
        *,
        asks: bool = True,
    ) -> None:
        self.arrays, self.values, self.sized, self.asks = arrays, values, sized, asks
        self.sizes: list[Any] = []
        self.records: tuple[tuple[str, int], ...] = ()
        self.arguments: tuple[Any, ...] = ()

    def complete(self) -> dict[str, Any]:
        """All arrays by parameter."""
        for name, position in self.records:
            self.arrays[name] = self.arguments[position]
        return self.arrays


class Slot(Protocol):
    """What one argument has to be like."""

    def take(self, value: Any, matched: Given) -> bool: ...


def sizes_of(slots: Iterable[tuple[Slot, Any]]) -> tuple[Any, ...]:
    """How large arguments are that their slots take."""
    seen = Given({}, {}, asks=False)
    for slot, value in slots:
        slot.take(value, seen)
    return tuple(seen.sizes)


class SameRecords:
    """The very same array of records, which has not changed in length. reads: of its fields, which
    are brought up to date.
    """

    __slots__ = ("_places", "_seen", "name", "reads")

    def __init__(self, name: str, array: RecordArray, reads: int) -> None:
        self.name = name
        self._seen = weakref.ref(array)
        self._places = weakref.ref(places_of(array))
        self.reads = reads

    def take(self, value: Any, matched: Given) -> bool:
        if (
            (seen := self._seen()) is None
            or value is not seen
            or places_of(seen) is not self._places()
        ):
            return False
        side = side_of(value)
        if side.asks is not None and matched.asks and side.asks():
            return False
        if side.followed:
            side.read(self.reads)
        matched.arrays[self.name] = value
        return True


class RecordSlot:
    """An array of the same record, layout and device, of any size.

    reads: of its fields, which are brought up to date.
    """

    __slots__ = ("_device", "_layout", "_record", "_seen", "name", "reads")

    def __init__(self, name: str, array: RecordArray, reads: int) -> None:
        self.name, self.reads = name, reads
        self._layout, self._record, self._device = array.layout, array.record, array.device
        self._seen = weakref.ref(array), weakref.ref(places_of(array)), _size(array)

    def take(self, value: Any, matched: Given) -> bool:
        seen, places, size = self._seen  # at once: other threads may put another array there
        if (
            value is not seen()
            or type(value) is not RecordArray
            or places_of(value) is not places()
        ):
            if type(value) is not RecordArray or not places_of(value).is_regular:
                return False
            if (
                value.record != self._record
                or value.layout != self._layout
                or value.device != self._device
            ):
                return False
            size = _size(value)
            self._seen = weakref.ref(value), weakref.ref(places_of(value)), size
        side = side_of(value)
        if side.asks is not None and matched.asks and side.asks():
            return False
        if side.followed:
            side.read(self.reads)
        matched.sizes.append(size)
        matched.arrays[self.name] = value
        return True


def _size(array: RecordArray) -> Any:
    """How many records there are; of a part of an array also where it begins in its memory."""
    places = places_of(array)
    pinned = places.arrangement.pinned
    return (places.count, pinned) if pinned else places.count


class ArraySlot:
    """A contiguous array of the same library, type, number of axes and GPU, to which generated code
    may write.

    fixed: how many of its last axes are as long as they were: that of a vector's components.
    """

    __slots__ = ("_aligned", "_axes", "_cls", "_dtype", "_fixed", "_gpu", "_seen", "_shape", "name")

    def __init__(self, name: str, array: Any, fixed: int = 0) -> None:
        self.name, self._cls, self._dtype = name, type(array), array.dtype
        self._axes, self._fixed = array.ndim, array.shape[array.ndim - fixed :]
        self._shape = array.shape  # the last one
        self._gpu = None if isinstance(array, np.ndarray) else array.data.device_id
        self._aligned = not isinstance(array, np.ndarray) and array.data.ptr % _ALIGNED == 0
        self._seen: dict[int, Callable[[], Any]] = {}

    def take(self, value: Any, matched: Given) -> bool:
        if type(value) is not self._cls or value.dtype != self._dtype:
            return False
        shape = value.shape
        if shape != self._shape:
            fixed = self._fixed
            if len(shape) != self._axes or (fixed and shape[-len(fixed) :] != fixed):
                return False
            self._shape = shape
        if self._gpu is None:
            flags = value.flags
            if not (flags.c_contiguous and flags.writeable):
                return False
        # the memory of an array of CuPy stays what it was
        elif (seen := self._seen.get(id(value))) is None or seen() is not value:
            if not value.flags.c_contiguous or value.data.device_id != self._gpu:
                return False
            # kernels may read that many bytes at once
            if self._aligned and value.data.ptr % _ALIGNED:
                return False
            if len(self._seen) >= MOST_SEEN:
                self._seen.clear()
            self._seen[id(value)] = weakref.ref(value)
        matched.sizes.append(shape)
        matched.arrays[self.name] = value
        return True


class SizeSlot:
    """A number or a tuple of numbers by which calls differ in size: 4.0 is not 4."""

    __slots__ = ()

    def take(self, value: Any, matched: Given) -> bool:
        matched.sizes.append(_with_types(value))
        return True


def _with_types(value: Any) -> tuple[Any, ...]:
    if type(value) not in (tuple, list):
        return type(value), value
    items: tuple[Any, ...] = tuple(value)
    return (type(value), items, *map(type, items))


class ValueSlot:
    """A uniform argument, or the components of one."""

    __slots__ = ("_leaves", "_number", "_vector", "_whole")

    def __init__(self, name: str, kind: t.ValueType, host: bool) -> None:
        self._leaves, self._vector = t.leaves(name, kind), isinstance(kind, t.Vector)
        self._number, self._whole = _number(t.scalar_of(kind), host), not t.scalar_of(kind).is_float

    @property
    def leaves(self) -> Sequence[str]:
        """The names of its numbers in the IR."""
        return self._leaves

    def take(self, value: Any, matched: Given) -> bool:
        parts = self._parts(value) if self._vector else (value,)
        if parts is None or len(parts) != len(self._leaves):
            return False
        for leaf, part in zip(self._leaves, parts, strict=True):
            number = self._number(part)
            if number is _UNLIKE:
                return False
            matched.values[leaf] = number
        return True

    def _parts(self, value: Any) -> Sequence[Any] | None:
        match value:
            case VectorValue() | tuple() | list():
                return tuple(value)
            case np.ndarray() if value.ndim == 1 and value.dtype.kind in (
                "iu" if self._whole else "f"
            ):
                return value.tolist()
            case _:
                return None


def _number(kind: t.Scalar, host: bool) -> Callable[[Any], Any]:
    """What makes a number of this type of an argument that surely fits it, as `converted` would."""
    own = kind.dtype.type
    if kind.is_float:
        most = float(np.finfo(kind.dtype.name).max)

        def real(x: Any) -> Any:
            cls = type(x)
            if cls is own:
                return x
            if cls is np.float32:
                x, cls = float(x), float
            if cls is float or cls is np.float64:
                return own(x) if -most <= x <= most or not math.isfinite(x) else _UNLIKE
            return own(x) if (cls is int or cls is np.int64) and -EXACT <= x <= EXACT else _UNLIKE

        return real
    if kind == t.BOOL:
        return lambda x: own(x) if type(x) in (bool, own) else _UNLIKE
    low, high = (int(x) for x in t.limits(kind))

    def whole(x: Any) -> Any:
        if type(x) is own or (type(x) in (int, np.int64, np.int32) and low <= x <= high):
            return int(x) if host else own(x)
        return _UNLIKE

    return whole


def slots_of(
    signature: Signature,
    positional: tuple[Any, ...],
    named: Mapping[str, Any],
    arguments: Arguments,
    record_slot: Callable[[str, RecordArray, int], Slot] = RecordSlot,
    own: Mapping[str, Slot] = NOTHING,
    uses: Mapping[str, Uses] = NOTHING,
) -> tuple[Slot, ...] | None:
    """What arguments like these are; None where one was converted, and would have to be each time.

    own: slots of the pattern's. uses: of records.
    """
    host = target_of(arguments.device) is CPU
    names = [*signature.names[: len(positional)], *named]
    slots: list[Slot] = []
    for name, value in zip(names, (*positional, *named.values()), strict=True):
        if name in own:
            slots.append(own[name])
            continue
        if name in signature.arrays:  # never converted
            slots.append(ArraySlot(name, value))
            continue
        if name in signature.asked:
            slots.append(SizeSlot())
            continue
        kind = signature.parameters[name]
        if isinstance(kind, Record):
            slots.append(record_slot(name, arguments.records[name], uses.get(name, ALL_USED).reads))
        elif name in arguments.uniforms:
            slots.append(ValueSlot(name, kind, host))
        elif (
            type(value) is array_module(arguments.device).ndarray
            and arguments.unflattened.get(name) is value
        ):
            slots.append(ArraySlot(name, value, isinstance(kind, t.Vector)))
        else:
            return None
    return tuple(slots)
