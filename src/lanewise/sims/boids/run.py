"""Runs of flocks, from a start, a table of agents or a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from lanewise.profiling.profile import Profile, span
from lanewise.sims.boids.checkpoint import (
    other_cells,
    read_checkpoint,
    restored,
    write_checkpoint,
)
from lanewise.sims.boids.flock import Flock
from lanewise.sims.boids.initial import make_state
from lanewise.sims.boids.obstacles import Obstacle, parse_obstacle, read_obstacles
from lanewise.sims.boids.options import Asked, Length, Output
from lanewise.sims.boids.parameters import Parameters
from lanewise.sims.boids.pictures import (
    check_pictures,
    check_shown,
    course_interval,
    moment_of,
    movie_interval,
    open_movie,
    write_picture,
)
from lanewise.sims.boids.settings import RunPlan, Settings, asked_settings
from lanewise.sims.boids.state import State, read_state, write_state
from lanewise.sims.boids.statistics import FlockObserver, Statistics, observer_of
from lanewise.sims.boids.trajectory import MOST_WAITING, Frame, Trajectory, frame_of, state_of
from lanewise.sims.common.checks import HDF5, check_files, check_steps, check_time_step, last_step
from lanewise.sims.common.devices import other_device
from lanewise.sims.common.meshes import check_parts, place_of_run, repeated
from lanewise.sims.common.processes import writes
from lanewise.sims.common.run import Checkpoints, Every, Run
from lanewise.support.errors import InputError

if TYPE_CHECKING:
    from lanewise.sims.boids.view.flock import Moment
    from lanewise.sims.common.films import PaintedFilm


@dataclass(slots=True, kw_only=True)
class SimulatedFlock:
    """A flock with its files, as its runs advance it (see `Simulated`).

    first: the statistics of step 0. last_frame: the step of the latest frame; -1 for none.
    """

    flock: Flock
    output: Output
    dt: float
    first: Statistics
    trajectory: Trajectory = field(default_factory=Trajectory)
    last_frame: int = -1
    _frame: Frame | None = field(default=None, init=False)
    _observer: FlockObserver | None = field(default=None, init=False)
    _course: list[tuple[float, float]] = field(
        default_factory=list[tuple[float, float]], init=False
    )

    @property
    def step(self) -> int:
        return self.flock.step

    @property
    def profile(self) -> Profile | None:
        return self.flock.profile

    def prepare(self, run: Run[Any]) -> None:
        self.flock.prepare(self.dt)

    def advance(self, steps: int) -> None:
        self.flock.advance(steps, self.dt)

    def check(self) -> None:
        """`advance` has checked the agents."""

    def outputs(self, run: Run[Any], files: ExitStack) -> Iterator[Every]:
        """Frames of the trajectory and of the movie, and the order of the flock for the picture."""
        o, steps = self.output, run.steps - run.first_step
        yield Every(o.every, partial(self._add_frame, run), taken=self.last_frame)
        if o.pictures.movie is not None:
            film = None  # of several processes the first one's
            if writes():
                film = files.enter_context(
                    open_movie(o.pictures, self.flock, overwrite=o.overwrite)
                )
            every = o.movie_every or movie_interval(o.pictures, steps, self.dt)
            yield Every(every, partial(self._add_picture, film))
        if o.pictures.plot is not None:
            yield Every(course_interval(steps), self._look_at_order)

    def _add_frame(self, run: Run[Any]) -> None:
        self.last_frame = self.step
        if self.output.out is not None:
            self.trajectory.waiting.append(self.frame())
        run.crowded = self.trajectory.nbytes >= MOST_WAITING

    def _add_picture(self, film: PaintedFilm[Moment] | None) -> None:
        frame = self.frame()
        with span(self.profile, "output", name="movie"):
            if film is not None:
                film.add(moment_of(frame))

    def _look_at_order(self) -> None:
        with span(self.profile, "observe", name="polarisation"):
            self._course.append((self.flock.time, self.flock.polarisation()))

    def frame(self) -> Frame:
        """The flock as it is now; taken once a step."""
        if self._frame is None or self._frame.step != self.step:
            self._observer = self._observer or observer_of(self.flock)
            self._frame = frame_of(self.flock, self._observer)
        return self._frame

    def save(self, path: Path, run: Run[Any]) -> None:
        o = self.output
        plan = RunPlan(run.steps, self.dt, o.every, self.last_frame, self.first, o.checkpoint_every)
        write_checkpoint(path, self.flock, overwrite=True, trajectory=self.trajectory, run=plan)

    def write_results(self, run: Run[Any]) -> None:
        """Write the table of the last state."""
        if (path := self.output.final) is not None:
            state = state_of(self.flock)
            if not writes():
                return
            with span(self.profile, "output", name="final state"):
                write_state(path, state, overwrite=self.output.overwrite)

    def finish(self, run: Run[Any]) -> None:
        """Draw the last state."""
        flock, o = self.flock, self.output
        if o.pictures.plot is not None:
            frame = self.frame()
            if not writes():
                return
            with span(self.profile, "output", name="picture"):
                write_picture(o.pictures, flock, frame, self._course, overwrite=o.overwrite)

    def summary(self, run: Run[Any]) -> dict[str, Any]:
        flock, s = self.flock, self.flock.settings
        now, o = self.frame().statistics, self.output
        files = {
            "out": o.out, "final": o.final, "plot": o.pictures.plot, "movie": o.pictures.movie,
        }  # fmt: skip
        return {
            "device": s.device,
            "semantics": s.semantics,
            "search": s.search,
            "search_chosen": flock.describe_search(),
            "search_reason": flock.search_reason,
            "agents": len(flock),
            "k": s.k,
            "radius": s.parameters.radius,
            "world": s.world,
            "boundary": s.boundary,
            "obstacles": len(s.all_obstacles),
            "think_every": s.think_every,
            "precision": s.precision,
            "layout": s.layout,
            "steps": run.taken,
            "step": flock.step,
            "time": flock.time,
            "dt": self.dt,
            "seconds": run.seconds,
            "steps_per_second": run.steps_per_second,
            "agents_per_second": run.steps_per_second * len(flock),
            "polarisation": now.polarisation,
            "polarisation_initial": self.first.polarisation,
            "speed": {"min": now.speed_min, "mean": now.speed_mean, "max": now.speed_max},
            "nearest_neighbour_distance": {"min": now.nearest_min, "mean": now.nearest_mean},
            "cell_population": {
                "cells": now.cells,
                "min": now.cell_min,
                "mean": now.cell_mean,
                "max": now.cell_max,
            },
            **{name: None if path is None else str(path) for name, path in files.items()},
        }


FlockRun: TypeAlias = Run[SimulatedFlock]


NO_FILES = Output()
ONLY_STARTS = ("agents", "start", "start_radius", "seed")
"""What a table of agents leaves nothing to say about."""

A_FEW = 16  # agents that show whether a start is possible
ONLY_OBSTACLES = ("agent_radius", "avoid_time")
"""What says nothing where there is no obstacle."""


def start(
    chosen: Mapping[str, Any] | None = None,
    *,
    table: Path | None = None,
    steps: int | None = None,
    dt: float | None = None,
    output: Output = NO_FILES,
    profile: Profile | None = None,
) -> FlockRun:
    """Check everything, make the flock, and measure the initial state. `chosen`: arguments of
    `Flock`, without those left open.
    """
    arguments = dict(chosen or {})
    length = _checked_length(arguments, table, steps, dt)
    check_output(output)
    state: State | None = None
    if table is not None:
        with span(profile, "setup", name="read the agents"):
            state = read_state(table)
    arguments["device"] = place = place_of_run(arguments.get("device"))
    flock = Flock(state=state, profile=profile, **arguments)
    check_parts(len(flock), "agents", place)
    _check_about_obstacles(arguments, flock.settings)
    check_shown(output.pictures, flock)
    with span(profile, "observe", name="first (compiles)"):
        first = flock.statistics()
    flight = SimulatedFlock(flock=flock, output=output, dt=length.dt, first=first)
    return Run(
        state=flight,
        steps=length.steps,
        checkpoints=Checkpoints(output.out, output.checkpoint_every),
        note=repeated(place),
    )


def check_settings(
    chosen: Mapping[str, Any], *, table: Path | None, steps: int | None, dt: float | None
) -> None:
    """Raise `InputError` for what `start` would refuse of these arguments, as far as that can be
    told without any agents.
    """
    _checked_length(chosen, table, steps, dt)
    asked = {f.name: chosen.get(f.name, getattr(Asked(), f.name)) for f in fields(Asked)}
    constants = {f.name: chosen[f.name] for f in fields(Parameters) if f.name in chosen}
    settings = asked_settings(
        semantics=asked["semantics"], constants=constants, k=asked["k"], search=asked["search"],
        world=asked["world"], boundary=asked["boundary"], obstacles=asked["obstacles"] or (),
        think_every=asked["think_every"], precision=asked["precision"], layout=asked["layout"],
        device=None, dimension=asked["dimension"], collide=asked["collide"],
    )  # fmt: skip
    if table is None:
        make_state(
            min(asked["agents"] or A_FEW, A_FEW), start=asked["start"],
            radius=asked["start_radius"], world=settings.world, seed=asked["seed"],
            dimension=settings.dimension,
        )  # fmt: skip
    _check_about_obstacles(chosen, settings)


def _checked_length(
    chosen: Mapping[str, Any], table: Path | None, steps: int | None, dt: float | None
) -> Length:
    """How long a run is; refuses numbers that are too small, and what a table leaves no choice
    of.
    """
    asked: dict[str, Any] = {"steps": steps, "dt": dt}
    length = Length(**{name: value for name, value in asked.items() if value is not None})
    check_steps(length.steps)
    check_time_step(length.dt)
    if (agents := chosen.get("agents", 1)) < 1:
        raise InputError(f"{agents} agents requested; wanted at least 1")
    for name in ONLY_STARTS if table is not None else ():
        if name in chosen:
            raise InputError(
                f"--{name.replace('_', '-')} cannot be given with --from: the table says where "
                "the agents are"
            )
    return length


def _check_about_obstacles(chosen: Mapping[str, Any], settings: Settings) -> None:
    balls = {"agent_radius"} if settings.collide else set[str]()
    for name in ONLY_OBSTACLES:
        if name in chosen and name not in balls and not settings.all_obstacles:
            raise InputError(
                f"--{name.replace('_', '-')} is about obstacles, and there are none: add "
                "--obstacle, or choose a boundary that is one"
            )


def resume(
    path: Path,
    *,
    steps: int | None,
    dt: float | None,
    device: str | None,
    output: Output,
    profile: Profile | None = None,
) -> FlockRun:
    """Continue a checkpoint by `steps` steps, or to its planned end.

    Everything else is as it was, so the same kind of device gives the same bits; `Run.note` says
    when not.
    """
    with span(profile, "setup", name="read the checkpoint"):
        saved = read_checkpoint(path)
    if saved.run is None:
        raise InputError(
            f"{path}: a checkpoint without a run, written by Flock.checkpoint; continue it with "
            "Flock.resume"
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
    place = place_of_run(device, saved.settings.device)
    check_parts(len(saved.state), "agents", place)
    flock = restored(Flock, saved, device=place, profile=profile)
    check_shown(output.pictures, flock)
    flight = SimulatedFlock(
        flock=flock, output=output, dt=step_time, first=plan.first, trajectory=Trajectory(path),
        last_frame=plan.last_frame,
    )  # fmt: skip
    device_before = saved.settings.device
    note = other_device(path, device_before, flock.settings.device) or other_cells(saved)
    note = "; ".join(text for text in (repeated(place), note) if text)
    return Run(
        state=flight,
        steps=last,
        first_step=before,
        note=note,
        checkpoints=Checkpoints(output.out, output.checkpoint_every, resumed=path),
    )


def obstacles_of(texts: Sequence[str]) -> tuple[Obstacle, ...]:
    """The obstacles of `--obstacle`: texts, and names of .toml files."""
    obstacles: list[Obstacle] = []
    for text in texts:
        obstacles += read_obstacles(text) if text.endswith(".toml") else [parse_obstacle(text)]
    return tuple(obstacles)


def check_output(output: Output, resumed: Path | None = None) -> None:
    """Refuse files that cannot be written or that are in each other's way, before anything is
    computed.
    """
    if output.checkpoint_every and output.out is None:
        raise InputError("--checkpoint-every needs --out: checkpoints go there")
    if output.every and output.out is None and output.pictures.movie is None:
        raise InputError("--every needs --out or --movie: frames go there")
    check_pictures(output.pictures)
    p = output.pictures
    files = {"out": output.out, "final": output.final, "plot": p.plot, "movie": p.movie}
    check_files(
        files,
        overwrite=output.overwrite,
        resumed=resumed,
        suffixes={"out": HDF5, "final": (".csv",)},
    )
