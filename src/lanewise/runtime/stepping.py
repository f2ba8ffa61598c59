"""Run programs of launches: one after the other on a CPU, as graphs on a GPU.

On a GPU all of a schedule is launched before the host waits, so the device is never without work between its parts. With a
profile (`lanewise.profiling`) the launches, given as `NamedLaunch`, are also measured by stage.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from lanewise.profiling.profile import Profile
from lanewise.runtime import cuda
from lanewise.runtime.launches import Work, bare
from lanewise.runtime.profiled_stepping import ProfiledGraphProgram, ProfiledHostProgram
from lanewise.runtime.programs import Part, Parts, Schedule, ScheduleRunner, in_graphs, repeat
from lanewise.target import is_gpu


class _HostProgram:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def run(self, schedule: Schedule) -> None:
        for key, repetitions in schedule:
            repeat(bare(self._parts[key].calls), repetitions)


class _GraphProgram:
    """Of each part a graph of many repetitions for the bulk, and one of a single repetition for the rest."""

    def __init__(self, device: str, parts: Parts) -> None:
        self._device, self._parts = device, parts
        self._graphs: dict[tuple[Hashable, int], cuda.Graph] = {}

    def run(self, schedule: Schedule) -> None:
        # All are captured before the first is launched: the device would be done with it long before the next one is there.
        graphs = [(self._graph(key, size), count) for key, many in schedule for size, count in in_graphs(many)]
        cuda.synchronize(self._device)  # earlier work on other streams comes first
        for graph, count in graphs:
            for _ in range(count):
                graph.launch()
        cuda.wait_for_graphs(self._device)

    def _graph(self, key: Hashable, size: int) -> cuda.Graph:
        if (key, size) not in self._graphs:
            calls = bare(self._parts[key].calls)
            self._graphs[key, size] = cuda.Graph(self._device, lambda: repeat(calls, size))
        return self._graphs[key, size]


class _EagerProgram:
    """Launch by launch on a GPU, for work that the host takes part in."""

    def __init__(self, device: str, parts: Parts) -> None:
        self._device, self._program = device, _HostProgram(parts)

    def run(self, schedule: Schedule) -> None:
        self._program.run(schedule)
        cuda.synchronize(self._device)


def make_program(device: str, parts: Parts, profile: Profile | None = None, *, graphs: bool = True) -> ScheduleRunner:
    """The program of a device with these parts.

    With a profile it tells how long each launch takes (see `NamedLaunch`).
    graphs: whether graphs can hold the launches on a GPU; if not, a profile waits for each of them.
    """
    match is_gpu(device), graphs, profile:
        case True, True, None:
            return _GraphProgram(device, parts)
        case True, True, Profile():
            return ProfiledGraphProgram(device, parts, profile)
        case True, False, None:
            return _EagerProgram(device, parts)
        case True, False, Profile():
            return ProfiledHostProgram(parts, profile, lambda: cuda.synchronize(device))
        case False, _, None:
            return _HostProgram(parts)
        case _:
            return ProfiledHostProgram(parts, profile)


@dataclass(frozen=True, slots=True)
class Stepper:
    """A program of one part."""

    program: ScheduleRunner

    def run(self, steps: int) -> None:
        """Run the launches `steps` times, and wait for the result."""
        self.program.run([(None, steps)])


def make_stepper(device: str, calls: Sequence[Work], profile: Profile | None = None) -> Stepper:
    """The stepper of a device for one sequence of launches (see `make_program`)."""
    return Stepper(make_program(device, {None: Part(calls)}, profile))
