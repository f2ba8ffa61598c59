"""Checkpoints: a trajectory file that others read, with a group `/lanewise` that holds what
resuming needs.

`/lanewise` has the settings, the search and the clock as attributes, `rows` with the agent at each
place in memory, and `urges` where agents do not think in every step. The state is kept in the
precision of the flock, so a resumed flock gives the bits of an uninterrupted one. It is written
whole or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from inspect import get_annotations
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

import lanewise as lw
from lanewise.io import schema
from lanewise.io.hdf5 import add_dataset, open_hdf5, set_attributes, warn_without_sums
from lanewise.io.schema import Array, Text, Whole
from lanewise.io.sums import check_sums
from lanewise.layouts import default_layout
from lanewise.profiling.profile import Profile, span
from lanewise.sims.boids.choice import Chosen, search_from_json, search_to_json
from lanewise.sims.boids.engine import FlockEngine
from lanewise.sims.boids.placing import world_of
from lanewise.sims.boids.rules import record_class
from lanewise.sims.boids.settings import (
    RunPlan,
    Settings,
    check_clock,
    check_fit,
    check_plan,
    check_settings,
    settings_from_json,
    settings_to_json,
)
from lanewise.sims.boids.state import State, check_state
from lanewise.sims.boids.statistics import Statistics
from lanewise.sims.boids.trajectory import STATE, Trajectory, state_of
from lanewise.sims.common.checks import MOST_STEPS, check_format, readable
from lanewise.sims.common.clock import Clock
from lanewise.sims.common.devices import first_of, place_of, same_kind, to_host
from lanewise.sims.common.meshes import spelled
from lanewise.sims.common.plan_text import from_json, to_json
from lanewise.support.errors import InputError, LanewiseWarning
from lanewise.support.warned import warn_user

if TYPE_CHECKING:
    from lanewise.sims.boids.flock import Flock

GROUP = "lanewise"
FORMATS = (_, VERSION) = (2, 3)
"""Format 2 had no sums."""

URGES = 3
HEAD = {
    "@format": Whole(0, 2**31),
    "@settings": Text(),
    "@search": Text(),
    "@search_reason": Text(),
    "@clock": Text(),
    "@plan": Text(needed=False),
    "@run": Text(needed=False),
    "@laid": Text(needed=False),
}
T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """What a checkpoint file holds.

    laid: the search with its cells where they lay, None in older files. run: what a run has added,
    None for `Flock.checkpoint`.
    """

    path: Path
    settings: Settings
    chosen: Chosen
    clock: Clock
    state: State
    urges: tuple[Any, ...]
    rows: NDArray[np.int32]
    laid: lw.Search | None
    run: RunPlan | None = None


class ResumeWarning(LanewiseWarning):
    """A resumed flock may have other bits than an uninterrupted one."""


def write_checkpoint(
    path: Path,
    flock: Flock,
    *,
    overwrite: bool,
    trajectory: Trajectory | None = None,
    run: RunPlan | None = None,
) -> None:
    """Write the current state whole, with the frames of the trajectory, or leave the file as it was
    and raise `InputError`. Of several processes the first one writes.
    """
    flock.check_whole()
    rows, state, frames = flock.rows, state_of(flock), trajectory or Trajectory()

    def add_group(file: Any) -> None:
        if GROUP in file:
            del file[GROUP]
        group = file.create_group(GROUP)
        kept = {
            "settings": settings_to_json(flock.settings),
            "clock": json.dumps(asdict(flock.clock)),
        }
        searching = {"search": search_to_json(flock.search), "search_reason": flock.search_reason}
        searching |= {"laid": search_to_json(flock.laid)}
        searching |= {} if flock.choice.plan is None else {"plan": to_json(flock.choice.plan)}
        planned = {} if run is None else {"run": json.dumps(asdict(run))}
        set_attributes(
            group, {"format": VERSION, "version": lw.__version__, **kept, **searching, **planned}
        )
        add_dataset(group, "rows", rows)
        if flock.settings.think_every > 1:
            for number, urge in enumerate(flock.urges):
                add_dataset(group, f"urges/{number}", to_host(urge))

    shown = {} if run is None else {f"run.{n}": v for n, v in asdict(run).items()}
    frames.write(path, flock, state, shown, add_group, overwrite=overwrite)


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint; raises `InputError` for a file that is none, or a damaged one."""
    with open_hdf5(path) as file:
        group = file.get(GROUP)
        if group is None or "state" not in file or "clock" not in group.attrs:
            raise InputError(
                "no checkpoint of lanewise boids; wanted a file that --out or Flock.checkpoint has "
                "written"
            )
        head = schema.read(group, HEAD)
        check_format(head["@format"], FORMATS)
        warn_without_sums(file, path)
        check_sums(file)  # the frames are carried on from file to file, and read by nothing here
        settings = settings_from_json(head["@settings"])
        check_settings(settings)
        world = partial(world_of, settings)
        search = search_from_json(head["@search"], settings.parameters.radius, settings.k, world)
        try:
            plan = None if head["@plan"] is None else from_json(head["@plan"])
        except ValueError as error:
            raise InputError(f"damaged checkpoint: its plan cannot be read: {error}") from error
        laid: lw.Search | None = None
        if head["@laid"] is not None:
            laid = search_from_json(head["@laid"], settings.parameters.radius, settings.k, world)
        chosen = Chosen(search, head["@search_reason"], plan)
        clock = _from_json(Clock, head["@clock"], "clock")
        check_clock(clock)
        run = None if head["@run"] is None else _from_json(RunPlan, head["@run"], "run")
        if run is not None:
            check_plan(run, clock)
        sizes: dict[str, int] = {}
        arrays = schema.read(file, _arrays_of(settings, file), sizes)
        state = State(**{name: arrays[f"state/{name}"] for name in STATE}, ids=arrays["state/id"])
        check_state(state)
        rows = arrays[f"{GROUP}/rows"]
        if not np.array_equal(np.sort(rows), np.arange(sizes["n"])):
            raise InputError(f"damaged checkpoint: {GROUP}/rows do not name every agent once")
        _check_frames(arrays, clock)
        urges = (
            tuple(arrays[f"{GROUP}/urges/{n}"] for n in range(URGES))
            if settings.think_every > 1
            else ()
        )
        return Checkpoint(path, settings, chosen, clock, state, urges, rows, laid, run)


def _arrays_of(settings: Settings, file: Any) -> dict[str, Array]:
    """What arrays a checkpoint of such a flock has, and, once it has frames, its trajectory, to
    which frames are appended.
    """
    real = "f8" if settings.precision == "f64" else "f4"
    thinks = (
        {f"{GROUP}/urges/{n}": Array(real, ("n", 3)) for n in range(URGES)}
        if settings.think_every > 1
        else {}
    )
    frames = ("trajectory" in file) or ("history" in file)
    statistics = {
        name: "i8" if kind is int else "f8" for name, kind in get_annotations(Statistics).items()
    }
    return {
        **{f"state/{name}": Array(real, ("n",) if name == "speed" else ("n", 3)) for name in STATE},
        "state/id": Array("i8", ("n",), -(2**63), 2**63 - 1),
        f"{GROUP}/rows": Array("i4", ("n",), 0, 2**31 - 1),
        **thinks,
        "trajectory/step": Array("i8", ("frames",), 0, MOST_STEPS, growing=True, needed=frames),
        "trajectory/time": Array("f8", ("frames",), growing=True, needed=frames),
        "trajectory/position": Array(real, ("frames", "n", 3), growing=True, needed=frames),
        "trajectory/forward": Array(real, ("frames", "n", 3), growing=True, needed=frames),
        "trajectory/speed": Array(real, ("frames", "n"), growing=True, needed=frames),
        **{
            f"history/{name}": Array(
                kind, ("frames",), any_number=True, growing=True, needed=frames
            )
            for name, kind in statistics.items()
        },
    }


def _check_frames(arrays: Mapping[str, Any], clock: Clock) -> None:
    """Refuse frames that are not one after the other, or of steps that are still to come."""
    steps = arrays["trajectory/step"]
    if steps is not None and steps.size and ((np.diff(steps) <= 0).any() or steps[-1] > clock.step):
        raise InputError(
            f"damaged checkpoint: its frames are not of growing steps up to {clock.step}"
        )


def _from_json(cls: type[T], text: str, what: str) -> T:
    with readable(what):
        return schema.record(cls, json.loads(text), f"the {what}")


def restored(
    flock: type[Flock],
    saved: Checkpoint,
    *,
    device: str | lw.Mesh | None = None,
    profile: Profile | None = None,
) -> Flock:
    """A flock at the step of the checkpoint; on another kind of device in that one's own layout."""
    s = saved.settings
    place = place_of(device or s.device)
    where, layout = spelled(place), s.layout
    if not same_kind(where, s.device):
        layout = str(default_layout(record_class(s.precision).__record__, first_of(place))).lower()
    settings, chosen = replace(s, device=where, layout=layout), saved.chosen
    check_fit(settings)
    if not same_kind(where, s.device):
        chosen = replace(chosen, plan=None)
    with span(profile, "setup", name="flock"):
        engine = FlockEngine(settings, saved.state, chosen, profile, saved.rows, saved.laid, place)
    engine.follow(saved.urges)
    return flock._restored(engine, saved.clock, profile)  # pyright: ignore[reportPrivateUsage]


def resumed(flock: type[Flock], path: Path, *, device: str | lw.Mesh | None) -> Flock:
    """The flock of a checkpoint; warns of an older one that does not keep all that decides its
    bits.
    """
    saved = read_checkpoint(path)
    if note := other_cells(saved):
        warn_user(note, ResumeWarning)
    return restored(flock, saved, device=device)


def other_cells(saved: Checkpoint) -> str:
    """Why the bits may not be those of an uninterrupted run: older files do not say where cells
    lay. Else "".
    """
    grid = saved.chosen.search
    if (
        saved.laid is not None
        or saved.settings.boundary != "open"
        or not isinstance(grid, lw.StaticGrid)
    ):
        return ""
    return (
        f"{saved.path}: the cells of a static grid in an open world follow the first positions, "
        "which this older file does not keep; "
        "the last places may differ"
    )
