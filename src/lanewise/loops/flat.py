"""The launches of a bound call as plain functions, without what a call asks each time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from lanewise.runtime.prepared import Piece, Prepared, Turns
from lanewise.runtime.programs import Work


def flat(prepared: Prepared) -> tuple[Work, ...]:
    """What a prepared program launches: a function a kernel, or one that takes turns at memory."""
    works = tuple(p.work() for p in prepared.pieces)
    if prepared.turns is None:
        return works
    return (in_turn(prepared.turns, works, prepared.mend),)


def in_turn(turns: Turns, works: Sequence[Work], mend: Callable[[], None] | None = None) -> Work:
    """All of these at a stretch, with memory that one caller uses at a time. mend: is done after an
    exception.
    """

    def run() -> None:
        with turns:
            try:
                for work in works:
                    work()
            except BaseException:
                if mend is not None:
                    mend()
                raise

    return run


def in_order(works: Sequence[Work]) -> Work:
    """All of these as one."""
    if len(works) == 1:
        return works[0]

    def run() -> None:
        for work in works:
            work()

    return run


def fillable(prepared: Prepared, names: Iterable[str]) -> bool:
    """Whether these numbers are arguments of the kernels, and nothing else follows from them."""
    taken = {name for p in prepared.pieces for name, _ in p.values}
    return taken.issuperset(names)


def filling(prepared: Prepared, names: frozenset[str]) -> Callable[[Mapping[str, Any]], Work]:
    """What makes the launches of a prepared program with other numbers of these names."""
    places = [(p, [(n, at) for n, at in p.values if n in names]) for p in prepared.pieces]
    turns = prepared.turns
    if turns is None and len(places) == 1:
        return partial(_filled, *places[0])

    def fill(numbers: Mapping[str, Any]) -> Work:
        works = [_filled(piece, values, numbers) for piece, values in places]
        return in_order(works) if turns is None else in_turn(turns, works, prepared.mend)

    return fill


def _filled(piece: Piece, values: Sequence[tuple[str, int]], numbers: Mapping[str, Any]) -> Work:
    arguments = list(piece.arguments)
    for name, at in values:
        arguments[at] = numbers[name]
    return piece.work(tuple(arguments))
