"""Units on workers of a Dask cluster: machines that see the folder of the scan under its own name.

Each worker computes a unit in a process of its own, as on this machine. The scheduler gives the
unit of a worker that died to another one, which goes on from its checkpoint.
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

from lanewise.sims.common.cluster import DEATHS, GPU, connected_to
from lanewise.sims.common.devices import CUDA
from lanewise.sims.units.attempt import LOOK, Conditions, UnitFailed, run_unit
from lanewise.sims.units.results import UnitFiles, UnitResult
from lanewise.sims.units.scan import SCAN, Scan, ScanUnit
from lanewise.support.attributes import frozen
from lanewise.support.errors import InputError

PATIENCE = 10.0  # seconds that workers have to come to a scheduler
STOP = ".stop"  # the end of the name of the file that tells workers to stop


@frozen
@dataclass(frozen=True, slots=True)
class Cluster:
    """Workers of a scheduler: a client of it, how many units they compute at a time, and the file
    that stops those of this command.
    """

    client: Any
    places: int
    stop: Path

    def run(
        self, scan: Scan, unit: ScanUnit, files: UnitFiles, nice: int, stop: threading.Event
    ) -> UnitResult | None:
        """`run_unit` on a worker; None if `stop` was set before, which leaves a checkpoint."""
        from distributed import TimeoutError as NotYet
        from distributed.scheduler import KilledWorker

        wanted = {GPU: 1} if scan.device == CUDA.name else None
        arguments = (scan, unit, UnitFiles(files.folder.resolve(), files.unit, files.copy), nice)
        future = self.client.submit(
            run_remotely, *arguments, str(self.stop.resolve()), pure=False, resources=wanted
        )
        while True:
            try:
                return future.result(timeout=LOOK)
            except (NotYet, TimeoutError):
                if stop.is_set() and not self.stop.exists():
                    self.stop.touch()  # workers end after whole steps
                if stop.is_set() and future.status == "pending" and not self._begun(future):
                    future.cancel()
                    return None
            except KilledWorker as error:
                raise UnitFailed(
                    f"{DEATHS} workers died of it; its last checkpoint is in {files.folder}"
                ) from error

    def _begun(self, future: Any) -> bool:
        """Whether a worker has the unit."""
        return any(future.key in keys for keys in self.client.processing().values())


@contextmanager
def cluster_at(scheduler: str, folder: Path, workers: int | None) -> Generator[Cluster]:
    """The cluster of a scheduler; workers: units at a time at most. Raises InputError where nobody
    answers, and where no worker comes or sees the folder.
    """
    stop = folder / f"{uuid.uuid4().hex}{STOP}"
    with connected_to(scheduler) as client:
        client.wait_for_workers(1, timeout=PATIENCE)
        there = str((folder / SCAN).resolve())
        for worker, found in client.run(os.path.exists, there).items():
            if not found:
                raise InputError(
                    f"the worker {worker} does not see {folder}; wanted a folder that has one name "
                    "on all machines"
                )
        threads = sum(w["nthreads"] for w in client.scheduler_info()["workers"].values())
        try:
            yield Cluster(client, min(threads, workers or threads), stop)
        finally:
            stop.unlink(missing_ok=True)


def run_remotely(
    scan: Scan, unit: ScanUnit, files: UnitFiles, nice: int, stop_file: str
) -> UnitResult | None:
    """On a worker: its threads share the cores of its machine, and its GPU is the one it has."""
    from distributed import get_worker

    share = max(1, (os.cpu_count() or 1) // get_worker().state.nthreads)
    stop, done = threading.Event(), threading.Event()

    def watch() -> None:
        while not done.wait(LOOK):
            if os.path.exists(stop_file):
                stop.set()
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        return run_unit(scan, unit, files, Conditions(share, nice), stop)
    finally:
        done.set()
        watcher.join()
