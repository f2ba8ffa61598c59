"""Checkpoints: a flow file that others read, with a group `/lanewise` that holds what resuming
needs.

`/lanewise` has the settings, the kinds and the edges as attributes; `mask`, profiles of openings
and fractions of cut links; and `state`, the memory of the populations just as it is: in its storage
type, in its layout, in the middle of a pattern of in-place streaming; as attributes of `state` the
step and whether it is fresh. `first_mass` is the mass at the start of the run. So a resumed run
gives the bits of an uninterrupted one. It is written whole or not at all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import lanewise as lw
from lanewise.io import schema
from lanewise.io.hdf5 import add_dataset, open_hdf5, read_text, set_attributes, warn_without_sums
from lanewise.io.schema import Array, Real, Text, Whole
from lanewise.io.source import reading
from lanewise.profiling.profile import Profile, span
from lanewise.sims.common.checks import MOST_STEPS, check_format
from lanewise.sims.common.devices import (
    first_of,
    place_of,
    same_kind,
    to_host,
)
from lanewise.sims.common.meshes import writes_files, written
from lanewise.sims.lbm.arguments import MOST_KINDS, check_geometry, check_settings, chosen_lattice
from lanewise.sims.lbm.files import COMPRESSED, write_flow
from lanewise.sims.lbm.settings import (
    Settings,
    SiteGeometry,
    geometry_from_json,
    geometry_to_json,
    settings_from_json,
    settings_to_json,
)
from lanewise.support.errors import InputError

if TYPE_CHECKING:
    from lanewise.sims.lbm.simulation import Simulation

GROUP = "lanewise"
FORMATS = (FIRST, FORMAT) = (1, 2)
"""The first one had the phase as datasets, and no sums."""

PHASE = {"step": Whole(0, MOST_STEPS), "fresh": Whole(0, 1)}
"""Where in its cycle of steps the memory of the populations is."""

HEAD = {
    "@format": Whole(0, 2**31),
    "@settings": Text(),
    "@geometry": Text(),
    "@step": Whole(0, MOST_STEPS),
    "@first_mass": Real(0, needed=False),
}


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """What a checkpoint file holds. attributes, arrays: what a run has added, by name; format: of
    the file.

    first_mass: at the start of the run, with which later masses are compared; None in files that do
    not tell it.
    """

    path: Path
    settings: Settings
    geometry: SiteGeometry
    step: int
    state: Mapping[str, Any]
    attributes: Mapping[str, str] = field(default_factory=dict[str, str])
    arrays: Mapping[str, Any] = field(default_factory=dict[str, Any])
    format: int = FORMAT
    first_mass: float | None = None


def write_checkpoint(
    path: Path,
    simulation: Simulation,
    *,
    overwrite: bool,
    parameters: Mapping[str, Any] | None = None,
    attributes: Mapping[str, str] | None = None,
    arrays: Mapping[str, Any] | None = None,
    history: Mapping[str, Any] | None = None,
) -> None:
    """Write the current state whole, or leave the file as it was and raise `InputError`. Of several
    processes the first one writes.

    parameters become attributes of the file, `history` a group that others read; attributes and
    arrays come back from `read_checkpoint`.
    """
    solid = simulation.solid
    shown = {"step": simulation.step, **_shown(simulation), **(parameters or {})}
    density, velocity = simulation.density, simulation.velocity
    with span(
        simulation.profile,
        "transfer",
        name="fields to the host",
        nbytes=density.nbytes + velocity.nbytes,
    ):
        fields = to_host(density), to_host(velocity)
    with span(simulation.profile, "transfer", name="populations to the host"):
        saved = simulation.engine.save()
    if writes_files(simulation.mesh):
        write_flow(
            path,
            *fields,
            shown,
            solid=solid if solid.any() else None,
            history=history,
            extra=partial(_add_group, simulation, saved, attributes or {}, arrays or {}),
            overwrite=overwrite,
        )
    written(simulation.mesh)


def _add_group(
    simulation: Simulation,
    saved: Mapping[str, Any],
    attributes: Mapping[str, str],
    arrays: Mapping[str, Any],
    file: Any,
) -> None:
    """All that the run needs to continue, besides the fields that others read."""
    group, geometry = file.create_group(GROUP), simulation.geometry
    texts = {
        "settings": settings_to_json(simulation.settings),
        "geometry": geometry_to_json(geometry),
    }
    set_attributes(
        group, {"format": FORMAT, "version": lw.__version__, "step": simulation.step, **texts}
    )
    if simulation.first_mass is not None:
        set_attributes(group, {"first_mass": simulation.first_mass})
    if geometry.mask is not None:
        add_dataset(group, "mask", geometry.mask, **COMPRESSED)
    if geometry.fractions is not None:
        add_dataset(group, "fractions/places", geometry.fractions.places)
        add_dataset(group, "fractions/fractions", geometry.fractions.fractions, **COMPRESSED)
    for number, kind in geometry.openings.items():
        if kind.profile is not None:
            add_dataset(group, f"profiles/{number}", np.asarray(kind.profile, np.float64))
    state = group.create_group("state")
    set_attributes(state, {name: int(saved[name]) for name in PHASE})
    for name, value in saved.items():
        if name not in PHASE:
            add_dataset(state, name, value)
    run = group.create_group("run")
    set_attributes(run, attributes)
    for name, array in arrays.items():
        add_dataset(run, name, array)


def _shown(simulation: Simulation) -> dict[str, Any]:
    """The parameters by which others know the run."""
    s = simulation.settings
    return {**asdict(s), "viscosity": s.viscosity, "tau": 1 / s.omega}


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint; raises `InputError` for a file that is none, or a damaged one."""
    with open_hdf5(path) as file:
        group = file.get(GROUP)
        if group is None or "state" not in group or "settings" not in group.attrs:
            raise InputError(
                "no checkpoint of lanewise lbm; wanted a file that --out or Simulation.checkpoint "
                "has written"
            )
        head = schema.read(group, HEAD)
        check_format(head["@format"], FORMATS)
        warn_without_sums(file, path)
        settings = settings_from_json(head["@settings"])
        lattice = check_settings(settings)
        arrays = schema.read(group, _arrays_of(settings, lattice, group))
        profiles = {int(n): arrays[f"profiles/{n}"] for n in group.get("profiles", ())}
        geometry = geometry_from_json(
            head["@geometry"], arrays["mask"], profiles, _fractions(arrays)
        )
        geometry = replace(
            check_geometry(settings.shape, geometry.mask, geometry.kinds, geometry.edges),
            fractions=geometry.fractions,
        )
        run, state = group["run"], {n: arrays[f"state/{n}"] for n in group["state"]}
        phase = (
            schema.read(group, {f"state@{n}": e for n, e in PHASE.items()})
            if head["@format"] > 1
            else {}
        )
        state |= {n: phase[f"state@{n}"] if phase else int(state[n]) for n in PHASE}
        return Checkpoint(
            path,
            settings,
            geometry,
            head["@step"],
            state,
            {n: read_text(run.attrs, n) for n in run.attrs},
            {n: arrays[f"run/{n}"] for n in run},
            head["@format"],
            head["@first_mass"],
        )


def _arrays_of(settings: Settings, lattice: lw.Lattice, group: Any) -> dict[str, Array]:
    """What arrays the checkpoint of such a flow has.

    The number of bytes of its populations is known when their layout is.
    """
    shape = settings.shape
    declared = {
        "mask": Array("u1", shape, high=MOST_KINDS, needed=False),
        "fractions/places": Array(
            "i8", ("links",), 0, math.prod(shape) - 1, needed="fractions" in group
        ),
        "fractions/fractions": Array(
            "f8", ("links", len(lattice)), any_number=True, needed="fractions" in group
        ),
        "state/populations": Array("u1", ("bytes",)),
        "run/series": Array("f8", ("rows", "columns"), needed=False),
        "run/compared": Array("f4 f8", (*shape, len(shape)), needed=False),
    }
    for number in group.get("profiles", ()):
        declared[f"profiles/{number}"] = Array(
            "f8", tuple(f"n{a}" for a in range(np.ndim(group[f"profiles/{number}"])))
        )
    for name in group["state"]:
        if name.startswith("outflow"):
            declared[f"state/{name}"] = Array(
                "f4 f8", tuple(f"{name} {a}" for a in range(np.ndim(group[f"state/{name}"])))
            )
    if "step" in group["state"]:  # in format 1
        declared |= {f"state/{n}": Array("i8 b1", (), 0, e.high) for n, e in PHASE.items()}
    return declared


def _fractions(arrays: Mapping[str, Any]) -> lw.WallFractions | None:
    places, fractions = arrays["fractions/places"], arrays["fractions/fractions"]
    if places is None:
        return None
    if (
        not (np.isnan(fractions) | ((fractions >= 0) & (fractions <= 1))).all()
        or (np.diff(places) <= 0).any()
    ):
        raise InputError(
            "damaged checkpoint: fractions of links are not from 0 to 1, or their places do not "
            "grow"
        )
    return lw.WallFractions(places, fractions)


def restored(
    made: type[Simulation],
    saved: Checkpoint,
    *,
    device: str | lw.Mesh | None = None,
    streaming: str | None = None,
    layout: str | None = None,
    profile: Profile | None = None,
) -> Simulation:
    """The simulation, one of `made`, at the step of the checkpoint.

    On the same streaming form and layout its memory is put back as it was. Otherwise it is restored
    first as it was, and the populations that arrive are then taken over: exact but for the rounding
    of float16 storage at moving walls.
    """
    s = saved.settings
    place = place_of(device or s.device)
    mesh = place if isinstance(place, lw.Mesh) else None
    settings = replace(
        s,
        device=first_of(place),
        streaming=streaming or s.streaming,
        layout=layout or _kept_layout(s, None if device is None else first_of(place)),
    )
    lattice = chosen_lattice(s.lattice, len(s.shape))
    simulation = made._restored(  # pyright: ignore[reportPrivateUsage]
        lattice, settings, saved.geometry, saved.step, profile, saved.first_mass, mesh
    )
    if converted(s, simulation.settings):
        before = made._restored(  # pyright: ignore[reportPrivateUsage]
            lattice, replace(s, device=settings.device), saved.geometry, saved.step, mesh=mesh
        )
        with reading(saved.path, "checkpoint", ()):
            before.engine.restore(saved.state)
        simulation.engine.set_arriving(before.engine.arriving())
    else:
        with (
            span(profile, "transfer", name="populations to the device"),
            reading(saved.path, "checkpoint", ()),
        ):
            simulation.engine.restore(saved.state)
    return simulation


def _kept_layout(settings: Settings, device: str | None) -> str:
    """The layout of the checkpoint; on another kind of device that one's own."""
    return settings.layout if device is None or same_kind(device, settings.device) else ""


def converted(before: Settings, after: Settings) -> bool:
    """Whether the populations have to be brought into another order."""
    return (before.streaming, before.layout) != (after.streaming, after.layout)
