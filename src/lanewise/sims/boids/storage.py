"""Where agents lie in memory: sometimes they are brought into the order in which their search
lists them.

Neighbours in the world are then neighbours in memory, and what a search gathers comes in whole
lines. It happens in steps whose number is a multiple of `REORDER`, so bits do not depend on how a
run is divided; a checkpoint keeps the places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

import lanewise as lw
from lanewise.records.arrays import class_of
from lanewise.sims.common.devices import array_module, bring, on, to_host
from lanewise.sims.common.loops import Task, mesh_call
from lanewise.sims.common.meshes import split_values, values_on_host
from lanewise.sims.common.searches import PartOrders, Rooms, Structure, reorder_call

REORDER = (
    # steps: as many as a graph holds; at full speed an agent flies 4.8 in them, half of OpenSteer's
    # search radius
    32
)


class AgentPlaces(Protocol):
    """The places of agents."""

    @property
    def numbers(self) -> NDArray[np.int32]:
        """The caller's row of the agent at each place, on the host."""
        ...

    @property
    def rows(self) -> Any:
        """The same where agents lie: an array, or one of each part of a mesh."""
        ...

    def set(self, numbers: NDArray[np.int32]) -> None:
        """Say whose places they are."""
        ...

    def call(self) -> Task:
        """What brings agents and their rows into the order of their search, as a call of a loop."""
        ...

    def by_row(self, values: Any) -> Any:
        """Values of agents (n, ...), in the order of places, in the caller's order: a copy where
        they lie.
        """
        ...


class AgentStorage:
    """The places of agents. `rows`: the caller's row of the agent at each place, int32 on the
    device.
    """

    def __init__(self, boids: lw.RecordArray, structure: Structure) -> None:
        self._boids, self._structure = boids, structure
        self._module = array_module(boids.device)
        self.rows = self._module.arange(len(boids), dtype="int32")
        self._spare_rows = self._module.empty_like(self.rows)
        self._spare = type(boids).zeros(
            boids.record, len(boids), layout=boids.layout, device=boids.device,
            python_class=class_of(boids),
        )  # fmt: skip

    @property
    def numbers(self) -> NDArray[np.int32]:
        return np.array(to_host(self.rows))

    def set(self, numbers: NDArray[np.int32]) -> None:
        with on(self._boids.device):
            self.rows[...] = bring(numbers, self._boids.device)

    def call(self) -> Task:
        """Build the structure of the present positions, and move agents and their rows into its
        order.
        """
        moved = {"boids": (self._boids, self._spare), "rows": (self.rows, self._spare_rows)}
        return reorder_call(self._structure, self._boids.device, moved)

    def by_row(self, values: Any) -> Any:
        """Values of agents (n, ...), in the order of places, in the caller's order: a copy on the
        device.
        """
        result = self._module.empty_like(values)
        with on(self._boids.device):
            result[self.rows] = values
        return result


class MeshStorage:
    """The same of agents on a mesh. Each part keeps as many places as it has; so it has agents that
    are neighbours.

    moved: called when agents have other places.
    """

    def __init__(
        self, rooms: Rooms, structures: Sequence[Structure], moved: Callable[[], None]
    ) -> None:
        self._rooms, self._moved = rooms, moved
        self._orders = PartOrders(rooms, structures)

    @property
    def rows(self) -> tuple[Any, ...]:
        return self._orders.numbers

    @property
    def numbers(self) -> NDArray[np.int32]:
        own = np.concatenate([to_host(own) for own in self.rows])
        return self._rooms.mesh.gather(own, self._rooms.lengths)

    def set(self, numbers: NDArray[np.int32]) -> None:
        parts = zip(self.rows, self._rooms.own, self._rooms.devices, strict=True)
        for own, places, device in parts:
            with on(device):
                own[...] = bring(numbers[places.start : places.stop], device)

    def call(self) -> Task:
        def order() -> None:
            self._orders()
            self._moved()

        parts = [self._rooms.part(n) for n, own in enumerate(self._rooms.own) if own]
        both = [*parts, *(own for own in self.rows if len(own))]
        return mesh_call("build", "order", order, self._rooms.devices, reads=both, writes=both)

    def by_row(self, values: Any) -> Any:
        there = values_on_host(values)
        result = np.empty_like(there)
        result[self.numbers] = there
        return split_values(result, self._rooms.mesh, values.lengths)


def make_storage(
    boids: lw.RecordArray, structure: Structure | None, think_every: int
) -> AgentStorage | None:
    """None where agents keep the caller's order: all pairs list them so, and which ones think goes
    by their rows.
    """
    if structure is None or structure.order is None or think_every > 1:
        return None
    return AgentStorage(boids, structure)


def make_mesh_storage(
    rooms: Rooms, structures: Sequence[Structure], moved: Callable[[], None]
) -> MeshStorage | None:
    """The same on a mesh."""
    if not structures or not len(rooms.array) or structures[0].order is None:
        return None
    return MeshStorage(rooms, structures, moved)
