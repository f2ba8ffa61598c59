"""Scans on the workers of a Dask scheduler: the same files, byte for byte, whoever dies."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lanewise.sims.units import compute, opened
from lanewise.support.errors import InputError
from tests.sims.units.test_scans import (
    PATIENCE,
    files,
    run,
    scan_of,
    silent,
    small,
)

pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    from lanewise.sims.waves.units.engines import connected

    with connected(2, None, on_gpus=False) as client:
        client.wait_for_workers(2, timeout=PATIENCE)
        yield client


def test_a_cluster_leaves_what_this_machine_leaves(cluster: Any, tmp_path: Path) -> None:
    scan, address = small("seed=1,2"), cluster.scheduler.address
    run(scan, tmp_path / "here")
    with opened(tmp_path / "there", scan) as there:
        done = compute(there, tmp_path / "there", scheduler=address, say=silent)
    assert len(done.found) == 2
    assert not done.failed
    assert files(tmp_path / "there") == files(tmp_path / "here")


@pytest.mark.slow
def test_the_unit_of_a_worker_that_dies_goes_on_elsewhere(cluster: Any, tmp_path: Path) -> None:
    scan, address = scan_of("gravity"), cluster.scheduler.address
    run(scan, tmp_path / "here")
    folder = tmp_path / "there"

    def kill() -> None:
        end = time.monotonic() + PATIENCE
        while not list(folder.glob("*.h5")) and time.monotonic() < end:
            time.sleep(0.01)
        first = next(iter(cluster.run(os.getpid).values()))
        os.kill(first, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    with opened(folder, scan) as there:
        killer.start()
        done = compute(there, folder, scheduler=address, say=silent)
    killer.join()
    assert not done.failed
    assert files(folder) == files(tmp_path / "here")


@pytest.mark.slow
def test_nobody_answers(tmp_path: Path) -> None:
    refused = pytest.raises(InputError, match="no Dask scheduler answers there")
    with opened(tmp_path / "s", small("seed=1,2")) as scan, refused:
        compute(scan, tmp_path / "s", scheduler="tcp://127.0.0.1:1", say=silent)
