"""Ragged arguments of calls like an earlier one."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

from lanewise.language.record import Record
from lanewise.launch.slots import Given, Slot
from lanewise.records.binding import places_of, side_of
from lanewise.records.ragged import RaggedArray, entries, version, views

Places = tuple[str, str, str]
"""What a kernel calls the begins and the ends of an argument's lists, and its records or values."""


class RaggedSlot:
    """A ragged array of the same kind, layout and device, of any sizes; how long each list is may
    differ. reads: of the fields of its records, which are brought up to date.
    """

    __slots__ = ("_like", "_places", "_reads", "_seen")

    def __init__(self, places: Places, array: RaggedArray, reads: int) -> None:
        self._reads = reads if isinstance(array.kind, Record) else 0
        self._places, self._like = places, _traits(array)
        self._seen = weakref.ref(array), version(array), _sizes(array)

    def take(self, value: Any, matched: Given) -> bool:
        seen, number, sizes = self._seen  # at once: other threads may put another array there
        if value is not seen() or version(value) != number:
            if type(value) is not RaggedArray or not value.is_whole or _traits(value) != self._like:
                return False
            sizes = _sizes(value)
            self._seen = weakref.ref(value), version(value), sizes
        arrays, (first, last, name) = matched.arrays, self._places
        arrays[first], arrays[last], arrays[name] = views(value)
        if self._reads and (side := side_of(arrays[name])).followed:
            side.read(self._reads)
        matched.sizes.append(sizes)
        return True


def _traits(array: RaggedArray) -> tuple[Any, ...]:
    """What two arrays have in common whose calls differ by sizes and addresses alone."""
    return array.kind, array.data.layout if isinstance(array.kind, Record) else None, array.device


def _sizes(array: RaggedArray) -> tuple[Any, ...]:
    """How many items there are, and lists on every level; of records that have grown also where
    their buffers begin.
    """
    begins = places_of(array.data).arrangement.pinned if isinstance(array.kind, Record) else ()
    return entries(array), tuple(len(o) for o in array.offsets), array.outer_shape, begins


def ragged_slots(
    ragged: Mapping[str, tuple[Places, Any]], reads: Mapping[str, int]
) -> dict[str, Slot]:
    """A slot for each ragged argument, by its parameter. reads: the fields of its records that the
    kernel reads.
    """
    return {
        name: RaggedSlot(places, array, reads.get(name, 0))
        for name, (places, array) in ragged.items()
    }
