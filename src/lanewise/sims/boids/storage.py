"""Where agents lie in memory: now and then they are brought into the order in which their search
lists them.

Neighbours in the world are then neighbours in memory, and what a search gathers comes in whole
lines. It happens in steps whose number is a multiple of `REORDER`, so bits do not depend on how a
run is divided; a checkpoint keeps the places.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import lanewise as lw
from lanewise.ir.values import value_leaves
from lanewise.language import types as t
from lanewise.launch.arguments import bind_value_array
from lanewise.launch.steps.task import Task
from lanewise.launch.support import bind_record
from lanewise.loops.functions import device_task
from lanewise.loops.searches import HOST_BUILDS
from lanewise.patterns.search.base import Structure
from lanewise.patterns.search.gather import bind_ordering
from lanewise.records.arrays import class_of
from lanewise.records.binding import places_of, side_of
from lanewise.records.two_sides import EVERY
from lanewise.runtime.memory import copy_bytes
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
        order = bind_value_array(structure.order, t.I32)
        mine, spare = bind_record(boids), bind_record(self._spare)
        rows, spare_rows = (bind_value_array(a, t.I32) for a in (self.rows, self._spare_rows))
        of_boids = ("boids", boids.record.leaves, boids.layout, mine, order, spare)
        of_rows = ("boids", value_leaves(t.I32), lw.AoS(), rows, order, spare_rows)
        self._moves = [bind_ordering(boids.device, *moved) for moved in (of_boids, of_rows)]

    def call(self) -> Task:
        """Build the structure of the present positions, and move agents and their rows into its
        order.
        """
        back = _Keep(self._boids, self._spare, self.rows, self._spare_rows)
        build = (NamedLaunch("build", "structure", work) for work in self._structure.launches())
        moves = (NamedLaunch("build", "reorder", work) for work in (*self._moves, back))
        alone = "" if self._structure.in_graphs else HOST_BUILDS
        return device_task("reorder", [*build, *moves], self._boids.device, alone=alone)

    def by_row(self, values: Any) -> Any:
        """Values of agents (n, ...), in the order of places, in the caller's order: a copy on the
        device.
        """
        result = self._module.empty_like(values)
        with on(self._boids.device):
            result[self.rows] = values
        return result


@dataclass(frozen=True, slots=True)
class _Keep:
    """Copies from the spare memory back to where kernels are bound to, in one piece: layouts are
    equal.
    """

    boids: lw.RecordArray
    spare: lw.RecordArray
    rows: Any
    spare_rows: Any

    def check(self) -> None:
        """Say that all fields are changed. Graphs ask this before they are launched."""
        side_of(self.boids).write(EVERY)

    def __call__(self) -> None:
        self.check()
        copy_bytes(self.boids.device, places_of(self.boids).data, places_of(self.spare).data)
        copy_bytes(self.boids.device, self.rows, self.spare_rows)


def make_storage(
    boids: lw.RecordArray, structure: Structure | None, think_every: int
) -> AgentStorage | None:
    """None where agents keep the caller's order: all pairs list them so, and which ones think goes
    by their rows.
    """
    if structure is None or structure.order is None or think_every > 1:
        return None
    return AgentStorage(boids, structure)
