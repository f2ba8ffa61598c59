"""The beginning of a run: from a start or a table, or from a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lanewise.errors import InputError
from lanewise.patterns.search import StaticGrid
from lanewise.profiling.profile import Profile, span
from lanewise.sims.boids.checkpoint import Checkpoint, read_checkpoint, restored
from lanewise.sims.boids.flock import Flock
from lanewise.sims.boids.obstacles import Obstacle, parse_obstacle, read_obstacles
from lanewise.sims.boids.options import Length, Output
from lanewise.sims.boids.pictures import check_pictures, check_shown
from lanewise.sims.boids.run import Run
from lanewise.sims.boids.state import State, read_state
from lanewise.sims.boids.trajectory import Trajectory
from lanewise.sims.common.checks import check_files, check_steps, check_time_step, last_step, other_device

NO_FILES = Output()
ONLY_STARTS = ("agents", "start", "start_radius", "seed")
"""What a table of agents leaves nothing to say about."""


def start(
    chosen: Mapping[str, Any] | None = None, *, table: Path | None = None, steps: int | None = None, dt: float | None = None,
    output: Output = NO_FILES, profile: Profile | None = None,
) -> Run:  # fmt: skip
    """Check everything, make the flock, and measure the initial state. `chosen`: arguments of `Flock`, without those left open."""
    given = dict(chosen or {})
    asked: dict[str, Any] = {"steps": steps, "dt": dt}
    length = Length(**{name: value for name, value in asked.items() if value is not None})
    check_steps(length.steps)
    check_time_step(length.dt)
    check_output(output)
    state: State | None = None
    if table is not None:
        for name in ONLY_STARTS:
            if name in given:
                raise InputError(
                    f"--{name.replace('_', '-')} cannot be given with --from: the table says where the agents are"
                )
        with span(profile, "setup", name="read the agents"):
            state = read_state(table)
    flock = Flock(state=state, profile=profile, **given)
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
    output = replace(output, out=output.out or path, every=output.every or plan.every)
    check_output(output, resumed=path)
    flock = restored(saved, device=device, profile=profile)
    check_shown(output.pictures, flock)
    return Run(
        flock, output, step_time, last, plan.first, Trajectory(path), before, plan.last_frame,
        _difference(path, saved, flock),
    )  # fmt: skip


def _difference(path: Path, saved: Checkpoint, flock: Flock) -> str:
    """Why the bits may not be those of an uninterrupted run."""
    s = flock.settings
    if other := other_device(path, saved.settings.device, s.device):
        return other
    if s.boundary == "open" and s.k is None and isinstance(flock.search, StaticGrid):
        return f"{path}: the cells of a static grid in an open world follow the first positions; the last places may differ"
    return ""


def obstacles_of(texts: Sequence[str]) -> tuple[Obstacle, ...]:
    """The obstacles of `--obstacle`: texts, and names of .toml files."""
    found: list[Obstacle] = []
    for text in texts:
        found += read_obstacles(text) if text.endswith(".toml") else [parse_obstacle(text)]
    return tuple(found)


def check_output(output: Output, resumed: Path | None = None) -> None:
    """Refuse files that cannot be written or that are in each other's way, before anything is computed."""
    if output.checkpoint_every and output.out is None:
        raise InputError("--checkpoint-every needs --out: checkpoints go there")
    if output.every and output.out is None and output.pictures.movie is None:
        raise InputError("--every needs --out or --movie: frames go there")
    check_pictures(output.pictures)
    p = output.pictures
    files = {"out": output.out, "final": output.final, "plot": p.plot, "movie": p.movie}
    check_files(files, overwrite=output.overwrite, resumed=resumed)
