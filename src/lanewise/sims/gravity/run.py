"""What a run of gravity advances, measures and writes."""

from __future__ import annotations

import glob
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from lanewise.profiling.profile import Profile, span
from lanewise.sims.common.films import PaintedFilm
from lanewise.sims.common.processes import writes
from lanewise.sims.common.run import Every, Run
from lanewise.sims.gravity.checkpoint import (
    Labels,
    Pace,
    current_particles,
    snapshot_path,
    write_checkpoint,
)
from lanewise.sims.gravity.diagnostics import Diagnostics, energy_warning
from lanewise.sims.gravity.options import Output, Settings
from lanewise.sims.gravity.painting import BodiesThen, FilmPlan
from lanewise.sims.gravity.pictures import (
    bodies_then,
    film_plan,
    film_title,
    open_film,
)
from lanewise.sims.gravity.simulation import Simulation
from lanewise.sims.gravity.trees import ForceErrors, accuracy_warning
from lanewise.support.numerals import counted


@dataclass(slots=True, kw_only=True)
class SimulatedBodies:
    """A simulation of gravity with its settings, its files and its history (see `Simulated`).

    script: the text of the one that made the bodies, or "". film: how the film looks, once there is
    one. why: its method is this one. errors: of forces by a tree, when the run began or went on.
    """

    simulation: Simulation
    labels: Labels
    settings: Settings
    output: Output
    pace: Pace
    history: list[Diagnostics]
    script: str
    film: FilmPlan | None
    why: str
    errors: ForceErrors | None

    @property
    def step(self) -> int:
        return self.simulation.step

    @property
    def profile(self) -> Profile | None:
        return self.simulation.profile

    def prepare(self, run: Run[Any]) -> None:
        self.simulation.prepare(self.settings.dt)

    def advance(self, steps: int) -> None:
        self.simulation.advance(steps, self.settings.dt)

    def check(self) -> None:
        """`advance` has checked the bodies."""

    def outputs(self, run: Run[Any], files: ExitStack) -> Iterator[Every]:
        """Measurements and snapshots. Those of the first step exist already."""
        first, pace = self.step, self.pace
        yield Every(pace.diagnostics_every, self._measure, at_end=True, taken=first)
        if self.output.out is not None:
            yield Every(pace.snapshot_every, self._write_snapshot, taken=first)
        if (pictures := self.output.pictures).movie is not None:
            then, before = bodies_then(self.simulation, self.labels), self.film
            self.film = film_plan(pictures, then, before, run.steps - run.first_step)
            title = film_title(then.component, self.film.shot)
            film = None  # of several processes the first one's
            if writes():
                film = files.enter_context(
                    open_film(pictures, self.film.shot, title, overwrite=self.output.overwrite)
                )
            taken = first if before is not None else -1  # the first part has this frame
            yield Every(self.film.every, partial(self._add_frame, film), taken=taken)

    def _add_frame(self, film: PaintedFilm[BodiesThen] | None) -> None:
        with span(self.profile, "output", name="movie"):
            then = bodies_then(self.simulation, self.labels)
            if film is not None:
                film.add(then)

    def _measure(self) -> None:
        self.history.append(self.simulation.diagnostics())

    def _write_snapshot(self) -> None:
        out = self.output.out
        assert out is not None
        with span(self.profile, "output", name="snapshot"):
            path = snapshot_path(out, self.step)
            self._write(path, snapshot_of=out.name, overwrite=self.output.overwrite)

    def snapshots(self) -> list[Path]:
        """The snapshot files that are still to be written and exist already."""
        out, every = self.output.out, self.pace.snapshot_every
        if out is None or not every:
            return []
        pattern = f"{glob.escape(out.stem)}_*{glob.escape(out.suffix)}"
        numbers = {p: p.stem[len(out.stem) + 1 :] for p in out.parent.glob(pattern) if p.is_file()}
        steps = range((self.step // every + 1) * every, self.settings.steps + 1, every)
        return sorted(p for p, n in numbers.items() if n.isdigit() and int(n) in steps)

    def save(self, path: Path, run: Run[Any]) -> None:
        self._write(path, snapshot_of="", overwrite=True)

    def _write(self, path: Path, *, snapshot_of: str, overwrite: bool) -> None:
        write_checkpoint(
            path, self.simulation, self.labels, self.settings, self.history, self.pace,
            script=self.script, film=self.film, snapshot_of=snapshot_of, overwrite=overwrite,
        )  # fmt: skip

    def write_results(self, run: Run[Any]) -> None:
        """The checkpoint has them."""

    def finish(self, run: Run[Any]) -> None:
        """Write the picture of the bodies and of the energy error."""
        if (path := self.output.plot) is None:
            return
        from lanewise.sims.gravity.view import plot_gravity

        with span(self.profile, "output", name="picture"):
            particles, s = current_particles(self.simulation, self.labels), self.settings
            if not writes():
                return
            bodies = counted(len(particles.mass), "body", "bodies")
            moment = f"{bodies} ({s.ic}), t = {self.simulation.time:.4g}"
            start = self.history[0]
            times = np.array([d.time for d in self.history])
            errors = np.array([d.energy_drift(start) for d in self.history])
            title = f"{moment}, {s.integrator}, {s.precision}"
            plot_gravity(path, particles.position, particles.velocity, times, errors, title)

    def bodies_per_second(self, run: Run[Any]) -> float:
        """Whose forces were computed, over the steps of this part of the run."""
        evaluations = self.simulation.force_evaluations_per_step * run.steps_per_second
        return len(self.simulation.bodies) * evaluations

    def pairs_per_second(self, run: Run[Any]) -> float | None:
        """The same of pairs; None where a tree does without most of them."""
        if self.simulation.search is not None:
            return None
        return len(self.simulation.bodies) * self.bodies_per_second(run)

    @property
    def energy_error(self) -> float:
        """The worst measured one of the whole history (see `Diagnostics.energy_error`)."""
        start = self.history[0]
        return max(d.energy_error(start) for d in self.history)

    @property
    def warning(self) -> str:
        """What to say of errors of energy or of forces that are too large, or ""."""
        s = self.settings
        warnings = (
            energy_warning(self.history, dt=s.dt, softening=s.softening, integrator=s.integrator),
            accuracy_warning(s.accuracy, self.errors),
        )
        return "; ".join(w for w in warnings if w)

    def summary(self, run: Run[Any]) -> dict[str, Any]:
        """Drifts are relative to the start of the run, before any resumption."""
        start, end, s = self.history[0], self.history[-1], self.settings
        return {
            "device": s.device, "ic": s.ic, "bodies": len(self.simulation.bodies),
            "steps": run.taken, "step": self.step, "time": self.simulation.time, "dt": s.dt,
            "integrator": s.integrator, "softening": s.softening, "precision": s.precision,
            "layout": s.layout, "seconds": run.seconds,
            "method": s.method, "method_reason": self.why, "accuracy": s.accuracy,
            "theta": s.theta, "order": s.order, "leaf": s.leaf, "walk": s.walk,
            "opening": s.opening, "rebuilds": self.simulation.rebuilds,
            "force_errors": self.errors.as_dict() if self.errors else None,
            "bodies_per_second": self.bodies_per_second(run),
            "pairs_per_second": self.pairs_per_second(run), "energy_initial": start.total,
            "energy_final": end.total, "energy_drift": end.energy_drift(start),
            "energy_error": self.energy_error, "warning": self.warning or None,
            "momentum_drift": end.momentum_drift(start),
            "angular_momentum_drift": end.angular_momentum_drift(start),
            "virial_ratio": end.virial_ratio,
            "out": str(self.output.out) if self.output.out else None,
            "movie": str(movie) if (movie := self.output.pictures.movie) else None,
        }  # fmt: skip


GravityRun: TypeAlias = Run[SimulatedBodies]
