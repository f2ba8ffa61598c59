"""`lw.concatenate`: several arrays of records, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from lanewise.records import moves
from lanewise.records.arrays import RecordArray, class_of, storage_alike
from lanewise.records.keys import Span
from lanewise.records.parts import PartOfRecords
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError


def concatenate(arrays: Sequence[RecordArray]) -> RecordArray:
    """The records of several arrays, one after the other, in a new array: in the layout and
    on the device of the first.

    Raises `ArgumentError` for none, and for arrays of different records or on different devices.
    """
    parts: Any = arrays
    if isinstance(parts, RecordArray) or not isinstance(parts, (list, tuple)) or not parts:
        raise ArgumentError(
            f"concatenate takes a list of at least one array of records, found {shown(parts)}"
        )
    parts = [p.copy() if isinstance(p, PartOfRecords) else p for p in cast("list[Any]", parts)]
    first = parts[0]
    if not isinstance(first, RecordArray):
        raise ArgumentError(
            f"concatenate takes arrays of records, found {type(first).__name__} at place 0"
        )
    storages = [storage_alike(first, part) for part in parts]
    made, begin = storages[0].alike(sum(map(len, parts))), 0
    for part in storages:
        moves.assign(made, Span(begin, 1, part.placement.count), part)
        begin += part.placement.count
    return RecordArray(made, class_of(first))
