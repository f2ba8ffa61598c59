"""Where agents lie in memory: now and then they are brought into the order in which their search lists them.

Neighbours in the world are then neighbours in memory, and what a search gathers comes in whole lines. It happens in steps whose number
is a multiple of `REORDER`, so bits do not depend on how a run is divided; a checkpoint keeps the places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lanewise import types as t
from lanewise.arrays import RecordArray
from lanewise.ir.names import COUNT
from lanewise.kernels.arguments import bind_value_array
from lanewise.kernels.support import bind_record, compile_kernel, index_type, machine_of
from lanewise.patterns.gather import SORTED, build_gather
from lanewise.plans import complete_plan
from lanewise.runtime.launches import NamedLaunch
from lanewise.runtime.memory import array_module
from lanewise.search.base import ORDER, Structure
from lanewise.work import Work

REORDER = 32  # steps: as many as a graph holds; an agent crosses half of its search radius in them


class Storage:
    """The places of agents. `rows`: the caller's row of the agent at each place, int32 on the device."""

    def __init__(self, boids: RecordArray, structure: Structure) -> None:
        self._boids, self._structure = boids, structure
        self._module = array_module(boids.device)
        self.rows = self._module.arange(len(boids), dtype="int32")
        self._spare_rows = self.rows.copy()
        self._spare = type(boids).zeros(
            boids.record, len(boids), layout=boids.layout, device=boids.device,
            python_class=boids._python_class,  # pyright: ignore[reportPrivateUsage]
        )  # fmt: skip
        self._gather = self._bound_gather()

    def launches(self) -> Sequence[NamedLaunch]:
        """Build the structure of the present positions, and move agents and their rows into its order."""
        build = (NamedLaunch("build", "structure", work) for work in self._structure.launches())
        return [*build, NamedLaunch("build", "reorder", self._gather), NamedLaunch("build", "reorder", self._keep)]

    def by_row(self, values: Any) -> Any:
        """Values of agents (n, ...), in the order of places, in the caller's order: a copy on the device."""
        result = self._module.empty_like(values)
        result[self.rows] = values
        return result

    def _bound_gather(self) -> Any:
        boids, order = self._boids, bind_value_array(self._structure.order, t.I32)
        leaves, layout = boids.record.leaves, boids.layout
        naive = build_gather("boids", leaves, layout, leaves, layout, index_type(boids.device))
        plan = complete_plan(None, machine_of(boids.device), Work("elementwise", len(boids)))
        arrays = {"boids": bind_record(boids), ORDER: order, SORTED: bind_record(self._spare)}
        return compile_kernel(naive, plan, boids.device).prepare(arrays, {COUNT: len(boids)})

    def _keep(self) -> None:
        """From the spare memory back to where kernels are bound to, in one piece: layouts are equal."""
        self._boids.data[...] = self._spare.data
        self._module.take(self.rows, self._structure.order, out=self._spare_rows, mode="wrap")
        self.rows[...] = self._spare_rows


def make_storage(boids: RecordArray, structure: Structure | None, think_every: int) -> Storage | None:
    """None where agents keep the caller's order: all pairs list them so, and which ones think goes by their rows."""
    if structure is None or structure.order is None or think_every > 1:
        return None
    return Storage(boids, structure)
