"""The beginning of a run: from initial conditions, from a file of bodies, or from a checkpoint."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from lanewise.arrays import RecordArray
from lanewise.errors import InputError, PlanError
from lanewise.io.atomic import writable_target
from lanewise.io.formats import read_particles
from lanewise.io.particles import Particles
from lanewise.layouts import Layout, layout_by_name
from lanewise.profiling.profile import Profile, span
from lanewise.runtime.devices import resolve
from lanewise.sims.common.checks import check_steps, check_time_step, last_step
from lanewise.sims.gravity.checkpoint import Checkpoint, Labels, read_checkpoint
from lanewise.sims.gravity.checks import check_softening
from lanewise.sims.gravity.diagnostics import Diagnostics
from lanewise.sims.gravity.initial import INITIAL_CONDITIONS, make_initial_conditions
from lanewise.sims.gravity.options import Output, Settings
from lanewise.sims.gravity.plans import Plans
from lanewise.sims.gravity.run import NO_FILES, Run
from lanewise.sims.gravity.simulation import Simulation, make_bodies
from lanewise.sims.gravity.snapshots import resumed_target
from lanewise.target import target_of


def start(
    *, bodies: int | None = None, output: Output = NO_FILES, profile: Profile | None = None, softening: float | None = None,
    device: str | None = None, layout: str | None = None, **chosen: Any,
) -> Run:  # fmt: skip
    """Check everything, make the bodies, and measure the initial state. `chosen`: other fields of `Settings`."""
    asked = Settings(**chosen)
    check_steps(asked.steps)
    check_time_step(asked.dt)
    where = resolve(device)
    kind: Layout | None = layout_by_name(layout) if layout else None
    with span(profile, "setup", name="initial conditions"):
        particles = load_particles(asked.ic, bodies, asked.seed)
    if softening is None:
        softening = asked.softening if particles.softening is None else particles.softening
    check_softening(softening)
    arrays = make_bodies(particles, precision=asked.precision, layout=kind, device=where, profile=profile)
    simulation = Simulation(
        arrays, softening=softening, integrator=asked.integrator, gravitational_constant=asked.gravitational_constant,
        time=particles.time, profile=profile,
    )  # fmt: skip
    settings = replace(
        asked, softening=softening, layout=layout_name(arrays.layout), device=where, start_time=particles.time
    )
    return _ready(simulation, particles, settings, output, [simulation.diagnostics()])


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
    run = _ready(simulation, saved.particles, settings, output, saved.history)
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
        found = simulation.plans  # compiles both kernels: now, not at the first measurement
        assert plans in (None, found)
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


def load_particles(ic: str, bodies: int | None, seed: int) -> Particles:
    """Particles of a named initial condition or of a file."""
    if ic in INITIAL_CONDITIONS:
        return make_initial_conditions(ic, bodies, seed)
    if not Path(ic).exists() and "." not in ic and "/" not in ic:
        raise InputError(
            f"unknown initial condition {ic!r}; wanted one of {', '.join(INITIAL_CONDITIONS)}, or a file (Gadget HDF5, Tipsy, NPZ, CSV)"
        )
    particles = read_particles(ic)
    if bodies is not None and bodies != len(particles):
        raise InputError(f"{ic} holds {len(particles)} bodies, not {bodies}; leave --bodies out")
    return particles
