"""Calls that keep an order of their elements for some steps of a loop.

    order of far: in every 32nd step of those that have the call; far: in all of them
Any order gives right results, and a worse one takes longer: so it is made in steps whose numbers
say so, wherever a run is cut. It is the loop's own: neither a call by hand nor another loop over
the same call changes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import lcm
from typing import Any

import numpy as np

from lanewise.launch.by_step import SteppedLaunch
from lanewise.launch.compiled import Call
from lanewise.launch.steps.task import States, Task, Timed, bound_each_step
from lanewise.loops.searches import BUILD
from lanewise.patterns.search.searched_launch import SearchedLaunch, orders_of
from lanewise.runtime.memory import allocate, on
from lanewise.runtime.programs import NamedLaunch, Work


def searched_launch(call: Call) -> SearchedLaunch | None:
    """The launches of a call over a search; None for other calls."""
    launch: Work = call.launch
    if isinstance(launch, SteppedLaunch):
        launch = launch.launch
    return launch if isinstance(launch, SearchedLaunch) else None


@dataclass(frozen=True, slots=True)
class OwnOrder:
    """The order of a call that a loop has for itself. arrays: of sources, and of targets that are
    other elements, by their names; making: the launches of the call on it.
    """

    arrays: Mapping[str, Any]
    making: SearchedLaunch

    @classmethod
    def of(cls, searched: SearchedLaunch, device: str) -> OwnOrder:
        """Memory for it, with whatever is there."""
        arrays = {
            name: allocate(device, order.nbytes, "the order of a loop").view(np.int32)
            for name, order in orders_of(searched.structure)
        }
        return cls(arrays, searched.on_orders(device, arrays))


def is_order(order: Any, count: int) -> bool:
    """Whether it names each of so many elements once."""
    return np.shape(order) == (count,) and np.array_equal(np.sort(order), np.arange(count))


def keeping_order(call: Call, searched: SearchedLaunch, own: OwnOrder) -> Call:
    """The same call on the order that a loop has."""
    launch: Work = own.making.keeping_order(call.compiled.executable.device)
    if isinstance(call.launch, SteppedLaunch):
        launch = replace(call.launch, launch=launch)
    tasks = call.compiled.tasks
    left = replace(tasks, parts=tasks.parts[searched.orders :])
    return replace(call, launch=launch, compiled=replace(call.compiled, tasks=left))


def order_task(call: Call, own: OwnOrder) -> Task:
    """What makes the order. It is made once now: a loop may begin at any step."""
    name, device = f"order of {call.compiled.name}", call.compiled.executable.device
    ordering, tasks, searched = own.making.ordering, call.compiled.tasks, own.making
    with on(device):
        ordering.run()
    launches = [NamedLaunch(BUILD, "order", ordering.run)]
    first = replace(tasks, parts=tasks.parts[: searched.orders])
    bound = bound_each_step(first, ordering, call=(first, call.compiled.environment))

    def launches_of(states: States) -> Sequence[NamedLaunch]:
        del states
        return launches

    checks, orders = (searched.check,), tuple(own.arrays.values())
    return Task(name, "search", launches_of, device, checks=checks, bound=bound, orders=orders)


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
