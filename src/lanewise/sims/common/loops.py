"""The time loops of products: `lw.steps` that names the product in errors, and launches of a
product's own in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import lanewise as lw
from lanewise.launch.steps.task import Task
from lanewise.loops.functions import device_task, mesh_task
from lanewise.loops.steps import make_loop
from lanewise.runtime.programs import NamedLaunch

__all__ = ["Task", "device_call", "mesh_call", "orders_made", "product_loop"]


def product_loop(calls: Any, cycle: int | None, profile: lw.Profile | None, *, of: str) -> lw.Steps:
    """A loop over calls with the structures that they are bound to, and a cycle as long as the
    product wants it. of: what it steps, for errors.
    """
    return make_loop(calls, cycle, "keep", profile, of=of)


def orders_made(loop: lw.Steps, step: int, end: int) -> int:
    """How often a loop makes orders of elements anew between two of its steps."""
    rhythm = loop._rhythm  # pyright: ignore[reportPrivateUsage]
    return sum(rhythm.runs(task, step, end) for task in rhythm.tasks if task.orders)


def device_call(
    stage: str,
    name: str,
    call: Callable[[], None],
    device: str,
    *,
    reads: Sequence[Any],
    writes: Sequence[Any],
) -> Task:
    """What `call` launches, and waits for nothing, as a call of a loop: it may stand in a graph.
    reads, writes: the arrays that it touches.
    """
    return device_task(NamedLaunch(stage, name, call), device, reads=reads, writes=writes)


def mesh_call(
    stage: str,
    name: str,
    call: Callable[[], None],
    devices: Sequence[str],
    *,
    reads: Sequence[Any],
    writes: Sequence[Any],
) -> Task:
    """The same of what `call` puts on the devices of a mesh: the host does so in every step."""
    return mesh_task(NamedLaunch(stage, name, call), devices, reads=reads, writes=writes)
