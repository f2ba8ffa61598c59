"""A search in units: divided, computed by all available workers, checked, merged."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lanewise.io.atomic import taken_back, writable_folder
from lanewise.io.claims import claimed
from lanewise.profiling import stage
from lanewise.sims.waves.hierarchical import CANDIDATE, Candidates, merged
from lanewise.sims.waves.units.checkpoint import (
    SEARCH,
    State,
    path_of,
    read_configuration,
    write_configuration,
)
from lanewise.sims.waves.units.engines import (
    GPU,
    Announce,
    Report,
    cards_of,
    connected,
    in_process,
    on_workers,
)
from lanewise.sims.waves.units.job import Job, Ready, differences
from lanewise.sims.waves.units.partition import Unit, divide
from lanewise.sims.waves.units.validation import ResultError, validate
from lanewise.support.attributes import frozen
from lanewise.support.checks import check_fields
from lanewise.support.errors import InputError
from lanewise.support.numerals import counted

UNITS_A_WORKER = 4  # so that no worker waits long for the last one
SECONDS = 10.0  # from one checkpoint of a unit to the next
ATTEMPTS = 2  # at a unit whose result is refused


@frozen
@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """Who computes. Neither: this process.

    Attributes:
        count: processes of this machine, started and ended with the search; for jobs of the device
          "cuda" each has a GPU, its own or, if there are fewer, in turn with others
        scheduler: address of a Dask scheduler, whose workers have lanewise and see the files and
          the folder of checkpoints
        gpus: numbers of the GPUs of this machine that have a worker each, if not the first ones
    """

    count: int | None = None
    scheduler: str | None = None
    gpus: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.count is None and self.gpus:
            object.__setattr__(self, "count", len(self.gpus))
        check_fields(self, InputError)
        if self.count is not None and self.count < 1:
            raise InputError(f"{self.count} workers requested; wanted at least 1")
        if self.count is not None and self.scheduler is not None:
            raise InputError(
                "workers of this machine and a scheduler's cannot both be requested; wanted one of "
                "them"
            )

    @property
    def asked(self) -> bool:
        """Whether other processes than this one compute."""
        return self.count is not None or self.scheduler is not None

    def line(self, job: Job) -> str:
        """Who computes a job, in words; "" where that is this process. Raises `DeviceError` for
        workers without a GPU.
        """
        if self.scheduler is not None:
            return f"workers of {self.scheduler}"
        if self.count is None:
            return ""
        many = counted(self.count, "worker", "workers")
        if not job.on_gpu:
            return f"{many} on {job.device}"
        cards = list(dict.fromkeys(cards_of(self.count, self.gpus)))
        how = "a GPU each" if len(cards) == self.count else "in turn on the GPUs"
        return f"{many}, {how}: {', '.join(cards)}"

    def check(self, job: Job) -> None:
        """Refuse a GPU by its number for workers."""
        if self.asked and job.on_gpu and ":" in job.device:
            raise InputError(
                f"the device is {job.device!r}, and every worker sees one GPU, which is "
                "'cuda' to it; wanted 'cuda', and "
                "CUDA_VISIBLE_DEVICES to choose among GPUs"
            )


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The candidates of a search, the search with its data, and its units."""

    candidates: Candidates
    ready: Ready
    units: tuple[Unit, ...]

    @property
    def maps(self) -> int:
        """Hough maps that were made: parts of a band count each."""
        return sum(u.steps for u in self.units)


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """A search with its data and its units, whose checkpoints are in `folder`."""

    ready: Ready
    units: tuple[Unit, ...]
    folder: Path
    workers: Workers

    @property
    def steps(self) -> int:
        """Maps of all units."""
        return sum(u.steps for u in self.units)

    def compute(
        self,
        seconds: float = SECONDS,
        report: Report = lambda steps, rows: None,
        announce: Announce = None,
    ) -> Found:
        """Continue to the end, with a checkpoint of each unit every `seconds`.

        report: called with steps that are done and their candidates, those of checkpoints first.
        announce: gets the memory that a device takes, where this process computes.
        """
        return Found(_merge(self, seconds, report, announce), self.ready, self.units)


@contextmanager
def opened(
    job: Job,
    folder: Path,
    *,
    units: int | None = None,
    workers: Workers = Workers(),
    resume: bool = False,
    overwrite: bool = False,
) -> Generator[Opened]:
    """A search that no other process computes within the block; for the arguments and errors see
    `search_in_units`.
    """
    workers.check(job)
    if units is not None and units < 1:
        raise InputError(f"{units} work units requested; wanted at least 1")
    there = (folder / SEARCH).exists()  # known before data are read, which may take minutes
    if resume and not there:
        raise InputError(f"{folder}: there is no search to resume; leave --resume out to begin one")
    ready = job.load()
    with writable_folder(folder), claimed([folder / SEARCH]):
        before = _begun(folder, ready, resume=resume, overwrite=overwrite)
        if before is not None and units is not None and units != before:
            raise InputError(
                f"{folder}: the search there was divided into {before} work units, and --units is "
                f"{units}; leave --units out"
            )
        if units is None and workers.scheduler is not None and before is None:
            raise InputError(
                "--scheduler needs --units, as the number of its workers may change: some for each "
                "worker"
            )
        count = before or units or min(_most(ready), UNITS_A_WORKER * (workers.count or 0) or 1)
        every = _divided(ready, count)
        if before is None:
            for path in folder.glob("unit-*.json"):  # of a search that this one replaces
                path.unlink()
            write_configuration(folder, ready.configuration, count)
        with taken_back(folder / SEARCH) if before is None else nullcontext():
            yield Opened(ready, every, folder, workers)


def search_in_units(
    job: Job,
    folder: Path,
    *,
    units: int | None = None,
    workers: Workers = Workers(),
    seconds: float = SECONDS,
    resume: bool = False,
    overwrite: bool = False,
) -> Found:
    """Search in work units, whose checkpoints are in `folder`, which is made.

        units: how many at least; None: those of the folder, else 4 per worker, or 1
        seconds: from one checkpoint of a unit to the next
        resume: continue from the checkpoints; overwrite: begin anew where there are some. Without
          either they are refused

    The list is the same for all numbers of units and workers, and for resumed searches, to the bit.
    Raises InputError for checkpoints of another search, which says what differs, and for a disk
    that is full: the last checkpoints stay valid.
    """
    with opened(
        job, folder, units=units, workers=workers, resume=resume, overwrite=overwrite
    ) as search:
        return search.compute(seconds)


def has_checkpoints(folder: Path) -> bool:
    """Whether a search was begun there that has not been forgotten."""
    return (folder / SEARCH).exists()


def forget(folder: Path, units: tuple[Unit, ...]) -> None:
    """Remove the checkpoints of a search, with what kills have left of them, and the folder if
    nothing else is in it.
    """
    left = (*folder.glob(".unit-*.json.*.tmp"), *folder.glob(".unit-*.card.lock"))
    for path in (*(path_of(folder, u) for u in units), folder / SEARCH, *left):
        path.unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()


def _divided(ready: Ready, least: int) -> tuple[Unit, ...]:
    job, grids = ready.job, ready.grids
    return divide(
        len(job.sky), len(grids.f1dot), grids.frequencies, least, whole_bands=not job.divides_bands
    )


def _most(ready: Ready) -> int:
    maps = len(ready.job.sky) * len(ready.grids.f1dot)
    return maps * ready.grids.frequencies if ready.job.divides_bands else maps


def _begun(folder: Path, ready: Ready, *, resume: bool, overwrite: bool) -> int | None:
    """The number of units of the search that is resumed; None for a new one."""
    there = (folder / SEARCH).exists()
    if resume:
        configuration, units = read_configuration(folder)
        if configuration != ready.configuration:
            raise InputError(
                f"{folder}: the checkpoints are of another search: "
                f"{differences(ready.configuration, configuration)}; "
                "resume with the same options and files, or give --overwrite to begin anew"
            )
        return units
    if there and not overwrite:
        raise InputError(
            f"{folder}: there are checkpoints of a search; give --resume to continue from them, or "
            "--overwrite to begin anew"
        )
    return None


def _merge(search: Opened, seconds: float, report: Report, announce: Announce) -> Candidates:
    top, open_units = np.empty(0, CANDIDATE), {u.number: u for u in search.units}
    for attempt in range(ATTEMPTS):
        refused: list[ResultError] = []
        reporting = report if attempt == 0 else _silent
        for state in _compute(search, tuple(open_units.values()), seconds, reporting, announce):
            try:
                top = accept(search.ready, state, open_units, top)
            except ResultError as error:
                if state.unit.number not in open_units:
                    raise  # a duplicate is no matter of another attempt
                refused.append(error)
                path_of(search.folder, state.unit).unlink(missing_ok=True)
        if not refused:
            break
        if attempt == ATTEMPTS - 1:
            raise refused[0]
    return top


def accept(ready: Ready, state: State, open_units: dict[int, Unit], top: Candidates) -> Candidates:
    """The list with one more unit's candidates; raises ResultError for a result that is wrong, or
    of a unit that is not waited for.
    """
    if open_units.get(state.unit.number) != state.unit:
        raise ResultError(
            f"work unit {state.unit.number}: its result is refused: it is unknown, or has one "
            "already"
        )
    with stage("validation", name="units"):
        validate(ready, state)
    del open_units[state.unit.number]
    return merged([top, state.candidates], ready.job.most)


def _silent(steps: int, rows: Candidates) -> None:
    """Units that are computed again were counted."""


def _compute(
    search: Opened, units: tuple[Unit, ...], seconds: float, report: Report, announce: Announce
) -> Iterator[State]:
    ready, folder, workers = search.ready, search.folder, search.workers
    if not workers.asked:
        yield from in_process(ready, units, folder, seconds, report, announce)
        return
    resources = {GPU: 1} if ready.job.on_gpu else {}
    with connected(workers.count, workers.scheduler, ready.job.on_gpu, workers.gpus) as client:
        yield from on_workers(ready, units, folder, seconds, report, client, resources)
