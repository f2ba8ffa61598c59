"""Which elements of two arrays of records are one element: what `lw.same` asks of parts of one
array, and of a part and its whole.

Both arrays are progressions through one memory: element i of the targets lies at t + i T, element j
of the sources at s + j S. They are one where i T + (t - s) = j S. Arrays that are copies of each
other have no element in common.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lanewise.records.arrays import (
    RecordArray,
    are_same,
    meet,
    owns_its_memory,
    places_of,
    progression_of,
    side_of,
    stood_for,
)
from lanewise.runtime.memory import address


@dataclass(frozen=True, slots=True)
class Shared:
    """Target i and source j are one element where i * step + shift = j * apart.

    Both steps are positive.
    """

    step: int
    shift: int
    apart: int


def shared_elements(target: RecordArray, source: RecordArray) -> Shared | None:
    """How the elements of two arrays correspond; None where the arrays are the same records, or
    have none in common.
    """
    if (
        not _of_one_memory(target, source)
        or not len(target)
        or not len(source)
        or are_same(target, source)
    ):
        return None
    target, source = stood_for(target), stood_for(source)
    (first, step), (start, apart) = _progressions(target, source)
    divisor = math.gcd(step, apart)
    if not divisor or (first - start) % divisor:
        return None
    here = range(first, first + (len(target) - 1) * step + 1, step)
    if not meet(here, range(start, start + (len(source) - 1) * apart + 1, apart)):
        return None
    return Shared(step // divisor, (first - start) // divisor, apart // divisor)


def are_parts(one: RecordArray, other: RecordArray) -> bool:
    """Whether both are parts of one memory, but not the same records: what is right for one such
    pair need not be for the next.
    """
    return _of_one_memory(one, other) and not are_same(one, other)


def _of_one_memory(one: RecordArray, other: RecordArray) -> bool:
    """Whether an element of one may be one of the other. Repeated calls ask: what most arrays are
    comes first.
    """
    if one is other or places_of(one).data is places_of(other).data:
        return True
    a, b = stood_for(one), stood_for(other)
    if a.record != b.record:
        return False
    if side_of(a).sides is not None:
        return side_of(a).sides is side_of(b).sides
    if places_of(a).data is places_of(b).data:
        return True
    return not owns_its_memory(a) and not owns_its_memory(b) and a.device == b.device


def _progressions(
    target: RecordArray, source: RecordArray
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Where both begin, and their steps: in records of the array that owns them, or in bytes of
    memory that others own.
    """
    if places_of(target).data is places_of(source).data or side_of(target).sides is not None:
        return progression_of(target), progression_of(source)
    return _in_bytes(target), _in_bytes(source)


def _in_bytes(array: RecordArray) -> tuple[int, int]:
    """The address of the first record, and how far apart they are; (0, 0) of records that do not
    lie one behind the other.
    """
    places = places_of(array)
    buffers = places.arrangement.buffers
    if len(buffers) != 1 or buffers[0].width > 1:
        return 0, 0
    return address(places.data) + places.arrangement.starts(places.count)[0], buffers[0].block
