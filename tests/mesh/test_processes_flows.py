"""Lattices on several processes: the bits and the files of one, and `mpiexec -n 2 lanewise lbm run`."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from lanewise.sims.lbm.checkpoint import read_checkpoint
from tests.fuzz.commands import command, folder
from tests.mesh.flows_program import bits
from tests.mesh.processes import WITH_MPI, but_compiling, end_of, last_json, run, start
from tests.mesh.test_processes_gravity import MODULE, reached

PROGRAM = Path(__file__).parent / "flows_program.py"
RUN = ["lbm", "run", "karman", "--size", 8, "--steps", 60]
ENDLESS = ["lbm", "run", "cavity", "--size", 40, "--steps", 1_000_000_000, "--checkpoint-every", 200]
pytestmark = WITH_MPI


def check(count: int, seeds: range, there: Path) -> None:
    done = run(count, PROGRAM, seeds.start, seeds.stop, seconds=400)  # which compiles many kernels
    assert (done.returncode, but_compiling(done.stderr)) == (0, "")
    found: Any = last_json(done.stdout)
    assert found["mesh"] == f"{count + 1} x cpu on {count} processes"
    assert found["bits"] == bits("cpu", seeds, there)


@pytest.mark.slow
def test_flows_on_processes_have_the_bits_and_files_of_one(tmp_path: Path) -> None:
    check(2, range(2), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(2, 42, 4))
@pytest.mark.parametrize("count", [2, 3])
def test_many_flows_on_processes_have_the_bits_of_one(count: int, first: int, tmp_path: Path) -> None:
    check(count, range(first, first + 4), tmp_path)


@pytest.mark.slow  # quick is that of a run of gravity
@pytest.mark.parametrize("pictures", [False, True])
def test_runs_have_the_files_of_one_process_and_go_on_on_more(tmp_path: Path, pictures: bool) -> None:
    alone, together = tmp_path / "alone", tmp_path / "together"
    for there in (alone, together):
        there.mkdir()
    shown = ["--forces", "f.csv", "--vti", "v.vti", *["--plot", "p.png", "--movie", "m.gif", "--every", 20] * pictures]
    begin = [*RUN, "--out", "run.h5", *shown]
    go_on = ["lbm", "run", "--resume", "run.h5", "--steps", 21, "--forces", "f.csv"]
    for count, line in ((2, begin), (3, go_on)):
        with folder(alone):
            ended = command(*line)
        assert (ended.code, but_compiling(ended.errors)) == (0, "")
        done = run(count, *MODULE, *line, "--json", folder=together)
        assert (done.returncode, but_compiling(done.stderr)) == (0, "")
        assert done.stdout.count(" MLUPS") == 1
        assert last_json(done.stdout)["device"] == f"a mesh ({count} x cpu on {count} processes)"
        names = sorted(p.name for p in alone.iterdir())
        assert names == sorted(p.name for p in together.iterdir())
        for name in names:
            assert (together / name).read_bytes() == (alone / name).read_bytes()


@pytest.mark.slow
def test_wrong_options_are_said_once(tmp_path: Path) -> None:
    (tmp_path / "there.h5").write_text("")
    for line, said in (
        (("cavity", "--size", 12), "sites of shape (12, 12) have 12 layers along y, and a mesh of 2 parts"),
        (("cavity", "--size", 30, "--out", "there.h5"), "there.h5: the file exists already"),
    ):
        done = run(2, *MODULE, "lbm", "run", *line, "--steps", 3, folder=tmp_path)
        assert done.returncode == 2
        assert re.sub(r"\s+", " ", done.stderr).count(said) == 1
        assert "rank" not in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["there.h5"]


@pytest.mark.slow
def test_a_flow_that_blows_up_is_said_once(tmp_path: Path) -> None:
    line = ("cavity", "--size", 40, "--re", 1e6, "--collision", "bgk", "--speed", 0.17, "--steps", 20_000)
    done = run(2, *MODULE, "lbm", "run", *line, folder=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("the flow blew up between") == 1
    assert "rank" not in done.stderr


@pytest.mark.slow
def test_ctrl_c_leaves_a_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    with start(2, *MODULE, *ENDLESS, "--out", path, folder=tmp_path) as process:
        reached(path)
        process.send_signal(signal.SIGINT)
        done = end_of(process)
    assert done.returncode == 130
    assert done.stderr.count("interrupted; continue with: lanewise lbm run --resume") == 1
    before = read_checkpoint(path).step
    assert [p.name for p in tmp_path.iterdir()] == ["run.h5"]
    assert command("lbm", "run", "--resume", path, "--steps", 2, "--device", "cpu").code == 0
    assert read_checkpoint(path).step == before + 2


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_process_leaves_the_last_checkpoint(tmp_path: Path, rank: int) -> None:
    path = tmp_path / "run.h5"
    with start(2, *MODULE, *ENDLESS, "--out", path, folder=tmp_path) as process:
        reached(path)
        children = psutil.Process(process.pid).children(recursive=True)
        ranks = {p.environ().get("PMI_RANK"): p for p in children if "lanewise" in p.cmdline()}
        ranks[str(rank)].kill()
        begin = time.monotonic()
        done = end_of(process)
    assert done.returncode != 0
    assert time.monotonic() - begin < 30
    step = read_checkpoint(path).step
    went_on = command("lbm", "run", "--resume", path, "--steps", 2)
    assert (went_on.code, read_checkpoint(path).step) == (0, step + 2)
