"""A complete run: from initial conditions or a checkpoint, through time, to files and a summary."""

from __future__ import annotations

import glob
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from lanewise.errors import InputError
from lanewise.io.atomic import writable_target
from lanewise.io.formats import read_particles
from lanewise.io.particles import Particles
from lanewise.layouts import Layout, layout_by_name
from lanewise.runtime.devices import resolve
from lanewise.runtime.memory import require_memory
from lanewise.sims.gravity.checkpoint import (
    Checkpoint,
    Labels,
    Settings,
    current_particles,
    read_checkpoint,
    write_checkpoint,
)
from lanewise.sims.gravity.checks import check_softening, check_steps, check_time_step
from lanewise.sims.gravity.diagnostics import Diagnostics
from lanewise.sims.gravity.initial import INITIAL_CONDITIONS, make_initial_conditions
from lanewise.sims.gravity.interruption import deferred_interruption
from lanewise.sims.gravity.simulation import Simulation, make_bodies

PIECE_SECONDS = 0.2  # how long the machine works between two looks at the clock
DEFAULT_SOFTENING = 0.0
BYTES_TO_SAMPLE = 240


@dataclass(frozen=True, slots=True)
class Output:
    """Where results go and how often. `checkpoint_seconds` is wall time; the intervals are steps, 0 means only at the ends."""

    out: Path | None = None
    diagnostics_every: int = 0
    snapshot_every: int = 0
    checkpoint_seconds: float = 10.0
    overwrite: bool = False  # snapshots that exist


@dataclass
class Run:
    """A simulation with its settings and history. Built by `start` or `resume`."""

    simulation: Simulation
    labels: Labels
    settings: Settings
    output: Output
    history: list[Diagnostics]
    first_step: int
    seconds: float = 0.0
    written: list[Path] = field(default_factory=list[Path])

    @property
    def last(self) -> Diagnostics:
        return self.history[-1]

    def execute(self, progress: Callable[[Run], None] = lambda run: None) -> None:
        """Advance to `settings.steps`, measuring, writing and reporting on the way.

        Ctrl-C ends it after whole steps with a checkpoint and KeyboardInterrupt; pressed again, at once and without.
        """
        self.simulation.prepare(self.settings.dt)
        self.save()  # from here on there is always something to resume from
        saved = time.monotonic()
        piece = 1
        with deferred_interruption() as interruption:
            while (step := self.simulation.step) < self.settings.steps:
                begin = time.perf_counter()
                count = min(piece, self._next_event(step) - step)
                self.simulation.advance(count, self.settings.dt)
                elapsed = time.perf_counter() - begin
                self.seconds += elapsed
                piece = max(1, min(int(count * PIECE_SECONDS / max(elapsed, 1e-9)), 4 * piece))
                self._after_piece()
                progress(self)
                done = self.simulation.step == self.settings.steps
                if done or interruption.asked or time.monotonic() - saved >= self.output.checkpoint_seconds:
                    self.save()
                    saved = time.monotonic()
                if interruption.asked and not done:
                    raise KeyboardInterrupt

    def _next_event(self, step: int) -> int:
        """The next step after which something has to be measured or written."""
        intervals = [i for i in (self.output.diagnostics_every, self.output.snapshot_every) if i]
        return min([self.settings.steps, *((step // i + 1) * i for i in intervals)])

    def _after_piece(self) -> None:
        step, done = self.simulation.step, self.simulation.step == self.settings.steps
        every = self.output.diagnostics_every
        if done or (every and step % every == 0):
            self.history.append(self.simulation.diagnostics())
        if self.output.out and self.output.snapshot_every and step % self.output.snapshot_every == 0:
            path = snapshot_path(self.output.out, step)
            self._write(path)
            self.written.append(path)

    def snapshots(self) -> list[Path]:
        """The snapshot files that are still to be written and exist already."""
        out, every = self.output.out, self.output.snapshot_every
        if out is None or not every:
            return []
        found = (p for p in out.parent.glob(f"{glob.escape(out.stem)}_*{glob.escape(out.suffix)}") if p.is_file())
        steps = range((self.simulation.step // every + 1) * every, self.settings.steps + 1, every)
        return sorted(
            p for p in found if p.stem[len(out.stem) + 1 :].isdigit() and int(p.stem[len(out.stem) + 1 :]) in steps
        )

    def save(self) -> None:
        """Write the checkpoint, if there is a place for it. Replaces only this run's own file."""
        if self.output.out:
            self._write(self.output.out)

    def _write(self, path: Path) -> None:
        write_checkpoint(path, self.simulation, self.labels, self.settings, self.history, overwrite=True)

    @property
    def pairs_per_second(self) -> float:
        n, steps = len(self.simulation.bodies), self.simulation.step - self.first_step
        pairs = float(n) * n * steps * self.simulation.force_evaluations_per_step
        return pairs / self.seconds if self.seconds else 0.0

    def particles(self) -> Particles:
        return current_particles(self.simulation, self.labels)

    def summary(self) -> dict[str, Any]:
        """The machine-readable result. Drifts are relative to the start of the run, before any resumption."""
        start, end, s = self.history[0], self.last, self.settings
        return {
            "device": s.device, "ic": s.ic, "bodies": len(self.simulation.bodies), "steps": self.simulation.step - self.first_step,
            "step": self.simulation.step, "time": self.simulation.time, "dt": s.dt, "integrator": s.integrator, "softening": s.softening,
            "precision": s.precision, "layout": s.layout, "seconds": self.seconds, "pairs_per_second": self.pairs_per_second,
            "energy_initial": start.total, "energy_final": end.total, "energy_drift": end.energy_drift(start),
            "momentum_drift": end.momentum_drift(start), "angular_momentum_drift": end.angular_momentum_drift(start),
            "virial_ratio": end.virial_ratio, "out": str(self.output.out) if self.output.out else None,
        }  # fmt: skip


def snapshot_path(out: Path, step: int) -> Path:
    """run.h5 at step 100: run_00000100.h5."""
    return out.with_name(f"{out.stem}_{step:08d}{out.suffix}")


def load_particles(ic: str, bodies: int | None, seed: int) -> Particles:
    """Particles of a named initial condition or of a file."""
    if ic in INITIAL_CONDITIONS:
        if bodies is not None:  # positions, velocities and the work space of the samplers, in float64
            require_memory("cpu", max(bodies, 0) * BYTES_TO_SAMPLE, f"making {bodies:,} bodies")
        return make_initial_conditions(ic, bodies, seed)
    if not Path(ic).exists() and "." not in ic and "/" not in ic:
        raise InputError(
            f"unknown initial condition {ic!r}; wanted one of {', '.join(INITIAL_CONDITIONS)}, or a file (Gadget HDF5, Tipsy, NPZ, CSV)"
        )
    particles = read_particles(ic)
    if bodies is not None and bodies != len(particles):
        raise InputError(f"{ic} holds {len(particles)} bodies, not {bodies}; leave --bodies out")
    return particles


def start(
    *, ic: str = "plummer", bodies: int | None = None, seed: int = 0, steps: int = 100, dt: float = 1e-3, softening: float | None = None,
    integrator: str = "leapfrog", precision: str = "f32", device: str | None = None, layout: str | None = None,
    gravitational_constant: float = 1.0, output: Output = Output(),
) -> Run:  # fmt: skip
    """Check everything, make the bodies, and measure the initial state."""
    check_steps(steps)
    check_time_step(dt)
    where = resolve(device)
    chosen: Layout | None = layout_by_name(layout) if layout else None
    particles = load_particles(ic, bodies, seed)
    if softening is None:
        softening = particles.softening if particles.softening is not None else DEFAULT_SOFTENING
    check_softening(softening)
    arrays = make_bodies(particles, precision=precision, layout=chosen, device=where)
    simulation = Simulation(
        arrays,
        softening=softening,
        integrator=integrator,
        gravitational_constant=gravitational_constant,
        time=particles.time,
    )
    settings = Settings(
        ic,
        steps,
        dt,
        softening,
        integrator,
        precision,
        layout_name(arrays.layout),
        where,
        gravitational_constant,
        seed,
        particles.time,
    )
    return _ready(simulation, particles, settings, output, [simulation.diagnostics()])


def resume(path: Path, *, steps: int | None, device: str | None, output: Output) -> Run:
    """Continue a checkpoint by `steps` steps, or to its planned end. Everything else is as it was; the same device gives the same bits."""
    saved: Checkpoint = read_checkpoint(path)
    s = saved.settings
    left = s.steps - saved.step
    if steps is None and left < 1:
        raise InputError(f"{path} is complete at step {saved.step}; say with --steps how many more")
    if steps is not None:
        check_steps(steps)
    where = resolve(device or s.device)
    settings = replace(s, steps=saved.step + (steps if steps is not None else left), device=where)
    arrays = make_bodies(saved.particles, precision=s.precision, layout=layout_by_name(s.layout), device=where)
    simulation = Simulation(
        arrays, softening=s.softening, integrator=s.integrator, gravitational_constant=s.gravitational_constant,
        time=s.start_time,
    )  # fmt: skip
    simulation.continue_from(saved.step, s.dt)
    return _ready(simulation, saved.particles, settings, replace(output, out=output.out or path), saved.history)


def _ready(
    simulation: Simulation, particles: Particles, settings: Settings, output: Output, history: list[Diagnostics]
) -> Run:
    every = output.diagnostics_every or max(1, (settings.steps - simulation.step) // 10)
    run = Run(
        simulation,
        Labels(particles.ids, particles.component),
        settings,
        replace(output, diagnostics_every=every),
        history,
        simulation.step,
    )
    for path in run.snapshots():
        writable_target(path, output.overwrite)
    return run


def layout_name(layout: Layout) -> str:
    """The name that `layout_by_name` reads."""
    return str(layout).lower()


def energy_curve(run: Run) -> tuple[Any, Any]:
    """Times and relative energy errors of the whole history."""
    start_ = run.history[0]
    return np.array([d.time for d in run.history]), np.array([d.energy_drift(start_) for d in run.history])
