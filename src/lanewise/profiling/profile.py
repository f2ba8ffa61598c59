"""`Profile`: what a simulation is handed to tell where its time goes.

profile = lw.Profile()
simulation = Simulation(bodies, softening=0.02, profile=profile)
simulation.run(steps=100, dt=1e-3)
print(profile)
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from collections.abc import Sequence as Many
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar
from weakref import WeakSet

from lanewise.profiling import copies
from lanewise.profiling.lanes import LaneSpan
from lanewise.profiling.sequence import ProfiledLoop, ProfiledSequence
from lanewise.profiling.trace import FIRST_LANE, Event, Sample, Track, trace_events, write_trace
from lanewise.support.attributes import sealed, settings_by_name
from lanewise.support.checks import checked
from lanewise.support.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

Repetitions = Many[tuple[ProfiledSequence, int]]  # a sequence may come several times

Given = ParamSpec("Given")
Returned = TypeVar("Returned")

clock = time.perf_counter_ns
MOST_EVENTS = 200_000  # kept for the trace, about 30 megabytes of JSON; the table counts all


@dataclass(slots=True)
class Total:
    """All spans of a stage and name: how many, how long without the spans within them, and the
    bytes that they moved.
    """

    count: int = 0
    nanoseconds: int = 0
    nbytes: int = 0


class Collector(Protocol):
    """What records samples on a device."""

    def collect(self) -> None:
        """Give the profile what was recorded."""
        ...


@sealed()
class Profile:
    """Spans of time by stage and name, and the stages of steps. For one thread.

    No second counts twice: the time of a span within another one is subtracted from it, so the
    stages add up to the total. A profile accumulates as long as it is used; pass a new one to the
    next run. Copies between the two sides of arrays within its spans form the stage "copies".
    """

    __slots__ = (
        "__weakref__",
        "_room",
        "_within",
        "copied",
        "dropped",
        "events",
        "lanes",
        "later",
        "loops",
        "nanoseconds",
        "origin",
        "samples",
        "totals",
    )

    @checked()
    def __init__(self, most_events: int = MOST_EVENTS) -> None:
        """`most_events`: of the trace.

        Later ones are counted in the table, and `summary` says how many the trace lacks.
        """
        self.origin = clock()
        self.totals: dict[tuple[str, str], Total] = {}
        self.loops: list[ProfiledLoop] = []
        self.copied: dict[
            tuple[str, str], list[int]
        ] = {}  # how many and their bytes, between two sides of arrays, by field and direction
        self.nanoseconds = 0  # of the outermost spans
        self.events: list[Event] = []
        self.samples: list[Sample] = []
        # of devices that work at the same time, in sampled steps: weighted nanoseconds
        self.lanes: dict[str, int] = {}
        self.dropped = 0
        # who has samples that were recorded and not read yet
        self.later: WeakSet[Collector] = WeakSet()
        self._room = most_events
        self._within: list[int] = []  # nanoseconds of inner spans, for each span that is open

    # ------------------------------------------------------------ measuring

    @checked()
    def span(self, stage: str, *, name: str = "", nbytes: int = 0) -> AbstractContextManager[None]:
        """A context whose time is that of a stage of the host's work; `nbytes`: what it moves or
        writes.
        """
        return _Span(self, stage, name, nbytes)

    def loop(self) -> ProfiledLoop:
        """Account for sequences of launches that will be repeated (see `ProfiledLoop`)."""
        made = ProfiledLoop()
        self.loops.append(made)
        return made

    def running(self, loop: ProfiledLoop, repetitions: Repetitions) -> AbstractContextManager[None]:
        """A context in which each of these sequences of the loop is repeated so often."""
        return _Running(self, loop, repetitions)

    def sample(
        self, sequence: ProfiledSequence, marks: list[int], weight: int, track: Track = Track.HOST
    ) -> None:
        """Take up a sampled repetition (see `ProfiledSequence.add`)."""
        sequence.add(marks, weight)
        if self._has_room(len(marks)):
            self.samples.append((sequence.names, marks, track))

    def watched(self, name: tuple[str, str], spans: Many[LaneSpan], weight: int) -> None:
        """Take up what devices or parts did in a launch of a sampled repetition, which has this
        stage and name.
        """
        stage, event = name
        for lane, begin, end in spans:
            self.lanes[lane] = self.lanes.get(lane, 0) + weight * (end - begin)
            if self._has_room(1):
                track = FIRST_LANE + list(self.lanes).index(lane)
                self.events.append(Event(event, stage, begin, end - begin, track))

    def _has_room(self, events: int) -> bool:
        """Whether the trace takes them; a trace that is full counts what it lacks."""
        if events > self._room:
            self.dropped += events
            return False
        self._room -= events
        return True

    def _open(self) -> int:
        self._within.append(0)
        return clock()

    def _close(self, begin: int, event: str, stage: str) -> int:
        """End the innermost span; returns its time without that of spans within it."""
        taken = clock() - begin
        inner = self._within.pop()
        if self._within:
            self._within[-1] += taken
        else:
            self.nanoseconds += taken
        if self._has_room(1):
            self.events.append(Event(event, stage, begin, taken, Track.HOST))
        return taken - inner

    # ------------------------------------------------------------ looking

    def summary(self) -> dict[str, Any]:
        """Plain data: seconds and shares by stage and name, and how many steps were sampled (see
        `summary.summarise`).
        """
        from lanewise.profiling.summary import summarise

        self._take_up()
        return summarise(self)

    def table(self) -> Table:
        """The summary as a table for `rich.print`."""
        from lanewise.profiling.summary import make_table

        return make_table(self.summary())

    def __repr__(self) -> str:
        from lanewise.profiling.summary import headline

        return f"<profile: {headline(self.summary())}>"

    def _repr_html_(self) -> str:
        from lanewise.profiling.summary import as_html

        return as_html(self.summary())

    def __str__(self) -> str:
        from lanewise.profiling.summary import as_text

        return as_text(self.summary())

    def trace(self) -> dict[str, Any]:
        """The spans in the Trace Event Format, which Perfetto and chrome://tracing open."""
        self._take_up()
        return trace_events(self.events, self.samples, self.origin, self.dropped, self.lanes)

    def _take_up(self) -> None:
        for one in self.later:
            one.collect()

    @settings_by_name
    @checked(InputError)
    def write_trace(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the trace as JSON: whole, or not at all.

        Raises `InputError` for a file that exists, without `overwrite`.
        """
        write_trace(path, self.trace(), overwrite=overwrite)


def span(
    profile: Profile | None, stage: str, *, name: str = "", nbytes: int = 0
) -> AbstractContextManager[None]:
    """`profile.span(...)`, or a context that does nothing when no profile is requested."""
    return nullcontext() if profile is None else profile.span(stage, name=name, nbytes=nbytes)


def stage(stage: str, *, name: str) -> AbstractContextManager[None]:
    """A span of the profile whose span is open in this thread; without one it does nothing.

    For what is computed deep below the caller who asks where the time goes.
    """
    return span(copies.opened(), stage, name=name)


def staged(
    stage_name: str, *, name: str
) -> Callable[[Callable[Given, Returned]], Callable[Given, Returned]]:
    """Makes every call of a function such a `stage`."""

    def decorated(function: Callable[Given, Returned]) -> Callable[Given, Returned]:
        @wraps(function)
        def measured(*args: Given.args, **kwargs: Given.kwargs) -> Returned:
            with stage(stage_name, name=name):
                return function(*args, **kwargs)

        return measured

    return decorated


class _Span(AbstractContextManager[None]):
    __slots__ = ("_before", "_begin", "_name", "_nbytes", "_profile", "_stage")

    def __init__(self, profile: Profile, stage: str, name: str, nbytes: int) -> None:
        self._profile, self._stage, self._name, self._nbytes = profile, stage, name, nbytes

    def __enter__(self) -> None:
        self._before = copies.entered(self._profile)
        self._begin = self._profile._open()  # pyright: ignore[reportPrivateUsage]

    def __exit__(self, *_: object) -> None:
        copies.entered(self._before)
        profile, name = self._profile, self._name or self._stage
        taken = profile._close(self._begin, name, self._stage)  # pyright: ignore[reportPrivateUsage]
        total = profile.totals.setdefault((self._stage, name), Total())
        total.count += 1
        total.nanoseconds += taken
        total.nbytes += self._nbytes


class _Running(AbstractContextManager[None]):
    __slots__ = ("_before", "_begin", "_loop", "_profile", "_repetitions")

    def __init__(self, profile: Profile, loop: ProfiledLoop, repetitions: Repetitions) -> None:
        self._profile, self._loop, self._repetitions = profile, loop, repetitions

    def __enter__(self) -> None:
        self._before = copies.entered(self._profile)
        self._begin = self._profile._open()  # pyright: ignore[reportPrivateUsage]

    def __exit__(self, *_: object) -> None:
        copies.entered(self._before)
        steps = sum(n * s.steps for s, n in self._repetitions)
        event = f"{steps:,} step{'' if steps == 1 else 's'}"
        self._loop.nanoseconds += self._profile._close(self._begin, event, "steps")  # pyright: ignore[reportPrivateUsage]
        for sequence, repetitions in self._repetitions:
            sequence.repetitions += repetitions
