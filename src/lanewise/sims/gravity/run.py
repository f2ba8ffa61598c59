"""A run: a simulation that is advanced, measured and written to files on the way."""

from __future__ import annotations

import glob
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lanewise.io.particles import Particles
from lanewise.profiling.profile import span
from lanewise.runtime.compile_workers import settle
from lanewise.runtime.interruption import deferred_interruption
from lanewise.sims.common.marching import march, next_stop
from lanewise.sims.gravity.checkpoint import Labels, current_particles, write_checkpoint
from lanewise.sims.gravity.diagnostics import Diagnostics, energy_warning
from lanewise.sims.gravity.options import Output, Settings
from lanewise.sims.gravity.simulation import Simulation
from lanewise.sims.gravity.snapshots import snapshot_path

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
        return next_stop(self.step, self.steps, self.output.diagnostics_every, self.output.snapshot_every)

    def advance(self, steps: int) -> None:
        """So many steps, unmeasured."""
        self.simulation.advance(steps, self.settings.dt)

    def checkpoint_due(self, since: float, cost: float) -> bool:
        """By wall time alone."""
        return since >= self.output.checkpoint_seconds

    def look(self) -> None:
        """Measure, and write a snapshot, where this step asks for it."""
        step, every = self.step, self.output.diagnostics_every
        if self.done or (every and step % every == 0):
            self.history.append(self.simulation.diagnostics())
        if self.output.out and self.output.snapshot_every and step % self.output.snapshot_every == 0:
            path = snapshot_path(self.output.out, step)
            with span(self.simulation.profile, "output", name="snapshot"):
                self._write(path, snapshot_of=self.output.out.name, overwrite=self.output.overwrite)
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
            with span(self.simulation.profile, "checkpoint", name="checkpoint"):
                self._write(self.output.out, snapshot_of="", overwrite=True)

    def _write(self, path: Path, *, snapshot_of: str, overwrite: bool) -> None:
        write_checkpoint(
            path,
            self.simulation,
            self.labels,
            self.settings,
            self.history,
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
