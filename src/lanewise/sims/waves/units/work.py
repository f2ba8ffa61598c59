"""A unit is computed: from its last checkpoint, step by step, with a checkpoint every few seconds. Workers run this."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

from lanewise.errors import DeviceError, InputError
from lanewise.sims.waves.hierarchical import Candidates, candidates, hough_maps, merged
from lanewise.sims.waves.units.checkpoint import State, read_state, write_state
from lanewise.sims.waves.units.job import Job, Ready, differences
from lanewise.sims.waves.units.partition import Unit
from lanewise.target import is_gpu


def steps(ready: Ready, unit: Unit, sky: int, spin: int) -> Iterator[Candidates]:
    """The candidates of each direction and spin-down of a unit from this one on, in the order that checkpoints count in.

    A device that computes ahead (the next step's F while this one's maps are searched) does so behind this iterator.
    """
    if is_gpu(ready.job.device):
        raise DeviceError(f"work units are computed on the device cpu, found {ready.job.device!r}")
    grids, most = ready.grids, ready.job.most
    for place in range(unit.done(sky, spin), unit.steps):
        s, f = divmod(place, unit.spins[1] - unit.spins[0])
        alpha, delta = ready.job.sky[unit.sky[0] + s]
        f1dot = float(grids.f1dot[unit.spins[0] + f])
        yield candidates(hough_maps(grids, ready.ephemeris, alpha, delta, f1dot, part=unit.frequencies), most)


def process(
    ready: Ready, unit: Unit, folder: Path, seconds: float, report: Callable[[int], None] = lambda steps: None
) -> State:
    """The unit's complete state, which is in its checkpoint, too.

    seconds: from one checkpoint to the next. report: is told of steps that are done, those of the checkpoint first.
    """
    state = read_state(folder, unit, ready.digest)
    report(state.done)
    written = time.monotonic()
    for found in steps(ready, unit, state.sky, state.spin):
        state = _after(state, merged([state.candidates, found], ready.job.most))
        report(1)
        if state.complete or time.monotonic() - written >= seconds:
            write_state(folder, state)
            written = time.monotonic()
    return state


def _after(state: State, found: Candidates) -> State:
    """The state one step later."""
    unit, sky, spin = state.unit, state.sky, state.spin + 1
    if spin == unit.spins[1]:
        sky, spin = sky + 1, unit.spins[0]
    return State(unit, state.digest, sky, spin, found)


@lru_cache(maxsize=1)
def _loaded(job: Job) -> Ready:
    """A worker's data: read once for all its units."""
    return job.load()


def process_remotely(job: Job, configuration: dict[str, object], unit: Unit, folder: str, seconds: float) -> State:
    """`process` on a worker, which reads the data itself and makes sure that it is what the coordinator has read."""
    ready = _loaded(job)
    if ready.configuration != configuration:
        found = differences(ready.configuration, configuration)
        raise InputError(f"a worker has read another search than the coordinator: {found}")
    if not Path(folder).is_dir():
        raise InputError(
            f"{folder}: the worker does not see this folder; wanted one on a file system that all workers share"
        )
    return process(ready, unit, Path(folder), seconds)
