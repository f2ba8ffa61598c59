"""A run: a flow that is advanced, measured, looked at and written to files on the way."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lanewise.profiling.profile import span
from lanewise.runtime.compile_workers import settle
from lanewise.runtime.memory import to_host
from lanewise.runtime.whole_steps import deferred_interruption
from lanewise.sims.common.marching import is_due, march, next_stop
from lanewise.sims.lbm.cases.registry import Case, Probe, Request, Series, Setup, State
from lanewise.sims.lbm.checkpoint import write_checkpoint
from lanewise.sims.lbm.files import TimeSeries
from lanewise.sims.lbm.options import Output
from lanewise.sims.lbm.pictures import open_movie
from lanewise.sims.lbm.remembered import remember
from lanewise.sims.lbm.remembered_bandwidth import remembered_bandwidth
from lanewise.sims.lbm.simulation import Simulation
from lanewise.sims.lbm.watch import Stagger, Steadiness, check_interval


@dataclass
class Run:
    """A flow with its case and measurements, made by `runner.start` or `runner.resume`.

    steps: those at which the run ends at the latest; steadiness: ends it before, when the flow has settled.
    initial_mass: of step 0. note: why a resumed run may differ from an uninterrupted one; empty when it gives the same bits.
    """

    case: Case
    request: Request
    setup: Setup
    simulation: Simulation
    output: Output
    steps: int
    steadiness: Steadiness | None
    initial_mass: float
    rows: list[tuple[int, tuple[float, ...]]] = field(default_factory=list[tuple[int, tuple[float, ...]]])
    note: str = ""
    seconds: float = 0.0
    settled: bool = False
    first_step: int = 0
    resumed: bool = False
    _before: tuple[int, tuple[float, ...]] | None = field(default=None, init=False)
    _stagger: tuple[int, Stagger] | None = field(default=None, init=False)

    def execute(self, progress: Callable[[Run], None] = lambda run: None) -> None:
        """Advance to the end, measuring, writing and reporting on the way (see `march`).

        Raises `InputError` when the flow blows up; the last checkpoint is then as it was.
        """
        with ExitStack() as open_files, deferred_interruption() as interruption:
            self._open(open_files)
            self._prepare()
            self.look()  # of the first step, or of the one at which a checkpoint was resumed
            settle()
            march(self, progress, interruption)

    def _prepare(self) -> None:
        """Compile what steps need, and what they will be looked at with, which may go on until `settle`."""
        step, probe = self.step, self.setup.probe
        self.simulation.prepare()
        looks: dict[int, tuple[str, ...]] = {self.steps: ()}
        if probe is not None:
            first = probe.next(step)
            looks |= {s: probe.walls for s in ((first, first + 1) if probe.paired else (first,)) if s <= self.steps}
        for later, walls in looks.items():
            if later > step:
                self.simulation.prepare_looks(later - step, *walls)

    @property
    def step(self) -> int:
        return self.simulation.step

    @property
    def done(self) -> bool:
        return self.settled or self.step >= self.steps

    def advance(self, steps: int) -> None:
        """So many steps, unmeasured."""
        self.simulation.advance(steps)

    def _open(self, files: ExitStack) -> None:
        self._series = self._film = None
        probe, o = self.setup.probe, self.output
        if o.forces is not None:
            assert probe is not None
            step = self.simulation.step if self.resumed else None
            columns = ("step", *probe.names)
            self._series = files.enter_context(TimeSeries(o.forces, columns, resume_step=step, overwrite=o.overwrite))
        if o.movie is not None:
            self._film = files.enter_context(open_movie(o.movie, self, overwrite=o.overwrite))

    # ------------------------------------------------------------ events

    def next_event(self) -> int:
        """The next step after which something has to be measured, looked at or written."""
        step, probe = self.simulation.step, self.setup.probe
        measured = [probe.next(step)] if probe else []
        return min([next_stop(step, self.steps, *self._intervals()), *measured])

    def _intervals(self) -> list[int]:
        o, intervals = self.output, [check_interval(self.simulation.sites), self.output.checkpoint_every]
        intervals.append(self.steadiness.every if self.steadiness else 0)
        intervals.append(self.movie_every if o.movie else 0)
        return intervals

    @property
    def movie_every(self) -> int:
        return self.output.movie_every or max(1, (self.steps - self.first_step) // 200)

    def look(self) -> None:
        """What this step asks for. The flow is looked at before anything is measured: a blown-up one gives no numbers."""
        simulation, step = self.simulation, self.simulation.step
        probe, steady = self.setup.probe, self.steadiness
        measured = probe is not None and probe.is_due(step)
        compared = steady is not None and step % steady.every == 0
        filmed = self._film is not None and step % self.movie_every == 0
        if self.done or measured or compared or filmed or step % check_interval(simulation.sites) == 0:
            simulation.check()
        if probe is not None:
            self._measure(probe)
        if steady is not None and compared:
            with span(simulation.profile, "observe", name="steadiness"):
                self.settled = steady.settled(simulation.velocity, step)
        if self._film is not None and filmed:
            with span(simulation.profile, "output", name="movie"):
                self._film.add(self._on_host(simulation.velocity), step)

    def _measure(self, probe: Probe) -> None:
        """What the probe wants of this step. A row that a checkpoint brought is not measured again."""
        step, is_due = self.simulation.step, probe.is_due(self.simulation.step)
        measured = bool(self.rows) and self.rows[-1][0] >= step
        if not (probe.prepares(step) or (is_due and not measured)):
            return
        with span(self.simulation.profile, "observe", name="probe"):
            values = probe.measure(self.simulation)
        before, self._before = self._before, (step, values)
        if not is_due or measured:
            return
        if probe.paired:
            assert before is not None  # `Probe.next` stops at the step before, too
            assert before[0] == step - 1
            values = tuple((a + b) / 2 for a, b in zip(before[1], values, strict=True))
        self.rows.append((step, values))
        if self._series is not None:
            with span(self.simulation.profile, "output", name="measurements"):
                self._series.add(step, *values)

    def checkpoint_due(self, since: float, cost: float) -> bool:
        """At the interval that was asked for, or now and then without one."""
        return is_due(self.step, self.output.checkpoint_every, since, cost)

    # ------------------------------------------------------------ results

    def save(self) -> None:
        """Write the checkpoint, if there is a place for it. Replaces only this run's own file."""
        if self.output.out is not None:
            with span(self.simulation.profile, "checkpoint"):
                self._write_checkpoint(self.output.out)

    def _write_checkpoint(self, path: Path) -> None:
        self.simulation.check()
        if self._series is not None:
            self._series.sync()
        series = self.series
        history = {"step": series.steps, **{n: series.column(n) for n in series.names}} if len(series) else None
        parameters, attributes, arrays = remember(self)
        write_checkpoint(
            path, self.simulation, overwrite=True, parameters=parameters, attributes=attributes, arrays=arrays,
            history=history,
        )  # fmt: skip

    @property
    def series(self) -> Series:
        return Series.of(self.setup.probe.names if self.setup.probe else (), self.rows)

    @property
    def state(self) -> State:
        simulation = self.simulation
        return State(simulation.step, self._on_host(simulation.density), self._on_host(simulation.velocity))

    def _on_host(self, field: Any) -> Any:
        with span(self.simulation.profile, "transfer", name="fields to the host", nbytes=field.nbytes):
            return to_host(field)

    @property
    def mlups(self) -> float:
        """Million updates of fluid sites a second."""
        steps = self.simulation.step - self.first_step
        return self.simulation.fluid_sites * steps / self.seconds / 1e6 if self.seconds else 0.0

    def bandwidth_fraction(self) -> float | None:
        """The bytes that the steps moved, over what a copy on this device moves in that time (`remembered_bandwidth`)."""
        moved = self.mlups * 1e6 * self.simulation.bytes_per_site
        with span(self.simulation.profile, "observe", name="bandwidth of a copy"):
            copied = remembered_bandwidth(self.simulation.settings.device, moved)
        return None if copied is None else moved / copied

    def stagger(self) -> Stagger:
        """See `Simulation.stagger`; looked for once a step."""
        if self._stagger is None or self._stagger[0] != self.step:
            self._stagger = (self.step, self.simulation.stagger())
        return self._stagger[1]

    def summary(self) -> dict[str, Any]:
        """The machine-readable result. The drift of mass is relative to the start of the run, before any resumption."""
        s, simulation = self.simulation.settings, self.simulation
        return {
            "case": self.case.name, "device": s.device, "lattice": s.lattice, "collision": s.collision, "storage": s.storage,
            "precision": s.precision, "streaming": s.streaming, "layout": s.layout, "shape": list(s.shape),
            "fluid_sites": simulation.fluid_sites, "re": self.request.re, "speed": self.request.speed,
            "viscosity": s.viscosity, "tau": 1 / s.omega, "steps": simulation.step - self.first_step, "step": simulation.step,
            "seconds": self.seconds, "mlups": self.mlups, "bandwidth_fraction": self.bandwidth_fraction(),
            "mass_drift": simulation.mass / self.initial_mass - 1,
            "steady": self.settled if self.steadiness else None, "change": self.steadiness.change if self.steadiness else None,
            "interpolated_links": simulation.interpolated_links, "stagger": self.stagger().amplitude,
            "results": self.setup.results(self.state, self.series), "out": str(self.output.out) if self.output.out else None,
        }  # fmt: skip
