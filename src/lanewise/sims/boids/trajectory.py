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
written: whole, in one step, as a copy of what it was with the new frames behind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import lanewise as lw
from lanewise.io.hdf5 import add_dataset, grow_dataset, open_hdf5, set_attributes, write_hdf5
from lanewise.io.sums import PIECE, append_rows, promised, put_sum
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
            if renewed is not None:
                with open_hdf5(renewed) as earlier:
                    _copy_frames(earlier, file)
            _fill(file, flock, state, self.waiting, parameters)
            extra(file)

        mesh = mesh_of(flock.boids)
        if writes_files(mesh):
            renewed = self.base if self.base is not None and not _has_sums(self.base) else None
            write_hdf5(path, fill, overwrite=overwrite, base=None if renewed else self.base)
        written(mesh)
        self.base = path
        self.waiting.clear()


def _has_sums(path: Path) -> bool:
    """Whether a file is of the version that writes sums: others are copied into one that has
    them.
    """
    with open_hdf5(path) as file:
        return promised(file)


def _copy_frames(earlier: Any, file: Any) -> None:
    """All frames, some at a time."""
    for name in (f"{g}/{n}" for g in ("trajectory", "history") if g in earlier for n in earlier[g]):
        data = earlier[name]
        rows = max(1, PIECE // max(1, data.dtype.itemsize * int(np.prod(data.shape[1:]))))
        for first in range(0, len(data), rows):
            _append(file, name, data[first : first + rows])


def _fill(
    file: Any,
    flock: Flock,
    state: State,
    frames: list[Frame],
    parameters: Mapping[str, Any],
) -> None:
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
        _replace(file, f"state/{name}", getattr(state, name))
    _replace(file, "state/id", state.ids)
    if not frames:
        return
    columns: dict[str, list[Any]] = {
        f"trajectory/{name}": [getattr(f, name) for f in frames]
        for name in ("step", "time", "position", "forward", "speed")
    }
    rows = [f.statistics.as_dict() for f in frames]
    columns |= {f"history/{name}": [row[name] for row in rows] for name in rows[0]}
    for name, values in columns.items():
        _append(file, name, np.array(values))


def _replace(file: Any, name: str, values: NDArray[Any]) -> None:
    if name in file:
        file[name][...] = values
        put_sum(file[name], values)
    else:
        add_dataset(file, name, values)


def _append(file: Any, name: str, values: NDArray[Any]) -> None:
    if name not in file:
        chunk = (1, *values.shape[1:]) if values.ndim > 1 else (1024,)
        grow_dataset(file, name, values.shape[1:], values.dtype, chunks=chunk)
    append_rows(file[name], values)
