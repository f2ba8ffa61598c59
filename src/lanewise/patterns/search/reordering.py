"""Elements that are brought into the order of a structure, where calls are bound to them.

fill the structure from where the elements are
copy each array, in that order, to spare memory
copy all of it back
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from lanewise.compiler.default_plans import complete_plan
from lanewise.ir.names import COUNT
from lanewise.ir.pattern import Work
from lanewise.ir.values import value_leaves
from lanewise.language.record import Leaf
from lanewise.language.types import I32
from lanewise.launch.arguments import bind_value_array
from lanewise.launch.programs import Programs
from lanewise.launch.steps.task import Task, bound_each_step
from lanewise.launch.support import bind_record, index_type, machine_of
from lanewise.launch.task_list import BoundArray, Renamed, TaskList, Written
from lanewise.launch.tasks import Buffer, Primitive, Role, reading, writing
from lanewise.layouts import AoS, Layout
from lanewise.patterns.elements import ELEMENTWISE
from lanewise.patterns.search.base import HOST_BUILDS, ORDER, POSITIONS, Structure
from lanewise.patterns.search.gather import SORTED, build_gather
from lanewise.records.arrays import RecordArray
from lanewise.runtime.memory import copy_bytes
from lanewise.runtime.programs import NamedLaunch


@dataclass(frozen=True, slots=True)
class Moved:
    """An array of elements, and as much spare memory, in one layout."""

    name: str
    leaves: tuple[Leaf, ...]
    layout: Layout
    array: BoundArray
    spare: BoundArray

    @classmethod
    def of(cls, name: str, array: Any, spare: Any) -> Moved:
        """An array of records, or of int32."""
        if isinstance(array, RecordArray):
            both = bind_record(array), bind_record(spare)
            return cls(name, array.record.leaves, array.layout, *both)
        both = bind_value_array(array, I32), bind_value_array(spare, I32)
        return cls(name, value_leaves(I32), AoS(), *both)

    @property
    def spare_name(self) -> str:
        return f"spare {self.name}"


def reordering(structure: Structure, device: str, moved: Sequence[Moved]) -> TaskList:
    """What brings arrays into the order of a structure; the first one is that of its sources."""
    first, *_ = moved
    parts = structure.parts({POSITIONS: first.name}, device)
    plan = complete_plan(None, machine_of(device), Work(ELEMENTWISE, first.array.count))
    programs, index = Programs(), index_type(device)
    for m in moved:
        lies = m.leaves, m.layout
        gather = partial(build_gather, first.name, *lies, *lies, index)
        kernel = programs.get(lies, gather, plan, device)
        parts.append(Renamed(kernel, {first.name: m.name, SORTED: m.spare_name}))

    def back() -> None:
        for m in moved:
            copy_bytes(device, m.array.data, m.spare.data)

    names, spares = [m.name for m in moved], [m.spare_name for m in moved]
    copy = Primitive("copy back", back, (*reading(*spares), *writing(*names)))
    arguments = {n: Buffer(n, Role.ARGUMENT) for n in names}
    parts.append(Written(copy, device, arguments, frozenset(names)))
    buffers = {n: Buffer(n, Role.TEMPORARY) for n in spares}
    return TaskList("reorder", device, tuple(parts), buffers)


def reorder_task(structure: Structure, device: str, moved: Sequence[Moved]) -> Task:
    """The same as a call of a loop."""
    tasks = reordering(structure, device, moved)
    arrays = {m.name: m.array for m in moved} | {m.spare_name: m.spare for m in moved}
    arrays |= {**structure.arrays, **structure.clean}
    arrays[ORDER] = bind_value_array(structure.order, I32)
    count = {COUNT: moved[0].array.count}
    prepared = tasks.bound(arrays, count)
    builds = len(structure.tasks())
    launches = [
        NamedLaunch("build", "structure", prepared.part(0, builds)),
        NamedLaunch("build", tasks.name, prepared.part(builds)),
    ]
    return Task(
        tasks.name,
        "search",
        lambda _: launches,
        device,
        alone="" if structure.in_graphs else HOST_BUILDS,
        checks=(prepared.check,),
        bound=bound_each_step(tasks, prepared, structure.arrays, call=(tasks, count)),
    )
