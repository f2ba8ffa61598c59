"""Functions of Python as tasks: the host's part of a step."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from lanewise.launch.joined import by_hand
from lanewise.launch.steps.task import Task, has_graphs
from lanewise.runtime.programs import NamedLaunch, Work

HOST = (
    "a function of Python, which the GPU's work waits for; lw.every(k, function) calls it less "
    "often"
)
ON_A_MESH = "its parts lie on a mesh, and the host puts the launches of each on its device"


class Called:
    """A function of the user's within a step.

    It may write to arrays, so that what is asked of them before a piece is asked again behind it.
    """

    __slots__ = ("_function", "afterwards", "before")

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self.before: tuple[Work, ...] = ()
        self.afterwards: tuple[Work, ...] = ()

    def __call__(self) -> None:
        for wait in self.before:
            wait()
        self._function()
        for check in self.afterwards:
            check()


def asked_by(function: Callable[..., Any]) -> str:
    """The first parameter that a call without arguments leaves open; "" where there is none."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of compiled code, which need not say
        return ""
    any_number = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = (p.name for p in parameters if p.default is p.empty and p.kind not in any_number)
    return next(needed, "")


def function_task(function: Callable[[], Any]) -> Task:
    """A call of a function without arguments."""
    name = getattr(function, "__name__", type(function).__name__)
    launch = NamedLaunch("host", name, Called(function))
    return Task(name, "function", lambda _: (launch,), None, counted=True, alone=HOST)


def device_task(
    launch: NamedLaunch, device: str, *, reads: Sequence[Any], writes: Sequence[Any]
) -> Task:
    """A launch that waits for nothing, as a call of a loop, with the arrays that it touches."""
    bound = (by_hand(launch.name, launch.call, reads, writes),)
    return Task(launch.name, "launch", lambda _: (launch,), device, bound=lambda _: bound)


def mesh_task(
    launch: NamedLaunch, devices: Sequence[str], *, reads: Sequence[Any], writes: Sequence[Any]
) -> Task:
    """The same over the devices of a mesh."""
    made = device_task(launch, devices[0], reads=reads, writes=writes)
    return replace(made, alone=ON_A_MESH if has_graphs(devices[0]) else "")


def end_called(tasks: Iterable[Task], checks: tuple[Work, ...], wait: Work | None) -> None:
    """Have the functions among these tasks wait for the device, and ask these checks behind
    them.
    """
    for task in tasks:
        for launch in task.launches({}) if task.device is None else ():
            called = launch.call
            assert isinstance(called, Called)
            called.before, called.afterwards = () if wait is None else (wait,), checks
