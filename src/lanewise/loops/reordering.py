"""A call of a loop that brings elements into the order of a search, where its calls are bound."""

from __future__ import annotations

from collections.abc import Sequence

from lanewise.launch.steps.task import Task, told
from lanewise.loops.searches import BUILD, HOST_BUILDS
from lanewise.patterns.search.base import Structure
from lanewise.patterns.search.reordering import Moved, bound_reordering
from lanewise.runtime.programs import NamedLaunch


def reorder_task(structure: Structure, device: str, moved: Sequence[Moved]) -> Task:
    """Build the structure of where its sources are, and move them, and what goes with them, into
    its order.
    """
    tasks, prepared = bound_reordering(structure, device, moved)
    builds = len(structure.tasks())
    launches = [
        NamedLaunch(BUILD, "structure" if n < builds else tasks.name, piece.work())
        for n, piece in enumerate(prepared.pieces)
    ]
    return Task(
        tasks.name,
        "search",
        lambda _: launches,
        device,
        alone="" if structure.in_graphs else HOST_BUILDS,
        checks=(prepared.check,),
        bound=told(tasks, prepared, structure.arrays),
    )
