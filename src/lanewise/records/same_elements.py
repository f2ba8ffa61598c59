"""Which elements of two arrays of records are one element: what `lw.same` asks of parts of one
array, and of a part and its whole, and what calls ask of arrays that share memory.

Both arrays are progressions through one memory: element i of the targets lies at t + i T, element j
of the sources at s + j S. They are one where i T + (t - s) = j S. Arrays that are copies of each
other have no element in common.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lanewise.records.arrays import RecordArray, class_of, storage_of
from lanewise.records.binding import places_of
from lanewise.records.split_rows import SplitRows, split_rows
from lanewise.records.storage import Storage
from lanewise.runtime.memory import address


@dataclass(frozen=True, slots=True)
class SharedElements:
    """Target i and source j are one element where i * step + shift = j * apart.

    Both steps are positive.
    """

    step: int
    shift: int
    apart: int


def shared_elements(target: RecordArray, source: RecordArray) -> SharedElements | None:
    """How the elements of two arrays correspond; None where the arrays are the same records, or
    have none in common. Of parts of one array on a mesh, which calls refuse, nothing is said.
    """
    if (
        _rows_of(target) is not None
        or _rows_of(source) is not None
        or not _of_one_memory(target, source)
        or not len(target)
        or not len(source)
        or are_same(target, source)
    ):
        return None
    (first, step), (start, apart) = _progressions(_stood_for(target), _stood_for(source))
    divisor = math.gcd(step, apart)
    if not divisor or (first - start) % divisor:
        return None
    here = range(first, first + (len(target) - 1) * step + 1, step)
    if not meet(here, range(start, start + (len(source) - 1) * apart + 1, apart)):
        return None
    return SharedElements(step // divisor, (first - start) // divisor, apart // divisor)


def are_parts(one: RecordArray, other: RecordArray) -> bool:
    """Whether both are parts of one memory, but not the same records: what is right for one such
    pair need not be for the next.
    """
    return _of_one_memory(one, other) and not are_same(one, other)


def stand_for(copy: RecordArray, original: RecordArray) -> None:
    """Say of a new copy that its elements are those of the original: a kernel gets it instead of
    that.
    """
    storage_of(copy).stands_for = storage_of(original)


def copied_part(array: RecordArray, part: slice) -> RecordArray:
    """A copy of some elements that stands for them, whatever their layout; all of them as they
    are.
    """
    view = array[part]
    if len(view) == len(array):
        return array
    copy = view.copy()
    stand_for(copy, view)
    return copy


def _stood_for(array: RecordArray) -> Storage:
    storage = storage_of(array)
    return storage.stands_for or storage


def _of_one_memory(one: RecordArray, other: RecordArray) -> bool:
    """Whether an element of one may be one of the other. Repeated calls ask: what most arrays are
    comes first.
    """
    if one is other or places_of(one).data is places_of(other).data:
        return True
    a, b = _stood_for(one), _stood_for(other)
    if a.record != b.record:
        return False
    if a.side.sides is not None:
        return a.side.sides is b.side.sides
    if a.memory.data is b.memory.data:
        return True
    of_others = a.owner.fixed and b.owner.fixed  # not allocated for these records
    return bool(of_others) and a.device == b.device


def _progressions(target: Storage, source: Storage) -> tuple[tuple[int, int], tuple[int, int]]:
    """Where both begin, and their steps: in records of the array that owns them, or in bytes of
    memory that others own.
    """
    if target.memory.data is source.memory.data or target.side.sides is not None:
        return target.progression(), source.progression()
    return _in_bytes(target), _in_bytes(source)


def _in_bytes(storage: Storage) -> tuple[int, int]:
    """The address of the first record, and how far apart they are; (0, 0) of records that do not
    lie one after the other.
    """
    places = storage.memory
    buffers = places.arrangement.buffers
    if len(buffers) != 1 or buffers[0].width > 1:
        return 0, 0
    return address(places.data) + places.arrangement.starts(places.count)[0], buffers[0].block


def are_same(one: RecordArray, other: RecordArray) -> bool:
    """Whether these are the same records: the same memory, from the same one on, and as many."""
    if one is other:
        return True
    if _rows_of(one) is not None or _rows_of(other) is not None:
        return _are_same_rows(one, other)
    a, b = places_of(one), places_of(other)
    if a.data is not b.data:
        return False
    return (a.arrangement, a.arrangement.starts(a.count), a.count, a.first, a.step) == (
        b.arrangement, b.arrangement.starts(b.count), b.count, b.first, b.step
    )  # fmt: skip


def _rows_of(array: RecordArray) -> SplitRows | None:
    """Where the records lie, if that is a mesh."""
    return split_rows(storage_of(array))


def _are_same_rows(one: RecordArray, other: RecordArray) -> bool:
    """Whether the rows of every part of a mesh are the same ones, in all its processes."""
    a, b = _rows_of(one), _rows_of(other)
    if a is None or b is None or a.mesh != b.mesh:
        return False
    pairs = zip(a.parts, b.parts, strict=True)
    same = all(
        are_same(RecordArray(p, class_of(one)), RecordArray(q, class_of(other))) for p, q in pairs
    )
    return all(a.mesh.transport.agree(same))


def overlapping(one: RecordArray, other: RecordArray) -> bool:
    """Whether some record of one is a record of the other."""
    a, b = places_of(one), places_of(other)
    if not a.count or not b.count:
        return False
    if a.data is not b.data:  # arrays over the memory of others may share it
        (begin, end), (other_begin, other_end) = a.bounds(), b.bounds()
        return a.device == b.device and begin < other_end and other_begin < end
    (first, step), (start, apart) = storage_of(one).progression(), storage_of(other).progression()
    here = range(first, first + (a.count - 1) * step + 1, step)
    return meet(here, range(start, start + (b.count - 1) * apart + 1, apart))


def meet(a: range, b: range) -> bool:
    """Whether two ranges with positive steps have a number in common: by the Chinese remainder
    theorem.
    """
    first, last = max(a[0], b[0]), min(a[-1], b[-1])
    divisor = math.gcd(a.step, b.step)
    if first > last or (b[0] - a[0]) % divisor:
        return False
    turns = (
        (b[0] - a[0]) // divisor * pow(a.step // divisor, -1, b.step // divisor)
        if b.step > divisor
        else 0
    )
    common, period = a[0] + turns * a.step, math.lcm(a.step, b.step)
    return common + -((common - first) // period) * period <= last
