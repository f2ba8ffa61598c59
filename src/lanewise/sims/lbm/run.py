"""Runs of flows: what they measure, write and sum up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from lanewise.profiling.profile import Profile, span
from lanewise.sims.common.devices import remembered_bandwidth, to_host
from lanewise.sims.common.processes import writes
from lanewise.sims.common.run import Every, Run
from lanewise.sims.common.run import Output as OnTheWay
from lanewise.sims.lbm.cases.registry import Case, Probe, Request, Series, Setup, State
from lanewise.sims.lbm.checkpoint import write_checkpoint
from lanewise.sims.lbm.files import TimeSeries
from lanewise.sims.lbm.options import Output
from lanewise.sims.lbm.pictures import open_movie, write_picture, write_vti_file
from lanewise.sims.lbm.remembered import remember
from lanewise.sims.lbm.simulation import Simulation
from lanewise.sims.lbm.view.movie import FlowMovie
from lanewise.sims.lbm.watch import Stagger, Steadiness, check_interval
from lanewise.support.errors import InputError
from lanewise.support.numerals import counted

MOST_FRAMES = 200  # about so many of a movie without an interval
Rows: TypeAlias = list[tuple[int, tuple[float, ...]]]


@dataclass(slots=True)
class Measurements:
    """What a probe measures of a flow, as an output of its run.

    rows: steps with their values; a row that a checkpoint brought is not measured again. series:
    the file to which they are written.
    """

    simulation: Simulation
    probe: Probe
    rows: Rows
    series: TimeSeries | None
    _before: tuple[int, tuple[float, ...]] | None = field(default=None, init=False)

    def next(self, step: int) -> int:
        return self.probe.next(step)

    def due(self, step: int, *, last: bool) -> bool:
        return self.probe.prepares(step) or self._wanted(step)

    def _wanted(self, step: int) -> bool:
        measured = bool(self.rows) and self.rows[-1][0] >= step
        return self.probe.is_due(step) and not measured

    def take(self, step: int) -> None:
        with span(self.simulation.profile, "observe", name="probe"):
            values = self.probe.measure(self.simulation)
        before, self._before = self._before, (step, values)
        if not self._wanted(step):
            return
        if self.probe.paired:
            assert before is not None  # `Probe.next` stops at the step before as well
            assert before[0] == step - 1
            values = tuple((a + b) / 2 for a, b in zip(before[1], values, strict=True))
        self.rows.append((step, values))
        if self.series is not None:
            with span(self.simulation.profile, "output", name="measurements"):
                self.series.add(step, *values)


@dataclass(slots=True, kw_only=True)
class SimulatedFlow:
    """A flow with its case, its files and its measurements (see `Simulated`).

    steadiness: ends the run when the flow has settled. initial_mass: that of step 0.
    """

    case: Case
    request: Request
    setup: Setup
    simulation: Simulation
    output: Output
    steadiness: Steadiness | None
    initial_mass: float
    rows: Rows = field(default_factory=list[tuple[int, tuple[float, ...]]])
    _file: TimeSeries | None = field(default=None, init=False)
    _stagger: tuple[int, Stagger] | None = field(default=None, init=False)

    @property
    def step(self) -> int:
        return self.simulation.step

    @property
    def profile(self) -> Profile | None:
        return self.simulation.profile

    def prepare(self, run: Run[Any]) -> None:
        step, probe = self.step, self.setup.probe
        self.simulation.prepare()
        looks: dict[int, tuple[str, ...]] = {run.steps: ()}
        if probe is not None:
            first = probe.next(step)
            pair = (first, first + 1) if probe.paired else (first,)
            looks |= {s: probe.walls for s in pair if s <= run.steps}
        for later, walls in looks.items():
            if later > step:
                self.simulation.prepare_looks(later - step, *walls)

    def advance(self, steps: int) -> None:
        self.simulation.advance(steps)

    def check(self) -> None:
        self.simulation.check()

    def outputs(self, run: Run[Any], files: ExitStack) -> Iterator[OnTheWay]:
        """Checks, measurements, comparisons with the earlier flow, and the movie."""
        simulation, probe, o = self.simulation, self.setup.probe, self.output
        yield Every(check_interval(simulation.sites), lambda: None)  # the run checks by itself
        if probe is not None:
            if o.forces is not None and writes():  # of several processes the first one writes
                columns, resumed = ("step", *probe.names), run.checkpoints.resumed is not None
                step = self.step if resumed else None
                series = TimeSeries(o.forces, columns, resume_step=step, overwrite=o.overwrite)
                self._file = files.enter_context(series)
                self._check_continued(series)
            yield Measurements(simulation, probe, self.rows, self._file)
        if self.steadiness is not None:
            yield Every(self.steadiness.every, partial(self._compare, self.steadiness, run))
        if o.movie is not None:
            film = None
            if writes():
                film = files.enter_context(open_movie(o.movie, self, overwrite=o.overwrite))
            every = o.movie_every or max(1, (run.steps - run.first_step) // MOST_FRAMES)
            yield Every(every, partial(self._add_picture, film))

    def _check_continued(self, series: TimeSeries) -> None:
        """Refuse a series that lacks lines of what the checkpoint has measured."""
        if series.continued and self.rows and series.last_step < self.rows[-1][0]:
            end = f"ends with step {series.last_step}" if series.last_step >= 0 else "has no lines"
            raise InputError(
                f"{series.path.name}: the series {end}, and the checkpoint has measured until step "
                f"{self.rows[-1][0]}; wanted the series of this run, or a new file"
            )

    def _compare(self, steadiness: Steadiness, run: Run[Any]) -> None:
        with span(self.profile, "observe", name="steadiness"):
            run.ended = steadiness.settled(self.simulation.velocity, self.step)

    def _add_picture(self, film: FlowMovie | None) -> None:
        with span(self.profile, "output", name="movie"):
            velocity = self._on_host(self.simulation.velocity)
            if film is not None:
                film.add(velocity, self.step)

    def save(self, path: Path, run: Run[Any]) -> None:
        self.simulation.check()
        if self._file is not None:
            self._file.sync()
        series, history = self.series, None
        if len(series):
            history = {"step": series.steps, **{n: series.column(n) for n in series.names}}
        parameters, attributes, arrays = remember(self, run.steps)
        write_checkpoint(
            path, self.simulation, overwrite=True, parameters=parameters, attributes=attributes,
            arrays=arrays, history=history,
        )  # fmt: skip

    def write_results(self, run: Run[Any]) -> None:
        """Write the fields of the last state."""
        if (path := self.output.vti) is not None:
            with span(self.profile, "output", name="fields for ParaView"):
                write_vti_file(path, self, overwrite=self.output.overwrite)

    def finish(self, run: Run[Any]) -> None:
        """Draw the last state."""
        if (path := self.output.plot) is not None:
            with span(self.profile, "output", name="picture"):
                write_picture(path, self)

    @property
    def unsettled(self) -> str:
        """Why forces on a body are those of the start and not of the flow, or ""."""
        setup, step = self.setup, self.step
        if setup.probe is None or not setup.probe.walls or not setup.speed:
            return ""
        crossing = round(setup.shape[-1] / setup.speed)
        if step >= crossing:
            return ""
        return (
            "not settled: the stream crosses the box in about "
            f"{counted(crossing, 'step', 'steps')}, and this is step {step:,}; forces are those "
            "of the start"
        )

    @property
    def series(self) -> Series:
        return Series.of(self.setup.probe.names if self.setup.probe else (), self.rows)

    @property
    def state(self) -> State:
        density, velocity = self.simulation.density, self.simulation.velocity
        return State(self.step, self._on_host(density), self._on_host(velocity))

    def _on_host(self, field: Any) -> Any:
        name = "fields to the host"
        with span(self.profile, "transfer", name=name, nbytes=field.nbytes):
            return to_host(field)

    def mlups(self, run: Run[Any]) -> float:
        """Million updates of fluid sites a second, over the steps of this part of the run."""
        return self.simulation.fluid_sites * run.steps_per_second / 1e6

    def bandwidth_fraction(self, run: Run[Any]) -> float | None:
        """The bytes moved, over what a copy moves in that time (see `remembered_bandwidth`); None
        on a mesh.
        """
        if self.simulation.mesh is not None:
            return None
        moved = self.mlups(run) * 1e6 * self.simulation.bytes_per_site
        with span(self.profile, "observe", name="bandwidth of a copy"):
            copied = remembered_bandwidth(self.simulation.settings.device, moved)
        return None if copied is None else moved / copied

    def stagger(self) -> Stagger:
        """See `Simulation.stagger`; looked for once a step."""
        if self._stagger is None or self._stagger[0] != self.step:
            self._stagger = (self.step, self.simulation.stagger())
        return self._stagger[1]

    def summary(self, run: Run[Any]) -> dict[str, Any]:
        """The drift of mass is relative to the start of the run, before any resumption."""
        s, simulation, steady = self.simulation.settings, self.simulation, self.steadiness
        return {
            "case": self.case.name, "device": simulation.place, "lattice": s.lattice,
            "collision": s.collision, "storage": s.storage, "precision": s.precision,
            "streaming": s.streaming, "layout": s.layout, "shape": list(s.shape),
            "fluid_sites": simulation.fluid_sites, "re": self.request.re,
            "speed": self.request.speed, "viscosity": s.viscosity, "tau": 1 / s.omega,
            "steps": run.taken, "step": self.step, "seconds": run.seconds,
            "mlups": self.mlups(run), "bandwidth_fraction": self.bandwidth_fraction(run),
            "mass_drift": simulation.mass / self.initial_mass - 1,
            "steady": run.ended if steady else None, "change": steady.change if steady else None,
            "interpolated_links": simulation.interpolated_links,
            "stagger": self.stagger().amplitude,
            "results": self.setup.results(self.state, self.series),
            "out": str(self.output.out) if self.output.out else None,
        }  # fmt: skip


FlowRun: TypeAlias = Run[SimulatedFlow]
