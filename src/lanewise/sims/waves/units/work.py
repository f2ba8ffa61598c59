"""A unit is computed: from its last checkpoint, step by step, with a checkpoint every few seconds.

Workers run this.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from pathlib import Path

from lanewise.sims.common.cards import a_card, is_wanted
from lanewise.sims.common.devices import cuda_number, release_memory, visible_cards
from lanewise.sims.waves.device.memory import Memory
from lanewise.sims.waves.hierarchical import Candidates, MapSearch, merged
from lanewise.sims.waves.lost import SignalLossWarning
from lanewise.sims.waves.units.checkpoint import State, mark_of, read_state, write_state
from lanewise.sims.waves.units.job import Job, Ready, differences
from lanewise.sims.waves.units.partition import Part, Unit
from lanewise.support.errors import InputError

ROWS = 8192  # of lists that are merged at a time: one by one they cost as much as directions


class Searches:
    """The search of one part of a band, for units that have it in common: its data stay on the
    device from unit to unit.
    """

    def __init__(self) -> None:
        self._last: tuple[Ready, Part, MapSearch] | None = None

    def of(self, ready: Ready, part: Part) -> MapSearch:
        """The last one, or a new one in its place."""
        if self._last is None or self._last[0] is not ready or self._last[1] != part:
            self._last = None  # its memory is free before the next is taken
            job = ready.job
            search = MapSearch(
                ready.grids, ready.ephemeris, device=job.device, method=job.method, part=part
            )
            self._last = ready, part, search
        return self._last[2]

    def clear(self) -> None:
        """Forget it: its memory is free."""
        self._last = None


def steps(
    ready: Ready,
    unit: Unit,
    sky: int,
    spin: int,
    searches: Searches,
    announce: Callable[[Memory], None] | None = None,
) -> Iterator[Candidates]:
    """The candidates of each direction and spin-down of a unit from this one on, in the order that
    checkpoints count in.

    A device computes ahead: the next maps while the candidates of the last ones are finished.
    announce: called with the memory that it takes.
    """
    points = _points(ready, unit)[unit.done(sky, spin) :]
    yield from searches.of(ready, unit.frequencies).candidates(points, ready.job.most, announce)


def _points(ready: Ready, unit: Unit) -> list[tuple[float, float, float]]:
    """Directions and spin-downs of a unit's steps."""
    spins = ready.grids.f1dot[slice(*unit.spins)].tolist()
    return [(alpha, delta, f) for alpha, delta in ready.job.sky[slice(*unit.sky)] for f in spins]


def process(
    ready: Ready,
    unit: Unit,
    folder: Path,
    seconds: float,
    report: Callable[[int, Candidates], None] = lambda steps, rows: None,
    announce: Callable[[Memory], None] | None = None,
    searches: Searches | None = None,
    turn: AbstractContextManager[object] | None = None,
) -> State:
    """The unit's complete state, which is in its checkpoint as well.

    seconds: from one checkpoint to the next. report: called with steps that are done and
    their candidates, those of the checkpoint first; announce: of memory.
    searches: those of the units before. turn: within which the device is used.
    """
    state = read_state(folder, unit, ready.digest)
    report(state.done, state.candidates)
    if state.complete:
        return state
    # One name for both: an interrupt finds each step in one of them.
    kept: tuple[State, list[Candidates]] = state, []
    try:
        with turn or nullcontext():
            written = time.monotonic()
            for rows in steps(ready, unit, state.sky, state.spin, searches or Searches(), announce):
                kept[1].append(rows)
                report(1, rows)
                due = time.monotonic() - written >= seconds
                if due and kept[0].done + len(kept[1]) < unit.steps:  # the end is written below
                    kept = _merged(ready, *kept), []
                    write_state(folder, kept[0])
                    written = time.monotonic()
                elif len(kept[1]) * ready.job.most >= ROWS:
                    kept = _merged(ready, *kept), []
    except KeyboardInterrupt:  # what is done is kept
        write_state(folder, _merged(ready, *kept))
        raise
    state = _merged(ready, *kept)
    write_state(folder, state)
    return state


@contextmanager
def _on_a_card(job: Job, mark: Path, searches: Searches) -> Generator[None]:
    """Within the block this worker has its GPU, which others have in turn. What it keeps there from
    unit to unit goes when another one wants it, or has it: nothing but its context stays then.
    """

    def let_go() -> None:
        searches.clear()
        release_memory(job.device)

    if not job.on_gpu:
        yield
        return
    own = visible_cards()[cuda_number(job.device) :][:1]
    with a_card(own, mark, busy=let_go) as card:
        try:
            yield
        finally:
            if is_wanted(card):
                let_go()


def _merged(ready: Ready, state: State, lists: list[Candidates]) -> State:
    """The state after the steps that found these lists."""
    unit = state.unit
    spins = unit.spins[1] - unit.spins[0]
    sky, spin = divmod(state.done + len(lists), spins)
    rows = merged([state.candidates, *lists], ready.job.most)
    return State(unit, state.digest, unit.sky[0] + sky, unit.spins[0] + spin, rows)


@lru_cache(maxsize=1)
def _loaded(job: Job) -> Ready:
    """A worker's data: read once for all its units."""
    with warnings.catch_warnings():
        # whichever command divided the search has warned
        warnings.simplefilter("ignore", SignalLossWarning)
        return job.load()


_searches = Searches()  # of a worker, for all its units


def process_remotely(
    job: Job, configuration: dict[str, object], unit: Unit, folder: str, seconds: float
) -> State:
    """`process` on a worker, which reads the data itself and makes sure that it is what the
    coordinator has read.
    """
    ready = _loaded(job)
    if ready.configuration != configuration:
        differing = differences(ready.configuration, configuration)
        raise InputError(f"a worker has read another search than the coordinator: {differing}")
    if not Path(folder).is_dir():
        raise InputError(
            f"{folder}: the worker does not see this folder; wanted one on a file system that all "
            "workers share"
        )
    turn = _on_a_card(job, mark_of(Path(folder), unit.number), _searches)
    return process(ready, unit, Path(folder), seconds, searches=_searches, turn=turn)
