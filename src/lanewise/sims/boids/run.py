"""A run: a flock that is advanced, looked at and written to files on the way."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lanewise.profiling.profile import span
from lanewise.sims.boids.checkpoint import write_checkpoint
from lanewise.sims.boids.flock import Flock
from lanewise.sims.boids.state import write_state
from lanewise.sims.boids.statistics import Statistics
from lanewise.sims.boids.trajectory import MOST_WAITING, Frame, Trajectory, frame_of
from lanewise.sims.interruption import deferred_interruption

PIECE_SECONDS = 0.2  # how long the machine works between two looks at the clock
CHECKPOINT_SECONDS, CHECKPOINT_SHARE = 60.0, 20  # without an interval in steps: so often, and at most 1/20 of the time


@dataclass(frozen=True, slots=True)
class Output:
    """Where results go. Intervals are steps; `every` 0: no frames on the way; `checkpoint_every` 0: the run chooses."""

    out: Path | None = None
    final: Path | None = None
    every: int = 0
    checkpoint_every: int = 0
    overwrite: bool = False


@dataclass
class Run:
    """A flock with its files, made by `runner.start` or `runner.resume`.

    steps: at which the run is complete. first: the statistics of step 0. watchers: called with every frame, at the start and then every
    `output.every` steps (pictures, movies). note: why a resumed run may differ from an uninterrupted one; empty for the same bits.
    """

    flock: Flock
    output: Output
    dt: float
    steps: int
    first: Statistics
    trajectory: Trajectory = field(default_factory=Trajectory)
    first_step: int = 0
    last_frame: int = -1
    note: str = ""
    seconds: float = 0.0
    watchers: list[Callable[[Frame], None]] = field(default_factory=list[Callable[[Frame], None]])

    def execute(self, progress: Callable[[Run], None] = lambda run: None) -> None:
        """Advance to the end, looking, writing and reporting on the way.

        Ctrl-C ends it after whole steps with a checkpoint and KeyboardInterrupt; pressed again, at once and without.
        Raises `InputError` when an agent is lost; the last checkpoint is then as it was.
        """
        flock = self.flock
        flock.prepare(self.dt)
        with deferred_interruption() as interruption:
            self._look()
            self.save()  # from here on there is always something to resume from
            saved, cost, piece = time.monotonic(), 0.0, 1
            while not self.done:
                begin = time.perf_counter()
                count = min(piece, self._next_event() - flock.step)
                flock.advance(count, self.dt)
                elapsed = time.perf_counter() - begin
                self.seconds += elapsed
                piece = max(1, min(int(count * PIECE_SECONDS / max(elapsed, 1e-9)), 4 * piece))
                self._look()
                progress(self)
                if self.done or interruption.asked or self._checkpoint_due(time.monotonic() - saved, cost):
                    begin = time.monotonic()
                    self.save()
                    saved = time.monotonic()
                    cost = saved - begin
                if interruption.asked and not self.done:
                    raise KeyboardInterrupt
        self._write_final()

    @property
    def done(self) -> bool:
        return self.flock.step >= self.steps

    def _next_event(self) -> int:
        step = self.flock.step
        intervals = [i for i in (self.output.every, self.output.checkpoint_every) if i]
        return min([self.steps, *((step // i + 1) * i for i in intervals)])

    def _look(self) -> None:
        """Take a frame, if this step asks for one that is not taken yet."""
        every, step = self.output.every, self.flock.step
        if not every or step % every or step <= self.last_frame:
            return
        with span(self.flock.profile, "output", name="frame"):
            frame = frame_of(self.flock)
            self.last_frame = step
            if self.output.out is not None:
                self.trajectory.waiting.append(frame)
            for watcher in self.watchers:
                watcher(frame)

    def _checkpoint_due(self, since: float, cost: float) -> bool:
        every = self.output.checkpoint_every
        if self.trajectory.nbytes >= MOST_WAITING or (every and self.flock.step % every == 0):
            return True
        return not every and since >= max(CHECKPOINT_SECONDS, CHECKPOINT_SHARE * cost)

    # ------------------------------------------------------------ results

    def save(self) -> None:
        """Write the checkpoint, if there is a place for it. Replaces only this run's own file."""
        if self.output.out is None:
            return
        plan = {
            "steps": self.steps, "dt": self.dt, "every": self.output.every, "last_frame": self.last_frame,
            "first": asdict(self.first),
        }  # fmt: skip
        with span(self.flock.profile, "checkpoint"):
            write_checkpoint(self.output.out, self.flock, overwrite=True, trajectory=self.trajectory, run=plan)

    def _write_final(self) -> None:
        if self.output.final is not None:
            with span(self.flock.profile, "output", name="final state"):
                write_state(self.output.final, self.flock.state, overwrite=True)

    @property
    def steps_per_second(self) -> float:
        return (self.flock.step - self.first_step) / self.seconds if self.seconds else 0.0

    def summary(self) -> dict[str, Any]:
        """The machine-readable result."""
        flock, s = self.flock, self.flock.settings
        with span(flock.profile, "observe", name="statistics"):
            now = flock.statistics()
        return {
            "device": s.device, "semantics": s.semantics, "search": s.search, "search_chosen": flock.describe_search(),
            "search_reason": flock.search_reason, "agents": len(flock), "k": s.k, "radius": s.parameters.radius,
            "world": s.world, "boundary": s.boundary, "obstacles": len(s.all_obstacles), "think_every": s.think_every,
            "precision": s.precision, "layout": s.layout, "steps": flock.step - self.first_step, "step": flock.step,
            "time": flock.time, "dt": self.dt, "seconds": self.seconds, "steps_per_second": self.steps_per_second,
            "agents_per_second": self.steps_per_second * len(flock),
            "polarisation": now.polarisation, "polarisation_initial": self.first.polarisation,
            "speed": {"min": now.speed_min, "mean": now.speed_mean, "max": now.speed_max},
            "nearest_neighbour_distance": {"min": now.nearest_min, "mean": now.nearest_mean},
            "cell_population": {"cells": now.cells, "min": now.cell_min, "mean": now.cell_mean, "max": now.cell_max},
            "out": str(self.output.out) if self.output.out else None, "final": str(self.output.final) if self.output.final else None,
        }  # fmt: skip
