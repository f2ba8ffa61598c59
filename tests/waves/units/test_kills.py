"""Processes that are killed in the middle of a search: the file with the list is the same, to the byte."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pytest

from tests.waves.units.data import environment, make_files, start_search

PATIENCE = 90.0  # seconds
DEVICES = ["numpy", "cpu", pytest.param("cuda", marks=pytest.mark.cuda)]


@pytest.fixture(scope="module")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("erfa")
    return make_files(tmp_path_factory.mktemp("sfts"))


def sky_of(folder: Path, directions: int) -> Path:
    rng = np.random.default_rng(1)
    path = folder / "sky.txt"
    np.savetxt(path, np.stack([rng.uniform(-3, 3, directions), rng.uniform(-1.5, 1.5, directions)], axis=1))
    return path


def ended(process: subprocess.Popen[str]) -> str:
    out, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    return out + errors


def steps(folder: Path) -> dict[str, list[int]]:
    """The next step of every unit that has a checkpoint: direction, spin-down, and the direction behind its
    last one.
    """
    found: dict[str, list[int]] = {}
    for path in folder.glob("unit-*.json"):
        state = json.loads(path.read_text(encoding="utf-8"))
        found[path.name] = [*state["next"], state["sky"][1]]
    return found


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)


def in_the_middle(folder: Path) -> bool:
    return any(0 < sky < last for sky, _, last in steps(folder).values())


@pytest.mark.quick
@pytest.mark.parametrize("device", DEVICES)
def test_a_process_that_is_killed_and_resumed(pattern: str, tmp_path: Path, device: str) -> None:
    sky, folder = sky_of(tmp_path, 40 if device == "numpy" else 150), tmp_path / "b.csv.units"
    ended(start_search(pattern, sky, tmp_path / "a.csv", device=device))
    assert not (tmp_path / "a.csv.units").exists()
    killed = start_search(pattern, sky, tmp_path / "b.csv", "--checkpoint-every", 0, device=device)
    wait_for(lambda: in_the_middle(folder), killed)
    killed.kill()
    killed.communicate()
    assert not (tmp_path / "b.csv").exists()
    assert in_the_middle(folder)
    ended(start_search(pattern, sky, tmp_path / "b.csv", "--resume", device=device))
    assert (tmp_path / "b.csv").read_bytes() == (tmp_path / "a.csv").read_bytes()
    assert not folder.exists()


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
def test_workers_that_are_killed(pattern: str, tmp_path: Path, device: str) -> None:
    pytest.importorskip("distributed")
    sky, folder = sky_of(tmp_path, 120 if device == "numpy" else 600), tmp_path / "units"
    ended(start_search(pattern, sky, tmp_path / "a.csv", device=device))
    workers = 1 if device == "cuda" else 2  # each has a GPU of its own
    search = start_search(
        pattern, sky, tmp_path / "b.csv", "--workers", workers, "--units", 4, "--checkpoint-every", 0, "--checkpoint-folder", folder,
        device=device,
    )  # fmt: skip
    killed: set[int] = set()
    for _ in range(2):
        victims = wait_for_workers(search, folder, frozenset(killed), workers)
        for victim in victims:
            psutil.Process(victim).kill()
        killed |= victims
    said = ended(search)
    assert len(killed) == 2 * workers
    assert "Traceback" not in said
    assert (tmp_path / "b.csv").read_bytes() == (tmp_path / "a.csv").read_bytes()
    assert sorted(steps(folder)) == [f"unit-{n:06d}.json" for n in range(4)]


CLUSTER = """
import sys
from lanewise.sims.waves.units.engines import _cluster, described_workers
with _cluster(described_workers(2, False)) as cluster:
    print(cluster.scheduler_address, flush=True)
    sys.stdin.read()
"""


@pytest.mark.slow
def test_a_cluster_that_is_there_already(pattern: str, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    sky = sky_of(tmp_path, 6)
    ended(start_search(pattern, sky, tmp_path / "a.csv"))
    cluster = subprocess.Popen(
        [sys.executable, "-c", CLUSTER], env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert cluster.stdout is not None
    address = cluster.stdout.readline().strip()
    ended(start_search(pattern, sky, tmp_path / "b.csv", "--scheduler", address, "--units", 3))
    cluster.communicate("", timeout=PATIENCE)
    assert (tmp_path / "b.csv").read_bytes() == (tmp_path / "a.csv").read_bytes()


def wait_for_workers(search: subprocess.Popen[str], folder: Path, but: frozenset[int], count: int) -> set[int]:
    """Workers that were not killed yet, in the middle of a search."""
    wait_for(lambda: in_the_middle(folder) and len(workers_of(search) - but) == count, search)
    return workers_of(search) - but


def workers_of(process: subprocess.Popen[str]) -> set[int]:
    """The processes that compute: those that multiprocessing has spawned."""
    try:
        children = psutil.Process(process.pid).children()
        return {c.pid for c in children if "multiprocessing.spawn" in " ".join(c.cmdline())}
    except psutil.Error:
        return set()
