"""Programs that tell a profile where the time of steps goes: some repetitions are measured launch by launch.

The launches are those of `stepping`, in the same order on the same memory, so results have the same bits. On a CPU a clock
is read between the calls of a sampled repetition. On a GPU a second graph of as many repetitions has nodes that record events
between the launches of the middle one: no launch waits for Python, which would be most of what a short kernel seemed to take.
"""

from __future__ import annotations

from collections.abc import Hashable
from collections.abc import Sequence as Many
from dataclasses import dataclass
from typing import Any

from lanewise.profiling.profile import Profile, clock
from lanewise.profiling.sequence import DEVICE_COST, HOST_COST, Sequence
from lanewise.profiling.trace import Track
from lanewise.runtime import cuda
from lanewise.runtime.launches import Work, bare, names_of
from lanewise.runtime.programs import Part, Parts, Schedule, in_graphs, repeat


class ProfiledHostProgram:
    """The calls one after the other. `wait`: for what a call started on a device; it ends every call whose time is taken."""

    def __init__(self, parts: Parts, profile: Profile, wait: Work | None = None) -> None:
        self._parts, self._profile, self._loop, self._wait = parts, profile, profile.loop(), wait
        self._times: dict[Hashable, Sequence] = {}

    def run(self, schedule: Schedule) -> None:
        todo = [(bare(self._parts[key].calls), self._sequence(key), n) for key, n in schedule if n]
        if not todo:
            return
        with self._profile.running(self._loop, [(times, n) for _, times, n in todo]):
            for calls, times, repetitions in todo:
                self._repeat(calls, times, repetitions)
            if self._wait is not None:
                self._wait()

    def _sequence(self, key: Hashable) -> Sequence:
        if key not in self._times:
            part = self._parts[key]
            self._times[key] = self._loop.sequence(names_of(part.calls), part.steps, HOST_COST)
        return self._times[key]

    def _repeat(self, calls: Many[Work], times: Sequence, repetitions: int) -> None:
        while True:
            plain = min(times.wait, repetitions)
            repeat(calls, plain)
            times.passed(plain)
            repetitions -= plain
            if not repetitions:
                return
            self._sample(calls, times)
            repetitions -= 1

    def _sample(self, calls: Many[Work], times: Sequence) -> None:
        if self._wait is not None:
            self._wait()
        marks = [clock()]
        for call in calls:
            call()
            if self._wait is not None:
                self._wait()
            marks.append(clock())
        self._profile.sample(times, marks, times.since + 1)
        times.drawn()


@dataclass(frozen=True, slots=True)
class _Recorded:
    """A sample whose events a graph records that was launched. began: the clock when the event `origin` was recorded."""

    marks: cuda.Marks
    weight: int
    began: int
    origin: Any


class _GraphPart:
    """The graphs of a part, for each length one with events and one without."""

    def __init__(self, device: str, part: Part, profile: Profile, times: Sequence) -> None:
        self._device, self._calls, self._profile, self.times = device, bare(part.calls), profile, times
        self._plain: dict[int, cuda.Graph] = {}
        self._marked: dict[int, tuple[cuda.Graph, cuda.Marks]] = {}
        self.pending: _Recorded | None = None
        profile.later.add(self)

    def capture(self, size: int) -> None:
        """Make the graphs of so many repetitions, before the time of steps is taken."""
        if size in self._plain:
            return
        with self._profile.span("setup", name="capture graphs"):
            self._plain[size] = cuda.Graph(self._device, lambda: repeat(self._calls, size))
            marks = cuda.Marks(self._device, len(self._calls) + 1)
            self._marked[size] = cuda.Graph(self._device, lambda: self._repeat_marked(size, marks)), marks

    def _repeat_marked(self, count: int, marks: cuda.Marks) -> None:
        """The repetition in the middle has events: what runs before and after it are others."""
        repeat(self._calls, count // 2)
        marks.record(0)
        for number, call in enumerate(self._calls):
            call()
            marks.record(number + 1)
        repeat(self._calls, count - count // 2 - 1)

    def launch(self, size: int, began: int, origin: Any) -> None:
        """`origin`: an event that was recorded when the clock said `began`; None in a run that needs no sample."""
        times = self.times
        if times.wait > 0 or origin is None:
            self._plain[size].launch()
            times.passed(size)
        else:
            # Long since done unless repetitions are long: what was launched after it keeps the device busy meanwhile.
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

    The events of a sample are read when the device has other work, in the next run at the latest, or when somebody looks at the profile.
    """

    def __init__(self, device: str, parts: Parts, profile: Profile) -> None:
        self._device, self._parts, self._profile, self._loop = device, parts, profile, profile.loop()
        self._made: dict[Hashable, _GraphPart] = {}

    def run(self, schedule: Schedule) -> None:
        todo = [(self._part(key), size, n) for key, many in schedule for size, n in in_graphs(many)]
        if not todo:
            return
        for part, size, _ in todo:
            part.capture(size)
        earlier = {part: part.pending for part, _, _ in todo}
        cuda.synchronize(self._device)  # earlier work on other streams comes first
        with self._profile.running(self._loop, [(part.times, size * n) for part, size, n in todo]):
            began, origin = clock(), cuda.graph_event(self._device) if _sample_is_due(todo) else None
            for part, size, count in todo:
                for _ in range(count):
                    part.launch(size, began, origin)
            for part, pending in earlier.items():
                if part.pending is pending:
                    part.collect()  # while the device is at work
            cuda.wait_for_graphs(self._device)

    def _part(self, key: Hashable) -> _GraphPart:
        if key not in self._made:
            part = self._parts[key]
            times = self._loop.sequence(names_of(part.calls), part.steps, DEVICE_COST)
            self._made[key] = _GraphPart(self._device, part, self._profile, times)
        return self._made[key]


def _sample_is_due(todo: Many[tuple[_GraphPart, int, int]]) -> bool:
    """Whether one of these graphs will be launched when its part waits no longer; if one is, then the part's last one is."""
    passed: dict[_GraphPart, int] = {}
    before_last: dict[_GraphPart, int] = {}
    for part, size, count in todo:
        passed[part] = passed.get(part, 0) + size * count
        before_last[part] = passed[part] - size
    return any(part.times.wait <= n for part, n in before_last.items())
