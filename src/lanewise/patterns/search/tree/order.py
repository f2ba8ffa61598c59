"""The order of a tree's elements, where they are."""

from __future__ import annotations

from typing import Any, Protocol

from lanewise.language.target import target_of
from lanewise.launch.tasks import Primitive
from lanewise.patterns.search.builders.hilbert_device import device_order
from lanewise.patterns.search.builders.hilbert_host import HostOrder
from lanewise.patterns.search.points import Points
from lanewise.runtime.memory import PlannedPieces


class Order(Protocol):
    """What makes the caller's index of each sorted place, and memory for it."""

    planned: tuple[PlannedPieces, ...]

    @property
    def order(self) -> Any:
        """int32, shape (count,), on the device of the points."""
        ...

    def tasks(self, positions: str, order: str) -> tuple[Primitive, ...]:
        """What makes it of the present positions, wherever a call has it. positions, order: what a
        call names them.
        """
        ...


def made_order(points: Points) -> Order:
    """An order for these points, not made yet: that in which they are."""
    if target_of(points.device).host_memory:
        return HostOrder(points)
    return device_order(points)
