"""Runs of gravity begin: from initial conditions, bodies of a file or a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import lanewise as lw
from lanewise.io.atomic import writable_target
from lanewise.io.formats import read_particles
from lanewise.io.particles import Particles
from lanewise.layouts import layout_by_name
from lanewise.profiling.profile import Profile, span
from lanewise.sims.common.cards import TURN
from lanewise.sims.common.checks import check_known, check_steps, check_time_step, last_step
from lanewise.sims.common.devices import same_kind
from lanewise.sims.common.meshes import (
    check_parts,
    in_one_place,
    place_of_run,
    repeated,
    spelled,
    transport_of,
)
from lanewise.sims.common.processes import lead
from lanewise.sims.common.run import Checkpoints, Run
from lanewise.sims.common.seeds import check_seed
from lanewise.sims.gravity.bodies import make_bodies
from lanewise.sims.gravity.checkpoint import (
    Checkpoint,
    Labels,
    Pace,
    read_checkpoint,
    resumed_target,
)
from lanewise.sims.gravity.checks import check_bodies, check_softening
from lanewise.sims.gravity.diagnostics import Diagnostics
from lanewise.sims.gravity.initial import (
    DEFAULT_BODIES,
    INITIAL_CONDITIONS,
    make_initial_conditions,
)
from lanewise.sims.gravity.initial.scripts import names_script, script_text
from lanewise.sims.gravity.integrators import integrator
from lanewise.sims.gravity.options import CHECKPOINT_SECONDS, Output, Settings
from lanewise.sims.gravity.painting import FilmPlan
from lanewise.sims.gravity.physics import RECORDS, pair_type
from lanewise.sims.gravity.pictures import (
    check_pictures,
    check_resumed,
)
from lanewise.sims.gravity.plans import Plans
from lanewise.sims.gravity.run import GravityRun, SimulatedBodies
from lanewise.sims.gravity.simulation import Simulation
from lanewise.sims.gravity.trees import (
    calibrated,
    calibrated_before,
    may_be_known,
    tree_of,
    with_method,
)
from lanewise.support.attributes import unknown
from lanewise.support.errors import InputError, PlanError
from lanewise.support.numerals import counted

NO_FILES = Output()


def start(
    *,
    bodies: int | None = None,
    output: Output = NO_FILES,
    profile: Profile | None = None,
    softening: float | None = None,
    device: str | lw.Mesh | None = None,
    layout: str | None = None,
    **chosen: Any,
) -> GravityRun:
    """Check everything, make the bodies, and measure the initial state. `chosen`: other fields of
    `Settings`.

    What is not chosen is as the initial condition says, else as `Settings` says.
    """
    asked = _with_defaults(chosen)
    check_steps(asked.steps)
    check_time_step(asked.dt)
    check_pictures(output.pictures)
    kind: lw.Layout | None = layout_by_name(layout) if layout else None
    if names_script(asked.ic):
        TURN.begin()  # its own code may use a GPU
    with span(profile, "setup", name="initial conditions"):
        script = script_text(asked.ic) or ""
        particles = load_particles(asked.ic, bodies, chosen.get("seed"))
    where = place_of_run(device)
    if softening is None:
        softening = asked.softening if particles.softening is None else particles.softening
    softening = check_softening(softening)
    check_parts(len(particles), "bodies", where)
    arrays = make_bodies(
        particles, precision=asked.precision, layout=kind, device=where, profile=profile
    )
    try:  # as the simulation does, which does not know where they come from
        check_bodies(arrays, pair_type(asked.precision))
    except InputError as error:
        raise InputError(f"{asked.ic}: {error}") from error
    asked = replace(
        asked,
        softening=softening,
        layout=layout_name(arrays.layout),
        device=spelled(where),
        start_time=particles.time,
    )
    settings, why = _with_tree(asked, arrays, profile)
    simulation = Simulation(
        arrays,
        softening=softening,
        integrator=asked.integrator,
        gravitational_constant=asked.gravitational_constant,
        time=particles.time,
        search=tree_of(settings),
        profile=profile,
    )
    pace = _pace(output, None, settings.steps)
    history = [simulation.diagnostics()]
    run = _ready(simulation, particles, settings, output, pace, history, script, why)
    run.note = repeated(where)
    return run


def check_settings(bodies: int | None, chosen: Mapping[str, Any]) -> None:
    """Raise `InputError` for settings that no run has, as far as that can be told without its
    bodies. bodies: None for the number that the initial condition has.
    """
    asked = _with_defaults(chosen)
    check_steps(asked.steps)
    check_time_step(asked.dt)
    integrator(asked.integrator)
    check_known("precision", asked.precision, RECORDS)
    if chosen.get("layout"):
        layout_by_name(asked.layout)
    if "softening" in chosen:
        check_softening(asked.softening)
    check_seed(asked.seed)
    with_method(asked, bodies or DEFAULT_BODIES)
    if names_script(asked.ic):
        return
    if (condition := INITIAL_CONDITIONS.get(asked.ic)) is None:
        _check_file(asked.ic)
    else:
        condition.checked_count(bodies)
        condition.checked_seed(chosen.get("seed"))


def _with_tree(
    asked: Settings, bodies: lw.RecordArray, profile: Profile | None
) -> tuple[Settings, str]:
    """The settings with the method and the numbers of its tree, and why it is this one."""
    settings, why = with_method(asked, len(bodies))
    if settings.method != "tree" or not (settings.calibrate or may_be_known(asked)):
        return settings, why
    # each process has its own clock and store; all of them walk the tree of the first
    others, gathered = transport_of(bodies), in_one_place(bodies)
    if settings.calibrate:
        with span(profile, "setup", name="calibrate the tree"):
            return lead(others, lambda: calibrated(asked, settings, gathered))
    return lead(others, lambda: calibrated_before(asked, settings, gathered) or (settings, why))


def _with_defaults(chosen: Mapping[str, Any]) -> Settings:
    """What was chosen, then what the initial condition brings, then the defaults."""
    condition = INITIAL_CONDITIONS.get(chosen.get("ic", Settings().ic))
    values: dict[str, Any] = {**(condition.method if condition else {}), **chosen}
    return Settings(**values)


def resume(
    path: Path,
    *,
    steps: int | None,
    device: str | None,
    output: Output,
    profile: Profile | None = None,
) -> GravityRun:
    """Continue a checkpoint by `steps` steps, or to its planned end: in `output.out` or the same
    file, but never in a snapshot.

    Everything else is as it was, the plans of the kernels too, so the same device gives the same
    bits. On another kind of device the plans are chosen anew, and `Run.note` says so.
    """
    output = replace(output, out=resumed_target(path, output.out, output.overwrite))
    with span(profile, "setup", name="read the checkpoint"):
        saved: Checkpoint = read_checkpoint(path)
    s = saved.settings
    last = last_step(path, saved.step, s.steps, steps)
    check_pictures(output.pictures)
    check_resumed(output.pictures, saved.film, saved.step, overwrite=output.overwrite)
    where = place_of_run(device, s.device)
    check_parts(len(saved.particles), "bodies", where)
    settings = replace(s, steps=last, device=spelled(where))
    arrays = make_bodies(
        saved.particles,
        precision=s.precision,
        layout=layout_by_name(s.layout),
        device=where,
        profile=profile,
    )
    same = same_kind(settings.device, s.device) and _plans_fit(saved.plans, where)
    simulation = _continued(path, saved, arrays, saved.plans if same else None, profile)
    pace = _pace(output, saved.pace, last - saved.step)
    history = _continued_history(saved, pace)
    run = _ready(
        simulation, saved.particles, settings, output, pace, history, saved.script,
        "as before", saved.film, path,
    )  # fmt: skip
    notes = (
        repeated(where),
        _difference(path, saved, settings.device, same=same),
        _script_changed(saved),
        _film_left(saved, output),
    )
    run.note = "; ".join(note for note in notes if note)
    return run


def _continued(
    path: Path,
    saved: Checkpoint,
    bodies: lw.RecordArray,
    plans: Plans | None,
    profile: Profile | None,
) -> Simulation:
    """The simulation at the step of the checkpoint, with these plans or with those of today."""
    s = saved.settings
    try:
        simulation = Simulation(
            bodies,
            softening=s.softening,
            integrator=s.integrator,
            gravitational_constant=s.gravitational_constant,
            time=s.start_time,
            plan=plans.force if plans else None,
            potential_plan=plans.potential if plans else None,
            search=tree_of(s),
            profile=profile,
        )
        completed = simulation.plans  # compiles both kernels: now, not at the first measurement
        assert plans in (None, completed)
    except PlanError as error:
        raise InputError(
            f"{path} continues with the plans that it keeps, and one does not work here: {error}; "
            f"start a new run from it with --ic {path}"
        ) from error
    simulation.continue_from(saved.step, s.dt, saved.tree_order)
    return simulation


def _plans_fit(plans: Plans | None, place: str | lw.Mesh) -> bool:
    """Whether the plans of one device can be those of a mesh: sums over pairs that are computed
    once for both bodies may have the order of one device.
    """
    if plans is None or not isinstance(place, lw.Mesh):
        return True
    return {plans.force.reciprocity, plans.potential.reciprocity} <= {"off", "grouped"}


def _difference(path: Path, saved: Checkpoint, device: str, *, same: bool) -> str:
    """Why the bits may not be those of an uninterrupted run."""
    if not same:
        return (
            f"{path} was computed on {saved.settings.device}; on {device} plans are chosen anew, "
            "and the last places differ"
        )
    if saved.plans is None:
        return (
            f"{path} keeps no plans, as older checkpoints; they are chosen anew, and the last "
            "places may differ"
        )
    return ""


def _script_changed(saved: Checkpoint) -> str:
    """What is said where the script that made the bodies is another one by now."""
    now = script_text(saved.settings.ic)
    if not saved.script or now in (None, saved.script):
        return ""
    return (
        f"the script of {saved.settings.ic} has changed since this run began; the run continues "
        "with its own bodies, and its checkpoint keeps the script as it was"
    )


def _film_left(saved: Checkpoint, output: Output) -> str:
    """What is said where a run had a film and continues without one."""
    if saved.film is None or output.pictures.movie is not None:
        return ""
    return "the film of this run ends here; --movie FILE makes one of the rest, on its scale"


def _pace(output: Output, before: Pace | None, steps: int) -> Pace:
    """How often a run of that many steps measures and writes: as requested, else as before, else
    by default.
    """
    every = output.diagnostics_every
    snapshots = output.snapshot_every
    seconds = output.checkpoint_seconds
    if before is not None:
        every = before.diagnostics_every if every is None else every
        snapshots = before.snapshot_every if snapshots is None else snapshots
        seconds = before.checkpoint_seconds if seconds is None else seconds
    return Pace(
        every or max(1, steps // 10),
        snapshots or 0,
        CHECKPOINT_SECONDS if seconds is None else seconds,
    )


def _continued_history(saved: Checkpoint, pace: Pace) -> list[Diagnostics]:
    """The measurements that an uninterrupted run has by then: the last one of a run that continues
    may be between two of them.
    """
    last = saved.history[-1]
    between = (
        len(saved.history) > 1
        and last.step == saved.step
        and last.step % pace.diagnostics_every != 0
    )
    return saved.history[:-1] if between and saved.pace is not None else saved.history


def _ready(
    simulation: Simulation, particles: Particles, settings: Settings, output: Output, pace: Pace,
    history: list[Diagnostics], script: str, why: str, film: FilmPlan | None = None,
    resumed: Path | None = None,
) -> GravityRun:  # fmt: skip
    """The run, from the checkpoint `resumed` or from the start; refuses snapshots that exist."""
    errors = None
    if simulation.search is not None:
        errors = simulation.force_errors(settings.accuracy)
    state = SimulatedBodies(
        simulation=simulation, labels=Labels(particles.ids, particles.component),
        settings=settings, output=output, pace=pace, history=history, script=script, film=film,
        why=why, errors=errors,
    )  # fmt: skip
    for path in state.snapshots():
        writable_target(path, output.overwrite)
    checkpoints = Checkpoints(output.out, seconds=pace.checkpoint_seconds, resumed=resumed)
    return Run(
        state=state, steps=settings.steps, checkpoints=checkpoints, first_step=simulation.step
    )


def layout_name(layout: lw.Layout) -> str:
    """The name that `layout_by_name` reads."""
    return str(layout).lower()


def load_particles(ic: str, bodies: int | None, seed: int | None) -> Particles:
    """Particles of a named initial condition, of a script's function or of a file."""
    if ic in INITIAL_CONDITIONS or names_script(ic):
        return make_initial_conditions(ic, bodies, seed)
    _check_file(ic)
    particles = read_particles(ic)
    if bodies is not None and bodies != len(particles):
        held = counted(len(particles), "body", "bodies")
        raise InputError(f"{ic} holds {held}, not {bodies:,}; leave --bodies out")
    if seed is not None:
        raise InputError(f"{ic} says where its bodies are; leave --seed out")
    return particles


def _check_file(ic: str) -> None:
    """Refuse a name that is neither a file nor looks like one."""
    if not Path(ic).exists() and "." not in ic and "/" not in ic:
        raise InputError(
            unknown(
                "initial condition",
                ic,
                INITIAL_CONDITIONS,
                more=", a file (Gadget HDF5, Tipsy, NPZ, CSV), or script.py:function",
            )
        )
