"""A run: from a start, a table or a checkpoint, a flock that is advanced, looked at and written to files on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanewise.profiling.profile import Profile, span
from lanewise.runtime.compile_workers import settle
from lanewise.runtime.whole_steps import deferred_interruption
from lanewise.sims.boids.checkpoint import other_cells, read_checkpoint, restored, write_checkpoint
from lanewise.sims.boids.flock import Flock
from lanewise.sims.boids.obstacles import Obstacle, parse_obstacle, read_obstacles
from lanewise.sims.boids.options import Length, Output
from lanewise.sims.boids.pictures import (
    check_pictures,
    check_shown,
    course_interval,
    moment_of,
    movie_interval,
    open_movie,
    write_picture,
)
from lanewise.sims.boids.settings import RunPlan
from lanewise.sims.boids.state import State, read_state, write_state
from lanewise.sims.boids.statistics import Observer, Statistics, observer_of
from lanewise.sims.boids.trajectory import MOST_WAITING, Frame, Trajectory, frame_of, state_of
from lanewise.sims.common.checks import HDF5, check_files, check_steps, check_time_step, last_step, other_device
from lanewise.sims.common.marching import is_due, march, next_stop
from lanewise.support.errors import InputError

if TYPE_CHECKING:
    from lanewise.sims.boids.view.flock import FlockMovie


@dataclass
class Run:
    """A flock with its files, made by `runner.start` or `runner.resume`.

    steps: at which the run is complete. first: the statistics of step 0. watchers: called with every frame, at the start and then every
    `output.every` steps. note: why a resumed run may differ from an uninterrupted one; empty for the same bits.
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
    _film: FlockMovie | None = None
    _frame: Frame | None = None
    _observer: Observer | None = None
    _course: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])

    def execute(self, progress: Callable[[Run], None] = lambda run: None) -> None:
        """Advance to the end, looking, writing and reporting on the way (see `march`).

        Raises `InputError` when an agent is lost; the last checkpoint is then as it was.
        """
        flock = self.flock
        flock.prepare(self.dt)
        with ExitStack() as files, deferred_interruption() as interruption:
            if self.output.pictures.movie is not None:
                self._film = files.enter_context(
                    open_movie(self.output.pictures, flock, overwrite=self.output.overwrite)
                )
            self.look()
            settle()
            if (
                self.trajectory.base != self.output.out
            ):  # a resumed run has its file already, and leaves it until there is more
                self.save()  # from here on there is always something to resume from
            march(self, progress, interruption)
        self._write_final()

    @property
    def step(self) -> int:
        return self.flock.step

    @property
    def done(self) -> bool:
        return self.step >= self.steps

    def advance(self, steps: int) -> None:
        """So many steps, unseen."""
        self.flock.advance(steps, self.dt)

    def next_event(self) -> int:
        """The next step after which something has to be looked at or written."""
        step, o = self.step, self.output
        return next_stop(step, self.steps, o.every, o.checkpoint_every, self.movie_every, self.course_every)

    @property
    def movie_every(self) -> int:
        """Steps between frames of the movie; 0 without one."""
        o = self.output
        if o.pictures.movie is None:
            return 0
        return o.movie_every or movie_interval(o.pictures, self.steps - self.first_step, self.dt)

    @property
    def course_every(self) -> int:
        """Steps between two looks at the polarisation, for the picture; 0 without one."""
        return 0 if self.output.pictures.plot is None else course_interval(self.steps - self.first_step)

    def look(self) -> None:
        """What this step asks for: a frame of the trajectory that is not taken yet, one of the movie, a look at the order."""
        every, step = self.output.every, self.flock.step
        if every and step % every == 0 and step > self.last_frame:
            self.last_frame = step
            frame = self.frame()
            if self.output.out is not None:
                self.trajectory.waiting.append(frame)
            for watcher in self.watchers:
                watcher(frame)
        if self._film is not None and step % self.movie_every == 0:
            frame = self.frame()
            with span(self.flock.profile, "output", name="movie"):
                self._film.add(moment_of(frame))
        if self.course_every and step % self.course_every == 0:
            with span(self.flock.profile, "observe", name="polarisation"):
                self._course.append((self.flock.time, self.flock.polarisation()))

    def frame(self) -> Frame:
        """The flock as it is now; taken once a step."""
        if self._frame is None or self._frame.step != self.flock.step:
            self._observer = self._observer or observer_of(self.flock)
            self._frame = frame_of(self.flock, self._observer)
        return self._frame

    def checkpoint_due(self, since: float, cost: float) -> bool:
        """At the interval that was asked for, now and then without one, and when many frames wait."""
        many = self.trajectory.nbytes >= MOST_WAITING
        return many or is_due(self.step, self.output.checkpoint_every, since, cost)

    # ------------------------------------------------------------ results

    def save(self) -> None:
        """Write the checkpoint, if there is a place for it. Replaces only this run's own file."""
        if self.output.out is None:
            return
        o = self.output
        plan = RunPlan(self.steps, self.dt, o.every, self.last_frame, self.first, o.checkpoint_every)
        with span(self.flock.profile, "checkpoint"):
            write_checkpoint(self.output.out, self.flock, overwrite=True, trajectory=self.trajectory, run=plan)

    def _write_final(self) -> None:
        flock, o = self.flock, self.output
        if o.final is not None:
            state = state_of(flock)
            with span(flock.profile, "output", name="final state"):
                write_state(o.final, state, overwrite=o.overwrite)
        if o.pictures.plot is not None:
            frame = self.frame()
            with span(flock.profile, "output", name="picture"):
                write_picture(o.pictures, flock, frame, self._course, overwrite=o.overwrite)

    @property
    def steps_per_second(self) -> float:
        return (self.flock.step - self.first_step) / self.seconds if self.seconds else 0.0

    def summary(self) -> dict[str, Any]:
        """The machine-readable result."""
        flock, s = self.flock, self.flock.settings
        now, o = self.frame().statistics, self.output
        files = {"out": o.out, "final": o.final, "plot": o.pictures.plot, "movie": o.pictures.movie}
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
            **{name: None if path is None else str(path) for name, path in files.items()},
        }  # fmt: skip


NO_FILES = Output()
ONLY_STARTS = ("agents", "start", "start_radius", "seed")
"""What a table of agents leaves nothing to say about."""


def start(
    chosen: Mapping[str, Any] | None = None, *, table: Path | None = None, steps: int | None = None, dt: float | None = None,
    output: Output = NO_FILES, profile: Profile | None = None,
) -> Run:  # fmt: skip
    """Check everything, make the flock, and measure the initial state. `chosen`: arguments of `Flock`, without those left open."""
    arguments = dict(chosen or {})
    asked: dict[str, Any] = {"steps": steps, "dt": dt}
    length = Length(**{name: value for name, value in asked.items() if value is not None})
    check_steps(length.steps)
    check_time_step(length.dt)
    check_output(output)
    if (agents := arguments.get("agents", 1)) < 1:
        raise InputError(f"{agents} agents asked for; wanted at least 1")
    state: State | None = None
    if table is not None:
        for name in ONLY_STARTS:
            if name in arguments:
                raise InputError(
                    f"--{name.replace('_', '-')} cannot be given with --from: the table says where the agents are"
                )
        with span(profile, "setup", name="read the agents"):
            state = read_state(table)
    flock = Flock(state=state, profile=profile, **arguments)
    check_shown(output.pictures, flock)
    with span(profile, "observe", name="first (compiles)"):
        first = flock.statistics()
    return Run(flock, output, length.dt, length.steps, first)


def resume(
    path: Path,
    *,
    steps: int | None,
    dt: float | None,
    device: str | None,
    output: Output,
    profile: Profile | None = None,
) -> Run:
    """Continue a checkpoint by `steps` steps, or to its planned end.

    Everything else is as it was, so the same kind of device gives the same bits; `Run.note` says when not.
    """
    with span(profile, "setup", name="read the checkpoint"):
        saved = read_checkpoint(path)
    if saved.run is None:
        raise InputError(
            f"{path}: a checkpoint without a run, written by Flock.checkpoint; continue it with Flock.resume"
        )
    before, plan = saved.clock.step, saved.run
    last = last_step(path, before, plan.steps, steps)
    step_time = plan.dt if dt is None else dt
    check_time_step(step_time)
    output = replace(
        output,
        out=output.out or path,
        every=output.every or plan.every,
        checkpoint_every=output.checkpoint_every or plan.checkpoint_every,
    )
    check_output(output, resumed=path)
    flock = restored(saved, device=device, profile=profile)
    check_shown(output.pictures, flock)
    return Run(
        flock, output, step_time, last, plan.first, Trajectory(path), before, plan.last_frame,
        other_device(path, saved.settings.device, flock.settings.device) or other_cells(saved),
    )  # fmt: skip


def obstacles_of(texts: Sequence[str]) -> tuple[Obstacle, ...]:
    """The obstacles of `--obstacle`: texts, and names of .toml files."""
    obstacles: list[Obstacle] = []
    for text in texts:
        obstacles += read_obstacles(text) if text.endswith(".toml") else [parse_obstacle(text)]
    return tuple(obstacles)


def check_output(output: Output, resumed: Path | None = None) -> None:
    """Refuse files that cannot be written or that are in each other's way, before anything is computed."""
    if output.checkpoint_every and output.out is None:
        raise InputError("--checkpoint-every needs --out: checkpoints go there")
    if output.every and output.out is None and output.pictures.movie is None:
        raise InputError("--every needs --out or --movie: frames go there")
    check_pictures(output.pictures)
    p = output.pictures
    files = {"out": output.out, "final": output.final, "plot": p.plot, "movie": p.movie}
    check_files(files, overwrite=output.overwrite, resumed=resumed, suffixes={"out": HDF5, "final": (".csv",)})
