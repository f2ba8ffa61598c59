"""Checkpoints: a flow file that others read, with a group `/lanewise` that holds what resuming needs.

`/lanewise` has the settings, the kinds and the edges as attributes; `mask`, profiles of openings and fractions of cut links;
and `state`, the memory of the populations just as it is: in its storage type, in its layout, in the middle of a pattern of
in-place streaming. So a resumed run gives the bits of an uninterrupted one. It is written whole or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lanewise._version import __version__
from lanewise.errors import InputError
from lanewise.io.hdf5 import open_hdf5
from lanewise.profiling.profile import Profile, span
from lanewise.runtime.devices import resolve
from lanewise.runtime.executable import device_kind
from lanewise.runtime.memory import to_host
from lanewise.sims.lbm.arguments import chosen_lattice
from lanewise.sims.lbm.output.hdf5 import write_flow
from lanewise.sims.lbm.settings import (
    Geometry,
    Settings,
    geometry_from_json,
    geometry_to_json,
    settings_from_json,
    settings_to_json,
)
from lanewise.sites.fractions import WallFractions

if TYPE_CHECKING:
    from lanewise.sims.lbm.simulation import Simulation

GROUP = "lanewise"
FORMAT = 1


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """What a checkpoint file holds. `extra` is what a run has added: attributes, and arrays by name."""

    path: Path
    settings: Settings
    geometry: Geometry
    step: int
    state: Mapping[str, Any]
    attributes: Mapping[str, str] = field(default_factory=dict[str, str])
    arrays: Mapping[str, Any] = field(default_factory=dict[str, Any])


def write_checkpoint(
    path: Path, simulation: Simulation, *, overwrite: bool, parameters: Mapping[str, Any] | None = None,
    attributes: Mapping[str, str] | None = None, arrays: Mapping[str, Any] | None = None,
    history: Mapping[str, Any] | None = None,
) -> None:  # fmt: skip
    """Write the current state whole, or leave the file as it was and raise `InputError`.

    parameters become attributes of the file, `history` a group that others read; attributes and arrays come back from `read_checkpoint`.
    """
    geometry = simulation.geometry

    def add_group(file: Any) -> None:
        group = file.create_group(GROUP)
        group.attrs["format"], group.attrs["version"], group.attrs["step"] = FORMAT, __version__, simulation.step
        group.attrs["settings"], group.attrs["geometry"] = (
            settings_to_json(simulation.settings),
            geometry_to_json(geometry),
        )
        if geometry.mask is not None:
            group.create_dataset("mask", data=geometry.mask, compression="gzip", compression_opts=1)
        if geometry.fractions is not None:
            group.create_dataset("fractions/places", data=geometry.fractions.places)
            group.create_dataset(
                "fractions/fractions", data=geometry.fractions.fractions, compression="gzip", compression_opts=1
            )
        for number, kind in geometry.openings.items():
            if kind.profile is not None:
                group.create_dataset(f"profiles/{number}", data=np.asarray(kind.profile, np.float64))
        with span(simulation.profile, "transfer", name="populations to the host"):
            state = simulation.engine.save()
        for name, value in state.items():
            group.create_dataset(f"state/{name}", data=value)
        run = group.create_group("run")
        for name, text in (attributes or {}).items():
            run.attrs[name] = text
        for name, array in (arrays or {}).items():
            run.create_dataset(name, data=array)

    solid = simulation.solid
    shown = {"step": simulation.step, **_shown(simulation), **(parameters or {})}
    density, velocity = simulation.density, simulation.velocity
    with span(simulation.profile, "transfer", name="fields to the host", nbytes=density.nbytes + velocity.nbytes):
        fields = to_host(density), to_host(velocity)
    write_flow(
        path, *fields, shown, solid=solid if solid.any() else None,
        history=history, extra=add_group, overwrite=overwrite,
    )  # fmt: skip


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
                "no checkpoint of lanewise lbm; wanted a file that --out or Simulation.checkpoint has written"
            )
        if int(group.attrs["format"]) != FORMAT:
            raise InputError(f"a checkpoint of format {int(group.attrs['format'])}; wanted format {FORMAT}")
        settings = settings_from_json(str(group.attrs["settings"]))
        mask = np.asarray(group["mask"], np.uint8) if "mask" in group else None
        if mask is not None and mask.shape != settings.shape:
            raise InputError(f"damaged checkpoint: its mask has shape {mask.shape}; wanted {settings.shape}")
        profiles = {int(n): np.asarray(p) for n, p in group["profiles"].items()} if "profiles" in group else {}
        geometry = geometry_from_json(str(group.attrs["geometry"]), mask, profiles, _fractions(group))
        run = group["run"]
        return Checkpoint(
            path, settings, geometry, int(group.attrs["step"]), {n: a[()] for n, a in group["state"].items()},
            {n: str(v) for n, v in run.attrs.items()}, {n: np.asarray(a) for n, a in run.items()},
        )  # fmt: skip


def _fractions(group: Any) -> WallFractions | None:
    if "fractions" not in group:
        return None
    found = group["fractions"]
    return WallFractions(np.asarray(found["places"], np.int64), np.asarray(found["fractions"], np.float64))


def restored(
    saved: Checkpoint, *, device: str | None = None, streaming: str | None = None, layout: str | None = None,
    profile: Profile | None = None,
) -> Simulation:  # fmt: skip
    """The simulation at the step of the checkpoint.

    On the same streaming form and layout its memory is put back as it was. Otherwise it is restored first as it was, and the
    populations that arrive are then taken over: exact but for the rounding of float16 storage at moving walls.
    """
    from lanewise.sims.lbm.simulation import Simulation

    s = saved.settings
    wanted = replace(
        s,
        device=resolve(device or s.device),
        streaming=streaming or s.streaming,
        layout=layout or _kept_layout(s, device),
    )
    lattice = chosen_lattice(s.lattice, len(s.shape))
    simulation = Simulation._restored(lattice, wanted, saved.geometry, saved.step, profile)  # pyright: ignore[reportPrivateUsage]
    if converted(s, simulation.settings):
        before = Simulation._restored(lattice, replace(s, device=wanted.device), saved.geometry, saved.step)  # pyright: ignore[reportPrivateUsage]
        before.engine.restore(saved.state)
        simulation.engine.set_arriving(before.engine.arriving())
    else:
        with span(profile, "transfer", name="populations to the device"):
            simulation.engine.restore(saved.state)
    return simulation


def _kept_layout(settings: Settings, device: str | None) -> str:
    """The layout of the checkpoint; on another kind of device that one's own."""
    return settings.layout if device is None or device_kind(device) == device_kind(settings.device) else ""


def converted(before: Settings, after: Settings) -> bool:
    """Whether the populations have to be brought into another order."""
    return (before.streaming, before.layout) != (after.streaming, after.layout)
