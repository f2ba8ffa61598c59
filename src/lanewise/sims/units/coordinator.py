"""Units are given to processes of this machine, each with a thread here that waits for it, and what
they found is checked and put together.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from lanewise.io.atomic import taken_back, writable_folder
from lanewise.io.claims import claimed
from lanewise.sims.common.cards import check_cards
from lanewise.sims.common.devices import CUDA, visible_cards
from lanewise.sims.units.attempt import Conditions, UnitFailed, run_unit
from lanewise.sims.units.remote import Cluster, cluster_at
from lanewise.sims.units.results import UnitFiles, UnitResult, read_result, write_table
from lanewise.sims.units.scan import (
    SCAN,
    Scan,
    ScanUnit,
    check_inputs,
    checked,
    read_scan,
    write_scan,
)
from lanewise.support.attributes import frozen
from lanewise.support.errors import InputError

SPARE = 2  # further copies of a unit whose results do not agree
Say = Callable[[str], None]


@frozen
@dataclass(frozen=True, slots=True)
class Done:
    """The units that have a result, those that failed with the reason, and the table."""

    found: tuple[tuple[ScanUnit, UnitResult], ...]
    failed: tuple[tuple[ScanUnit, str], ...]
    table: Path


@contextmanager
def opened(folder: Path, scan: Scan | None) -> Generator[Scan]:
    """The scan of a folder, which no other process computes within the block.

    scan: one that begins; None for the one that is there. Raises InputError for a folder where
    another one was begun, and for files that have changed.
    """
    if scan is not None:
        scan = checked(scan)
    elif not (folder / SCAN).exists():
        read_scan(folder)  # which says so
    with writable_folder(folder), claimed([folder / SCAN]):
        if scan is None:
            there = read_scan(folder)
            check_inputs(there)
            yield there
            return
        if (folder / SCAN).exists():
            raise InputError(
                f"{folder}: a scan was begun there; lanewise units resume {folder} continues it"
            )
        write_scan(folder, scan)
        with taken_back(folder / SCAN):
            yield scan


def compute(
    scan: Scan,
    folder: Path,
    *,
    workers: int | None = None,
    nice: int = 0,
    scheduler: str | None = None,
    say: Say = print,
) -> Done:
    """Compute all units that have no result yet, `workers` at a time.

    None: one on a CPU, one a GPU on GPUs. scheduler: the address of a Dask scheduler whose workers
    compute, all at a time. say: gets what became of each unit. Ctrl-C leaves checkpoints.
    """
    if workers is not None and workers < 1:
        raise InputError(f"{workers} workers are requested; wanted at least 1")
    on_gpus = scan.device == CUDA.name
    if scheduler is not None:
        with cluster_at(scheduler, folder, workers, on_gpus=on_gpus) as cluster:
            work = _Work(scan, folder, Conditions(1, nice), say, cluster)
            return _all_units(work, cluster.places)
    cards = tuple(visible_cards()) if on_gpus else ()
    if on_gpus:
        check_cards(cards)
    count = workers or len(cards) or 1
    share = max(1, (os.cpu_count() or 1) // count)
    return _all_units(_Work(scan, folder, Conditions(share, nice, cards), say), count)


def _all_units(work: _Work, count: int) -> Done:
    """So many at a time."""
    scan = work.scan
    with ThreadPoolExecutor(count) as pool:
        jobs = {pool.submit(work.of, unit): unit for unit in scan.units}
        try:
            for job in as_completed(jobs):
                job.result()
        except BaseException:  # Ctrl-C as well: processes are stopped once, and waited for
            work.stop.set()
            pool.shutdown(cancel_futures=True)
            raise
    found = sorted(work.found.values(), key=lambda pair: pair[0].number)
    failed = sorted(work.failed.values(), key=lambda pair: pair[0].number)
    return Done(tuple(found), tuple(failed), write_table(work.folder, scan, found))


@dataclass(slots=True)
class _Work:
    """What the threads share."""

    scan: Scan
    folder: Path
    conditions: Conditions
    say: Say
    cluster: Cluster | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    found: dict[int, tuple[ScanUnit, UnitResult]] = field(default_factory=dict)
    failed: dict[int, tuple[ScanUnit, str]] = field(default_factory=dict)

    def of(self, unit: ScanUnit) -> None:
        """Compute a unit, with as many copies as have to agree."""
        try:
            result = self._agreed(unit)
        except (UnitFailed, InputError) as error:
            self.failed[unit.number] = unit, str(error)
            self.say(f"unit {unit.number} failed: {error}")
            return
        if result is not None:
            self.found[unit.number] = unit, result

    def _agreed(self, unit: ScanUnit) -> UnitResult | None:
        """The result that so many copies have as the scan asks for."""
        wanted, votes = self.scan.quorum, Counter[str]()
        for copy in range(1, wanted + (SPARE if wanted > 1 else 0) + 1):
            result = self._copy(unit, UnitFiles(self.folder, unit.number, copy))
            if result is None:
                return None
            votes[result.state] += 1
            if votes[result.state] == wanted:
                return result
        raise UnitFailed(f"no {wanted} of its {votes.total()} results agree")

    def _copy(self, unit: ScanUnit, files: UnitFiles) -> UnitResult | None:
        """A result that is there already, or a new one."""
        try:
            before = read_result(files, self.scan, unit)
        except InputError as error:
            self.say(f"unit {unit.number} is computed again: {error}")
            for path in (files.result, files.state):
                path.unlink(missing_ok=True)
            before = None
        if before is not None or self.stop.is_set():
            return before
        result = self._computed(unit, files)
        if result is not None:
            self.say(f"unit {unit.number} is done" + self._shown(unit, files))
        return result

    def _computed(self, unit: ScanUnit, files: UnitFiles) -> UnitResult | None:
        if self.cluster is not None:
            return self.cluster.run(self.scan, unit, files, self.conditions.nice, self.stop)
        return run_unit(self.scan, unit, files, self.conditions, self.stop)

    def _shown(self, unit: ScanUnit, files: UnitFiles) -> str:
        values = [f"{a.name} {v}" for a, v in zip(self.scan.axes, unit.values, strict=True)]
        copy = [f"copy {files.copy}"] if self.scan.quorum > 1 else []
        return f": {', '.join(values + copy)}" if values or copy else ""
