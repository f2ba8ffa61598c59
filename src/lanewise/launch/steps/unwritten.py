"""Results of bound calls that nothing has filled yet, and loops that would read them.

`bind` makes memory for results and fills nothing: what a call leaves there replaces all of it. A
loop may hold a call that reads these results before the one that fills them has run, and would
take whatever the memory held. So `bind` fills each result with marks, and the first run of a loop
asks whether some are still there, in the part that is read.

Memory that is given back keeps its bytes, and comes back as anybody's. So the mark alone says
nothing: only memory that is still a result of a bound call is asked, and only where a call reads
an argument that it has not written before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from lanewise.launch.compiled import Call
from lanewise.launch.joined import Bound
from lanewise.launch.steps.rhythm import Rhythm
from lanewise.launch.steps.task import Task
from lanewise.launch.tasks import Access, Role
from lanewise.runtime.device import get_device
from lanewise.runtime.memory import address, device_of, module_of, on, overlap
from lanewise.support.errors import ArgumentError

# Words that repeat, which no computation leaves: NaN as float32 and, two of them, as float64. An
# integer may be any word, and is unwritten where another one is next to it.
_WORDS: NDArray[np.uint32] = np.array([0x7FF8A5C3, 0x7FF95A3C, 0x7FFAC35A, 0x7FFB3CA5], "<u4")
MARK: NDArray[np.uint8] = _WORDS.view(np.uint8)
_WORD = 4  # bytes
_STRETCH = 1 << 22  # words that are looked at together

_RESULTS: WeakValueDictionary[tuple[str, int, int, str], Any] = WeakValueDictionary()
"""Of each result that was marked, by its device, address, bytes and type: what lives as long as its
memory.
"""


def marked_unwritten(call: Call, out: Any) -> Call:
    """The call with a mark in the memory that `bind` made for its results. out: the caller's.

    While a graph is captured nothing is marked: it would be in the graph.
    """
    given = out if isinstance(out, tuple) else (out,) * len(call.results)
    pairs = zip(call.results, given, strict=True)
    return replace(call, results=tuple([_marked(r) if o is None else r for r, o in pairs]))


def _marked(array: Any) -> Any:
    """Mark an array: another one in the same memory, to be handed out in its place."""
    device, kind = get_device(device_of(array)), array.dtype
    words = _words(array) if kind.kind in "iuf" and kind.itemsize % _WORD == 0 else None
    if words is None or device.is_capturing():
        return array
    with on(device.name):
        for place, word in enumerate(_WORDS):
            words[place :: len(_WORDS)] = word
    lent, loan = device.lend(array, None)
    _RESULTS[device.name, address(array), array.nbytes, kind.str] = loan
    return lent.view(array.dtype).reshape(array.shape)


def refuse_unwritten(place: str, rhythm: Rhythm, step: int) -> None:
    """Raise `ArgumentError` where a task reads results that nothing has filled, and nothing before
    it fills.

    place: what the error is about. step: the next one of the rhythm. What a function of Python does
    is unknown: nothing behind one is refused.
    """
    filled: list[Any] = []
    order = _until_unknown(rhythm, step)
    for task, bound in order:
        for data in _memory(bound, _read_first(bound)):
            if _is_unwritten(data, [f for f in filled if overlap(data, f)]):
                raise _unwritten(place, task, data, order)
        filled += _memory(bound, {a.buffer for a in _accesses(bound) if a.writes})


def _unwritten(
    place: str, task: Task, data: Any, order: Sequence[tuple[Task, Bound]]
) -> ArgumentError:
    """Of results that nothing has filled. Who fills them is named where the loop has it."""
    owners = (
        other.name
        for other, bound in order
        for r in _memory(bound, {a.buffer for a in _accesses(bound) if a.writes})
        if other is not task and overlap(data, r)
    )
    owner = next(owners, None)
    if owner is None:
        return ArgumentError(
            f"{place}: {task.name} reads the results of a bound call that has not run: nothing is "
            "in them. Call it once before the loop, put it in front, or fill its results"
        )
    return ArgumentError(
        f"{place}: {task.name} reads the results of {owner}, which has not run yet: nothing is in "
        f"them. Call {owner} once before the loop, put it before {task.name}, or fill its results"
    )


def _until_unknown(rhythm: Rhythm, step: int) -> list[tuple[Task, Bound]]:
    """The tasks of a cycle in order, each with what it does, up to the first that does not say."""
    stand = {id(s): (s.fresh, s.step) for s in rhythm.stepped}
    known: dict[int, Sequence[Bound]] = {}
    found: list[tuple[Task, Bound]] = []
    for n in range(step, step + rhythm.steps):
        for task in rhythm.tasks_of(rhythm.kinds[n % rhythm.steps]):
            if id(task) in known:  # a second time it reads what it has filled, or others have
                continue
            known[id(task)] = task.bound(stand)
            if not known[id(task)]:
                return found
            found += [(task, bound) for bound in known[id(task)]]
    return found


def _accesses(bound: Bound) -> Iterator[Access]:
    return (access for task in bound.sequence.tasks for access in task.accesses)


def _read_first(bound: Bound) -> list[str]:
    """The arguments that its tasks read before one of them writes them."""
    buffers, written, found = bound.sequence.buffers, set[str](), dict[str, None]()
    arguments = {n for n, buffer in buffers.items() if buffer.role is Role.ARGUMENT}
    for access in _accesses(bound):
        if access.reads and access.buffer in arguments - written:
            found[access.buffer] = None
        written |= {access.buffer} if access.writes else set[str]()
    return list(found)


def _memory(bound: Bound, names: Iterable[str]) -> list[Any]:
    found = (bound.memory.get(n) for n in names)
    return [data for data in found if data is not None and data.nbytes]


def _words(array: Any) -> Any:
    """Its words, in their order; None where they are not side by side, or no whole words."""
    if not array.flags.c_contiguous or array.nbytes % _WORD or not array.nbytes:
        return None
    return array.reshape(-1).view("uint32")


def _is_unwritten(data: Any, filled: Iterable[Any]) -> bool:
    """Whether it is a result of a bound call, or a part of one, and has marks where none of these
    arrays lies. Between the first and the last byte of an array all is filled.
    """
    start, device = address(data), device_of(data)
    lying = ((a, k) for d, a, n, k in list(_RESULTS) if d == device and a <= start < a + n)
    if (result := next(lying, None)) is None or (words := _words(data)) is None:
        return False
    first_byte, kind = result
    ends = [(address(f) - start, address(f) - start + _reach(f)) for f in filled]
    phase = (start - first_byte) // _WORD
    with on(device):
        return any(
            _has_marks(words[first:last], phase + first, np.dtype(kind))
            for first, last in _between(ends, data.nbytes)
        )


def _reach(array: Any) -> int:
    """Bytes from its first one to behind its last one."""
    axes = zip(array.shape, array.strides, strict=True)
    return sum((n - 1) * stride for n, stride in axes) + array.itemsize


def _between(ends: Iterable[tuple[int, int]], nbytes: int) -> Iterator[tuple[int, int]]:
    """The words that none of these stretches of bytes has."""
    free = 0
    for first, last in [*sorted(ends), (nbytes, nbytes)]:
        if first > free:
            yield free // _WORD, first // _WORD
        free = max(free, last)


def _has_marks(words: Any, phase: int, dtype: Any) -> bool:
    """Whether an element among these words is marked. phase: the number of the first of them within
    the result.
    """
    for first in range(0, len(words), _STRETCH):
        part = words[first : first + _STRETCH + 2]  # two of the next: integers ask for a neighbour
        marked = module_of(words).empty(len(part), bool)
        for place in range(len(_WORDS)):
            every = slice(place, None, len(_WORDS))
            marked[every] = part[every] == _WORDS[(phase + first + place) % len(_WORDS)]
        if dtype.itemsize > _WORD:
            marked = marked.reshape(-1, dtype.itemsize // _WORD).all(axis=1)
        elif dtype.kind in "iu" and len(words) > 1:
            marked = marked[1:] & marked[:-1]
        if bool(marked.any()):
            return True
    return False
