"""Launches as a flat list of functions and their arguments, bound or open for arrays and values.

What follows from sizes (grids, where buffers begin, how many elements there are) is in the list
already. An open list waits for addresses and numbers, and launches with those of a call.

Memory that belongs to a list is used under a lease (`runtime/lease.py`), one use at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, runtime_checkable

from lanewise.runtime.lease import Lease
from lanewise.runtime.programs import Work

Arguments = tuple[Any, ...]
Mend = Callable[[], None] | None
_ANY_TIME = nullcontext()  # instead of a lease


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Where the buffers of an array lie in its memory, in bytes, with the types of what is
    there.
    """

    starts: tuple[int, ...]
    ends: tuple[int, ...]
    dtypes: tuple[Any, ...]


def host_views(data: Any, places: Places) -> list[Any]:
    """The arguments for the buffers of an array on the host."""
    return [
        data[a:b].view(t) for a, b, t in zip(places.starts, places.ends, places.dtypes, strict=True)
    ]


Views = Callable[[str, Places], Sequence[Any]]
"""The arguments for the buffers of an array, by its name."""


@runtime_checkable
class Flattened(Protocol):
    """A launch that is quicker as one function, where its arguments are known."""

    def flat(self, arguments: Arguments, /) -> Work: ...


@dataclass(frozen=True, slots=True)
class Piece:
    """A launch. `run` launches with arguments like these; those that are open are None.

    arrays: of each its name, where its buffers lie in it, and which arguments these are. values:
    uniforms that are open, each with its position; uniforms: all of them. kept: memory that the
    arguments point to. name: of what is launched. waits: whether the host takes part, so that no
    graph can hold it.
    """

    run: Callable[[Arguments], None]
    arguments: Arguments
    arrays: tuple[tuple[str, Places, slice], ...]
    values: tuple[tuple[str, int], ...]
    kept: tuple[Any, ...] = ()
    uniforms: tuple[tuple[str, int], ...] = ()
    name: str = ""
    waits: bool = False

    def work(self, arguments: Arguments | None = None) -> Work:
        """The launch with these arguments, or its own, as one function."""
        given, run = self.arguments if arguments is None else arguments, self.run
        return run.flat(given) if isinstance(run, Flattened) else partial(run, given)

    def moved(self, by: int) -> Piece:
        """The same where its arguments stand so many places later, among those of others."""
        arrays = tuple((n, at, slice(w.start + by, w.stop + by)) for n, at, w in self.arrays)
        values, uniforms = (
            tuple((n, at + by) for n, at in v) for v in (self.values, self.uniforms)
        )
        return replace(self, arrays=arrays, values=values, uniforms=uniforms)

    def filled(self, views: Views, values: Mapping[str, Any]) -> Arguments:
        """The arguments with these arrays and values."""
        arguments = list(self.arguments)
        for name, places, where in self.arrays:
            arguments[where] = views(name, places)
        for name, position in self.values:
            arguments[position] = values[name]
        return tuple(arguments)

    def closed(
        self,
        arrays: frozenset[str],
        views: Views,
        values: Mapping[str, Any],
        kept: tuple[Any, ...] = (),
    ) -> Piece:
        """The same launch with these arrays and values filled in. kept: memory of the arrays, which
        it keeps.
        """
        given, others = (
            tuple(a for a in self.arrays if (a[0] in arrays) is want) for want in (True, False)
        )
        known, unknown = (
            tuple(v for v in self.values if (v[0] in values) is want) for want in (True, False)
        )
        if not given and not known:
            return self
        arguments = replace(self, arrays=given, values=known).filled(views, values)
        return replace(
            self,
            arguments=arguments,
            arrays=others,
            values=unknown,
            kept=(*self.kept, *(kept if given else ())),
        )

    def bound(self, views: Views, memory: Mapping[str, Any]) -> Piece:
        """The same launch with these arrays filled in, and all values known already.

        It still says which arguments they are. It keeps their memory: a pointer does not.
        """
        arguments, kept = list(self.arguments), list[Any]()
        for name, places, where in self.arrays:
            if name in memory:
                arguments[where] = views(name, places)
                kept.append((name, memory[name]))
        return replace(
            self, arguments=tuple(arguments), values=self.uniforms, kept=(*self.kept, *kept)
        )


@dataclass(frozen=True, slots=True)
class Flat:
    """Launches that wait for arrays and values.

    They keep no memory alive but what a program has besides its arguments. first: those that wait
    for nothing, where they need a lease. mend: is done after an exception.
    """

    pieces: tuple[Piece, ...]
    lease: Lease | None
    mend: Mend = None
    first: tuple[Work, ...] = ()

    def launch(self, views: Views, values: Mapping[str, Any]) -> None:
        """Launch with these. `values` are numbers of the right types."""
        if self.lease is None and self.mend is None:
            for p in self.pieces:
                p.run(p.filled(views, values))
            return
        with self.lease or _ANY_TIME:
            try:
                for work in self.first:
                    work()
                for p in self.pieces:
                    p.run(p.filled(views, values))
            except BaseException:
                if self.mend is not None:
                    self.mend()
                raise

    def closed(self, arrays: frozenset[str], views: Views, values: Mapping[str, Any]) -> Flat:
        """The same launches with these arrays, which it keeps in memory, and all values filled
        in.
        """
        closed = tuple(p.closed(arrays, views, values) for p in self.pieces)
        return replace(self, pieces=closed)


def at_a_stretch(works: Sequence[Work], lease: Lease | None = None, mend: Mend = None) -> Work:
    """All of these as one, with memory that one caller uses at a time.

    mend: is done after an exception, wherever it came: what has to be zero before a run is so
    again.
    """
    if lease is None and mend is None:
        if len(works) == 1:
            return works[0]

        def run_all() -> None:
            for work in works:
                work()

        return run_all

    def run() -> None:
        with lease or _ANY_TIME:
            try:
                for work in works:
                    work()
            except BaseException:
                if mend is not None:
                    mend()
                raise

    return run


@dataclass(frozen=True, slots=True)
class Prepared:
    """The launches of a program, bound: calling it launches them.

    lease: of memory that every launch writes anew. mend: what is done after an exception.

    checks: that what is bound still lies where it did; each raises `ArgumentError` if not. fixed:
    whether values went into memory when they were bound, so that others would have to be bound
    anew.
    """

    pieces: tuple[Piece, ...]
    lease: Lease | None = None
    checks: tuple[Callable[[], None], ...] = ()
    fixed: bool = False
    mend: Mend = None
    _work: list[Work] = field(default_factory=list[Work], init=False, compare=False)

    @property
    def waits(self) -> bool:
        """Whether the host takes part, so that no graph can hold it."""
        return any(p.waits for p in self.pieces)

    def check(self) -> None:
        """Raise `ArgumentError` where an array was changed in length.

        Graphs ask this before they launch as well.
        """
        for check in self.checks:
            check()

    def __call__(self) -> None:
        for check in self.checks:
            check()
        (self._work[0] if self._work else self._made())()

    def run(self) -> None:
        """Launch, without asking."""
        (self._work[0] if self._work else self._made())()

    def _made(self) -> Work:
        """The launches as a function, from the first run on: by then they are compiled."""
        self._work.append(at_a_stretch([p.work() for p in self.pieces], self.lease, self.mend))
        return self._work[0]

    def part(self, begin: int, end: int | None = None) -> Work:
        """Some of the launches as a function, for code that has the lease.

        An exception within them is mended like one within all of them.
        """
        return at_a_stretch([p.work() for p in self.pieces[begin:end]], None, self.mend)

    def elsewhere(self, views: Views, memory: Mapping[str, Any]) -> Prepared:
        """The same launches with these arrays instead of those of their names."""
        pieces = tuple(
            replace(p, kept=tuple(k for k in p.kept if k[0] not in memory)).bound(views, memory)
            for p in self.pieces
        )
        return replace(self, pieces=pieces)

    def opened(self, arrays: frozenset[str], values: frozenset[str]) -> Flat | None:
        """The same launches, open for these arrays and values; None where values are fixed."""
        if self.fixed:
            return None
        opened = tuple(_opened(p, arrays, values) for p in self.pieces)
        return Flat(opened, self.lease, self.mend)


def _opened(p: Piece, arrays: frozenset[str], values: frozenset[str]) -> Piece:
    arguments = list(p.arguments)
    open_arrays = tuple(a for a in p.arrays if a[0] in arrays)
    for _, places, where in open_arrays:
        arguments[where] = [None] * len(places.starts)
    kept = tuple(memory for memory in p.kept if memory[0] not in arrays)
    still = tuple(v for v in p.values if v[0] in values)
    return replace(p, arguments=tuple(arguments), arrays=open_arrays, values=still, kept=kept)
