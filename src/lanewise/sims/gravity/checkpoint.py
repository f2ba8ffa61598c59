"""Checkpoints: a Gadget snapshot that others read, with a group `/lanewise` that holds what resuming needs.

`/lanewise` has the settings and the plans of the kernels as attributes, and `history`, one row a measurement (columns in
its attribute). A checkpoint is written whole or not at all, so the last one stays valid whatever happens to the run.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from lanewise._version import __version__
from lanewise.errors import InputError
from lanewise.io.gadget import read_gadget
from lanewise.io.gadget_writer import write_gadget
from lanewise.io.hdf5 import open_hdf5
from lanewise.io.particles import Particles
from lanewise.plan import Plan
from lanewise.profiling.profile import span
from lanewise.runtime.memory import to_host
from lanewise.sims.gravity.diagnostics import COLUMNS, Diagnostics, from_row, to_row
from lanewise.sims.gravity.plans import Plans, from_json, to_json
from lanewise.sims.gravity.simulation import Simulation
from lanewise.sims.gravity.snapshots import GROUP, SNAPSHOT_OF

FORCE_PLAN, POTENTIAL_PLAN = "force_plan", "potential_plan"  # attributes, as JSON


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that decides how a run goes on. `steps` is the number of steps at which the run is complete."""

    ic: str
    steps: int
    dt: float
    softening: float
    integrator: str
    precision: str
    layout: str
    device: str
    gravitational_constant: float
    seed: int
    start_time: float  # of step 0


@dataclass(frozen=True, slots=True)
class Labels:
    """What names the bodies and stays as it is: ids (n,) int64 and components (n,) uint8."""

    ids: Any
    component: Any


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a checkpoint file holds. The first ones had no plans."""

    particles: Particles
    settings: Settings
    step: int
    history: list[Diagnostics]
    plans: Plans | None = None


def write_checkpoint(
    path: Path,
    simulation: Simulation,
    labels: Labels,
    settings: Settings,
    history: list[Diagnostics],
    *,
    snapshot_of: str = "",
    overwrite: bool,
) -> None:
    """Write the current state whole, or leave the file as it was and raise `InputError` (a full disk, for one).

    snapshot_of: the name of the run's own file, for a numbered snapshot beside it.
    """
    plans = simulation.plans

    def add_group(file: Any) -> None:
        group = file.create_group(GROUP)
        group.attrs["version"] = __version__
        group.attrs["step"] = simulation.step
        group.attrs[SNAPSHOT_OF] = snapshot_of
        for name, value in asdict(settings).items():
            group.attrs[name] = value
        group.attrs[FORCE_PLAN], group.attrs[POTENTIAL_PLAN] = to_json(plans.force), to_json(plans.potential)
        rows = group.create_dataset(
            "history", data=np.array([to_row(d) for d in history], np.float64).reshape(-1, len(COLUMNS))
        )
        rows.attrs["columns"] = ",".join(COLUMNS)

    precision = "f32" if simulation.precision == "f32" else "f64"
    try:
        write_gadget(
            path, current_particles(simulation, labels), overwrite=overwrite, precision=precision, extra=add_group
        )
    except (OSError, RuntimeError) as error:  # h5py raises the second one when it closes a file that the first one hit
        raise InputError(f"{path}: cannot be written: {_system_reason(error)}") from error


def _system_reason(error: BaseException | None) -> str:
    """What the system said, however deep h5py has wrapped it."""
    first = error
    while error is not None:
        if isinstance(error, OSError) and error.errno:
            return os.strerror(error.errno)
        error = error.__context__
    return str(first).partition("\n")[0]


def current_particles(simulation: Simulation, labels: Labels) -> Particles:
    """The bodies as they are now, on the host, with their ids and components; on a CPU without copying, in their own precision."""
    bodies = simulation.bodies
    with span(simulation.profile, "transfer", name="bodies to the host", nbytes=bodies.nbytes):
        position, velocity, mass = (to_host(getattr(bodies, n)) for n in ("position", "velocity", "mass"))
    return Particles(position, velocity, mass, labels.ids, labels.component, simulation.time, simulation.softening)


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint; raises `InputError` for a snapshot that is none."""
    particles = read_gadget(path)
    with open_hdf5(path) as file:
        group = file.get(GROUP)
        if group is None or "history" not in group:
            raise InputError(
                f"a Gadget snapshot but no checkpoint of lanewise; start a new run from it with --ic {path}"
            )
        converters: dict[str, Callable[[Any], Any]] = {"str": str, "int": int, "float": float}
        settings = Settings(**{f.name: converters[str(f.type)](group.attrs[f.name]) for f in fields(Settings)})
        rows = np.asarray(group["history"], np.float64)
        if rows.ndim != 2 or rows.shape[1] != len(COLUMNS) or not len(rows):
            raise InputError(f"damaged checkpoint: its history has shape {rows.shape}; wanted (n, {len(COLUMNS)})")
        history = [from_row(row) for row in rows]
        step = int(group.attrs["step"])
        if not 0 <= step <= settings.steps:
            raise InputError(f"damaged checkpoint: it is at step {step} of {settings.steps}")
        plans = _read_plans(group.attrs)
    return Checkpoint(particles, settings, step, history, plans)


def _read_plans(attributes: Any) -> Plans | None:
    """The plans, or None where there are none: not in a checkpoint of a version that did not keep them."""
    if FORCE_PLAN not in attributes and POTENTIAL_PLAN not in attributes:
        return None
    return Plans(_read_plan(attributes, FORCE_PLAN), _read_plan(attributes, POTENTIAL_PLAN))


def _read_plan(attributes: Any, name: str) -> Plan:
    try:
        return from_json(str(attributes[name]))
    except ValueError as error:
        raise InputError(f"damaged checkpoint: {name}: {error}") from error
