"""A flock on its way, as an HDF5 file that h5py, MATLAB, Julia or h5dump read without lanewise.

| name | shape | |
| --- | --- | --- |
| trajectory/step, time | (frames,) | of every frame |
| trajectory/position, forward | (frames, n, 3) | in the precision of the flock |
| trajectory/speed | (frames, n) | |
| history/NAME | (frames,) | the statistics of every frame |
| state/position, forward, up, acceleration | (n, 3) | the last state |
| state/speed, id | (n,) | |

Every parameter of the run is an attribute of the file. Frames are kept in memory until the file is
written: anew each time, with those of the earlier file first. So its bytes do not tell how often
that was, and a run that was cut leaves the file of one that was not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import lanewise as lw
from lanewise.io.hdf5 import add_dataset, add_rows, open_hdf5, set_attributes, write_hdf5
from lanewise.io.sums import checked_rows
from lanewise.profiling.profile import span
from lanewise.sims.boids.settings import as_parameters
from lanewise.sims.boids.state import State
from lanewise.sims.boids.statistics import FlockObserver, Statistics
from lanewise.sims.common.attributes import attributes
from lanewise.sims.common.meshes import mesh_of, writes_files, written

if TYPE_CHECKING:
    from lanewise.sims.boids.flock import Flock

FORMAT = "lanewise flock 1"
"""The attribute `format`, by which the file is recognised."""

FRAMES = ("trajectory", "history")
"""Groups whose datasets have a row for every frame."""

STATE = ("position", "forward", "up", "acceleration", "speed")
MOST_WAITING = 1 << 28  # bytes of frames in memory before the file is written


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """A moment: arrays on the host. Files keep position, forward and speed of it."""

    step: int
    time: float
    position: NDArray[Any]
    forward: NDArray[Any]
    up: NDArray[Any]
    speed: NDArray[Any]
    ids: NDArray[np.int64]
    statistics: Statistics


def frame_of(flock: Flock, observer: FlockObserver) -> Frame:
    """What the flock looks like now."""
    state = state_of(flock)
    with span(flock.profile, "observe", name="statistics"):
        statistics = observer.take(state.position)
    return Frame(
        flock.step,
        flock.time,
        state.position,
        state.forward,
        state.up,
        state.speed,
        state.ids,
        statistics,
    )


def state_of(flock: Flock) -> State:
    """The agents on the host."""
    with span(flock.profile, "transfer", name="agents to the host", nbytes=flock.boids.nbytes):
        return flock.state


@dataclass(slots=True)
class Trajectory:
    """The frames that wait to be written. `base`: the file that holds the earlier ones, if there is
    one.
    """

    base: Path | None = None
    waiting: list[Frame] = field(default_factory=list[Frame])

    @property
    def nbytes(self) -> int:
        return sum(f.position.nbytes + f.forward.nbytes + f.speed.nbytes for f in self.waiting)

    def write(
        self,
        path: Path,
        flock: Flock,
        state: State,
        parameters: Mapping[str, Any],
        extra: Callable[[Any], None],
        *,
        overwrite: bool,
    ) -> None:
        """Write everything: the waiting frames after the earlier ones, and the state as it is now.
        Of a flock on several processes the first one writes.

        extra: called with the open h5py.File at the end. Raises `InputError`, and leaves the file
        as it was, when it cannot be written.
        """

        def fill(file: Any) -> None:
            _fill(file, flock, state, parameters)
            with nullcontext() if self.base is None else open_hdf5(self.base) as earlier:
                _add_frames(file, earlier, self.waiting)
            extra(file)

        mesh = mesh_of(flock.boids)
        if writes_files(mesh):
            write_hdf5(path, fill, overwrite=overwrite)
        written(mesh)
        self.base = path
        self.waiting.clear()


def _fill(file: Any, flock: Flock, state: State, parameters: Mapping[str, Any]) -> None:
    shown = {
        **as_parameters(flock.settings),
        "agents": len(flock),
        "step": flock.step,
        "time": flock.time,
        **parameters,
    }
    set_attributes(
        file, {**dict(attributes(shown)), "format": FORMAT, "lanewise_version": lw.__version__}
    )
    for name in STATE:
        add_dataset(file, f"state/{name}", getattr(state, name))
    add_dataset(file, "state/id", state.ids)


def _add_frames(file: Any, earlier: Any, frames: list[Frame]) -> None:
    """Those of an earlier file, if there is one, and those that wait."""
    before = {
        f"{group}/{name}": rows
        for group in FRAMES
        for name, rows in ((earlier or {}).get(group) or {}).items()
    }
    waiting = _columns(frames) if frames else {}
    for name in sorted(before.keys() | waiting.keys()):
        parts = [part[name] for part in (before, waiting) if name in part]
        row = parts[0].shape[1:]
        pieces = chain(
            checked_rows(before[name]) if name in before else (),
            [waiting[name]] if name in waiting else (),
        )
        shape = (sum(map(len, parts)), *row)
        add_rows(file, name, shape, parts[0].dtype, pieces, maxshape=(None, *row))


def _columns(frames: list[Frame]) -> dict[str, NDArray[Any]]:
    columns: dict[str, list[Any]] = {
        f"trajectory/{name}": [getattr(f, name) for f in frames]
        for name in ("step", "time", "position", "forward", "speed")
    }
    rows = [f.statistics.as_dict() for f in frames]
    columns |= {f"history/{name}": [row[name] for row in rows] for name in rows[0]}
    return {name: np.array(values) for name, values in columns.items()}
