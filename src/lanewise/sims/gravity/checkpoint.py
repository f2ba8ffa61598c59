"""Checkpoints: a Gadget snapshot that others read, with a group `/lanewise` that holds what
resuming needs.

`/lanewise` has the settings and the plans of the kernels as attributes, `history`, one row a
measurement (columns in its attribute), `ic_script`, the bytes of the script that made the bodies,
where one did, and `tree_order`, where there is a tree. A checkpoint is written whole or not at
all, so the last one stays valid whatever happens to the run.

Numbered snapshots (`--snapshot-every`) are written next to a run's own file. They are archives; no
resumed run writes to one. A snapshot is a checkpoint that keeps the name of its run's file as the
attribute `snapshot_of` of `/lanewise`; that of the run's own file is empty. Before 0.2 there was no
such attribute, and a file is a snapshot if its name ends in the step that it holds.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

import lanewise as lw
from lanewise.io import schema
from lanewise.io.atomic import writable_target
from lanewise.io.gadget import read_gadget
from lanewise.io.gadget_writing import write_gadget
from lanewise.io.hdf5 import add_dataset, open_hdf5, set_attributes, text_of, warn_without_sums
from lanewise.io.particles import Particles
from lanewise.io.schema import Array, Real, Text, Whole
from lanewise.layouts import layout_by_name
from lanewise.profiling.profile import span
from lanewise.sims.common.checks import MOST_STEPS
from lanewise.sims.common.meshes import values_on_host
from lanewise.sims.common.plan_text import from_json, to_json
from lanewise.sims.common.processes import writes
from lanewise.sims.common.searches import is_order
from lanewise.sims.gravity.checks import (
    check_gravitational_constant,
    check_softening,
    check_time_step,
)
from lanewise.sims.gravity.diagnostics import COLUMNS, Diagnostics, from_row, to_row
from lanewise.sims.gravity.integrators import integrator as find_integrator
from lanewise.sims.gravity.options import Settings
from lanewise.sims.gravity.painting import FilmPlan, film_from_json, film_to_json
from lanewise.sims.gravity.physics import RECORDS
from lanewise.sims.gravity.plans import Plans
from lanewise.sims.gravity.simulation import Simulation
from lanewise.sims.gravity.trees import NUMBERS, tree_of
from lanewise.support.errors import InputError

SNAPSHOT_OF = "snapshot_of"
GROUP = "lanewise"


def snapshot_path(out: Path, step: int) -> Path:
    """run.h5 at step 100: run_00000100.h5."""
    return out.with_name(f"{out.stem}_{step:08d}{out.suffix}")


def run_file(path: Path) -> Path | None:
    """The own file of the run that wrote `path` as a snapshot, in the same folder; None for what is
    no snapshot.
    """
    with open_hdf5(path) as file:
        attributes = file[GROUP].attrs if GROUP in file else {}
        if SNAPSHOT_OF in attributes:
            name = text_of(attributes[SNAPSHOT_OF])
            return path.with_name(name) if name and Path(name).name == name else None
        step = int(attributes.get("step", -1))
    numbered = re.fullmatch(r"(.+)_(\d{8,})", path.stem)
    if numbered is None or int(numbered[2]) != step:
        return None
    return path.with_name(numbered[1] + path.suffix)


def resumed_target(path: Path, out: Path | None, overwrite: bool) -> Path:
    """Where a run that is resumed from `path` continues: in `out`, or in `path`; from a snapshot in
    the run's own file.

    Raises `InputError` where that would replace a snapshot, or another file, without `overwrite`.
    """
    own = run_file(path)
    target = out or own or path
    same = target.resolve() == path.resolve()
    if own is not None and not overwrite and (same or (out is None and target.exists())):
        what = "that is this file" if same else "which exists"
        raise InputError(
            f"{path} is a snapshot, and a resumed run never writes to one; it would continue in "
            f"{target}, {what}: "
            "name another file with --out, or give --overwrite to replace it"
        )
    writable_target(target, overwrite or (same and own is None))
    return target


FORCE_PLAN, POTENTIAL_PLAN, FILM = "force_plan", "potential_plan", "film"  # attributes, as JSON


def _entry(name: str, kind: str) -> Text | Whole | Real:
    """Of a setting, by the type of its field. Those of trees are not in the first versions."""
    needed, plain = name not in TREE_SETTINGS, kind.removesuffix(" | None")
    most = 2**63 - 1
    return {"str": Text(needed), "int": Whole(0, most, needed), "float": Real(needed=needed)}[plain]


TREE_SETTINGS = ("method", *NUMBERS)


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a run measures and writes, in steps and in seconds of wall time; 0 steps: never but
    at the ends.
    """

    diagnostics_every: int
    snapshot_every: int
    checkpoint_seconds: float


PACE: dict[str, Text | Whole | Real] = {
    f"{GROUP}@diagnostics_every": Whole(0, 2**63 - 1, needed=False),  # not in the first versions
    f"{GROUP}@snapshot_every": Whole(0, 2**63 - 1, needed=False),
    f"{GROUP}@checkpoint_seconds": Real(low=0.0, needed=False),
}
HISTORY = f"{GROUP}/history"
SCRIPT = f"{GROUP}/ic_script"
TREE_ORDER = f"{GROUP}/tree_order"
KEPT = {f.name: str(f.type) for f in fields(Settings) if f.name != "calibrate"}  # it was, by then
SCHEMA = {
    **{f"{GROUP}@{name}": _entry(name, kind) for name, kind in KEPT.items()},
    f"{GROUP}@step": Whole(0, MOST_STEPS),
    f"{GROUP}@steps": Whole(1, 2 * MOST_STEPS),
    HISTORY: Array("f8", ("measurements", len(COLUMNS))),
    SCRIPT: Array("u1", ("characters",), needed=False),
    TREE_ORDER: Array("i4", ("bodies",), needed=False),
    f"{GROUP}@{FORCE_PLAN}": Text(needed=False),  # not in the first versions
    f"{GROUP}@{POTENTIAL_PLAN}": Text(needed=False),
    f"{GROUP}@{FILM}": Text(needed=False),
    **PACE,
}
"""What is in the group, besides what is in every Gadget snapshot."""


def check_names(settings: Settings) -> None:
    """Refuse names that no run could have had, and numbers that it could not have run with."""
    find_integrator(settings.integrator)
    if settings.precision not in RECORDS:
        raise InputError(f"damaged checkpoint: its precision is {settings.precision!r}")
    layout_by_name(settings.layout)
    check_time_step(settings.dt)
    check_softening(settings.softening)
    check_gravitational_constant(settings.gravitational_constant)
    if settings.method not in ("direct", "tree"):
        raise InputError(f"damaged checkpoint: its method is {settings.method!r}")
    tree_of(settings)


@dataclass(frozen=True, slots=True)
class Labels:
    """What names the bodies and stays as it is: ids (n,) int64 and components (n,) uint8."""

    ids: Any
    component: Any


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a checkpoint file holds. The first ones had no plans, and no pace.

    script: the text of the script that made the bodies, "" where none did. tree_order: (n,) int32,
    where bodies are searched by a tree.
    """

    particles: Particles
    settings: Settings
    step: int
    history: list[Diagnostics]
    plans: Plans | None = None
    pace: Pace | None = None
    script: str = ""
    film: FilmPlan | None = None
    tree_order: Any = None


def write_checkpoint(
    path: Path,
    simulation: Simulation,
    labels: Labels,
    settings: Settings,
    history: list[Diagnostics],
    pace: Pace,
    *,
    script: str = "",
    film: FilmPlan | None = None,
    snapshot_of: str = "",
    overwrite: bool,
) -> None:
    """Write the current state whole, or leave the file as it was and raise `InputError` (a full
    disk, for one). Of several processes the first one writes.

    script: the text of the script that made the bodies. film: how that of the run looks.
    snapshot_of: the name of the run's own file, for a numbered snapshot next to it.
    """
    simulation.check_whole()
    plans = simulation.plans

    def add_group(file: Any) -> None:
        group = file.create_group(GROUP)
        own = {"version": lw.__version__, "step": simulation.step, SNAPSHOT_OF: snapshot_of}
        kept = {FORCE_PLAN: to_json(plans.force), POTENTIAL_PLAN: to_json(plans.potential)}
        if film is not None:
            kept[FILM] = film_to_json(film)
        said = {n: v for n, v in asdict(settings).items() if n in KEPT and v is not None}
        set_attributes(group, {**own, **said, **asdict(pace), **kept})
        rows = add_dataset(
            group, "history", np.array([to_row(d) for d in history]).reshape(-1, len(COLUMNS))
        )
        set_attributes(rows, {"columns": ",".join(COLUMNS)})
        if (order := simulation.tree_order) is not None:
            add_dataset(group, "tree_order", order)
        if script:
            text = script.encode("utf-8", errors="surrogateescape")
            add_dataset(group, "ic_script", np.frombuffer(text, np.uint8))

    precision = "f32" if simulation.precision == "f32" else "f64"
    particles = current_particles(simulation, labels)
    if not writes():
        return
    write_gadget(
        path,
        particles,
        overwrite=overwrite,
        precision=precision,
        extra=add_group,
    )


def current_particles(simulation: Simulation, labels: Labels) -> Particles:
    """The bodies as they are now, on the host, with their ids and components; on a CPU without
    copying, in their own precision.
    """
    bodies = simulation.bodies
    with span(simulation.profile, "transfer", name="bodies to the host", nbytes=bodies.nbytes):
        position, velocity, mass = (
            values_on_host(getattr(bodies, n)) for n in ("position", "velocity", "mass")
        )
    return Particles(
        position,
        velocity,
        mass,
        labels.ids,
        labels.component,
        simulation.time,
        simulation.softening,
    )


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint; raises `InputError` for a snapshot that is none."""
    particles = read_gadget(path)
    with open_hdf5(path) as file:
        group = file.get(GROUP)
        if group is None or "history" not in group:
            raise InputError(
                "a Gadget snapshot but no checkpoint of lanewise; start a new run from it with "
                f"--ic {path}"
            )
        warn_without_sums(file, path)
        values = schema.read(file, SCHEMA)
        kept = {name: values[f"{GROUP}@{name}"] for name in KEPT}
        settings = Settings(**{name: v for name, v in kept.items() if v is not None})
        check_names(settings)
        real = np.dtype(np.float32 if settings.precision == "f32" else np.float64)
        for place in (
            f"PartType{k}/{n}"
            for k in np.unique(particles.component)
            for n in ("Coordinates", "Velocities")
        ):
            if file[place].dtype != real:
                raise InputError(
                    f"damaged checkpoint: {place} is of {file[place].dtype}; wanted {real}"
                )
        history = [from_row(row) for row in values[HISTORY]]
        if not history:
            raise InputError(
                "damaged checkpoint: its history is empty; wanted the energies of the start"
            )
        step: int = values[f"{GROUP}@step"]
        if step > settings.steps:
            raise InputError(f"damaged checkpoint: it is at step {step} of {settings.steps}")
        plans, paces = _read_plans(values), [values[place] for place in PACE]
        text = values[SCRIPT]
        script = "" if text is None else text.tobytes().decode("utf-8", errors="surrogateescape")
        shot = values[f"{GROUP}@{FILM}"]
        film = None if shot is None else film_from_json(shot)
    pace = None if None in paces else Pace(*paces)
    order = values[TREE_ORDER]
    check_order(settings, order, len(particles))
    return Checkpoint(particles, settings, step, history, plans, pace, script, film, order)


def check_order(settings: Settings, order: Any, bodies: int) -> None:
    """Refuse an order that names a body twice or not at all: its forces would be wrong."""
    if settings.method != "tree":
        return
    if not is_order(order, bodies):
        raise InputError(
            f"damaged checkpoint: {TREE_ORDER} does not name each of {bodies:,} bodies once"
        )


def _read_plans(values: dict[str, Any]) -> Plans | None:
    """The plans, or None where there are none: not in a checkpoint of a version that did not keep
    them.
    """
    texts = [values[f"{GROUP}@{name}"] for name in (FORCE_PLAN, POTENTIAL_PLAN)]
    if texts == [None, None]:
        return None
    if None in texts:
        raise InputError(
            "damaged checkpoint: it has one plan; wanted that of the forces and that of the "
            "potential"
        )
    return Plans(_read_plan(FORCE_PLAN, texts[0]), _read_plan(POTENTIAL_PLAN, texts[1]))


def _read_plan(name: str, text: str) -> lw.Plan:
    try:
        return from_json(text)
    except ValueError as error:
        raise InputError(f"damaged checkpoint: {name}: {error}") from error
