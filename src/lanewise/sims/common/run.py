"""A run of any product: a simulation on its way to its last step, measured and written.

A product gives a `Simulated` and what is due on the way as `Output`s, mostly `Every`. `Run` has the
rest: events, checkpoints, Ctrl-C, progress and the time that it took.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from lanewise.profiling import Profile, span
from lanewise.sims.common.devices import settle
from lanewise.sims.common.processes import joined, lead, transport
from lanewise.support.whole_steps import Interruption, deferred_interruption

PIECE_SECONDS = 0.2  # how long the machine works between two looks at the clock
CHECKPOINT_SECONDS = 60.0  # of wall time between checkpoints, unless that takes
CHECKPOINT_SHARE = 20  # more than one part in so many of the time


class Output(Protocol):
    """Something that is measured or written on the way."""

    def next(self, step: int) -> int | None:
        """The first step after this one that a run must not pass; None for no such step."""
        ...

    def due(self, step: int, *, last: bool) -> bool:
        """Whether it belongs to this step, which may be the last one of the run."""
        ...

    def take(self, step: int) -> None:
        """Do it, after this step."""
        ...


def _following(step: int, interval: int) -> int | None:
    """The next multiple of an interval; None for an interval of 0."""
    return (step // interval + 1) * interval if interval else None


@dataclass(slots=True)
class Every:
    """Something that is done each `interval` steps (0: never), and with `at_end` at the last one.

    taken: the latest step at which it was done. A resumed run does not do it again there.
    """

    interval: int
    act: Callable[[], None]
    at_end: bool = False
    taken: int = -1

    def next(self, step: int) -> int | None:
        return _following(step, self.interval)

    def due(self, step: int, *, last: bool) -> bool:
        regular = self.interval > 0 and step % self.interval == 0
        return step > self.taken and (regular or (self.at_end and last))

    def take(self, step: int) -> None:
        self.taken = step
        self.act()


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Where a run can be resumed from, and how often that file is written.

    path: None for none. every: steps, or 0: by wall time. seconds: of wall time; None lets writing
    take a twentieth of the time at most. first: whether one is written before the first step.
    resumed: the file from which the run was resumed; a run that continues in it writes no first
    one.
    """

    path: Path | None = None
    every: int = 0
    seconds: float | None = None
    first: bool = True
    resumed: Path | None = None

    @property
    def exists(self) -> bool:
        """Whether the run continues in the file from which it was resumed."""
        path, resumed = self.path, self.resumed
        return path is not None and resumed is not None and path.resolve() == resumed.resolve()

    def due(self, step: int, since: float, cost: float) -> bool:
        """Whether one is due, `since` seconds after the last one, which took `cost` seconds."""
        if self.every:
            return step % self.every == 0
        shared = max(CHECKPOINT_SECONDS, CHECKPOINT_SHARE * cost)
        return since >= (shared if self.seconds is None else self.seconds)


class Simulated(Protocol):
    """What a product gives to its runs: a simulation, and what is measured and written of it."""

    @property
    def step(self) -> int:
        """The steps that led to the present state."""
        ...

    @property
    def profile(self) -> Profile | None:
        """The profile that records where the time goes."""
        ...

    def prepare(self, run: Run[Any], /) -> None:
        """Compile what steps need, and what they are looked at with."""
        ...

    def advance(self, steps: int, /) -> None:
        """Take so many steps and wait for them."""
        ...

    def check(self) -> None:
        """Refuse a state of which no number holds, before anything is measured or written."""
        ...

    def outputs(self, run: Run[Any], files: ExitStack, /) -> Iterable[Output]:
        """What is measured and written on the way, in this order; `files` closes what it opens."""
        ...

    def save(self, path: Path, run: Run[Any], /) -> None:
        """Write the checkpoint whole, instead of an earlier one."""
        ...

    def write_results(self, run: Run[Any], /) -> None:
        """Write what the run was made for next to its checkpoint, before any picture."""
        ...

    def finish(self, run: Run[Any], /) -> None:
        """Draw what is drawn at the end."""
        ...

    def summary(self, run: Run[Any], /) -> dict[str, Any]:
        """The machine-readable result."""
        ...


S = TypeVar("S", bound=Simulated)


@dataclass(slots=True, kw_only=True)
class Run(Generic[S]):
    """A simulation on its way, as `start` and `resume` of a product make it.

    state: the simulation, its settings and its measurements. steps: the step at which the run ends
    at the latest. first_step: the one at which this part of it began. note: why a resumed run may
    differ from an uninterrupted one in the last bits; empty when it gives the same bits. seconds:
    of advancing. saved: whether a checkpoint was written. ended: set by an output to end the run
    before. crowded: set by one to have a checkpoint written soon.
    """

    state: S
    steps: int
    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    first_step: int = 0
    note: str = ""
    seconds: float = 0.0
    saved: bool = False
    ended: bool = False
    crowded: bool = False
    _outputs: tuple[Output, ...] = field(default=(), init=False)

    @property
    def step(self) -> int:
        return self.state.step

    @property
    def taken(self) -> int:
        """The steps of this part of the run so far."""
        return self.step - self.first_step

    @property
    def done(self) -> bool:
        return self.ended or self.step >= self.steps

    @property
    def steps_per_second(self) -> float:
        return self.taken / self.seconds if self.seconds else 0.0

    def execute(self, progress: Callable[[Run[S]], None] = lambda run: None) -> None:
        """Advance to the end, measuring, writing and reporting on the way.

        Ctrl-C ends it after whole steps, with a checkpoint and KeyboardInterrupt; pressed again, at
        once and without. A host program's own handler is called there, and may let it continue.
        Raises `InputError` when the state breaks; the last checkpoint is then unchanged. What fails
        besides a state that holds, a measurement or a frame, ends the run with a checkpoint and,
        after the last step, with the results.
        """
        with ExitStack() as files, deferred_interruption() as interruption:
            self.state.prepare(self)
            transport().barrier()  # no process writes a file before all have looked for it
            self._outputs = tuple(self.state.outputs(self, files))
            self._look()
            settle()
            if self.checkpoints.first and not self.checkpoints.exists:
                self.save()  # from here on there is always something to resume from
            self._march(progress, interruption)
            self.state.write_results(self)  # before films are closed, which may fail

    def finish(self) -> dict[str, Any]:
        """Draw the pictures of the end; returns the machine-readable result."""
        self.state.finish(self)
        return self.state.summary(self)

    def let_go(self) -> None:
        """Forget the simulation of a run that is done: its memory is free."""
        del self.state
        self._outputs = ()

    def save(self) -> None:
        """Write the checkpoint, if it has a place. Replaces only this run's own file."""
        if (path := self.checkpoints.path) is not None:
            with span(self.state.profile, "checkpoint"):
                self.state.save(path, self)
            self.saved = True
        self.crowded = False

    def _march(self, progress: Callable[[Run[S]], None], interruption: Interruption) -> None:
        """Advance in pieces between two looks at the clock, each up to the next output.

        Of several processes the first one's clock counts, and Ctrl-C of any.
        """
        saved, cost, piece = time.monotonic(), 0.0, 1
        others = transport()
        while not self.done:
            begin = time.perf_counter()
            count = lead(others, partial(min, piece, self._next_stop() - self.step))
            self.state.advance(count)
            elapsed = time.perf_counter() - begin
            self.seconds += elapsed
            piece = max(1, min(int(count * PIECE_SECONDS / max(elapsed, 1e-9)), 4 * piece))
            self._look()
            with self._kept():
                progress(self)
            since = time.monotonic() - saved
            due = partial(self.checkpoints.due, self.step, since, cost)
            asked = any(others.agree(interruption.asked))
            if self.done or asked or self.crowded or lead(others, due):
                begin = time.monotonic()
                self.save()
                saved = time.monotonic()
                cost = saved - begin
            if asked and not self.done:
                interruption.deliver()
                if others.size > 1:  # whose own Ctrl-C may still come
                    raise KeyboardInterrupt

    def _next_stop(self) -> int:
        """The next step after which something is due, or the last one."""
        step = self.step
        stops = [o.next(step) for o in self._outputs]
        stops.append(_following(step, self.checkpoints.every))
        return min([self.steps, *(s for s in stops if s is not None)])

    def _look(self) -> None:
        """Measure and write what belongs to this step."""
        step, last = self.step, self.done
        due = [o for o in self._outputs if o.due(step, last=last)]
        if due or last:
            self.state.check()
        with self._kept():
            for output in due:
                output.take(step)

    @contextmanager
    def _kept(self) -> Generator[None]:
        """Whatever fails within, the steps that were taken are saved, and the results of the last
        one written; not where other processes would have to take part, which know nothing of it.
        """
        try:
            yield
        except Exception:
            if self.taken and joined() is None:
                self.save()
                if self.done:
                    self.state.write_results(self)
            raise
