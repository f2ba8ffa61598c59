"""A run: from initial conditions, bodies of a file or a checkpoint, a simulation that is advanced, measured and written to files."""

from __future__ import annotations

import glob
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from lanewise.io.atomic import writable_target
from lanewise.io.formats import read_particles
from lanewise.io.particles import Particles
from lanewise.language.target import target_of
from lanewise.layouts import Layout, layout_by_name
from lanewise.profiling.profile import Profile, span
from lanewise.records.arrays import RecordArray
from lanewise.runtime.compile_workers import settle
from lanewise.runtime.devices import resolve
from lanewise.runtime.whole_steps import deferred_interruption
from lanewise.sims.common.checks import check_steps, check_time_step, last_step
from lanewise.sims.common.marching import march, next_stop
from lanewise.sims.gravity.checkpoint import (
    Checkpoint,
    Labels,
    Pace,
    current_particles,
    read_checkpoint,
    resumed_target,
    snapshot_path,
    write_checkpoint,
)
from lanewise.sims.gravity.checks import check_softening
from lanewise.sims.gravity.diagnostics import Diagnostics, energy_warning
from lanewise.sims.gravity.initial import INITIAL_CONDITIONS, make_initial_conditions
from lanewise.sims.gravity.options import CHECKPOINT_SECONDS, Output, Settings
from lanewise.sims.gravity.plans import Plans
from lanewise.sims.gravity.simulation import Simulation, make_bodies
from lanewise.support.attributes import unknown
from lanewise.support.errors import InputError, PlanError

NO_FILES = Output()


@dataclass
class Run:
    """A simulation with its settings and history, made by `runner.start` or `runner.resume`.

    in_place: whether it was resumed from the file that it goes on writing.
    note: why a resumed run may differ from an uninterrupted one in the last places; empty when it gives the same bits.
    """

    simulation: Simulation
    labels: Labels
    settings: Settings
    output: Output
    pace: Pace
    history: list[Diagnostics]
    first_step: int
    in_place: bool = False
    note: str = ""
    seconds: float = 0.0
    written: list[Path] = field(default_factory=list[Path])

    @property
    def last(self) -> Diagnostics:
        return self.history[-1]

    def execute(self, progress: Callable[[Run], None] = lambda run: None) -> None:
        """Advance to `settings.steps`, measuring, writing and reporting on the way (see `march`)."""
        self.simulation.prepare(self.settings.dt)
        settle()
        if not self.in_place:  # then its file is there already, and stays as it is until there is more
            self.save()  # from here on there is always something to resume from
        with deferred_interruption() as interruption:
            march(self, progress, interruption)

    @property
    def step(self) -> int:
        return self.simulation.step

    @property
    def steps(self) -> int:
        return self.settings.steps

    @property
    def done(self) -> bool:
        return self.step >= self.steps

    def next_event(self) -> int:
        """The next step after which something has to be measured or written."""
        return next_stop(self.step, self.steps, self.pace.diagnostics_every, self.pace.snapshot_every)

    def advance(self, steps: int) -> None:
        """So many steps, unmeasured."""
        self.simulation.advance(steps, self.settings.dt)

    def checkpoint_due(self, since: float, cost: float) -> bool:
        """By wall time alone."""
        return since >= self.pace.checkpoint_seconds

    def look(self) -> None:
        """Measure, and write a snapshot, where this step asks for it."""
        step, every, snapshots = self.step, self.pace.diagnostics_every, self.pace.snapshot_every
        if self.done or (every and step % every == 0):
            self.history.append(self.simulation.diagnostics())
        if self.output.out and snapshots and step % snapshots == 0:
            path = snapshot_path(self.output.out, step)
            with span(self.simulation.profile, "output", name="snapshot"):
                self._write(path, snapshot_of=self.output.out.name, overwrite=self.output.overwrite)
            self.written.append(path)

    def snapshots(self) -> list[Path]:
        """The snapshot files that are still to be written and exist already."""
        out, every = self.output.out, self.pace.snapshot_every
        if out is None or not every:
            return []
        snapshots = (p for p in out.parent.glob(f"{glob.escape(out.stem)}_*{glob.escape(out.suffix)}") if p.is_file())
        steps = range((self.simulation.step // every + 1) * every, self.settings.steps + 1, every)
        return sorted(
            p for p in snapshots if p.stem[len(out.stem) + 1 :].isdigit() and int(p.stem[len(out.stem) + 1 :]) in steps
        )

    def save(self) -> None:
        """Write the checkpoint, if there is a place for it. Replaces only this run's own file."""
        if self.output.out:
            with span(self.simulation.profile, "checkpoint", name="checkpoint"):
                self._write(self.output.out, snapshot_of="", overwrite=True)

    def _write(self, path: Path, *, snapshot_of: str, overwrite: bool) -> None:
        write_checkpoint(
            path,
            self.simulation,
            self.labels,
            self.settings,
            self.history,
            self.pace,
            snapshot_of=snapshot_of,
            overwrite=overwrite,
        )

    @property
    def pairs_per_second(self) -> float:
        n, steps = len(self.simulation.bodies), self.simulation.step - self.first_step
        pairs = float(n) * n * steps * self.simulation.force_evaluations_per_step
        return pairs / self.seconds if self.seconds else 0.0

    def particles(self) -> Particles:
        return current_particles(self.simulation, self.labels)

    @property
    def energy_error(self) -> float:
        """The worst of the measurements so far, of the whole history (see `Diagnostics.energy_error`)."""
        start = self.history[0]
        return max(d.energy_error(start) for d in self.history)

    @property
    def warning(self) -> str:
        """What to say of an energy error that is too large, or ""."""
        s = self.settings
        return energy_warning(self.history, dt=s.dt, softening=s.softening, integrator=s.integrator)

    def summary(self) -> dict[str, Any]:
        """The machine-readable result. Drifts are relative to the start of the run, before any resumption."""
        start, end, s = self.history[0], self.last, self.settings
        return {
            "device": s.device, "ic": s.ic, "bodies": len(self.simulation.bodies), "steps": self.simulation.step - self.first_step,
            "step": self.simulation.step, "time": self.simulation.time, "dt": s.dt, "integrator": s.integrator, "softening": s.softening,
            "precision": s.precision, "layout": s.layout, "seconds": self.seconds, "pairs_per_second": self.pairs_per_second,
            "energy_initial": start.total, "energy_final": end.total, "energy_drift": end.energy_drift(start),
            "energy_error": self.energy_error, "warning": self.warning or None,
            "momentum_drift": end.momentum_drift(start), "angular_momentum_drift": end.angular_momentum_drift(start),
            "virial_ratio": end.virial_ratio, "out": str(self.output.out) if self.output.out else None,
        }  # fmt: skip

    def energy_curve(self) -> tuple[Any, Any]:
        """Times and relative energy errors of the whole history, float64 of shape (measurements,)."""
        start = self.history[0]
        return np.array([d.time for d in self.history]), np.array([d.energy_drift(start) for d in self.history])


def start(
    *, bodies: int | None = None, output: Output = NO_FILES, profile: Profile | None = None, softening: float | None = None,
    device: str | None = None, layout: str | None = None, **chosen: Any,
) -> Run:  # fmt: skip
    """Check everything, make the bodies, and measure the initial state. `chosen`: other fields of `Settings`.

    What is not chosen is as the initial condition says, else as `Settings` says.
    """
    asked = _with_defaults(chosen)
    check_steps(asked.steps)
    check_time_step(asked.dt)
    where = resolve(device)
    kind: Layout | None = layout_by_name(layout) if layout else None
    with span(profile, "setup", name="initial conditions"):
        particles = load_particles(asked.ic, bodies, asked.seed)
    if softening is None:
        softening = asked.softening if particles.softening is None else particles.softening
    check_softening(softening)
    softening += 0.0  # -0.0 is 0
    arrays = make_bodies(particles, precision=asked.precision, layout=kind, device=where, profile=profile)
    simulation = Simulation(
        arrays, softening=softening, integrator=asked.integrator, gravitational_constant=asked.gravitational_constant,
        time=particles.time, profile=profile,
    )  # fmt: skip
    settings = replace(
        asked, softening=softening, layout=layout_name(arrays.layout), device=where, start_time=particles.time
    )
    pace = _pace(output, None, settings.steps)
    return _ready(simulation, particles, settings, output, pace, [simulation.diagnostics()])


def _with_defaults(chosen: Mapping[str, Any]) -> Settings:
    """What was chosen, then what the initial condition brings, then the defaults."""
    condition = INITIAL_CONDITIONS.get(chosen.get("ic", Settings().ic))
    values: dict[str, Any] = {**(condition.method if condition else {}), **chosen}
    return Settings(**values)


def resume(path: Path, *, steps: int | None, device: str | None, output: Output, profile: Profile | None = None) -> Run:
    """Continue a checkpoint by `steps` steps, or to its planned end: in `output.out` or the same file, but never in a snapshot.

    Everything else is as it was, the plans of the kernels too, so the same device gives the same bits. On another kind of
    device the plans are chosen anew, and `Run.note` says so.
    """
    output = replace(output, out=resumed_target(path, output.out, output.overwrite))
    with span(profile, "setup", name="read the checkpoint"):
        saved: Checkpoint = read_checkpoint(path)
    s = saved.settings
    last = last_step(path, saved.step, s.steps, steps)
    where = resolve(device or s.device)
    settings = replace(s, steps=last, device=where)
    arrays = make_bodies(
        saved.particles, precision=s.precision, layout=layout_by_name(s.layout), device=where, profile=profile
    )
    same_kind = target_of(where) == target_of(s.device)
    simulation = _continued(path, saved, arrays, saved.plans if same_kind else None, profile)
    pace = _pace(output, saved.pace, last - saved.step)
    run = _ready(simulation, saved.particles, settings, output, pace, _continued_history(saved, pace))
    run.in_place = output.out is not None and output.out.resolve() == path.resolve()
    run.note = _difference(path, saved, where, same_kind=same_kind)
    return run


def _continued(
    path: Path, saved: Checkpoint, bodies: RecordArray, plans: Plans | None, profile: Profile | None
) -> Simulation:
    """The simulation at the step of the checkpoint, with these plans or with those of today."""
    s = saved.settings
    try:
        simulation = Simulation(
            bodies, softening=s.softening, integrator=s.integrator, gravitational_constant=s.gravitational_constant,
            time=s.start_time, plan=plans.force if plans else None, potential_plan=plans.potential if plans else None,
            profile=profile,
        )  # fmt: skip
        completed = simulation.plans  # compiles both kernels: now, not at the first measurement
        assert plans in (None, completed)
    except PlanError as error:
        raise InputError(
            f"{path} goes on with the plans that it keeps, and one does not work here: {error}; "
            f"start a new run from it with --ic {path}"
        ) from error
    simulation.continue_from(saved.step, s.dt)
    return simulation


def _difference(path: Path, saved: Checkpoint, device: str, *, same_kind: bool) -> str:
    """Why the bits may not be those of an uninterrupted run."""
    if not same_kind:
        return f"{path} was computed on {saved.settings.device}; on {device} plans are chosen anew, and the last places differ"
    if saved.plans is None:
        return f"{path} keeps no plans, as older checkpoints; they are chosen anew, and the last places may differ"
    return ""


def _pace(output: Output, before: Pace | None, steps: int) -> Pace:
    """How often a run of that many steps measures and writes: as it is told, else as before, else by default."""
    every, snapshots, seconds = output.diagnostics_every, output.snapshot_every, output.checkpoint_seconds
    if before is not None:
        every = before.diagnostics_every if every is None else every
        snapshots = before.snapshot_every if snapshots is None else snapshots
        seconds = before.checkpoint_seconds if seconds is None else seconds
    return Pace(every or max(1, steps // 10), snapshots or 0, CHECKPOINT_SECONDS if seconds is None else seconds)


def _continued_history(saved: Checkpoint, pace: Pace) -> list[Diagnostics]:
    """The measurements that an uninterrupted run has by then: the last one of a run that goes on may be between two of them."""
    last = saved.history[-1]
    between = len(saved.history) > 1 and last.step == saved.step and last.step % pace.diagnostics_every != 0
    return saved.history[:-1] if between and saved.pace is not None else saved.history


def _ready(
    simulation: Simulation,
    particles: Particles,
    settings: Settings,
    output: Output,
    pace: Pace,
    history: list[Diagnostics],
) -> Run:
    run = Run(
        simulation,
        Labels(particles.ids, particles.component),
        settings,
        output,
        pace,
        history,
        simulation.step,
    )
    for path in run.snapshots():
        writable_target(path, output.overwrite)
    return run


def layout_name(layout: Layout) -> str:
    """The name that `layout_by_name` reads."""
    return str(layout).lower()


def load_particles(ic: str, bodies: int | None, seed: int) -> Particles:
    """Particles of a named initial condition or of a file."""
    if ic in INITIAL_CONDITIONS:
        return make_initial_conditions(ic, bodies, seed)
    if not Path(ic).exists() and "." not in ic and "/" not in ic:
        raise InputError(
            unknown("initial condition", ic, INITIAL_CONDITIONS, more=", or a file (Gadget HDF5, Tipsy, NPZ, CSV)")
        )
    particles = read_particles(ic)
    if bodies is not None and bodies != len(particles):
        raise InputError(f"{ic} holds {len(particles)} bodies, not {bodies}; leave --bodies out")
    return particles
