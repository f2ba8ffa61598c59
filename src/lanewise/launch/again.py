"""The very same arguments again: most calls of a loop are the one before, with new results.

Records are the same when they still lie where they did, and numbers when type and value are. Then
nothing is looked at but other arrays, and what is launched has all but these and the results filled
in already.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol, Self

import numpy as np

from lanewise.language.vectors import VectorValue
from lanewise.launch.slots import (
    Given,
    RecordSlot,
    SameRecords,
    SizeSlot,
    Slot,
    ValueSlot,
    sizes_of,
)
from lanewise.records.arrays import RecordArray
from lanewise.records.binding import places_of, side_at
from lanewise.records.field_views import FieldViews
from lanewise.records.two_sides import MemorySide
from lanewise.runtime.prepared import Views

_INTEGERS = {int}
NUMBERS = (float, int, bool, np.float32, np.float64, np.int32, np.int64)


class Fillable(Protocol):
    """What follows from sizes. own: records are in its launches already."""

    @property
    def own(self) -> bool: ...
    def closed(
        self, arrays: frozenset[str], views: Views, values: Mapping[str, Any], /
    ) -> Self | None: ...


class Again:
    """What a call was given, to recognise the next one by.

    Of arrays it holds weak references to where their records lie, and drops what it launches when
    these are no more there.
    """

    __slots__ = (
        "__weakref__",
        "_filled",
        "_named",
        "_numbers",
        "_others",
        "_records",
        "_sized",
        "_sizes",
        "_twins",
        "_values",
    )

    def __init__(self, slots: tuple[Slot, ...], arguments: tuple[Any, ...], matched: Given) -> None:
        drop = partial(_drop, weakref.ref(self))
        named: list[tuple[str, int]] = []
        first: dict[int, int] = {}
        reads: dict[int, int] = {}
        twins: list[tuple[int, int]] = []
        numbers: list[tuple[int, Any, type[Any] | None]] = []
        others: list[tuple[int, Slot, type[Any], Any]] = []
        for n, (slot, value) in enumerate(zip(slots, arguments, strict=True)):
            match slot:
                case SameRecords() | RecordSlot():
                    named.append((slot.name, n))
                    if (same := first.setdefault(id(value), n)) != n:
                        twins.append((n, same))
                    reads[same] = reads.get(same, 0) | slot.reads
                case SizeSlot() | ValueSlot():
                    # Zeros are equal that differ in sign, and vectors take long to compare: these
                    # have to be the very same. The shape of an array is a new tuple each time.
                    alike = type(value) in NUMBERS and value != 0
                    alike = alike or (type(value) is tuple and _are_whole(value))
                    numbers.append((n, value, type(value) if alike else None))
                case _:
                    others.append((n, slot, type(value), getattr(value, "shape", None)))
        self._named, self._twins = tuple(named), tuple(twins)
        self._records = tuple(
            (n, weakref.ref(places_of(arguments[n]), drop), reads[n]) for n in first.values()
        )
        self._numbers, self._others = tuple(numbers), tuple(others)
        self._values = matched.values
        self._sized: Any = None
        self._filled = False
        self._sizes = [*sizes_of((slot, arguments[n]) for n, slot, *_ in self._others)]

    @classmethod
    def of(cls, slots: tuple[Slot, ...], arguments: tuple[Any, ...], matched: Given) -> Self | None:
        """None where a number is one that may change: an element of an array of NumPy."""
        for slot, value in zip(slots, arguments, strict=True):
            if isinstance(slot, SizeSlot | ValueSlot) and not _is_fixed(value):
                return None
        return cls(slots, arguments, matched)

    def fill(self, sized: Fillable, views: Views, matched: Given) -> None:
        """Launch this from now on, with the records and the numbers filled in, where it can be."""
        closed = sized.closed(frozenset(name for name, _ in self._named), views, matched.values)
        self._filled = sized.own or closed is not None
        self._sized = sized if closed is None else closed

    def take(self, arguments: tuple[Any, ...]) -> Given | None:
        """The arguments of a call that is this one again, as many as it had; None for another
        one.
        """
        for position, number, cls in self._numbers:
            value = arguments[position]
            if value is not number and (
                type(value) is not cls
                or value != number
                or (cls is tuple and not _are_whole(value))
            ):
                return None
        for one, other in self._twins:
            if arguments[one] is not arguments[other]:
                return None
        # Quickly, where sizes come in turn. Of another class nothing is asked: its `shape` may be
        # a field, or raise.
        for position, _, kind, shape in self._others:
            value = arguments[position]
            if shape is not None and (type(value) is not kind or value.shape != shape):
                return None
        if (sized := self._sized) is None:
            return None
        sides: list[tuple[MemorySide, int]] = []
        for position, places, reads in self._records:
            array = arguments[position]
            if type(array) is not RecordArray or (side := side_at(array, places())) is None:
                return None
            if side.asks is not None and side.asks():
                return None
            sides.append((side, reads))
        matched = Given({}, self._values, sized)
        matched.records, matched.arguments = self._named, arguments
        for side, reads in sides:
            if side.followed:
                side.read(reads)
                matched.complete()  # of what has two sides is said what a launch writes
        for position, slot, *_ in self._others:
            if not slot.take(arguments[position], matched):
                return None
        if matched.sizes != self._sizes:
            return None
        if not self._filled:
            matched.complete()
        return matched

    def forget(self) -> None:
        """Hold no memory any more.

        No array lies where what is gone did, so that no call is this one again.
        """
        self._sized = None


def _are_whole(numbers: tuple[Any, ...]) -> bool:
    """Whether all are integers of Python: what is equal may be a float or a bool."""
    return {*map(type, numbers)} == _INTEGERS


def _is_fixed(value: Any) -> bool:
    cls = type(value)
    return (
        cls in NUMBERS
        or isinstance(value, VectorValue)
        or (cls is tuple and all(map(_is_fixed, value)))
    )


def _drop(again: weakref.ref[Again], places: weakref.ref[FieldViews]) -> None:
    if (alive := again()) is not None:
        alive.forget()
