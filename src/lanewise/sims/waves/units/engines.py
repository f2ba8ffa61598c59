"""Who computes units: this process, or workers of Dask distributed, whose units are taken over when
they die.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from lanewise.profiling import stage
from lanewise.sims.common.cards import check_cards
from lanewise.sims.common.cluster import DEATHS, GPU, check_installed, client_of, quiet
from lanewise.sims.common.devices import visible_cards
from lanewise.sims.waves.device.memory import Memory
from lanewise.sims.waves.hierarchical import Candidates
from lanewise.sims.waves.units.checkpoint import State
from lanewise.sims.waves.units.job import Ready
from lanewise.sims.waves.units.partition import Unit
from lanewise.sims.waves.units.work import Searches, process, process_remotely
from lanewise.support.errors import DeviceError

Report = Callable[[int, Candidates], None]  # steps that are done, and what they have found
Announce = Callable[[Memory], None] | None


def in_process(
    ready: Ready,
    units: Iterable[Unit],
    folder: Path,
    seconds: float,
    report: Report,
    announce: Announce = None,
) -> Iterator[State]:
    """One unit after another; announce: called with the memory of the first, which the others also
    take.
    """
    searches = Searches()
    for unit in units:
        yield process(ready, unit, folder, seconds, report, announce, searches)
        announce = None


def on_workers(
    ready: Ready,
    units: Iterable[Unit],
    folder: Path,
    seconds: float,
    report: Report,
    client: Any,
    resources: dict[str, int],
) -> Iterator[State]:
    """All units at once on the workers of a client, as they are ready.

    The scheduler gives units of dead workers to others.
    """
    from distributed import as_completed
    from distributed.scheduler import KilledWorker

    where, configuration = str(folder.resolve()), dict(ready.configuration)
    futures = {
        client.submit(
            process_remotely,
            ready.job,
            configuration,
            u,
            where,
            seconds,
            pure=False,
            resources=resources or None,
        ): u
        for u in units
    }
    try:
        done = as_completed(futures)
        while True:
            with stage("wait", name="for workers"):
                future = next(done, None)
            if future is None:
                break
            try:
                state: State = future.result()
            except KilledWorker as error:
                number = futures[future].number
                raise DeviceError(
                    f"work unit {number}: {DEATHS} workers died of it; its last checkpoint is in "
                    f"{folder}"
                ) from error
            report(state.unit.steps, state.candidates)
            yield state
    finally:
        client.cancel(list(futures))


@contextmanager
def connected(
    workers: int | None, scheduler: str | None, on_gpus: bool, gpus: tuple[int, ...] = ()
) -> Generator[Any]:
    """A client of the cluster at an address, or of one that lives as long as the block: processes
    of this machine, one thread each. gpus: see `described_workers`.
    """
    check_installed()
    from dask import config

    spawned = {
        **config.get("distributed.nanny.pre-spawn-environ"),
        "DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "critical",
    }
    settings = {
        "distributed.scheduler.allowed-failures": DEATHS,
        "distributed.nanny.pre-spawn-environ": spawned,
    }
    with config.set(settings), quiet():
        described = described_workers(workers or 1, on_gpus, gpus) if scheduler is None else []
        cluster = _cluster(described) if scheduler is None else nullcontext(scheduler)
        with cluster as place, client_of(place) as client:
            yield client


def _cluster(described: list[dict[str, Any]]) -> Any:
    """Processes of this machine that end with the block.

    A program that starts them needs the usual `if __name__ == "__main__"`.
    """
    from distributed import Nanny, Scheduler, SpecCluster

    # Its server of metrics has a fixed port by default, which two programs cannot share.
    ports = {"host": "127.0.0.1", "port": 0, "dashboard_address": "127.0.0.1:0"}
    scheduler = {"cls": Scheduler, "options": {"dashboard": False, **ports}}
    every = {n: {"cls": Nanny, "options": options} for n, options in enumerate(described)}
    return SpecCluster(scheduler=scheduler, workers=every)


def described_workers(
    workers: int, on_gpus: bool, chosen: tuple[int, ...] = ()
) -> list[dict[str, Any]]:
    """What each worker is started with: one thread, its share of the CPU's, and perhaps one
    GPU. chosen: which of the visible ones; all, if none is named.
    """
    share = max(1, (os.cpu_count() or 1) // workers)
    threads = {"LANEWISE_THREADS": os.environ.get("LANEWISE_THREADS", str(share))}
    common: dict[str, Any] = {
        "nthreads": 1,
        "memory_limit": 0,
        "dashboard": False,
        "host": "127.0.0.1",
    }
    if not on_gpus:
        return [{**common, "env": threads} for _ in range(workers)]
    return [
        {**common, "env": {**threads, "CUDA_VISIBLE_DEVICES": gpu}, "resources": {GPU: 1}}
        for gpu in cards_of(workers, chosen)
    ]


def cards_of(workers: int, chosen: tuple[int, ...] = ()) -> list[str]:
    """The GPU of each worker, as CUDA_VISIBLE_DEVICES names it: where there are fewer, some share
    one in turn. chosen: see `described_workers`.

    Raises `DeviceError` where there is no GPU.
    """
    gpus = visible_cards()
    gpus = [gpus[n] for n in chosen if n < len(gpus)] if chosen else gpus
    check_cards(gpus)
    return [gpus[n % len(gpus)] for n in range(workers)]
