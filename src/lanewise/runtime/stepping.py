"""Run programs of launches: one after the other on a CPU, as graphs on a GPU.

On a GPU all of a schedule is launched before the host waits, so the device is never without work
between its parts.

With a profile (`lanewise.profiling`) the launches, given as `NamedLaunch`, are also measured by
stage: some repetitions are measured launch by launch, in the same order on the same memory, so
results have the same bits. On a CPU a clock is read between the calls of a sampled repetition. On a
GPU a second graph of as many repetitions has nodes that record events between the launches of the
middle one: no launch waits for Python, which would be most of what a short kernel seemed to take.
"""

from __future__ import annotations

from collections.abc import Hashable
from collections.abc import Sequence as Many
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from lanewise.language.target import is_gpu
from lanewise.profiling.lanes import LaneSpan, WatchedWork
from lanewise.profiling.profile import Profile, clock
from lanewise.profiling.sequence import DEVICE_COST, HOST_COST, ProfiledSequence
from lanewise.profiling.trace import Track
from lanewise.runtime import cuda, cuda_graphs
from lanewise.runtime.programs import (
    Checks,
    Parts,
    ProgramPart,
    Schedule,
    ScheduleRunner,
    Work,
    bare,
    in_graphs,
    names_of,
    repeat,
)
from lanewise.support.whole_steps import StepsUnderWay


def _nothing() -> None:
    """For launches that are done when they return."""


class _HostProgram:
    """Launch by launch. wait: for what they have started on a GPU, where the host takes part."""

    def __init__(self, parts: Parts, wait: Work = _nothing) -> None:
        self._parts, self._wait = parts, wait
        self._bare: dict[Hashable, tuple[Work, ...]] = {}

    def run(self, schedule: Schedule) -> None:
        for key, repetitions in schedule:
            calls = self._bare.get(key)
            if calls is None:
                calls = self._bare[key] = bare(self._parts[key].calls)
            repeat(calls, repetitions)
        self._wait()


def _as_graphs(parts: Parts, schedule: Schedule) -> list[tuple[Hashable, int, int]]:
    """A schedule by graphs: the key of the part, repetitions in a graph, how often it is
    launched.
    """
    return [
        (key, size, n) for key, many in schedule for size, n in in_graphs(many, parts[key].long)
    ]


class _PartGraph:
    """A graph of some repetitions of a part, launched after the values that it reads."""

    __slots__ = ("_graph", "_rows", "_size")

    def __init__(self, device: str, part: ProgramPart, size: int, work: Work) -> None:
        """work: puts these repetitions on a stream."""
        self._rows, self._size = part.rows, size

        def captured() -> None:
            if part.rows is not None:
                part.rows.capture()
            work()

        self._graph = cuda_graphs.Graph(device, captured)

    def launch(self) -> None:
        if self._rows is not None:
            self._rows.copy(self._size)
        self._graph.launch()


class _GraphProgram:
    """Of each part a graph of many repetitions for the bulk, and one of a single repetition for the
    rest.
    """

    def __init__(self, device: str, parts: Parts) -> None:
        self._device, self._parts, self._checks = device, parts, Checks(parts)
        self._graphs: dict[tuple[Hashable, int], _PartGraph] = {}

    def prepare(self, schedule: Schedule) -> None:
        """Capture the graphs of a schedule."""
        for key, size, _ in _as_graphs(self._parts, schedule):
            self._graph(key, size)

    def run(self, schedule: Schedule, under_way: StepsUnderWay | None = None) -> None:
        self._checks.run(schedule)
        # All are captured before the first is launched: the device would be done with it long
        # before the next one is there.
        graphs = [
            (self._graph(key, size), count)
            for key, size, count in _as_graphs(self._parts, schedule)
        ]
        # earlier work on other streams comes first
        if under_way is None:
            cuda.synchronize(self._device)
        else:
            cuda_graphs.put_graphs_behind(self._device)
        for graph, count in graphs:
            for _ in range(count):
                graph.launch()
        if under_way is None:
            cuda_graphs.wait_for_graphs(self._device)
        else:
            under_way.leave(cuda_graphs.put_behind_graphs(self._device).synchronize)

    def _graph(self, key: Hashable, size: int) -> _PartGraph:
        if (key, size) not in self._graphs:
            part = self._parts[key]
            self._graphs[key, size] = _PartGraph(
                self._device, part, size, partial(repeat, bare(part.calls), size)
            )
        return self._graphs[key, size]


def make_program(
    device: str, parts: Parts, profile: Profile | None = None, *, graphs: bool = True
) -> ScheduleRunner:
    """The program of a device with these parts.

    With a profile it tells how long each launch takes (see `NamedLaunch`).
    graphs: whether graphs can hold the launches on a GPU; if not, a profile waits for each of them.
    """
    match is_gpu(device), graphs, profile:
        case True, True, _:
            return make_graphs(device, parts, profile)
        case True, False, None:
            return _HostProgram(parts, lambda: cuda.synchronize(device))
        case True, False, Profile():
            return ProfiledHostProgram(parts, profile, lambda: cuda.synchronize(device))
        case False, _, None:
            return _HostProgram(parts)
        case _:
            return ProfiledHostProgram(parts, profile)


class GraphRunner(ScheduleRunner, Protocol):
    """What runs parts as graphs, which can be captured before."""

    def prepare(self, schedule: Schedule) -> None: ...

    def run(self, schedule: Schedule, under_way: StepsUnderWay | None = None) -> None:
        """Run it, and wait for the result. under_way: where it may be left there instead, if none
        of its launches is the host's.
        """
        ...


def make_graphs(device: str, parts: Parts, profile: Profile | None = None) -> GraphRunner:
    """The program of a GPU with these parts, all of whose launches graphs can hold."""
    if profile is None:
        return _GraphProgram(device, parts)
    return ProfiledGraphProgram(device, parts, profile)


def copy_to_graphs(device: str, to: int, source: int, nbytes: int) -> None:
    """Copy pinned memory of the host to an address of a device, in order with its graphs."""
    cuda_graphs.copy_to_graphs(device, to, source, nbytes)


class ProfiledHostProgram:
    """The calls one after the other. `wait`: for what a call started on a device; it ends every
    call whose time is taken.
    """

    def __init__(self, parts: Parts, profile: Profile, wait: Work | None = None) -> None:
        self._parts, self._profile, self._loop, self._wait = parts, profile, profile.loop(), wait
        self._times: dict[Hashable, ProfiledSequence] = {}

    def run(self, schedule: Schedule) -> None:
        todo = [(bare(self._parts[key].calls), self._sequence(key), n) for key, n in schedule if n]
        if not todo:
            return
        with self._profile.running(self._loop, [(times, n) for _, times, n in todo]):
            for calls, times, repetitions in todo:
                self._repeat(calls, times, repetitions)
            if self._wait is not None:
                self._wait()

    def _sequence(self, key: Hashable) -> ProfiledSequence:
        if key not in self._times:
            part = self._parts[key]
            self._times[key] = self._loop.sequence(names_of(part.calls), part.steps, HOST_COST)
        return self._times[key]

    def _repeat(self, calls: Many[Work], times: ProfiledSequence, repetitions: int) -> None:
        while True:
            plain = min(times.wait, repetitions)
            repeat(calls, plain)
            times.passed(plain)
            repetitions -= plain
            if not repetitions:
                return
            self._sample(calls, times)
            repetitions -= 1

    def _sample(self, calls: Many[Work], times: ProfiledSequence) -> None:
        if self._wait is not None:
            self._wait()
        watched: list[tuple[int, Many[LaneSpan]]] = []
        marks = [clock()]
        for number, call in enumerate(calls):
            if isinstance(call, WatchedWork):
                watched.append((number, call.watch()))
            else:
                call()
            if self._wait is not None:
                self._wait()
            marks.append(clock())
        weight = times.since + 1
        self._profile.sample(times, marks, weight)
        for number, spans in watched:
            self._profile.watched(times.names[number], spans, weight)
        times.drawn()


@dataclass(frozen=True, slots=True)
class _Recorded:
    """A sample whose events a graph records that was launched. began: the clock when the event
    `origin` was recorded.
    """

    marks: cuda_graphs.Marks
    weight: int
    began: int
    origin: Any


class _GraphPart:
    """The graphs of a part, for each length one with events and one without."""

    def __init__(
        self, device: str, part: ProgramPart, profile: Profile, times: ProfiledSequence
    ) -> None:
        self._device, self._part, self._profile, self.times = device, part, profile, times
        self._calls = bare(part.calls)
        self._plain: dict[int, _PartGraph] = {}
        self._marked: dict[int, tuple[_PartGraph, cuda_graphs.Marks]] = {}
        self.pending: _Recorded | None = None
        profile.later.add(self)

    def capture(self, size: int) -> None:
        """Make the graphs of that many repetitions, before the time of steps is taken."""
        if size in self._plain:
            return
        with self._profile.span("setup", name="capture graphs"):
            device, part = self._device, self._part
            self._plain[size] = _PartGraph(device, part, size, partial(repeat, self._calls, size))
            marks = cuda_graphs.Marks(device, len(self._calls) + 1)
            self._marked[size] = (
                _PartGraph(device, part, size, partial(self._repeat_marked, size, marks)),
                marks,
            )

    def _repeat_marked(self, count: int, marks: cuda_graphs.Marks) -> None:
        """The repetition in the middle has events: what runs before and after it are others."""
        repeat(self._calls, count // 2)
        marks.record(0)
        for number, call in enumerate(self._calls):
            call()
            marks.record(number + 1)
        repeat(self._calls, count - count // 2 - 1)

    def launch(self, size: int, began: int, origin: Any) -> None:
        """`origin`: an event that was recorded when the clock said `began`; None in a run that
        needs no sample.
        """
        times = self.times
        if times.wait > 0 or origin is None:
            self._plain[size].launch()
            times.passed(size)
        else:
            # Long since done unless repetitions are long: what was launched after it keeps the
            # device busy meanwhile.
            self.collect()
            graph, marks = self._marked[size]
            graph.launch()
            self.pending = _Recorded(marks, times.drawn(), began, origin)
            times.passed(size - 1)

    def collect(self) -> None:
        """Read the events of the last sample, if that was not done yet."""
        if (last := self.pending) is None:
            return
        marks = [last.began + round(1e9 * last.marks.since(last.origin))]
        for seconds in last.marks.seconds():
            marks.append(marks[-1] + round(1e9 * seconds))
        self.pending = None
        self._profile.sample(self.times, marks, last.weight, Track.DEVICE)


class ProfiledGraphProgram:
    """Graphs of many repetitions for the bulk, of one for the rest.

    The events of a sample are read when the device has other work, in the next run at the latest,
    or when the profile is read.
    """

    def __init__(self, device: str, parts: Parts, profile: Profile) -> None:
        self._device = device
        self._parts = parts
        self._profile = profile
        self._loop = profile.loop()
        self._checks = Checks(parts)
        self._made: dict[Hashable, _GraphPart] = {}

    def prepare(self, schedule: Schedule) -> None:
        """Capture the graphs of a schedule."""
        for key, size, _ in _as_graphs(self._parts, schedule):
            self._part(key).capture(size)

    def run(self, schedule: Schedule, under_way: StepsUnderWay | None = None) -> None:
        del under_way  # samples are read between runs
        self._checks.run(schedule)
        todo = [(self._part(key), size, n) for key, size, n in _as_graphs(self._parts, schedule)]
        if not todo:
            return
        for part, size, _ in todo:
            part.capture(size)
        earlier = {part: part.pending for part, _, _ in todo}
        cuda.synchronize(self._device)  # earlier work on other streams comes first
        with self._profile.running(self._loop, [(part.times, size * n) for part, size, n in todo]):
            began = clock()
            origin = cuda_graphs.graph_event(self._device) if _sample_is_due(todo) else None
            for part, size, count in todo:
                for _ in range(count):
                    part.launch(size, began, origin)
            for part, pending in earlier.items():
                if part.pending is pending:
                    part.collect()  # while the device is at work
            cuda_graphs.wait_for_graphs(self._device)

    def _part(self, key: Hashable) -> _GraphPart:
        if key not in self._made:
            part = self._parts[key]
            times = self._loop.sequence(names_of(part.calls), part.steps, DEVICE_COST)
            self._made[key] = _GraphPart(self._device, part, self._profile, times)
        return self._made[key]


def _sample_is_due(todo: Many[tuple[_GraphPart, int, int]]) -> bool:
    """Whether one of these graphs will be launched when its part waits no longer; if one is, then
    the part's last one is.
    """
    passed: dict[_GraphPart, int] = {}
    before_last: dict[_GraphPart, int] = {}
    for part, size, count in todo:
        passed[part] = passed.get(part, 0) + size * count
        before_last[part] = passed[part] - size
    return any(part.times.wait <= n for part, n in before_last.items())
