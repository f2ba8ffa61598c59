"""Where agents lie in memory: sometimes they are brought into the order in which their search
lists them.

Neighbours in the world are then neighbours in memory, and what a search gathers comes in whole
lines. It happens in steps whose number is a multiple of `REORDER`, so bits do not depend on how a
run is divided; a checkpoint keeps the places.
"""

from __future__ import annotations

from typing import Any

import lanewise as lw
from lanewise.records.arrays import class_of
from lanewise.sims.common.devices import array_module, on
from lanewise.sims.common.loops import Task
from lanewise.sims.common.searches import Structure, reorder_call

REORDER = (
    # steps: as many as a graph holds; at full speed an agent flies 4.8 in them, half of OpenSteer's
    # search radius
    32
)


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


def make_storage(
    boids: lw.RecordArray, structure: Structure | None, think_every: int
) -> AgentStorage | None:
    """None where agents keep the caller's order: all pairs list them so, and which ones think goes
    by their rows.
    """
    if structure is None or structure.order is None or think_every > 1:
        return None
    return AgentStorage(boids, structure)
