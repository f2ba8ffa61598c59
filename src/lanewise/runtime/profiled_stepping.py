"""Steppers that tell a profile where the time of steps goes: some repetitions are measured launch by launch.

The launches are those of `stepping`, in the same order on the same memory, so results have the same bits. On a CPU a clock
is read between the calls of a sampled repetition. On a GPU a second graph of as many steps has nodes that record events
between the launches of its middle step: no launch waits for Python, which would be most of what a short kernel seemed to take.
"""

from __future__ import annotations

from collections.abc import Sequence as Many
from dataclasses import dataclass
from typing import Any

from lanewise.profiling.profile import Profile, clock
from lanewise.profiling.sequence import DEVICE_COST, HOST_COST
from lanewise.profiling.trace import Track
from lanewise.runtime import cuda
from lanewise.runtime.launches import Work, bare, names_of


class ProfiledHostStepper:
    """The calls one after the other. `steps`: of the simulation, in one repetition of the calls."""

    def __init__(self, calls: Many[Work], profile: Profile, steps: int) -> None:
        self._calls, self._profile = bare(calls), profile
        self._times = profile.sequence(names_of(calls), steps, HOST_COST)

    def run(self, steps: int) -> None:
        times, calls = self._times, self._calls
        if not steps:
            return
        with self._profile.running(times, steps):
            while True:
                plain = min(times.wait, steps)
                for _ in range(plain):
                    for call in calls:
                        call()
                times.passed(plain)
                steps -= plain
                if not steps:
                    return
                self._sample()
                steps -= 1

    def _sample(self) -> None:
        marks = [clock()]
        for call in self._calls:
            call()
            marks.append(clock())
        self._profile.sample(self._times, marks, self._times.since + 1)
        self._times.drawn()


@dataclass(frozen=True, slots=True)
class _Recorded:
    """A sample whose events a graph records that was launched. began: the clock when the event `origin` was recorded."""

    marks: cuda.Marks
    weight: int
    began: int
    origin: Any


class ProfiledGraphStepper:
    """Graphs of `long` repetitions for the bulk, of one for the rest; of each one with events and one without.

    The events of a sample are read when the device has other work, in the next run at the latest, or when somebody looks at the profile.
    """

    def __init__(self, device: str, calls: Many[Work], profile: Profile, steps: int, long: int) -> None:
        self._device, self._calls, self._profile, self._long = device, bare(calls), profile, long
        self._times = profile.sequence(names_of(calls), steps, DEVICE_COST)
        self._plain: dict[int, cuda.Graph] = {}
        self._marked: dict[int, tuple[cuda.Graph, cuda.Marks]] = {}
        self._pending: _Recorded | None = None
        profile.later.add(self)

    def run(self, steps: int) -> None:
        if not steps:
            return
        many, rest = divmod(steps, self._long)
        self._capture([size for size, count in ((self._long, many), (1, rest)) if count])
        cuda.synchronize(self._device)  # earlier work on other streams comes first
        with self._profile.running(self._times, steps):
            began, earlier = clock(), self._pending
            due = self._times.wait <= steps - (1 if rest else self._long)  # when the last graph is launched
            origin = cuda.graph_event(self._device) if due else None
            for size, count in ((self._long, many), (1, rest)):
                for _ in range(count):
                    self._launch(size, began, origin)
            if earlier is self._pending:
                self.collect()  # while the device is at work
            cuda.wait_for_graphs(self._device)

    def _launch(self, size: int, began: int, origin: Any) -> None:
        """`origin`: an event that was recorded when the clock said `began`; None in a run that needs no sample."""
        times = self._times
        if times.wait > 0 or origin is None:
            self._plain[size].launch()
            times.passed(size)
        else:
            # Long since done unless steps are long: what was launched after it keeps the device busy meanwhile.
            self.collect()
            graph, marks = self._marked[size]
            graph.launch()
            self._pending = _Recorded(marks, times.drawn(), began, origin)
            times.passed(size - 1)

    def collect(self) -> None:
        """Read the events of the last sample, if that was not done yet."""
        if (last := self._pending) is None:
            return
        marks = [last.began + round(1e9 * last.marks.since(last.origin))]
        for seconds in last.marks.seconds():
            marks.append(marks[-1] + round(1e9 * seconds))
        self._pending = None
        self._profile.sample(self._times, marks, last.weight, Track.DEVICE)

    def _capture(self, sizes: list[int]) -> None:
        """Make the graphs of these sizes, before the time of steps is taken."""
        missing = [size for size in sizes if size not in self._plain]
        if not missing:
            return
        with self._profile.span("setup", name="capture graphs"):
            for size in missing:
                self._plain[size] = cuda.Graph(self._device, lambda n=size: self._repeat(n))
                marks = cuda.Marks(self._device, len(self._calls) + 1)
                graph = cuda.Graph(self._device, lambda n=size, m=marks: self._repeat_marked(n, m))
                self._marked[size] = graph, marks

    def _repeat(self, count: int) -> None:
        for _ in range(count):
            for call in self._calls:
                call()

    def _repeat_marked(self, count: int, marks: cuda.Marks) -> None:
        """The step in the middle has events: what runs before and after it are other steps."""
        self._repeat(count // 2)
        marks.record(0)
        for number, call in enumerate(self._calls):
            call()
            marks.record(number + 1)
        self._repeat(count - count // 2 - 1)
