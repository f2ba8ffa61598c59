"""Where agents lie in memory: now and then they are brought into the order in which their search
lists them.

Neighbours in the world are then neighbours in memory, and what a search gathers comes in whole
lines. It happens in steps whose number is a multiple of `REORDER`, so bits do not depend on how a
run is divided; a checkpoint keeps the places.
"""

from __future__ import annotations

from typing import Any

import lanewise as lw
from lanewise.ir.values import value_leaves
from lanewise.language import types as t
from lanewise.launch.arguments import bind_value_array
from lanewise.launch.joined import Owned, memory_of
from lanewise.launch.steps.task import Task, told
from lanewise.launch.support import bind_record
from lanewise.launch.tasks import Role
from lanewise.loops.searches import HOST_BUILDS
from lanewise.patterns.search.base import Structure
from lanewise.patterns.search.reordering import Moved, bound_reordering
from lanewise.records.arrays import class_of
from lanewise.runtime.programs import NamedLaunch
from lanewise.sims.common.devices import array_module, on

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
        rows, spare_rows = (bind_value_array(a, t.I32) for a in (self.rows, self._spare_rows))
        self._moved = (
            Moved(
                "boids",
                boids.record.leaves,
                boids.layout,
                bind_record(boids),
                bind_record(self._spare),
            ),
            Moved("rows", value_leaves(t.I32), lw.AoS(), rows, spare_rows),
        )

    def call(self) -> Task:
        """Build the structure of the present positions, and move agents and their rows into its
        order.
        """
        structure, device = self._structure, self._boids.device
        order = bind_value_array(structure.order, t.I32)
        tasks, prepared = bound_reordering(structure, device, order, self._moved)
        builds = len(structure.tasks())
        launches = [
            NamedLaunch("build", "structure" if n < builds else "reorder", piece.work())
            for n, piece in enumerate(prepared.pieces)
        ]
        alone = "" if structure.in_graphs else HOST_BUILDS
        return Task(
            tasks.name,
            "launches",
            lambda _: launches,
            device,
            alone=alone,
            checks=(prepared.check,),
            bound=told(tasks, prepared, structure.arrays),
        )

    def owned(self) -> list[Owned]:
        """The memory that a call writes besides the agents."""
        return [
            Owned("rows", self.rows, Role.ARGUMENT, changed=True),
            Owned("spare rows", self._spare_rows, Role.TEMPORARY),
            Owned("spare agents", memory_of(self._spare), Role.TEMPORARY),
        ]

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
