"""One sequence of several bound calls: buffers are the same where they lie in the same memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lanewise.launch.tasks import (
    Buffer,
    Primitive,
    Role,
    Sequence,
    reading,
    renamed,
    writing,
)
from lanewise.records.arrays import RecordArray
from lanewise.records.binding import places_of
from lanewise.runtime.memory import address


@dataclass(frozen=True, slots=True)
class Owned:
    """Memory that has a name and a role in the joined sequence. changed: of an argument, whether
    the tasks may write it.
    """

    name: str
    data: Any
    role: Role
    changed: bool = False


@dataclass(frozen=True, slots=True)
class Bound:
    """The tasks of a bound call, and the memory of those of its buffers that others may share.

    call: itself, or its list of tasks and its counts, of which explanations read more.
    """

    sequence: Sequence
    memory: Mapping[str, Any]
    call: object = None


@dataclass(frozen=True, slots=True)
class OfPart:
    """What a part of a mesh runs of a call."""

    number: int
    call: object


def memory_of(array: Any) -> Any:
    """The bytes of an array of records, or of a contiguous one of numbers."""
    return places_of(array).data if isinstance(array, RecordArray) else array.reshape(-1)


def by_hand(
    name: str, run: Callable[[], object], reads: Iterable[Any], writes: Iterable[Any]
) -> Bound:
    """Code that is written by hand, on arrays."""
    read = {f"read by {name}, {n}": memory_of(array) for n, array in enumerate(reads)}
    written = {f"written by {name}, {n}": memory_of(array) for n, array in enumerate(writes)}
    task = Primitive(name, run, (*reading(*read), *writing(*written)))
    buffers = {n: Buffer(n, Role.ARGUMENT) for n in read}
    buffers |= {n: Buffer(n, Role.RESULT) for n in written}
    sequence = Sequence(name, buffers, (task,), frozenset(written))
    return Bound(sequence, {**read, **written})


def joined(
    name: str, calls: Iterable[Bound], owned: Iterable[Owned], *, free: bool = False
) -> Sequence:
    """The tasks of these calls, one after the other.

    What is not owned is an argument that nothing may write, but for what a call has for itself, and
    for its results, which hold nothing before it. free: calls may write whatever they write when
    they run alone.
    """
    table = _Table(owned)
    sequences, buffers = list[Sequence](), dict[str, Buffer]()
    for n, call in enumerate(calls):
        names = table.names(n, call)
        if free:
            table.free(call.sequence, names)
        sequences.append(renamed(call.sequence, names))
        for own in call.sequence.buffers.values():
            buffer = replace(own, name=names[own.name])
            before = buffers.get(buffer.name, buffer)
            # views lie otherwise than the whole
            lies, role = buffer.arrangement if _alike(before, buffer) else None, table.role(buffer)
            if role is Role.ARGUMENT and before is not buffer:  # to others it is more than that
                role = before.role
            buffers[buffer.name] = replace(buffer, role=role, arrangement=lies)
    return Sequence(
        name,
        buffers,
        tuple(task for s in sequences for task in s.tasks),
        frozenset(table.changed),
        frozenset[str]().union(*(s.counts for s in sequences)),
    )


def _alike(a: Buffer, b: Buffer) -> bool:
    """Whether two calls take a buffer to lie alike."""
    one, other = a.arrangement, b.arrangement
    return one is not None and other is not None and one.unpinned == other.unpinned


class _Table:
    """Which memory has which name."""

    def __init__(self, owned: Iterable[Owned]) -> None:
        self._places: list[tuple[int, int, str]] = []
        self._roles: dict[str, Role] = {}
        self._taken: set[str] = set()
        self.changed: set[str] = set()
        for o in owned:
            if o.data.nbytes:
                name = self._known(o.name, o.data)
                self._roles[name] = o.role
                self.changed |= {name} if o.changed else set[str]()

    def free(self, sequence: Sequence, names: Mapping[str, str]) -> None:
        """Say that what a call changes may be changed, and that its results are arguments of
        others.
        """
        results = {n for n, b in sequence.buffers.items() if b.role is Role.RESULT}
        self._roles |= {names[n]: Role.ARGUMENT for n in results}
        self.changed |= {names[n] for n in results | sequence.changed}

    def names(self, number: int, call: Bound) -> dict[str, str]:
        """The names of a call's buffers. number: of the call, where it has some for itself."""
        found: dict[str, str] = {}
        for name, buffer in call.sequence.buffers.items():
            data = call.memory.get(name)
            if data is None or not data.nbytes:
                found[name] = f"{name} of task {number}"
            else:
                its = f"{name.lstrip('$')} of {call.sequence.name}"
                found[name] = self._known(its if buffer.role is Role.RESULT else name, data)
        return found

    def role(self, buffer: Buffer) -> Role:
        """What a buffer is to the joined sequence."""
        own = Role.TEMPORARY if buffer.role is Role.RESULT else buffer.role
        return self._roles.get(buffer.name, own)

    def _known(self, name: str, data: Any) -> str:
        """The name of memory, which is this one or like it where it has none."""
        first = address(data)
        last = first + int(data.nbytes)
        for begin, end, known in self._places:
            if begin < last and first < end:
                return known
        unique, n = name, 1
        while unique in self._taken:
            n += 1
            unique = f"{name} ({n})"
        self._taken.add(unique)
        self._places.append((first, last, unique))
        return unique
