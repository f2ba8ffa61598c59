"""Units on workers of a Dask cluster: machines that see the folder of the scan under its own name.

Each worker computes a unit in a separate process, as on this machine. The scheduler gives the
unit of a worker that died to another one, which continues from its checkpoint.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lanewise.sims.common.cards import check_cards
from lanewise.sims.common.cluster import DEATHS, GPU, connected_to
from lanewise.sims.common.devices import CUDA, visible_cards
from lanewise.sims.units.attempt import LOOK, Conditions, UnitFailed, run_unit
from lanewise.sims.units.results import UnitFiles, UnitResult
from lanewise.sims.units.scan import SCAN, Scan, ScanUnit
from lanewise.support.attributes import frozen
from lanewise.support.errors import InputError

PATIENCE = 10.0  # seconds that workers have to come to a scheduler
GOING = ".going"  # the end of the name of the file without which workers stop


@frozen
@dataclass(frozen=True, slots=True)
class Cluster:
    """Workers of a scheduler: a client of it, how many units they compute at a time, and the file
    that is there as long as this command wants its units. It is not the other way round, so that a
    unit that begins when the command has ended stops as well.
    """

    client: Any
    places: int
    going: Path

    def run(
        self, scan: Scan, unit: ScanUnit, files: UnitFiles, nice: int, stop: threading.Event
    ) -> UnitResult | None:
        """`run_unit` on a worker; None if `stop` was set before, which leaves a checkpoint."""
        from distributed import TimeoutError as NotYet

        wanted = {GPU: 1} if scan.device == CUDA.name else None
        arguments = (scan, unit, UnitFiles(files.folder.resolve(), files.unit, files.copy), nice)
        future = self.client.submit(
            run_remotely, *arguments, str(self.going.resolve()), pure=False, resources=wanted
        )
        while True:
            try:
                return _result(future, files, LOOK)
            except (NotYet, TimeoutError):
                if future.done():  # meanwhile, or it is the unit's own error
                    break
            if stop.is_set():
                self.going.unlink(missing_ok=True)  # workers end after whole steps
                if not self._begun(future):
                    future.cancel()
                    return None
        try:
            return _result(future, files, None)
        except (NotYet, TimeoutError) as error:
            raise UnitFailed(
                f"on its worker: {str(error) or type(error).__name__}; its last checkpoint is in "
                f"{files.folder}"
            ) from error

    def _begun(self, future: Any) -> bool:
        """Whether a worker has the unit."""
        return any(future.key in keys for keys in self.client.processing().values())


def _result(future: Any, files: UnitFiles, timeout: float | None) -> UnitResult | None:
    """What a unit has become, waited for so long."""
    from distributed.scheduler import KilledWorker

    try:
        result: UnitResult | None = future.result(timeout=timeout)
    except KilledWorker as error:
        raise UnitFailed(
            f"{DEATHS} workers died of it; its last checkpoint is in {files.folder}"
        ) from error
    return result


@contextmanager
def cluster_at(
    scheduler: str, folder: Path, workers: int | None, *, on_gpus: bool
) -> Generator[Cluster]:
    """The cluster of a scheduler; workers: units at a time at most. Raises InputError where nothing
    answers, and where no worker comes, sees the folder or has a GPU that is needed.
    """
    going = folder / f"{uuid.uuid4().hex}{GOING}"
    with connected_to(scheduler) as client:
        _wait_for_a_worker(client, scheduler)
        there = str((folder / SCAN).resolve())
        for worker, found in client.run(os.path.exists, there).items():
            if not found:
                raise InputError(
                    f"the worker {worker} does not see {folder}; wanted a folder that has one name "
                    "on all machines"
                )
        known = client.scheduler_info()["workers"].values()
        if on_gpus and not any(w["resources"].get(GPU, 0) >= 1 for w in known):
            raise InputError(
                f"--scheduler {scheduler}: none of its {len(known)} workers announces a GPU, which "
                f"a scan with --device cuda waits for; start them with --resources {GPU}=1"
            )
        threads = sum(w["nthreads"] for w in known)
        going.touch()
        try:
            yield Cluster(client, min(threads, workers or threads), going)
        finally:
            going.unlink(missing_ok=True)


def _wait_for_a_worker(client: Any, scheduler: str) -> None:
    from distributed import TimeoutError as NotYet

    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except (NotYet, TimeoutError) as error:
        raise InputError(
            f"--scheduler {scheduler}: it has no worker, and none came in {PATIENCE:g} seconds; "
            f"start some: dask worker {scheduler}"
        ) from error


def run_remotely(
    scan: Scan, unit: ScanUnit, files: UnitFiles, nice: int, going: str
) -> UnitResult | None:
    """On a worker: its threads share the cores of its machine, and its units the GPUs that it
    sees, with all others there.
    """
    from distributed import get_worker

    if _is_gone(going):
        return None
    cards: tuple[str, ...] = ()
    if scan.device == CUDA.name:
        check_cards(cards := tuple(visible_cards()))
    share = max(1, (os.cpu_count() or 1) // get_worker().state.nthreads)
    stop, done = threading.Event(), threading.Event()

    def watch() -> None:
        while not done.wait(LOOK):
            if _is_gone(going):
                stop.set()
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        return run_unit(scan, unit, files, Conditions(share, nice, cards), stop)
    finally:
        done.set()
        watcher.join()


def _is_gone(path: str) -> bool:
    """Whether a file is surely not there: a file system that does not answer says nothing."""
    try:
        os.stat(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False
