"""Calls like an earlier one: what was checked, chosen and bound for it holds, and only addresses and numbers are new.

A call is like another one when its records, layouts, devices, sizes and types are the same. Whatever is not recognised here takes the
way of a first call, which also says what is wrong with it.
"""

from __future__ import annotations

import itertools
import math
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from lanewise import types as t
from lanewise.arrays import RecordArray, are_same, places_of, side_of
from lanewise.frontend.function import Signature
from lanewise.launch.arguments import (
    Arguments,
    device_without_records,
    flatten_uniforms,
    make_outputs,
    shape_of_result,
)
from lanewise.launch.result_memory import check_beside_records, check_in_place
from lanewise.launch.support import ALL_USED, Uses
from lanewise.launch.tuned_plans import store_enabled
from lanewise.record import Record
from lanewise.runtime.memory import array_module, overlap
from lanewise.runtime.prepared import ArrayPlace, Prepared
from lanewise.target import CPU, is_gpu, target_of
from lanewise.vectors import VectorValue

MOST = 8  # kinds of calls that a kernel remembers
EXACT = 2**53  # whole numbers up to here are floats
NOTHING: Mapping[str, Any] = MappingProxyType({})
_ALIGNED = 16  # bytes
_UNLIKE: Any = object()  # in place of a number: the way of a first call


class Given:
    """The arguments of a call: arrays by parameter, numbers by their IR names."""

    __slots__ = ("arrays", "values")

    def __init__(self) -> None:
        self.arrays: dict[str, Any] = {}
        self.values: dict[str, Any] = {}


class Slot(Protocol):
    """What one argument has to be like."""

    def take(self, value: Any, matched: Given) -> bool: ...


class SameRecords:
    """The very same array of records, which has not changed in length. reads: of its fields, which are brought up to date."""

    __slots__ = ("_name", "_places", "_reads", "_seen")

    def __init__(self, name: str, array: RecordArray, reads: int) -> None:
        self._name, self._seen, self._places = name, weakref.ref(array), weakref.ref(places_of(array))
        self._reads = reads

    def take(self, value: Any, matched: Given) -> bool:
        if (seen := self._seen()) is None or value is not seen or places_of(seen) is not self._places():
            return False
        if (side := side_of(value)).sides is not None:
            side.read(self._reads)
        matched.arrays[self._name] = value
        return True


class RecordSlot:
    """An array of the same record, layout, device and size, whose parts begin as far from where its memory does.

    reads: of its fields, which are brought up to date.
    """

    __slots__ = ("_layout", "_name", "_places", "_reads", "_seen", "_size")

    def __init__(self, name: str, array: RecordArray, reads: int) -> None:
        self._name, self._seen, self._places = name, weakref.ref(array), weakref.ref(places_of(array))
        self._reads = reads
        self._layout, self._size = array.layout, _size(array)

    def take(self, value: Any, matched: Given) -> bool:
        if (seen := self._seen()) is None or value is not seen or places_of(seen) is not self._places():
            if type(value) is not RecordArray or not places_of(value).is_regular:
                return False
            if _size(value) != self._size or value.layout != self._layout:
                return False
            self._seen, self._places = weakref.ref(value), weakref.ref(places_of(value))
        if (side := side_of(value)).sides is not None:
            side.read(self._reads)
        matched.arrays[self._name] = value
        return True


def _size(array: RecordArray) -> tuple[Any, ...]:
    """How many records of which kind are where, apart from the address of the memory."""
    places = places_of(array)
    return len(array), places.arrangement.pinned, array.record, array.device


class ArraySlot:
    """A contiguous array of the same library, type, shape and GPU, to which generated code may write."""

    __slots__ = ("_aligned", "_cls", "_dtype", "_gpu", "_shape", "name")

    def __init__(self, name: str, array: Any) -> None:
        self.name, self._cls, self._dtype, self._shape = name, type(array), array.dtype, array.shape
        self._gpu = None if isinstance(array, np.ndarray) else array.data.device_id
        self._aligned = not isinstance(array, np.ndarray) and array.data.ptr % _ALIGNED == 0

    def take(self, value: Any, matched: Given) -> bool:
        if type(value) is not self._cls or value.shape != self._shape or value.dtype != self._dtype:
            return False
        flags = value.flags
        if not flags.c_contiguous:
            return False
        if not flags.writeable if self._gpu is None else value.data.device_id != self._gpu:
            return False
        if self._aligned and value.data.ptr % _ALIGNED:  # kernels may read that many bytes at once
            return False
        matched.arrays[self.name] = value
        return True


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


@dataclass(frozen=True, slots=True)
class Result:
    """An array that a call makes: its name in the kernel, its type, how many elements it has, and their axes if there are several."""

    name: str
    kind: t.ValueType
    count: int
    axes: tuple[int, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        shape, _ = shape_of_result(self.kind, self.count, self.axes)
        return shape


@dataclass(frozen=True, slots=True)
class Repeats:
    """What calls like one have to be like besides.

    device_of: where one would run now. apart: arrays that share no memory, pair by pair. holds: whether what was proved of a call is so
    for other values.
    """

    device_of: Callable[[], str]
    apart: tuple[tuple[str, str], ...]
    holds: Callable[[Mapping[str, Any]], bool] | None = None


Around = Callable[[dict[str, Any], Callable[[], None]], None]
"""Runs a launch with what else a call does. The arrays by name may be changed: the launch takes those that are there then."""


class Launchable(Protocol):
    """Launches that wait for arrays and values: `runtime.prepared.Template` is one."""

    def launch(
        self, views: Callable[[str, tuple[ArrayPlace, ...]], Sequence[Any]], values: Mapping[str, Any], /
    ) -> None: ...


class Repeatable:
    """A call that can be made again."""

    __slots__ = (
        "_apart", "_around", "_changed", "_device", "_from", "_holds", "_identical", "_kernel", "_made", "_module", "_named", "_own_only",
        "_results", "_several", "_slots", "_template", "_uses", "_values", "_views",
    )  # fmt: skip

    def __init__(
        self, kernel: str, named: tuple[str, ...], slots: tuple[Slot, ...], device: str, template: Launchable, results: Sequence[Result],
        *, device_of: Callable[[], str] | None = None, identical: tuple[str, str, bool] | None = None,
        holds: Callable[[Mapping[str, Any]], bool] | None = None, apart: tuple[tuple[str, str], ...] = (),
        uses: Mapping[str, Uses] = NOTHING, own_only: bool = False, around: Around | None = None,
    ) -> None:  # fmt: skip
        """named: the keyword arguments, in their order; the others are positional.

        device_of: where a call like this runs, if no record says it. identical: the two parameters whose arrays are one, or are two.
        holds: whether what was proved for the values of a call holds for these, too. apart: pairs of arrays that share no memory.
        uses: of records. own_only: whether an element reads no fields but its own. around: what a run does besides its launches.
        """
        self._around = around
        self._uses, self._own_only = uses, own_only
        self._changed = tuple((n, u.writes) for n, u in uses.items() if u.writes)
        self._kernel, self._named, self._slots, self._device, self._template = kernel, named, slots, device, template
        self._apart, self._values = apart, tuple(s.name for s in slots if type(s) is ArraySlot)
        # Arrays of records that may be others than before; the very same ones share what they shared when a first call took them.
        self._several = sum(type(s) not in (ArraySlot, SameSlot, ValueSlot, SameRecords) for s in slots) > 1
        self._results, self._from, self._identical, self._holds = results, device_of, identical, holds
        self._module, self._views = array_module(device), _on_gpu if is_gpu(device) else _on_host
        self._made = tuple((r.name, r.shape, shape_of_result(r.kind, r.count)[1]) for r in results)

    @property
    def axes(self) -> tuple[int, ...]:
        """Of the elements of its results."""
        return self._results[0].axes

    def match(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Given | None:
        """The arguments of a call like this one; None for another one."""
        if named:
            if tuple(named) != self._named:
                return None
            arguments = (*arguments, *named.values())
        elif self._named:
            return None
        if len(arguments) != len(self._slots) or (self._from is not None and self._from() != self._device):
            return None
        matched = Given()
        for slot, value in zip(self._slots, arguments, strict=True):
            if not slot.take(value, matched):
                return None
        if self._identical is not None:
            first, second, same = self._identical
            if are_same(matched.arrays[first], matched.arrays[second]) is not same:
                return None
        if self._several and _share(matched.arrays):
            return None
        if self._apart and any(overlap(*(_memory(matched.arrays[n]) for n in pair)) for pair in self._apart):
            return None
        return matched if self._holds is None or self._holds(matched.values) else None

    def run(self, matched: Given, out: Any) -> tuple[Any, ...]:
        """The results, new or those of `out`."""
        arrays = matched.arrays
        if out is None:
            results = [self._module.empty(shape, dtype) for _, shape, dtype in self._made]
        else:
            count, axes = (self._results[0].count, self._results[0].axes) if self._results else (0, ())
            results = make_outputs(self._kernel, [r.kind for r in self._results], count, self._device, out, axes)
            check_in_place(self._kernel, results, arrays, self._values)
            check_beside_records(self._kernel, results, arrays, self._uses, own_only=self._own_only)
        for (name, _, _), array in zip(self._made, results, strict=True):
            arrays[name] = array
        for name, fields in self._changed:
            if (side := side_of(arrays[name])).sides is not None:
                side.write(fields)
        views = partial(self._views, arrays)
        if self._around is None:
            self._template.launch(views, matched.values)
        else:
            self._around(arrays, partial(self._template.launch, views, matched.values))
        return tuple(results)


def _memory(array: Any) -> Any:
    return places_of(array).data if type(array) is RecordArray else array


def views_of(arrays: Mapping[str, Any], device: str) -> Callable[[str, tuple[ArrayPlace, ...]], Sequence[Any]]:
    """What a template asks for: the arguments of launches for the places of these arrays."""
    return partial(_on_gpu if is_gpu(device) else _on_host, arrays)


def _on_gpu(arrays: Mapping[str, Any], name: str, places: tuple[ArrayPlace, ...]) -> list[Any]:
    array = arrays[name]
    base = (places_of(array).data if type(array) is RecordArray else array).data.ptr
    return [base + place.offset for place in places]


def _on_host(arrays: Mapping[str, Any], name: str, places: tuple[ArrayPlace, ...]) -> list[Any]:
    array = arrays[name]
    if type(array) is not RecordArray:
        return [array if array.ndim == 1 else array.reshape(-1)]  # of one type, in one buffer
    return array._parts_at(places)  # pyright: ignore[reportPrivateUsage]


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


def _both(
    one: Callable[[Mapping[str, Any]], bool] | None, other: Callable[[Mapping[str, Any]], bool] | None
) -> Callable[[Mapping[str, Any]], bool] | None:
    if one is None or other is None:
        return one or other
    return lambda values: one(values) and other(values)


def _share(arrays: Mapping[str, Any]) -> bool:
    """Whether some of the records are different parts of one array: then a first call says what is right."""
    records = [a for a in arrays.values() if type(a) is RecordArray]
    if len(records) == 2 and records[0] is records[1]:
        return False
    return any(
        places_of(a).data is places_of(b).data and not are_same(a, b) for a, b in itertools.combinations(records, 2)
    )


class Repeated:
    """The calls of one kernel that can be made again, the last one first."""

    __slots__ = ("_entries", "_tuned")

    def __init__(self) -> None:
        self._entries: tuple[Repeatable, ...] = ()
        self._tuned = True

    def find(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Repeatable, Given] | None:
        """A call like this one, and its arguments."""
        if self._tuned is not (tuned := store_enabled()):
            self._entries, self._tuned = (), tuned
        for entry in self._entries:
            if (matched := entry.match(arguments, named)) is not None:
                return entry, matched
        return None

    def remember(
        self, signature: Signature, positional: tuple[Any, ...], named: Mapping[str, Any], arguments: Arguments, launch: Any,
        results: Sequence[Result], *, identical: tuple[str, str, bool] | None = None,
        holds: Callable[[Mapping[str, Any]], bool] | None = None, own: Mapping[str, Slot] = NOTHING,
        besides: Repeats | None = None, uses: Mapping[str, Uses] = NOTHING, own_only: bool = False, around: Around | None = None,
    ) -> None:  # fmt: skip
        """Keep a call for those like it, where they can be recognised and bound by addresses and numbers alone.

        own: slots of arguments that a pattern makes arrays of, which they bring along under the names in `arguments.added`.
        uses: of records.
        """
        slots = slots_of(signature, positional, named, arguments, own=own, uses=uses)
        if slots is None or not isinstance(launch, Prepared):
            return
        added = arguments.added if own else signature.arrays
        arrays = frozenset((*arguments.records, *arguments.arrays, *added, *(r.name for r in results)))
        template = launch.template(arrays, frozenset(flatten_uniforms(signature, arguments.uniforms)))
        if template is None:
            return
        device_of = partial(device_without_records, bool(arguments.arrays) and is_gpu(arguments.device))
        entry = Repeatable(
            signature.source.name, tuple(named), slots, arguments.device, template, results,
            device_of=None if arguments.records else device_of if besides is None else besides.device_of,
            identical=identical, holds=_both(holds, None if besides is None else besides.holds),
            apart=() if besides is None else besides.apart,
            uses=uses, own_only=own_only, around=around,
        )  # fmt: skip
        if entry.match(positional, named) is not None:  # else it would never be found, and push out another one
            self._entries = (entry, *self._entries[: MOST - 1])

    def forget(self) -> None:
        self._entries = ()
