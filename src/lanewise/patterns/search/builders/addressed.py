"""What follows from where positions lie on a GPU: made once, and anew when they lie elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from lanewise.patterns.search.points import Points

T = TypeVar("T")


class Addressed(Generic[T]):
    """Makes something of the addresses of three coordinates, 0 for axes that there are not, and of
    others behind them. It keeps no memory alive, and what it keeps is replaced whole.
    """

    __slots__ = ("_kept", "_make")

    def __init__(self, make: Callable[[tuple[int, ...]], T]) -> None:
        self._make = make
        self._kept: tuple[tuple[int, ...], T] | None = None

    def __call__(self, points: Points, *others: int) -> T:
        """What is made of these."""
        columns = (*points.addresses(), *([0] * (3 - points.dimension)), *others)
        kept = self._kept
        if kept is None or kept[0] != columns:
            self._kept = kept = columns, self._make(columns)
        return kept[1]
