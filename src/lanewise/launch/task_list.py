"""What a call runs, ready for any number of elements: parts, each with its tasks and the launches
that they become.

    parts: the tests of indices, a kernel, the rounding of sums
    sized: counts, shapes of arrays -> launches that wait for addresses and numbers
    bound: arrays, values -> launches with everything filled in
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Protocol

from lanewise.launch.forms import BesideForm, Environment, Shape, beside_forms, whole_of_array
from lanewise.launch.own_memory import OwnMemory, mender, nothing
from lanewise.launch.tasks import Buffer, Host, Primitive, Sequence, renamed
from lanewise.layouts import Arrangement
from lanewise.runtime import memory
from lanewise.runtime.device import Device, get_device
from lanewise.runtime.lease import Lease
from lanewise.runtime.memory import Need, require_together
from lanewise.runtime.prepared import (
    Arguments,
    Flat,
    Piece,
    Places,
    Prepared,
    Views,
    host_views,
)

# where what a call needs does not fit
REMEDY = "call it for parts of the arrays one after the other, or let go of other memory there"


@dataclass(frozen=True, slots=True)
class BoundArray:
    """An array that takes part in a launch: its bytes on the device and where its leaves lie in
    them.

    check: raises `ArgumentError` where the array is no longer what was bound, and brings it up to
    date; None for memory that cannot change.
    mark: says that the array is changed, for kernels that write it.
    """

    data: Any
    arrangement: Arrangement
    count: int
    check: Callable[[], None] | None = None
    mark: Callable[[], None] | None = None


Arrays = Mapping[str, BoundArray]


def checks_of(arrays: Arrays, written: Iterable[str]) -> tuple[Callable[[], None], ...]:
    """What is asked and said before every run on these arrays: first what all of them hold, then
    what will have changed.
    """
    changed = frozenset(written)
    checks = [b.check for b in arrays.values() if b.check is not None]
    return (*checks, *(b.mark for n, b in arrays.items() if b.mark is not None and n in changed))


class Part(Protocol):
    """Tasks of a call, and the launches that they are.

    resizable: other arrays and values are but other arguments.
    """

    @property
    def sequence(self) -> Sequence: ...
    @property
    def resizable(self) -> bool: ...
    def pieces(self, environment: Environment, shapes: Mapping[str, Shape], /) -> Iterable[Piece]:
        """Its launches for these counts and these shapes of arrays."""
        ...

    def check(self, arrays: Arrays, /) -> None:
        """Raise `PlanError` for arrays that share memory and must not."""
        ...

    def compile(self, pieces: Iterable[Piece], /) -> None:
        """What is compiled only where the types of arguments are known: better now than within a
        timed run.
        """
        ...


@dataclass(frozen=True)
class Renamed:
    """A part whose kernels have other names than the call: for buffers, and for numbers."""

    part: Part
    names: Mapping[str, str]
    numbers: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def sequence(self) -> Sequence:
        return self._renamed

    @cached_property
    def _renamed(self) -> Sequence:
        return renamed(self.part.sequence, self.names)

    @property
    def resizable(self) -> bool:
        return self.part.resizable

    def pieces(self, environment: Environment, shapes: Mapping[str, Shape]) -> Iterable[Piece]:
        names = self.names
        own = {**shapes, **{n: shapes[there] for n, there in names.items() if there in shapes}}
        for p in self.part.pieces(self.known(environment), own):
            yield replace(p, arrays=tuple([(names.get(n, n), at, to) for n, at, to in p.arrays]))

    def known(self, environment: Environment) -> Environment:
        """The numbers of a call, by the names of its kernels."""
        if not self.numbers:
            return environment
        return {**environment, **{n: environment[there] for n, there in self.numbers.items()}}

    def check(self, arrays: Arrays) -> None:
        own = {n: arrays[there] for n, there in self.names.items() if there in arrays}
        self.part.check({**{n: b for n, b in arrays.items() if n not in self.names}, **own})

    def compile(self, pieces: Iterable[Piece]) -> None:
        self.part.compile(pieces)


@dataclass(frozen=True)
class Written:
    """A task whose code is written by hand, on a device."""

    task: Primitive | Host
    device: str
    buffers: Mapping[str, Buffer] = field(default_factory=dict[str, Buffer])
    changed: frozenset[str] = frozenset()

    @property
    def sequence(self) -> Sequence:
        return Sequence(self.task.name, self.buffers, (self.task,), self.changed)

    @property
    def resizable(self) -> bool:
        return True

    def pieces(self, environment: Environment, shapes: Mapping[str, Shape]) -> Iterable[Piece]:
        task, device = self.task, get_device(self.device)
        taken = [(n, _place(*shapes[n])) for n in task.takes]
        numbers = tuple([environment[n] for n in task.counts])
        lie = None if device.target.host_memory else (device, tuple([p for _, p in taken]))
        launch = _WrittenLaunch(task.run, tuple([make for _, make in task.read]), numbers, lie)
        taken = [*[(n, whole_of_array(*shapes[n])) for n, _ in task.read], *taken]
        arrays = tuple([(name, at, slice(n, n + 1)) for n, (name, at) in enumerate(taken)])
        none: Arguments = (None,) * len(taken)
        yield Piece(launch, none, arrays, (), name=task.name, waits=task.waits)

    def check(self, arrays: Arrays) -> None:
        del arrays

    def compile(self, pieces: Iterable[Piece]) -> None:
        del pieces


@dataclass(frozen=True, slots=True)
class _WrittenLaunch:
    """Runs written code on arrays. read: what makes of the first ones what it takes. lie: on which
    device the others are, and where in them, if addresses are given.
    """

    run: Callable[..., object]
    read: tuple[Callable[[Any], Any], ...]
    numbers: tuple[Any, ...]
    lie: tuple[Device, tuple[Places, ...]] | None

    def __call__(self, bound: Arguments) -> None:
        self.run(*self._arrays(bound), *self.numbers)

    def flat(self, bound: Arguments) -> Callable[[], object]:
        """The run with these arguments as one function."""
        given = (*self._arrays(bound), *self.numbers)
        return partial(self.run, *given) if given else self.run

    def _arrays(self, bound: Arguments) -> Iterable[Any]:
        made = [make(memory) for make, memory in zip(self.read, bound, strict=False)]
        others = bound[len(made) :]
        if self.lie is None:
            return (*made, *others)
        device, places = self.lie
        for at, p in zip(others, places, strict=True):
            made.append(device.array_at(at, p.ends[0] - p.starts[0], p.dtypes[0]))
        return made


def _place(arrangement: Arrangement, count: int) -> Places:
    """Where values lie, which are one buffer."""
    starts = arrangement.starts(count)
    (slot,) = arrangement.slots
    return Places(starts, arrangement.ends(starts, count), (slot.type.dtype,))


@dataclass(frozen=True)
class TaskList:
    """The parts of a call, in their order.

    buffers: those that none of the parts has, or that are something else to the whole call.
    counts: numbers that it knows besides those of its kernels.
    """

    name: str
    device: str
    parts: tuple[Part, ...]
    buffers: Mapping[str, Buffer] = field(default_factory=dict[str, Buffer])
    counts: frozenset[str] = frozenset()

    @cached_property
    def sequence(self) -> Sequence:
        """All tasks, over the buffers of the call."""
        each = [part.sequence for part in self.parts]
        buffers: dict[str, Buffer] = {}
        for s in reversed(each):
            buffers |= s.buffers
        return Sequence(
            self.name,
            {**buffers, **self.buffers},
            tuple(task for s in each for task in s.tasks),
            frozenset[str]().union(*(s.changed for s in each)),
            self.counts,
        )

    @cached_property
    def resizable(self) -> bool:
        """Whether other arrays and values are but other arguments."""
        return all(part.resizable for part in self.parts)

    @cached_property
    def _beside(self) -> tuple[BesideForm, ...]:
        return beside_forms(self.sequence)

    def memory(self, environment: Environment) -> int:
        """The bytes that it takes besides its arguments and results."""
        return sum(form.nbytes(environment) for form in self._beside)

    def needs(self, environment: Environment, own: OwnMemory | None = None) -> tuple[Need, ...]:
        """What it allocates besides its arguments and results. own: what it has already."""
        if not self._beside:
            return ()
        sizes = [(b, b.nbytes(environment)) for b in self._beside]
        if own is not None:
            sizes = [(b, own.grows_to(b.buffer.name, nbytes)) for b, nbytes in sizes]
        return tuple(Need(self.device, nbytes, b.what) for b, nbytes in sizes)

    def own_memory(self, grown: Callable[[], None] = nothing) -> OwnMemory | None:
        """Room for what it has besides its arguments, if it has anything. grown: see
        `OwnMemory`.
        """
        what = f"a bound call of {self.name}"
        return OwnMemory(what, self.device, grown) if self._beside else None

    def sized(
        self, environment: Environment, shapes: Mapping[str, Shape], own: OwnMemory | None
    ) -> Flat:
        """The launches for these counts and these shapes of arrays.

        They wait for the arrays and for values that are not known.

        own: memory that they share with launches of other sizes, see `own_memory`.
        """
        if own is None and len(self.parts) == 1:  # most calls, and those of new sizes want it soon
            return Flat(tuple(self.parts[0].pieces(environment, shapes)), None)
        pieces = tuple([p for some in self._pieces(environment, shapes, own) for p in some])
        if own is None:
            return Flat(pieces, None)
        return Flat(pieces, own.lease, self._mender(own, {}))

    def reserved(self, environment: Environment, own: OwnMemory) -> dict[str, tuple[Shape, Any]]:
        """Room for what it has besides its arguments, and how that lies, by name."""
        return {b.buffer.name: b.reserve(environment, own) for b in self._beside}

    def _pieces(
        self, environment: Environment, shapes: Mapping[str, Shape], own: OwnMemory | None
    ) -> list[list[Piece]]:
        """The launches of each part."""
        if own is None:
            return [[*part.pieces(environment, shapes)] for part in self.parts]
        reserved = self.reserved(environment, own)
        shapes = {**shapes, **{n: shape for n, (shape, _) in reserved.items()}}
        kept, names = tuple((n, data) for n, (_, data) in reserved.items()), frozenset(reserved)
        views = views_of_memory(dict(kept), self.device)
        made = (part.pieces(environment, shapes) for part in self.parts)
        return [[p.closed(names, views, {}, kept) for p in some] for some in made]

    def bound(
        self, arrays: Arrays, environment: Environment, lease: Lease | None = None
    ) -> Prepared:
        """The launches on these arrays, with these values. lease: of memory that someone else
        owns, where it has none.
        """
        shapes = {n: (b.arrangement, b.count) for n, b in arrays.items()}
        data = {n: b.data for n, b in arrays.items()}
        views = views_of_memory(data, self.device)
        require_together(f"a call of {self.name}", self.needs(environment), REMEDY)
        own, pieces = self.own_memory(), list[Piece]()
        for part in self.parts:
            part.check(arrays)
        for part, some in zip(self.parts, self._pieces(environment, shapes, own), strict=True):
            filled = [p.bound(views, data) for p in some]
            part.compile(filled)
            pieces += filled
        return Prepared(
            tuple(pieces),
            lease if own is None else own.lease,
            checks_of(arrays, self._written),
            not self.resizable,
            self._mender(own, arrays),
        )

    def _mender(self, own: OwnMemory | None, arrays: Arrays) -> Callable[[], None] | None:
        """What follows an exception: all that is zero before a run is so again.

        arrays: have the clean memory that belongs to another owner, such as a structure.
        """
        owned = {} if own is None else own.clean
        clean = [n for n, b in self.sequence.buffers.items() if b.clean]
        return mender(self.device, [owned[n] if n in owned else arrays[n].data for n in clean])

    @cached_property
    def _written(self) -> frozenset[str]:
        """The arrays that its kernels say they write."""
        return frozenset[str]().union(*(part.sequence.changed for part in self.parts))


def views_of_memory(data: Mapping[str, Any], device: str) -> Views:
    """The arguments of launches for bytes by name."""
    if get_device(device).target.host_memory:
        return lambda name, places: host_views(data[name], places)

    def addresses(name: str, places: Places) -> list[Any]:
        base = memory.address(data[name])
        return [base + start for start in places.starts]

    return addresses
