"""The launches of a bound call as plain functions, without what a call asks each time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from lanewise.runtime.prepared import Piece, Prepared, at_a_stretch
from lanewise.runtime.programs import Work


def flat(prepared: Prepared) -> tuple[Work, ...]:
    """What a prepared program launches: a function a kernel, or one that leases memory."""
    works = tuple([p.work() for p in prepared.pieces])
    if prepared.lease is None and prepared.mend is None:
        return works
    return (at_a_stretch(works, prepared.lease, prepared.mend),)


def fillable(prepared: Prepared, names: Iterable[str]) -> bool:
    """Whether these numbers are arguments of the kernels, and nothing else follows from them."""
    taken = {name for p in prepared.pieces for name, _ in p.values}
    return taken.issuperset(names)


def filling(prepared: Prepared, names: frozenset[str]) -> Callable[[Mapping[str, Any]], Work]:
    """What makes the launches of a prepared program with other numbers of these names."""
    places = [(p, [(n, at) for n, at in p.values if n in names]) for p in prepared.pieces]
    lease, mend = prepared.lease, prepared.mend
    if lease is None and mend is None and len(places) == 1:
        return partial(_filled, *places[0])

    def fill(numbers: Mapping[str, Any]) -> Work:
        return at_a_stretch([_filled(p, values, numbers) for p, values in places], lease, mend)

    return fill


def _filled(piece: Piece, values: Sequence[tuple[str, int]], numbers: Mapping[str, Any]) -> Work:
    arguments = list(piece.arguments)
    for name, at in values:
        arguments[at] = numbers[name]
    return piece.work(tuple(arguments))
