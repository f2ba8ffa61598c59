"""Calls that keep an order of their elements for some steps of a loop.

    order of far: in every 32nd step of those that have the call; far: in all of them
Any order gives right results, and a worse one takes longer: so it is made in steps whose numbers
say so, wherever a run is cut. It is the loop's own: neither a call by hand nor another loop over
the same call changes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.language.types import I32
from lanewise.launch.arguments import bind_value_array
from lanewise.launch.by_step import SteppedLaunch
from lanewise.launch.compiled import Call
from lanewise.launch.steps.task import States, Task, Timed, bound_each_step
from lanewise.launch.task_list import views_of_memory
from lanewise.loops.searches import BUILD
from lanewise.patterns.mesh_launch import MeshLaunch, MeshRound
from lanewise.patterns.search.searched_launch import SearchedLaunch, orders_of
from lanewise.runtime.memory import allocate, copy_whole, device_of, on, to_host
from lanewise.runtime.prepared import Prepared
from lanewise.runtime.programs import NamedLaunch, Work


def searched_launches(call: Call) -> tuple[SearchedLaunch, ...]:
    """The launches of a call over a search, on a mesh of each part; none of other calls."""
    launch: Work = call.launch
    if isinstance(launch, SteppedLaunch):
        launch = launch.launch
    found = [c.launch for c in _calls_of(launch)] if isinstance(launch, MeshLaunch) else [launch]
    return tuple(x for x in found if isinstance(x, SearchedLaunch))


def _calls_of(launch: MeshLaunch) -> tuple[Call, ...]:
    """Those of the parts that search."""
    return launch.rounds[0].calls


@dataclass(frozen=True, slots=True, eq=False)
class KeptOrder:
    """An order that a loop keeps. copies: the same one of each part of a mesh, or one."""

    copies: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.copies[0])

    def on_host(self) -> NDArray[np.int32]:
        """A copy of it."""
        with on(device_of(self.copies[0])):
            return np.array(to_host(self.copies[0]), np.int32)

    def fill(self, order: NDArray[np.int32]) -> None:
        """Take another one."""
        for copy in self.copies:
            copy_whole(copy, order)


@dataclass(frozen=True, slots=True)
class OwnOrder:
    """The order of a call that a loop has for itself. arrays: of sources, and of targets that are
    other elements, by their names, of each part; making: the launches of each part on them.
    """

    arrays: tuple[Mapping[str, Any], ...]
    making: tuple[SearchedLaunch, ...]

    @classmethod
    def of(cls, parts: Sequence[SearchedLaunch], devices: Sequence[str]) -> OwnOrder:
        """Memory for it, with whatever is there. devices: of the parts."""
        arrays = tuple(
            {
                name: allocate(device, order.nbytes, "the order of a loop").view(np.int32)
                for name, order in orders_of(searched.structure)
            }
            for searched, device in zip(parts, devices, strict=True)
        )
        each = zip(parts, devices, arrays, strict=True)
        return cls(arrays, tuple(s.on_orders(device, own) for s, device, own in each))

    @property
    def orders(self) -> tuple[KeptOrder, ...]:
        """As the loop shows them."""
        return tuple(KeptOrder(tuple(own[name] for own in self.arrays)) for name in self.arrays[0])


def devices_of(call: Call) -> tuple[str, ...]:
    """That of a call, or those of its parts."""
    launch = call.launch
    if isinstance(launch, MeshLaunch):
        return launch.mesh.devices
    return (call.compiled.executable.device,)


def is_order(order: Any, count: int) -> bool:
    """Whether it names each of so many elements once."""
    return np.shape(order) == (count,) and np.array_equal(np.sort(order), np.arange(count))


def keeping_order(call: Call, own: OwnOrder) -> Call:
    """The same call on the order that a loop has."""
    launch: Work = call.launch
    if not isinstance(launch, MeshLaunch):
        return _keeping(call, own.making[0])
    search, *others = launch.rounds
    pairs = zip(search.calls, own.making, strict=True)
    first = replace(search, calls=tuple(_keeping(part, making) for part, making in pairs))
    rest = [replace(r, calls=tuple(map(_reading, r.calls, own.arrays))) for r in others]
    return replace(call, launch=replace(launch, rounds=(first, *rest)))


def _keeping(call: Call, making: SearchedLaunch) -> Call:
    """A call that makes no order."""
    launch: Work = making.keeping_order(call.compiled.executable.device)
    if isinstance(call.launch, SteppedLaunch):
        launch = replace(call.launch, launch=launch)
    tasks = call.compiled.tasks
    left = replace(tasks, parts=tasks.parts[making.orders :])
    return replace(call, launch=launch, compiled=replace(call.compiled, tasks=left))


def _reading(call: Call, arrays: Mapping[str, Any]) -> Call:
    """What takes results in this order."""
    launch = call.launch
    assert isinstance(launch, Prepared)
    memory = {n: bind_value_array(order, I32).data for n, order in arrays.items()}
    views = views_of_memory(memory, call.compiled.executable.device)
    return replace(call, launch=launch.elsewhere(views, memory))


def order_task(call: Call, own: OwnOrder, on_mesh: Callable[[Task, MeshLaunch], Task]) -> Task:
    """What makes the order. It is made once now: a loop may begin at any step. on_mesh: the task
    that such launches are.
    """
    name, device = f"order of {call.compiled.name}", call.compiled.executable.device
    plain = Task(name, "search", _nothing, device, orders=own.orders)
    mesh = call.launch
    if isinstance(mesh, MeshLaunch):
        pairs = zip(_calls_of(mesh), own.making, strict=True)
        making = tuple(_making(part, launch) for part, launch in pairs)
        launch = replace(mesh, rounds=(MeshRound(mesh.rounds[0].brought, making, "order"),))
        launch()
        return on_mesh(plain, launch)
    made = _making(call, own.making[0])
    ordering = made.launch
    assert isinstance(ordering, Prepared)
    with on(device):
        ordering.run()
    launches = [NamedLaunch(BUILD, "order", ordering.run)]
    first = made.compiled.tasks
    bound = bound_each_step(first, ordering, call=(first, call.compiled.environment))

    def launches_of(states: States) -> Sequence[NamedLaunch]:
        del states
        return launches

    checks = (own.making[0].check,)
    return replace(plain, launches=launches_of, checks=checks, bound=bound)


def _making(call: Call, making: SearchedLaunch) -> Call:
    """The launches that make an order, as a call."""
    tasks = call.compiled.tasks
    first = replace(tasks, parts=tasks.parts[: making.orders])
    return Call(making.ordering, (), replace(call.compiled, tasks=first))


def _nothing(states: States) -> Sequence[NamedLaunch]:
    del states
    return ()


def with_orders(lists: Sequence[Sequence[Timed]], longest: int) -> tuple[tuple[Timed, ...], ...]:
    """The lists of a loop with orders in front of the calls that keep them. longest: the cycle that
    they may make, in steps; where it would be longer an order is made for each run of its call. A
    call that stands in a list several times has one order for all of them.
    """
    cycle = len(lists)

    def due(place: int, timed: Timed, times: int) -> tuple[int, int]:
        """Every how many steps a call has run so many times, and at which of them."""
        both = lcm(cycle, timed.every)
        at = next(n for n in range(place, both, cycle) if n % timed.every == timed.at)
        return both * times, at

    def ahead(place: int, some: Sequence[Timed], *, kept: bool) -> Iterator[Timed]:
        seen = set[tuple[int, int, int]]()
        for timed in some:
            task = timed.task
            if task.before is not None:
                rhythm = id(task.before), timed.every, timed.at
                if rhythm not in seen:
                    yield Timed(task.before, *due(place, timed, task.kept if kept else 1))
                seen.add(rhythm)
            yield timed

    def made(*, kept: bool) -> tuple[tuple[Timed, ...], ...]:
        return tuple(tuple(ahead(place, some, kept=kept)) for place, some in enumerate(lists))

    whole = made(kept=True)
    steps = lcm(cycle, *(t.every for some in whole for t in some))
    return whole if steps <= longest else made(kept=False)
