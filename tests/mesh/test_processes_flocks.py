"""Flocks on several processes: the bits of one, and `mpiexec -n 2 lanewise boids run`."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from lanewise.sims.boids.checkpoint import read_checkpoint
from tests.fuzz.commands import command, folder
from tests.mesh.flocks_program import bits
from tests.mesh.processes import WITH_MPI, but_compiling, end_of, last_json, run, start
from tests.mesh.test_flocks import KINDS, QUICK
from tests.mesh.test_processes_gravity import MODULE, reached

PROGRAM = Path(__file__).parent / "flocks_program.py"
RUN = ["boids", "run", "--agents", 300, "--world", 20, "--steps", 70, "--every", 20]
ENDLESS = ["boids", "run", "--agents", 200, "--steps", 1_000_000, "--checkpoint-every", 20]
pytestmark = WITH_MPI


def check(count: int, kinds: tuple[str, ...]) -> None:
    done = run(count, PROGRAM, *kinds, seconds=400)  # which compiles many kernels
    assert (done.returncode, but_compiling(done.stderr)) == (0, "")
    found: Any = last_json(done.stdout)
    assert found["mesh"] == f"{count + 1} x cpu on {count} processes"
    assert "left the world" in found["bits"]["lost"]
    assert found["bits"] == bits("cpu", kinds)


@pytest.mark.slow
def test_flocks_on_processes_have_the_bits_of_one() -> None:
    check(2, QUICK[:2])


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, len(KINDS), 3))
@pytest.mark.parametrize("count", [2, 3])
def test_all_flocks_on_processes_have_the_bits_of_one(count: int, first: int) -> None:
    check(count, tuple(KINDS)[first : first + 3])


@pytest.mark.slow  # quick is that of a run of gravity
@pytest.mark.parametrize("pictures", [False, True])
def test_runs_have_the_files_of_one_process_and_go_on_on_more(tmp_path: Path, pictures: bool) -> None:
    alone, together = tmp_path / "alone", tmp_path / "together"
    for there in (alone, together):
        there.mkdir()
    begin = [*RUN, "--out", "run.h5", "--final", "t.csv", *["--plot", "p.png"] * pictures]
    go_on = ["boids", "run", "--resume", "run.h5", "--steps", 21, "--final", "t2.csv", *["--movie", "m.gif"] * pictures]
    for count, line in ((2, begin), (3, go_on)):
        with folder(alone):
            ended = command(*line, "--device", f"cpu*{count}")
        assert (ended.code, but_compiling(ended.errors)) == (0, "")
        done = run(count, *MODULE, *line, "--json", folder=together)
        assert (done.returncode, but_compiling(done.stderr)) == (0, "")
        assert done.stdout.count(" steps/s") == 1
        assert last_json(done.stdout)["device"] == f"cpu*{count}"
        names = sorted(p.name for p in alone.iterdir())
        assert names == sorted(p.name for p in together.iterdir())
        for name in names:
            assert (together / name).read_bytes() == (alone / name).read_bytes()


@pytest.mark.slow
def test_wrong_options_are_said_once(tmp_path: Path) -> None:
    for line, said in (
        (("--agents", 100), "a run wants at least 64 per part; take one part"),
        (("--semantics", "seq"), "semantics seq moves one agent after another, on one device, found cpu*2"),
        (("--k", 5000, "--agents", 300), "k is 5000; there are only 300 agents"),
    ):
        done = run(2, *MODULE, "boids", "run", *line, "--steps", 3, folder=tmp_path)
        assert done.returncode == 2
        assert re.sub(r"\s+", " ", done.stderr).count(said) == 1
        assert "rank" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("rank", [None, 0, 1])
def test_a_run_that_is_stopped_or_killed_leaves_a_checkpoint(tmp_path: Path, rank: int | None) -> None:
    """rank: which process is killed; None: Ctrl-C."""
    path = tmp_path / "run.h5"
    with start(2, *MODULE, *ENDLESS, "--out", path, folder=tmp_path) as process:
        reached(path)
        if rank is None:
            process.send_signal(signal.SIGINT)
        else:
            children = psutil.Process(process.pid).children(recursive=True)
            ranks = {p.environ().get("PMI_RANK"): p for p in children if "lanewise" in p.cmdline()}
            ranks[str(rank)].kill()
        begin = time.monotonic()
        done = end_of(process)
    if rank is None:
        assert done.returncode == 130
        assert done.stderr.count("interrupted; continue with: lanewise boids run --resume") == 1
    assert done.returncode != 0
    assert time.monotonic() - begin < 30
    step = read_checkpoint(path).clock.step
    went_on = command("boids", "run", "--resume", path, "--steps", 2, "--device", "cpu")
    assert (went_on.code, read_checkpoint(path).clock.step) == (0, step + 2)
