"""`mpiexec -n 2 lanewise gravity run`: the bits and the files of one process, whatever happens on the way."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import psutil
import pytest

from lanewise.sims.gravity.checkpoint import read_checkpoint
from tests.fuzz.commands import command, folder
from tests.mesh.processes import WITH_MPI, end_of, last_json, run, start

RUN = ["gravity", "run", "--bodies", 200, "--steps", 30, "--dt", "0.001", "--softening", "0.05"]
ENDLESS = [*RUN[:4], "--steps", 1_000_000, *RUN[6:], "--checkpoint-seconds", "0.1"]
MODULE = ("-m", "lanewise")
pytestmark = WITH_MPI


def held(path: Path) -> dict[str, Any]:
    """Everything that a file holds, but the number of parts."""
    found: dict[str, Any] = {}

    def note(name: str, item: Any) -> None:
        found.update({f"{name}@{n}": np.asarray(v).tolist() for n, v in item.attrs.items()})
        if isinstance(item, h5py.Dataset):
            found[name] = (item.dtype.str, item[()].tobytes())

    with h5py.File(path) as file:
        file.visititems(note)
    found.pop("lanewise@device", None)  # flows and flocks have none
    return found


def reached(path: Path, seconds: float = 60.0) -> None:
    """Wait until a run has written this checkpoint for the second time."""
    until, first = time.monotonic() + seconds, 0.0
    while time.monotonic() < until:
        now = path.stat().st_mtime if path.exists() else 0.0
        if first and now > first:
            return
        first = first or now
        time.sleep(0.05)
    pytest.fail(f"no second checkpoint in {seconds:g} s")


@pytest.mark.parametrize("method", ["direct", pytest.param("tree", marks=pytest.mark.slow)])
def test_runs_have_the_files_of_one_process_and_go_on_on_more(tmp_path: Path, method: str) -> None:
    alone, together = tmp_path / "alone", tmp_path / "together"
    for there in (alone, together):
        there.mkdir()
    begin = [*RUN, "--method", method, "--out", "run.h5", "--snapshot-every", 10]
    go_on = ["gravity", "run", "--resume", "run.h5", "--steps", 10]
    for count, line, device in ((2, begin, ["--device", "cpu*1"]), (3, go_on, [])):
        with folder(alone):
            assert command(*line, *device).code == 0
        done = run(count, *MODULE, *line, "--json", folder=together)
        said = [text for text in done.stderr.splitlines() if not text.startswith("compiling kernel")]
        assert (done.returncode, said) == (0, [])
        assert done.stdout.count(" pairs/s") == (method == "direct")
        assert last_json(done.stdout)["device"] == f"cpu*{count}"
        assert f"\n{count} processes; rows go by MPI, through memory of the host\n" in done.stdout
        names = sorted(p.name for p in alone.iterdir())
        assert names == sorted(p.name for p in together.iterdir())
        for name in names:
            assert held(together / name) == held(alone / name)


@pytest.mark.slow
def test_a_calibrated_tree_is_that_of_all(tmp_path: Path) -> None:
    """A process alone goes on with the tree that the file names, and comes to where three came."""
    line = [*RUN[:2], "--bodies", 1500, "--steps", 4, *RUN[6:], "--method", "tree", "--accuracy", "0.01", "--calibrate"]
    done = run(3, *MODULE, *line, "--out", "run.h5", "--snapshot-every", 2, folder=tmp_path)
    assert done.returncode == 0
    with folder(tmp_path):
        line = [*RUN[:2], "--resume", "run_00000002.h5", "--steps", 2, "--out", "alone.h5", "--device", "cpu"]
        assert command(*line).code == 0
    together, alone = held(tmp_path / "run.h5"), held(tmp_path / "alone.h5")
    assert [together[f"PartType1/{n}"] for n in ("Coordinates", "Velocities")] == [
        alone[f"PartType1/{n}"] for n in ("Coordinates", "Velocities")
    ]


@pytest.mark.slow
def test_ctrl_c_leaves_a_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    with start(2, *MODULE, *ENDLESS, "--out", path, folder=tmp_path) as process:
        reached(path)
        process.send_signal(signal.SIGINT)
        done = end_of(process)
    assert done.returncode == 130
    assert done.stderr.count("interrupted; continue with: lanewise gravity run --resume") == 1
    before = read_checkpoint(path).step
    assert [p.name for p in tmp_path.iterdir()] == ["run.h5"]
    assert command("gravity", "run", "--resume", path, "--steps", 2, "--device", "cpu").code == 0
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
    went_on = command("gravity", "run", "--resume", path, "--steps", 2)
    assert (went_on.code, read_checkpoint(path).step) == (0, step + 2)


@pytest.mark.slow
def test_wrong_options_are_said_once(tmp_path: Path) -> None:
    for line, said in (
        (("--no-such-option",), "No such option: --no-such-option"),
        (("--device", "cuda:77"), "'cuda:77'"),
        (("--bodies", 200, "--method", "direct", "--theta", 0.5, "--out", "run.h5"), "--theta needs --method tree"),
        (("--bodies", 100, "--steps", 1), "a run wants at least 64 per part; take one part"),
    ):
        done = run(2, *MODULE, "gravity", "run", *line, folder=tmp_path)
        assert done.returncode == 2
        assert re.sub(r"\s+", " ", done.stderr).count(said) == 1
        assert "rank" not in done.stderr
    assert list(tmp_path.iterdir()) == []
