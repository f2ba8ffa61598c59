"""Repeat a fixed sequence of launches: one after the other on a CPU, as graphs on a GPU.

With a profile (`lanewise.profiling`) the launches, given as `NamedLaunch`, are also measured by stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lanewise.profiling.profile import Profile
from lanewise.runtime import cuda
from lanewise.runtime.launches import NamedLaunch, Work, bare, names_of
from lanewise.runtime.profiled_stepping import ProfiledGraphStepper, ProfiledHostStepper

LONG_GRAPH = 32  # steps in one graph: a graph launch costs a few microseconds, a step inside it half of one a kernel


class Stepper(Protocol):
    """Runs the sequence `steps` times and waits for the result."""

    def run(self, steps: int) -> None: ...


class _HostStepper:
    def __init__(self, calls: Sequence[Work]) -> None:
        self._calls = bare(calls)

    def run(self, steps: int) -> None:
        for _ in range(steps):
            for call in self._calls:
                call()


class _GraphStepper:
    """One graph of many steps for the bulk, one of a single step for the rest: the same launches in the same order."""

    def __init__(self, device: str, calls: Sequence[Work]) -> None:
        self._device, self._calls = device, bare(calls)
        self._graphs: dict[int, cuda.Graph] = {}

    def run(self, steps: int) -> None:
        cuda.synchronize(self._device)  # earlier work on other streams comes first
        many, rest = divmod(steps, LONG_GRAPH)
        for _ in range(many):
            self._graph(LONG_GRAPH).launch()
        for _ in range(rest):
            self._graph(1).launch()
        cuda.wait_for_graphs(self._device)

    def _graph(self, steps: int) -> cuda.Graph:
        if steps not in self._graphs:
            self._graphs[steps] = cuda.Graph(self._device, lambda: _HostStepper(self._calls).run(steps))
        return self._graphs[steps]


class _EagerStepper:
    """Launch by launch on a GPU, for work that the host takes part in."""

    def __init__(self, device: str, calls: Sequence[Work]) -> None:
        self._device, self._steps = device, _HostStepper(calls)

    def run(self, steps: int) -> None:
        self._steps.run(steps)
        cuda.synchronize(self._device)


def make_stepper(
    device: str, calls: Sequence[Work], profile: Profile | None = None, steps: int = 1, *, graphs: bool = True
) -> Stepper:
    """The stepper of a device for these launches.

    With a profile it tells how long each takes (see `NamedLaunch`); `steps`: of the simulation, in one repetition of them.
    graphs: whether graphs can hold them on a GPU; if not, a profile waits for each launch.
    """
    if device.startswith("cuda") and not graphs:
        if profile is None:
            return _EagerStepper(device, calls)
        return ProfiledHostStepper([_waited_for(device, c) for c in calls], profile, steps)
    if device.startswith("cuda"):
        if profile is not None:
            return ProfiledGraphStepper(device, calls, profile, steps, LONG_GRAPH)
        return _GraphStepper(device, calls)
    return _HostStepper(calls) if profile is None else ProfiledHostStepper(calls, profile, steps)


def _waited_for(device: str, call: Work) -> NamedLaunch:
    ((stage, name),) = names_of([call])

    def run() -> None:
        call()
        cuda.synchronize(device)

    return NamedLaunch(stage, name, run)
