"""Checkpoints: a trajectory file that others read, with a group `/lanewise` that holds what resuming needs.

`/lanewise` has the settings, the search and the clock as attributes, `rows` with the agent at each place in memory, and `urges` where
agents do not think in every step. The state is kept in the precision of the flock, so a resumed flock gives the bits of an
uninterrupted one. It is written whole or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lanewise._version import __version__
from lanewise.errors import InputError
from lanewise.io.hdf5 import open_hdf5
from lanewise.layouts import default_layout
from lanewise.profiling.profile import Profile
from lanewise.runtime.devices import resolve
from lanewise.runtime.executable import device_kind
from lanewise.runtime.memory import to_host
from lanewise.search import Search
from lanewise.sims.boids.boundaries import find_boundary
from lanewise.sims.boids.choice import search_from_json, search_to_json, search_world
from lanewise.sims.boids.rules import record_class
from lanewise.sims.boids.settings import Clock, Settings, settings_from_json, settings_to_json
from lanewise.sims.boids.state import State
from lanewise.sims.boids.trajectory import STATE, Trajectory

if TYPE_CHECKING:
    from lanewise.sims.boids.flock import Flock

GROUP = "lanewise"
VERSION = 2


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """What a checkpoint file holds. `run`: what a run has added, None for `Flock.checkpoint`."""

    path: Path
    settings: Settings
    search: Search
    search_reason: str
    clock: Clock
    state: State
    urges: tuple[Any, ...]
    rows: NDArray[np.int32]
    run: dict[str, Any] | None = field(default=None)


def write_checkpoint(
    path: Path,
    flock: Flock,
    *,
    overwrite: bool,
    trajectory: Trajectory | None = None,
    run: Mapping[str, Any] | None = None,
) -> None:
    """Write the current state whole, with the frames of the trajectory, or leave the file as it was and raise `InputError`."""

    def add_group(file: Any) -> None:
        if GROUP in file:
            del file[GROUP]
        group = file.create_group(GROUP)
        group.attrs["format"], group.attrs["version"] = VERSION, __version__
        group.attrs["settings"] = settings_to_json(flock.settings)
        group.attrs["search"], group.attrs["search_reason"] = search_to_json(flock.search), flock.search_reason
        group.attrs["clock"] = json.dumps(asdict(flock.clock))
        if run is not None:
            group.attrs["run"] = json.dumps(dict(run))
        group.create_dataset("rows", data=flock.rows)
        if flock.settings.think_every > 1:
            for number, urge in enumerate(flock.urges):
                group.create_dataset(f"urges/{number}", data=to_host(urge))

    shown = {} if run is None else {f"run.{n}": v for n, v in run.items()}
    (trajectory or Trajectory()).write(path, flock, shown, add_group, overwrite=overwrite)


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint; raises `InputError` for a file that is none, or a damaged one."""
    with open_hdf5(path) as file:
        group = file.get(GROUP)
        if group is None or "state" not in file or "clock" not in group.attrs:
            raise InputError(
                "no checkpoint of lanewise boids; wanted a file that --out or Flock.checkpoint has written"
            )
        if int(group.attrs["format"]) != VERSION:
            raise InputError(f"a checkpoint of format {int(group.attrs['format'])}; wanted format {VERSION}")
        settings = settings_from_json(str(group.attrs["settings"]))
        world = search_world(find_boundary(settings.boundary).end, settings.world)
        search = search_from_json(str(group.attrs["search"]), settings.parameters.radius, settings.k, world)
        fields = {name: np.asarray(file[f"state/{name}"]) for name in STATE}
        state = State(**fields, ids=np.asarray(file["state/id"], np.int64))
        urges = tuple(np.asarray(file[f"{GROUP}/urges/{n}"]) for n in range(3)) if "urges" in group else ()
        rows = np.asarray(file[f"{GROUP}/rows"], np.int32)
        run = json.loads(str(group.attrs["run"])) if "run" in group.attrs else None
        reason = str(group.attrs["search_reason"])
        return Checkpoint(
            path, settings, search, reason, Clock(**json.loads(str(group.attrs["clock"]))), state, urges, rows, run
        )


def restored(saved: Checkpoint, *, device: str | None = None, profile: Profile | None = None) -> Flock:
    """The flock at the step of the checkpoint; on another kind of device in that one's own layout."""
    from lanewise.sims.boids.flock import Flock

    s = saved.settings
    where = resolve(device or s.device)
    layout = s.layout
    if device_kind(where) != device_kind(s.device):
        layout = str(default_layout(record_class(s.precision).__record__, where)).lower()
    settings = replace(s, device=where, layout=layout)
    flock = Flock._restored(settings, saved.state, saved.search, saved.clock, saved.urges, saved.rows, profile)  # pyright: ignore[reportPrivateUsage]
    flock.search_reason = saved.search_reason
    return flock
