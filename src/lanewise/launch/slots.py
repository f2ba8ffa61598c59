"""What each argument of a call has to be like for the call to be one like an earlier one."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Mapping, Sequence
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
from lanewise.records.arrays import RecordArray, places_of, side_of
from lanewise.runtime.memory import array_module
from lanewise.runtime.prepared import Template

EXACT = 2**53  # whole numbers up to here are floats
NOTHING: Mapping[str, Any] = MappingProxyType({})
_ALIGNED = 16  # bytes
_UNLIKE: Any = object()  # in place of a number: the way of a first call


class Given:
    """The arguments of a call: arrays by parameter, numbers by their IR names.

    template: its launches, where they are filled in but for results and other arrays than records. records: what is among the arguments
    and, until `complete` is called, not among the arrays; by name, with its position.
    """

    __slots__ = ("arguments", "arrays", "records", "template", "values")

    def __init__(self, arrays: dict[str, Any], values: dict[str, Any], template: Template | None = None) -> None:
        self.arrays, self.values, self.template = arrays, values, template
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


class SameRecords:
    """The very same array of records, which has not changed in length. reads: of its fields, which are brought up to date."""

    __slots__ = ("_places", "_seen", "name", "reads")

    def __init__(self, name: str, array: RecordArray, reads: int) -> None:
        self.name, self._seen, self._places = name, weakref.ref(array), weakref.ref(places_of(array))
        self.reads = reads

    def take(self, value: Any, matched: Given) -> bool:
        if (seen := self._seen()) is None or value is not seen or places_of(seen) is not self._places():
            return False
        if (side := side_of(value)).sides is not None:
            side.read(self.reads)
        matched.arrays[self.name] = value
        return True


class RecordSlot:
    """An array of the same record, layout, device and size, whose parts begin as far from where its memory does.

    reads: of its fields, which are brought up to date.
    """

    __slots__ = ("_layout", "_places", "_seen", "_size", "name", "reads")

    def __init__(self, name: str, array: RecordArray, reads: int) -> None:
        self.name, self._seen, self._places = name, weakref.ref(array), weakref.ref(places_of(array))
        self.reads = reads
        self._layout, self._size = array.layout, _size(array)

    def take(self, value: Any, matched: Given) -> bool:
        if (seen := self._seen()) is None or value is not seen or places_of(seen) is not self._places():
            if type(value) is not RecordArray or not places_of(value).is_regular:
                return False
            if _size(value) != self._size or value.layout != self._layout:
                return False
            self._seen, self._places = weakref.ref(value), weakref.ref(places_of(value))
        if (side := side_of(value)).sides is not None:
            side.read(self.reads)
        matched.arrays[self.name] = value
        return True


def _size(array: RecordArray) -> tuple[Any, ...]:
    """How many records of which kind are where, apart from the address of the memory."""
    places = places_of(array)
    return len(array), places.arrangement.pinned, array.record, array.device


class ArraySlot:
    """A contiguous array of the same library, type, shape and GPU, to which generated code may write."""

    __slots__ = ("_aligned", "_cls", "_dtype", "_gpu", "_seen", "_shape", "name")

    def __init__(self, name: str, array: Any) -> None:
        self.name, self._cls, self._dtype, self._shape = name, type(array), array.dtype, array.shape
        self._gpu = None if isinstance(array, np.ndarray) else array.data.device_id
        self._aligned = not isinstance(array, np.ndarray) and array.data.ptr % _ALIGNED == 0
        self._seen: Callable[[], Any] = _nothing

    def take(self, value: Any, matched: Given) -> bool:
        if type(value) is not self._cls or value.shape != self._shape or value.dtype != self._dtype:
            return False
        if self._gpu is None:
            flags = value.flags
            if not (flags.c_contiguous and flags.writeable):
                return False
        elif value is not self._seen():  # the memory of an array of CuPy stays what it was
            if not value.flags.c_contiguous or value.data.device_id != self._gpu:
                return False
            if self._aligned and value.data.ptr % _ALIGNED:  # kernels may read that many bytes at once
                return False
            self._seen = weakref.ref(value)
        matched.arrays[self.name] = value
        return True


def _nothing() -> None: ...


class SameSlot:
    """A number or a tuple of numbers, the same again, and of the same types: 4.0 is not 4."""

    __slots__ = ("_seen",)

    def __init__(self, value: Any) -> None:
        self._seen = _with_types(value)

    def take(self, value: Any, matched: Given) -> bool:
        return _with_types(value) == self._seen


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
            case np.ndarray() if value.ndim == 1 and value.dtype.kind in ("iu" if self._whole else "f"):
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
    signature: Signature, positional: tuple[Any, ...], named: Mapping[str, Any], arguments: Arguments,
    record_slot: Callable[[str, RecordArray, int], Slot] = RecordSlot, own: Mapping[str, Slot] = NOTHING,
    uses: Mapping[str, Uses] = NOTHING,
) -> tuple[Slot, ...] | None:  # fmt: skip
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
            slots.append(SameSlot(value))
            continue
        kind = signature.parameters[name]
        if isinstance(kind, Record):
            slots.append(record_slot(name, arguments.records[name], uses.get(name, ALL_USED).reads))
        elif name in arguments.uniforms:
            slots.append(ValueSlot(name, kind, host))
        elif type(value) is array_module(arguments.device).ndarray and arguments.unflattened.get(name) is value:
            slots.append(ArraySlot(name, value))
        else:
            return None
    return tuple(slots)
