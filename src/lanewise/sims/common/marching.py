"""The step and the time of a simulation, and how every run advances.

It does so in pieces between two looks at the clock, to the next event, with checkpoints on the way.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from lanewise.runtime.whole_steps import Interruption

PIECE_SECONDS = 0.2  # how long the machine works between two looks at the clock
CHECKPOINT_SECONDS, CHECKPOINT_SHARE = 60.0, 20  # without an interval in steps: so often, and at most 1/20 of the time


class Marching(Protocol):
    """A run that can be advanced. seconds: of advancing, which `march` counts."""

    seconds: float

    @property
    def step(self) -> int:
        """The steps that are behind it."""
        ...

    @property
    def done(self) -> bool:
        """Whether it is complete."""
        ...

    def next_event(self) -> int:
        """The next step after which something has to be measured, looked at or written, or the last one."""
        ...

    def advance(self, steps: int) -> None:
        """So many steps."""
        ...

    def look(self) -> None:
        """What this step asks for, after each piece."""
        ...

    def checkpoint_due(self, since: float, cost: float) -> bool:
        """Whether to save, that many seconds after the last checkpoint, which took `cost` seconds."""
        ...

    def save(self) -> None:
        """Write the checkpoint, if there is a place for it."""
        ...


R = TypeVar("R", bound=Marching)


def march(run: R, progress: Callable[[R], None], interruption: Interruption) -> None:
    """Advance to the end, looking, saving and reporting on the way.

    Ctrl-C, also one that was pressed before (see `deferred_interruption`), ends it after whole steps with a checkpoint and
    KeyboardInterrupt; pressed again, at once and without. A host program's own handler is called there, and may let it go on.
    """
    saved, cost, piece = time.monotonic(), 0.0, 1
    while not run.done:
        begin = time.perf_counter()
        count = min(piece, run.next_event() - run.step)
        run.advance(count)
        elapsed = time.perf_counter() - begin
        run.seconds += elapsed
        piece = max(1, min(int(count * PIECE_SECONDS / max(elapsed, 1e-9)), 4 * piece))
        run.look()
        progress(run)
        if run.done or interruption.asked or run.checkpoint_due(time.monotonic() - saved, cost):
            begin = time.monotonic()
            run.save()
            saved = time.monotonic()
            cost = saved - begin
        if interruption.asked and not run.done:
            interruption.deliver()


def next_stop(step: int, last: int, *intervals: int) -> int:
    """The next step that is a multiple of one of the intervals (0: never), or the last one."""
    return min([last, *((step // i + 1) * i for i in intervals if i)])


def is_due(step: int, every: int, since: float, cost: float) -> bool:
    """Whether a run saves now: each `every` steps, or (0) so often that saving costs little. since, cost: see `Marching.checkpoint_due`."""
    return step % every == 0 if every else since >= max(CHECKPOINT_SECONDS, CHECKPOINT_SHARE * cost)


@dataclass(frozen=True, slots=True)
class Clock:
    """The step, and what the time follows from: `elapsed` is that of steps before `start_step`, which had another dt."""

    step: int
    start_time: float
    start_step: int
    elapsed: float
    dt: float

    @property
    def time(self) -> float:
        """Computed by multiplication, so it does not drift."""
        return self.start_time + self.elapsed + (self.step - self.start_step) * self.dt

    def after(self, steps: int) -> Clock:
        """So many steps on."""
        return replace(self, step=self.step + steps)

    def with_dt(self, dt: float) -> Clock:
        """The same moment, from which steps of `dt` follow."""
        if dt == self.dt:
            return self
        elapsed = self.elapsed + (self.step - self.start_step) * self.dt
        return replace(self, start_step=self.step, elapsed=elapsed, dt=dt)
