"""Kernels with everything bound; and templates, in which later calls put other arrays and values.

Binding looks up where arrays lie, evaluates sizes and grids, and allocates what a program keeps beside its arguments. A call like an
earlier one repeats none of that: it brings addresses and numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lanewise.runtime.turns import Turns

Arguments = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class ArrayPlace:
    """Where a buffer of an array stands among the arguments of a kernel: so many bytes of its memory, from `offset` on."""

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
    """The kernels of a program, bound. Calling it launches them. `turns`: at memory that every launch writes anew."""

    pieces: tuple[Piece, ...]
    turns: Turns | None = None

    def __call__(self) -> None:
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
    """A kernel that waits for arrays and values. arrays: of each by name, where its buffers stand, and the position of its only one."""

    run: Callable[[Arguments], None]
    arguments: Arguments
    arrays: tuple[tuple[str, tuple[ArrayPlace, ...], int | None], ...]
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


def _opened(p: Piece, arrays: frozenset[str], values: frozenset[str]) -> Open:
    places = {name: tuple(a for a in p.arrays if a.name == name) for name in dict.fromkeys(a.name for a in p.arrays)}
    numbers = tuple((name, position) for name, position in p.values if name in values)
    empty = {a.position for a in p.arrays if a.name in arrays} | {position for _, position in numbers}
    arguments = tuple(None if n in empty else x for n, x in enumerate(p.arguments))
    kept = tuple(memory for name, memory in p.kept if name not in arrays)
    opened = ((n, at, at[0].position if len(at) == 1 else None) for n, at in places.items() if n in arrays)
    return Open(p.run, arguments, tuple(opened), numbers, kept)


def _filled(
    p: Open, views: Callable[[str, tuple[ArrayPlace, ...]], Sequence[Any]], values: Mapping[str, Any]
) -> Arguments:
    arguments = list(p.arguments)
    for name, places, only in p.arrays:
        if only is not None:
            arguments[only] = views(name, places)[0]
            continue
        for place, view in zip(places, views(name, places), strict=True):
            arguments[place.position] = view
    for name, position in p.values:
        arguments[position] = values[name]
    return tuple(arguments)
