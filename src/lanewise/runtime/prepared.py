"""Kernels with everything bound; and templates, in which later calls put other arrays and values.

Binding looks up where arrays lie, evaluates sizes and grids, and allocates what a program keeps beside its arguments. A call like an
earlier one repeats none of that: it brings addresses and numbers.

Memory that belongs to a bound call is used in turns, one use at a time, whichever threads and streams call it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lanewise.support.errors import ArgumentError

Arguments = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class ArrayPlace:
    """Where a buffer of an array stands among the arguments of a kernel: `nbytes` of its memory, from `offset` on."""

    name: str
    position: int
    offset: int
    nbytes: int
    dtype: Any


def host_view(data: Any, place: ArrayPlace) -> Any:
    """The argument for a place in the memory of an array on the host."""
    return data[place.offset : place.offset + place.nbytes].view(place.dtype)


@dataclass(frozen=True, slots=True)
class Piece:
    """One kernel of a program. `run` launches it with arguments like these; `values`: uniforms by name, each with its position.

    kept: memory that the arguments point to. rigid: whether it depends on arrays or values in another way than by its arguments.
    """

    run: Callable[[Arguments], None]
    arguments: Arguments
    arrays: tuple[ArrayPlace, ...]
    values: tuple[tuple[str, int], ...]
    kept: tuple[Any, ...] = ()
    rigid: bool = False


@dataclass(frozen=True, slots=True)
class Prepared:
    """The kernels of a program, bound. Calling it launches them. `turns`: at memory that every launch writes anew.

    checks: that what is bound still lies where it did; each raises `ArgumentError` if not.
    """

    pieces: tuple[Piece, ...]
    turns: Turns | None = None
    checks: tuple[Callable[[], None], ...] = ()

    def check(self) -> None:
        """Raise `ArgumentError` where an array was changed in length. Graphs ask this before they launch, too."""
        for check in self.checks:
            check()

    def __call__(self) -> None:
        for check in self.checks:
            check()
        if self.turns is None:
            for p in self.pieces:
                p.run(p.arguments)
            return
        with self.turns:
            for p in self.pieces:
                p.run(p.arguments)

    def template(self, arrays: frozenset[str], values: frozenset[str]) -> Template | None:
        """The same launches for other memory of these arrays and for other values, by name; None where one of them is rigid."""
        if any(p.rigid for p in self.pieces):
            return None
        return Template(tuple(_opened(p, arrays, values) for p in self.pieces), self.turns)


@dataclass(frozen=True, slots=True)
class Open:
    """A kernel that waits for arrays and values. arrays: of each its name, its places, and which arguments they are if in a row."""

    run: Callable[[Arguments], None]
    arguments: Arguments
    arrays: tuple[tuple[str, tuple[ArrayPlace, ...], slice | None], ...]
    values: tuple[tuple[str, int], ...]
    kept: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Template:
    """Launches that wait for arrays and values. It keeps no memory alive but what the program has beside its arguments."""

    pieces: tuple[Open, ...]
    turns: Turns | None

    def launch(self, views: Callable[[str, tuple[ArrayPlace, ...]], Sequence[Any]], values: Mapping[str, Any]) -> None:
        """Launch with these. `views` gives the arguments for the places of an array; `values` are numbers of the right types."""
        if self.turns is None:
            for p in self.pieces:
                p.run(_filled(p, views, values))
            return
        with self.turns:
            for p in self.pieces:
                p.run(_filled(p, views, values))

    def closed(
        self,
        arrays: frozenset[str],
        views: Callable[[str, tuple[ArrayPlace, ...]], Sequence[Any]],
        values: Mapping[str, Any],
    ) -> Template:
        """The same launches with these arrays and all values filled in: they wait for the other arrays. It keeps these in memory."""
        return Template(tuple(_closed(p, arrays, views, values) for p in self.pieces), self.turns)


def _opened(p: Piece, arrays: frozenset[str], values: frozenset[str]) -> Open:
    places = {name: tuple(a for a in p.arrays if a.name == name) for name in dict.fromkeys(a.name for a in p.arrays)}
    numbers = tuple((name, position) for name, position in p.values if name in values)
    empty = {a.position for a in p.arrays if a.name in arrays} | {position for _, position in numbers}
    arguments = tuple(None if n in empty else x for n, x in enumerate(p.arguments))
    kept = tuple(memory for name, memory in p.kept if name not in arrays)
    opened = ((n, at, _neighbours(at)) for n, at in places.items() if n in arrays)
    return Open(p.run, arguments, tuple(opened), numbers, kept)


def _closed(
    p: Open,
    arrays: frozenset[str],
    views: Callable[[str, tuple[ArrayPlace, ...]], Sequence[Any]],
    values: Mapping[str, Any],
) -> Open:
    filled = replace(p, arrays=tuple(a for a in p.arrays if a[0] in arrays))
    others = tuple(a for a in p.arrays if a[0] not in arrays)
    return Open(p.run, _filled(filled, views, values), others, (), p.kept)


def _neighbours(places: tuple[ArrayPlace, ...]) -> slice | None:
    first = places[0].position
    in_a_row = all(place.position == first + n for n, place in enumerate(places))
    return slice(first, first + len(places)) if in_a_row else None


def _filled(
    p: Open, views: Callable[[str, tuple[ArrayPlace, ...]], Sequence[Any]], values: Mapping[str, Any]
) -> Arguments:
    arguments = list(p.arguments)
    for name, places, neighbours in p.arrays:
        if neighbours is not None:
            arguments[neighbours] = views(name, places)
            continue
        for place, view in zip(places, views(name, places), strict=True):
            arguments[place.position] = view
    for name, position in p.values:
        arguments[position] = values[name]
    return tuple(arguments)


_RENEWING = [threading.Lock()]  # held while a forked child makes locks of its own


def _in_child() -> None:
    """Nobody holds the child's. It is not one that is released here: that would stay held where Ctrl-C comes between."""
    _RENEWING[0] = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


class Turns:
    """A lock that is held while work is launched on memory that every call of it writes anew.

    Threads wait for each other. On a GPU a launch is over before its work is: a call on another stream than the call before waits
    for that stream first (`follow`, given the last stream, returns the present one). In a forked child nobody holds the lock. Where
    somebody held it when the process forked, the memory is half written for good, and entering raises `ArgumentError`.
    """

    __slots__ = ("_broken", "_follow", "_lock", "_process", "_stream", "_what")

    def __init__(self, what: str, follow: Callable[[Any], Any] | None = None) -> None:
        self._what, self._follow = what, follow
        self._lock, self._process, self._broken = threading.Lock(), os.getpid(), False
        self._stream: Any = None

    def __enter__(self) -> None:
        if self._process != os.getpid():
            with _RENEWING[0]:
                if self._process != os.getpid():  # several threads of the child may come here
                    self._broken |= self._lock.locked()
                    self._lock = threading.Lock()
                    self._process = os.getpid()
        if self._broken:
            raise ArgumentError(
                f"{self._what}: another thread was calling it when this process was forked, and nobody finishes that call here; "
                "bind it again in the child"
            )
        self._lock.acquire()
        if self._follow is not None:
            try:
                self._stream = self._follow(self._stream)
            except BaseException:
                self._lock.release()
                raise

    def __exit__(self, *exception: object) -> None:
        self._lock.release()
